"""The newcomer's first ten minutes: a corpus whose translation needs context, two models, a table and a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from weitblick.checkpoints.installed import DEFAULT_MODEL
from weitblick.common.errors import parse_value
from weitblick.common.files import check_format_version, read_json, write_json
from weitblick.common.recipe_files import load_recipe
from weitblick.documents.contrast import ContrastItem
from weitblick.documents.corpora.formats import read_documents, write_documents
from weitblick.documents.discourse.generator import generate, write_corpus
from weitblick.documents.document import Document
from weitblick.evaluation.context_use import translate_with
from weitblick.evaluation.contrast import encode_suite, judge_suite, summarise
from weitblick.evaluation.metrics import build_metric
from weitblick.evaluation.scoring import ContextMode
from weitblick.evaluation.suites import read_suite
from weitblick.explanation.explain import explain
from weitblick.explanation.page import write_page
from weitblick.training.run import train
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator

FORMAT_VERSION = 1
RECIPES = Path("tiny")
DOCUMENTS, SEED = 3000, 1
BLEU_DOCUMENTS = 100
SPEECH = ["The door is open.", "It must be closed."]


class GeneratedCorpus(BaseModel):
    """What was generated, and how many items its suite has."""

    preset: str = "small"
    documents: int = DOCUMENTS
    seed: int = SEED
    items: int


class Bleu(BaseModel):
    """How BLEU was measured."""

    documents: int
    signature: str
    beam: int = 1


class Result(BaseModel):
    """What one model reached, read one way."""

    model: str
    context: ContextMode
    accuracy: float
    by_distance: dict[str, float]
    bleu: float


class Figures(BaseModel):
    """figures.json"""

    format_version: int = FORMAT_VERSION
    corpus: GeneratedCorpus
    bleu: Bleu
    rows: list[Result]


@dataclass(frozen=True)
class Condition:
    """A line of the table: one model read one way."""

    name: str
    model: str
    mode: ContextMode


CONDITIONS = (
    Condition("sentence-level", "sentence", "removed"),
    Condition("context-aware (H-Attention)", "h-attention", "own"),
    Condition("  its context removed", "h-attention", "removed"),
    Condition("  a random document's context", "h-attention", "random"),
)


def run_demo(folder: Path, console: Console) -> Figures:
    """Everything the demo shows; what is there already is not made again."""
    if DEFAULT_MODEL.is_dir():
        _show_shipped_model(console)
    corpus = folder / "corpus"
    if not (corpus / "contrast.jsonl").exists():
        console.print(
            f"[bold]1[/] Writing {DOCUMENTS:,} documents in which [i]it[/] is er, sie or es by another sentence"
        )
        write_corpus(generate("small", DOCUMENTS, SEED), corpus)
    console.print("[bold]2[/] Training the sentence-level model, then H-Attention on top of it")
    _train(folder, corpus)
    console.print("[bold]3[/] Judging both")
    figures = _figures(folder, corpus)
    console.print(_table(figures))
    console.print("[bold]4[/] Translating a document, and showing what the model read")
    _explain_sample(folder, corpus, console)
    console.print(
        f"\nFigures: {folder / 'figures.json'}. The report needs no network: open {(folder / 'report.html').resolve()}"
    )
    _next_commands(folder, console)
    return figures


def _show_shipped_model(console: Console) -> None:
    console.print("[bold]0[/] The model that comes with Weitblick, English to German:")
    document = Translator.load().translate(SPEECH)
    for source, target in zip(document.sources, document.targets, strict=True):
        console.print(f"   {source}  [dim]->[/]  [bold]{target}[/]", highlight=False)


def _train(folder: Path, corpus: Path) -> None:
    common = [f"data.dir={corpus}", f"seed={SEED}"]
    train(load_recipe(RECIPES / "sentence.yaml", [*common, f"output={folder / 'sentence'}"]))
    shared = ["stage=context", f"stage1={folder / 'sentence' / 'best'}", f"output={folder / 'h-attention'}"]
    train(load_recipe(RECIPES / "h-attention.yaml", [*common, *shared]))


def _figures(folder: Path, corpus: Path) -> Figures:
    """Accuracy by distance and BLEU of every row, read back where they are known."""
    path = folder / "figures.json"
    if path.exists():
        value = read_json(path)
        check_format_version(value, FORMAT_VERSION, path)
        return parse_value(Figures, value, path, remedy="delete it: it is made again")
    items = read_suite(corpus / "contrast.jsonl")
    documents = list(read_documents([corpus / "test.en", corpus / "test.de"]))[:BLEU_DOCUMENTS]
    translators = {name: Translator.load(folder / name / "best") for name in ("sentence", "h-attention")}
    figures = Figures(
        corpus=GeneratedCorpus(items=len(items)),
        bleu=Bleu(documents=len(documents), signature=build_metric("sacrebleu").signature),
        rows=[_measure(condition, translators[condition.model], items, documents) for condition in CONDITIONS],
    )
    write_json(path, figures.model_dump())
    return figures


def _measure(
    condition: Condition, translator: Translator, items: list[ContrastItem], documents: list[Document]
) -> Result:
    suite = encode_suite(translator, items)
    found = summarise(judge_suite(translator.model, suite, condition.mode, seed=SEED))
    metric = build_metric("sacrebleu")
    translated = translate_with(translator, documents, condition.mode, TranslationOptions(beam=1), seed=SEED)
    lines = [target or "" for document in translated for target in document.targets]
    references = [target or "" for document in documents for target in document.targets]
    return Result(
        model=condition.name.strip(),
        context=condition.mode,
        accuracy=found.overall.accuracy,
        by_distance={name: group.accuracy for name, group in found.by_distance.items()},
        bleu=round(metric.corpus_score(metric.statistics(lines, references)).value, 2),
    )


def _table(figures: Figures) -> Table:
    table = Table(title="Contrastive accuracy by antecedent distance, and BLEU", title_justify="left")
    table.add_column("model")
    for name in [*figures.rows[0].by_distance, "BLEU"]:
        table.add_column(name, justify="right")
    for condition, found in zip(CONDITIONS, figures.rows, strict=True):
        table.add_row(condition.name, *(f"{value:.3f}" for value in found.by_distance.values()), f"{found.bleu:.1f}")
    return table


def _explain_sample(folder: Path, corpus: Path, console: Console) -> None:
    document = next(read_documents([corpus / "test.en"]))
    translator = Translator.load(folder / "h-attention" / "best")
    explanation = explain(translator, document, title="A document of the demo", model_name="demo H-Attention")
    write_page(folder / "report.html", explanation)
    write_documents([document], [folder / "sample.en"])
    translated = translator.translate(document)
    for source, target in zip(translated.sources, translated.targets, strict=True):
        console.print(f"   {source:<52} [bold]{target}[/]", highlight=False, soft_wrap=True)


def _next_commands(folder: Path, console: Console) -> None:
    model, corpus = folder / "h-attention" / "best", folder / "corpus"
    console.print("\nThree commands to try next:")
    for command in (
        f"weitblick contrast -m {model} {corpus}/contrast.jsonl --controls",
        f"weitblick explain -m {model} {folder}/sample.en -o sample.html",
        f"weitblick translate -m {model} {corpus}/test.en -o test.de",
    ):
        console.print(f"   {command}", highlight=False, soft_wrap=True)
