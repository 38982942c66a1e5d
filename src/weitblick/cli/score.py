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
    from weitblick.metrics.metrics import Counts, Metric
    from weitblick.metrics.translations import Translations

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
        rich_help_panel="Judge",
    )(score)
    app.command(
        name="compare",
        help="Tell whether systems differ from the first one by more than chance, for every metric.",
        epilog="Example: weitblick compare test.de baseline.de ours.de\n\n"
        "Several runs: weitblick compare test.de sentence=s1.de,s2.de,s3.de ours=o1.de,o2.de,o3.de",
        rich_help_panel="Judge",
    )(compare)


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
    from weitblick.metrics.translations import read_translations

    chosen = _build_metrics(metrics, language, tokenised, paraphrases, function_words)
    with _plain_warnings():
        texts = read_translations(reference, [hypothesis], source)
    lines = texts.hypotheses[hypothesis]
    counts = {metric.name: _count(metric, language, tokenised, lines, texts) for metric in chosen}
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
    from weitblick.metrics.metrics import METRICS, build_metric

    wanted = list(METRICS) if names is None else list(dict.fromkeys(n.strip() for n in names.split(",") if n.strip()))
    if not wanted:
        raise UserError("no metric named", where="--metrics", remedy=f"one or more of {', '.join(METRICS)}")
    return [
        build_metric(name, language, tokenised=tokenised, paraphrases=paraphrases, function_words=function_words)
        for name in wanted
    ]


def _count(metric: Metric, language: str, tokenised: bool, lines: list[str], texts: Translations) -> Counts:
    """A file's statistics. Tokenised files are for tokenised BLEU alone; every other metric reads running text."""
    from weitblick.metrics.metrics import MosesText, metric_statistics

    references = texts.references
    if tokenised and metric.name != "bleu":
        moses = MosesText(language)
        lines, references = moses.detokenize(lines), moses.detokenize(references)
    return metric_statistics(metric, lines, references, texts.lengths)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings about the user's files as single lines on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        sys.stderr.write(f"weitblick: warning: {warning.message}\n")


def _print_scores(metrics: list[Metric], scores: dict[str, tuple[float, str]]) -> None:
    for metric in metrics:
        value, signature = scores[metric.name]
        typer.echo(f"{metric.label:<10}{value:6.2f}  {signature}")


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
    from weitblick.metrics.metrics import sum_documents

    scores = {
        m.name: m.score(counts[m.name] if m.unit == "document" else sum_documents(counts[m.name], texts.lengths))
        for m in metrics
    }
    return [
        {"document": number, "sentences": length}
        | {name: round(float(values[number - 1]), 4) for name, values in scores.items()}
        for number, length in enumerate(texts.lengths, 1)
    ]


def compare(
    reference: Annotated[Path, typer.Argument(help="Reference translations.", metavar="REF")],
    systems: Annotated[
        list[str],
        typer.Argument(
            help="Systems, the baseline first: a file, or NAME=RUN1,RUN2,... with several optimiser runs.",
            metavar="A [B ...]",
        ),
    ],
    system: Annotated[
        list[str] | None, typer.Option(help="A further system as NAME=RUN1,RUN2,...; may be repeated.")
    ] = None,
    unit: Annotated[str, typer.Option(help="What is exchanged and resampled: sentence or document.")] = "sentence",
    trials: Annotated[int, typer.Option(help="Random trials of each test.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the tests.")] = 1,
    language: Language = "de",
    metrics: Metrics = None,
    tokenised: Tokenised = False,
    paraphrases: Paraphrases = None,
    function_words: FunctionWords = None,
    as_json: Json = False,
) -> None:
    from weitblick.metrics.comparison import compare_systems, parse_systems, print_comparison
    from weitblick.metrics.translations import read_translations

    chosen = _build_metrics(metrics, language, tokenised, paraphrases, function_words)
    named = parse_systems([*systems, *(system or [])])
    with _plain_warnings():
        texts = read_translations(reference, list(dict.fromkeys(path for runs in named.values() for path in runs)))

    def count(metric: Metric, path: Path) -> Counts:
        return _count(metric, language, tokenised, texts.hypotheses[path], texts)

    report = compare_systems(chosen, named, count, texts.lengths, unit=unit, trials=trials, seed=seed)
    if as_json:
        typer.echo(
            json.dumps({"reference": str(reference), "language": language} | report, ensure_ascii=False, indent=2)
        )
    else:
        print_comparison(chosen, report)
