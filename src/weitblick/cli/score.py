"""`weitblick score` and `weitblick compare`: automatic metrics of translations, and whether differences are real."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from weitblick.evaluation.metrics import Metric
    from weitblick.evaluation.translations import Translations

Language = Annotated[str, typer.Option(help="Language of the translations: de or en.")]
Metrics = Annotated[
    str | None,
    typer.Option(help="Metrics, separated by commas: bleu, sacrebleu, dbleu, chrf, meteor. All of them by default."),
]
Tokenised = Annotated[
    bool, typer.Option("--tokenised", help="The files are Moses-tokenised: BLEU takes them as they are.")
]
Paraphrases = Annotated[Path | None, typer.Option(help="METEOR: paraphrase table (three lines an entry, .gz or not).")]
FunctionWords = Annotated[
    str | None,
    typer.Option(
        help="METEOR: a file of function words, one a line, or de or en for our lists. The language's own by default; "
        "Meteor 1.5 itself uses the English ones for every language."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def register(app: typer.Typer) -> None:
    app.command(
        name="score",
        help="Score translations against a reference: BLEU, sacreBLEU, document BLEU, chrF and METEOR.",
        epilog="Example: weitblick score translations.de --reference test.de --language de",
    )(score)


def score(
    hypothesis: Annotated[Path, typer.Argument(help="Translations, in any of our formats.", metavar="HYP")],
    reference: Annotated[Path, typer.Option(help="Reference translations, the same sentences in the same order.")],
    source: Annotated[Path | None, typer.Option(help="Source, shown beside the scores of sentences.")] = None,
    language: Language = "de",
    metrics: Metrics = None,
    tokenised: Tokenised = False,
    paraphrases: Paraphrases = None,
    function_words: FunctionWords = None,
    per_sentence: Annotated[bool, typer.Option("--per-sentence", help="JSON: the scores of every sentence.")] = False,
    per_document: Annotated[bool, typer.Option("--per-document", help="JSON: the scores of every document.")] = False,
    as_json: Json = False,
) -> None:
    from weitblick.evaluation.metrics import metric_statistics
    from weitblick.evaluation.translations import read_translations

    chosen = _build_metrics(metrics, language, tokenised, paraphrases, function_words)
    with _plain_warnings():
        texts = read_translations(reference, [hypothesis], source)
    lines = texts.hypotheses[hypothesis]
    counts = {
        m.name: metric_statistics(m, *_prepared(m, language, tokenised, lines, texts.references), texts.lengths)
        for m in chosen
    }
    scores = [metric.corpus_score(counts[metric.name]) for metric in chosen]
    if not (as_json or per_sentence or per_document):
        _print_scores(chosen, {s.metric: (s.value, s.signature) for s in scores})
        return
    report: dict[str, Any] = {
        "hypothesis": str(hypothesis),
        "reference": str(reference),
        "language": language,
        "sentences": len(lines),
        "documents": len(texts.lengths),
        "scores": {s.metric: {"score": s.value, "signature": s.signature} for s in scores},
    }
    if per_sentence:
        report["per_sentence"] = _sentence_rows(chosen, counts, lines, texts)
    if per_document:
        report["per_document"] = _document_rows(chosen, counts, texts)
    typer.echo(json.dumps(report, ensure_ascii=False, indent=2))


def _build_metrics(
    names: str | None, language: str, tokenised: bool, paraphrases: Path | None, function_words: str | None
) -> list[Metric]:
    from weitblick.errors import UserError
    from weitblick.evaluation.metrics import METRICS, build_metric

    wanted = list(METRICS) if names is None else list(dict.fromkeys(n.strip() for n in names.split(",") if n.strip()))
    if not wanted:
        raise UserError("no metric named", where="--metrics", remedy=f"one or more of {', '.join(METRICS)}")
    return [
        build_metric(name, language, tokenised=tokenised, paraphrases=paraphrases, function_words=function_words)
        for name in wanted
    ]


def _prepared(metric: Metric, language: str, tokenised: bool, *texts: list[str]) -> Iterator[list[str]]:
    """Tokenised files are for tokenised BLEU alone; every other metric reads running text."""
    from weitblick.evaluation.metrics import MosesText

    if not tokenised or metric.name == "bleu":
        return iter(texts)
    moses = MosesText(language)
    return (moses.detokenize(text) for text in texts)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings about the user's files as single lines on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        sys.stderr.write(f"weitblick: warning: {warning.message}\n")


def _print_scores(metrics: list[Metric], scores: dict[str, tuple[float, str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    table.add_column("score", justify="right")
    table.add_column("signature", overflow="fold")
    for metric in metrics:
        value, signature = scores[metric.name]
        table.add_row(metric.label, f"{value:.2f}", signature)
    Console().print(table)


def _sentence_rows(
    metrics: list[Metric], counts: dict[str, Any], lines: list[str], texts: Translations
) -> list[dict[str, Any]]:
    """A row for each sentence with every metric that can tell sentences apart."""
    able = [metric for metric in metrics if metric.unit == "sentence"]
    scores = {metric.name: metric.segment_scores(counts[metric.name]) for metric in able}
    documents = [number for number, length in enumerate(texts.lengths, 1) for _ in range(length)]
    rows = []
    for index, (line, gold) in enumerate(zip(lines, texts.references, strict=True)):
        row: dict[str, Any] = {"sentence": index + 1, "document": documents[index]}
        if texts.sources is not None:
            row["source"] = texts.sources[index]
        row |= {"hypothesis": line, "reference": gold}
        rows.append(row | {name: round(float(values[index]), 4) for name, values in scores.items()})
    return rows


def _document_rows(metrics: list[Metric], counts: dict[str, Any], texts: Translations) -> list[dict[str, Any]]:
    from weitblick.evaluation.metrics import sum_documents

    scores = {
        m.name: m.score(counts[m.name] if m.unit == "document" else sum_documents(counts[m.name], texts.lengths))
        for m in metrics
    }
    return [
        {"document": number, "sentences": length}
        | {name: round(float(values[number - 1]), 4) for name, values in scores.items()}
        for number, length in enumerate(texts.lengths, 1)
    ]
