"""`weitblick score` and `weitblick compare`: metrics, and whether systems differ by more than chance."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weitblick.cli.console import figure_table, log, print_json, print_text, set_log_level, warn, wide_console
from weitblick.cli.options import Json, Quiet, Seed, Verbose
from weitblick.common.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from weitblick.evaluation.metric import Counts, Metric, Score
    from weitblick.evaluation.significance import Interval, MetricComparison, SystemsComparison
    from weitblick.evaluation.translations import AlignedTexts


Language = Annotated[
    str | None,
    typer.Option(
        metavar="CODE",
        help="Language of the translations, for METEOR (de, en) and for Moses tokenisation; by the ending of the "
        "reference (test.de) if absent. The other metrics need none.",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,NAME...]",
        help="bleu (Moses tokens), sacrebleu, dbleu (documents), chrf, ter, meteor; if absent, all but ter that the "
        "language allows.",
    ),
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


Row = dict[str, str | int | float]
"""One sentence or document: its place, its scores by metric, and its texts."""


@dataclass(frozen=True)
class FileScores:
    """The scores of one file of translations, in the order of the metrics asked for."""

    hypothesis: str
    scores: Sequence[Score]
    labels: Sequence[str]
    per_sentence: list[Row] | None = None
    per_document: list[Row] | None = None

    def to_json(self) -> dict[str, object]:
        scores = {score.metric: {"score": score.value, "signature": score.signature} for score in self.scores}
        rows = {"per_sentence": self.per_sentence, "per_document": self.per_document}
        found = {level: values for level, values in rows.items() if values is not None}
        return {"hypothesis": self.hypothesis, "scores": scores, **found}


def score(
    hypotheses: Annotated[
        list[str], typer.Argument(metavar="HYPOTHESIS", help="Files of translations, in any of our formats.")
    ],
    references: Annotated[
        list[str],
        typer.Option(
            "--reference",
            "-r",
            metavar="FILE",
            help="Reference translations: the same sentences in the same order. Repeatable.",
        ),
    ],
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The source, shown beside the scores of sentences.")
    ] = None,
    language: Language = None,
    metrics: Metrics = None,
    tokenised: Tokenised = False,
    paraphrases: Paraphrases = None,
    function_words: FunctionWords = None,
    per_sentence: Annotated[
        bool, typer.Option("--per-sentence", help="The scores of every sentence, too: a line each.")
    ] = False,
    per_document: Annotated[
        bool, typer.Option("--per-document", help="The scores of every document, too: a line each.")
    ] = False,
    brief: Annotated[bool, typer.Option("--brief", "-b", help="Only numbers: a line for each file.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Score translations against one or more references: BLEU, sacreBLEU, document BLEU, chrF, TER and METEOR.

    Example: weitblick score translations.de --reference test.de

    Example: weitblick score a.fr b.fr --reference test.fr --metrics sacrebleu,chrf --brief
    """
    from weitblick.evaluation.translations import read_translations

    set_log_level(quiet, verbose)
    language = language or language_of(references[0])
    chosen = choose_metrics(metrics, language, tokenised, paraphrases, function_words)
    with warnings_as_lines():
        texts = read_translations(references, hypotheses, source)
    rows = [
        _report(chosen, path, language, tokenised, texts, per_sentence=per_sentence, per_document=per_document)
        for path in hypotheses
    ]
    if as_json:
        facts = {"references": references, "language": language}
        counts = {"sentences": sum(texts.lengths), "documents": len(texts.lengths)}
        print_json(facts | counts | {"hypotheses": [row.to_json() for row in rows]})
    elif brief:
        for row in rows:
            print_text("\t".join(f"{found.value:.2f}" for found in row.scores))
    else:
        for row in rows:
            _print_report(row, named=len(rows) > 1)


def language_of(path: str) -> str | None:
    """`test.de` is German: the two letters that a file of one side ends in, if it does."""
    ending = Path(path.removesuffix(".gz").removesuffix(".xz")).suffix.removeprefix(".")
    return ending if len(ending) == 2 and ending.isalpha() and ending.islower() else None


def choose_metrics(
    names: str | None, language: str | None, tokenised: bool, paraphrases: Path | None, function_words: str | None
) -> list[Metric]:
    from weitblick.evaluation.metrics import METRICS, build_metric, default_metrics

    wanted = list(default_metrics(language))
    if names is not None:
        wanted = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    elif language is None:
        log.info("the language is not known: without METEOR and Moses-tokenised BLEU (--language brings them)")
    if not wanted:
        raise UserError("no metric named", where="--metrics", remedy=f"one or more of {', '.join(METRICS)}")
    return [
        build_metric(name, language, tokenised=tokenised, paraphrases=paraphrases, function_words=function_words)
        for name in wanted
    ]


def count_statistics(
    metric: Metric, language: str | None, tokenised: bool, lines: list[str], texts: AlignedTexts
) -> Counts:
    """A file's statistics. Tokenised files are for tokenised BLEU alone; every other metric reads running text."""
    from weitblick.evaluation.metrics import MosesText, metric_statistics

    references = texts.references
    if tokenised and metric.name != "bleu":
        moses = MosesText(language or "en")
        lines, references = moses.detokenize(lines), [moses.detokenize(reference) for reference in references]
    return metric_statistics(metric, lines, references, texts.lengths)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Warnings about the user's files as single lines on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        warn(str(warning.message))


def _report(
    metrics: Sequence[Metric],
    path: str,
    language: str | None,
    tokenised: bool,
    texts: AlignedTexts,
    *,
    per_sentence: bool,
    per_document: bool,
) -> FileScores:
    lines = texts.hypotheses[Path(path)]
    counts = {metric.name: count_statistics(metric, language, tokenised, lines, texts) for metric in metrics}
    return FileScores(
        path,
        [metric.corpus_score(counts[metric.name]) for metric in metrics],
        [metric.label for metric in metrics],
        _sentence_rows(metrics, counts, lines, texts) if per_sentence else None,
        _document_rows(metrics, counts, texts) if per_document else None,
    )


def _sentence_rows(
    metrics: Sequence[Metric], counts: dict[str, Counts], lines: list[str], texts: AlignedTexts
) -> list[Row]:
    """A row for each sentence with every metric that can tell sentences apart."""
    able = [metric for metric in metrics if metric.unit == "sentence"]
    scores = {metric.name: metric.segment_scores(counts[metric.name]) for metric in able}
    documents = [number for number, length in enumerate(texts.lengths, 1) for _ in range(length)]
    rows = []
    for index, (line, gold) in enumerate(zip(lines, texts.references[0], strict=True)):
        row: Row = {"sentence": index + 1, "document": documents[index]}
        row |= {name: round(float(values[index]), 4) for name, values in scores.items()}
        if texts.sources is not None:
            row["source"] = texts.sources[index]
        rows.append(row | {"hypothesis": line, "reference": gold})
    return rows


def _document_rows(metrics: Sequence[Metric], counts: dict[str, Counts], texts: AlignedTexts) -> list[Row]:
    from weitblick.evaluation.metrics import sum_documents

    scores = {
        m.name: m.score(counts[m.name] if m.unit == "document" else sum_documents(counts[m.name], texts.lengths))
        for m in metrics
    }
    return [
        {
            "document": number,
            "sentences": length,
            **{name: round(float(values[number - 1]), 4) for name, values in scores.items()},
        }
        for number, length in enumerate(texts.lengths, 1)
    ]


def _print_report(found: FileScores, *, named: bool) -> None:
    if named:
        print_text(found.hypothesis)
    for label, score in zip(found.labels, found.scores, strict=True):
        print_text(f"{label:<10}{score.value:6.2f}  {score.signature}")
    for rows in (found.per_sentence, found.per_document):
        if rows:
            print_text("\t".join(rows[0]))
            print_text("\n".join("\t".join(str(value) for value in row.values()) for row in rows))


# `weitblick compare`


def compare(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="Reference translations, in any format.")],
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="A B",
            help="Systems, the baseline first: a file, or NAME=RUN1,RUN2,... with several optimiser runs.",
        ),
    ],
    unit: Annotated[
        Literal["sentence", "document"], typer.Option(help="What is exchanged and resampled.")
    ] = "sentence",
    trials: Annotated[int, typer.Option(min=1, help="Random trials of each test.")] = 10_000,
    seed: Seed = 1,
    language: Language = None,
    metrics: Metrics = None,
    tokenised: Tokenised = False,
    paraphrases: Paraphrases = None,
    function_words: FunctionWords = None,
    as_json: Json = False,
) -> None:
    """Tell whether systems differ from the first one by more than chance, for every metric.

    Example: weitblick compare test.de baseline.de ours.de

    Example: weitblick compare test.de sentence=s1.de,s2.de,s3.de ours=o1.de,o2.de,o3.de
    """
    from weitblick.evaluation.significance import compare_systems, parse_systems
    from weitblick.evaluation.translations import read_translations

    language = language or language_of(reference)
    chosen = choose_metrics(metrics, language, tokenised, paraphrases, function_words)
    named = parse_systems(systems)
    with warnings_as_lines():
        texts = read_translations([reference], list(dict.fromkeys(path for runs in named.values() for path in runs)))

    def count(metric: Metric, path: Path) -> Counts:
        return count_statistics(metric, language, tokenised, texts.hypotheses[path], texts)

    found = compare_systems(chosen, named, count, texts.lengths, unit=unit, trials=trials, seed=seed)
    if as_json:
        print_json({"reference": reference, "language": language} | found.to_json())
    else:
        _print_comparison(found)


def _print_comparison(found: SystemsComparison) -> None:
    """One table for each metric; the best score is bold."""
    from weitblick.evaluation.significance import BETTER, CLEARLY_BETTER, LEVEL, STRICT_LEVEL, WORSE

    console = wide_console()
    for metric in found.metrics.values():
        console.print(_table(metric))
        console.print(f"{metric.signature}  (tested by {metric.unit})\n", highlight=False, style="dim")
    console.print(
        f"Against {found.baseline}, two-sided, {found.trials} trials, by approximate randomisation: "
        f"{BETTER} better at p < {LEVEL}, {CLEARLY_BETTER} at p < {STRICT_LEVEL}, {WORSE} worse at p < {LEVEL}.",
        highlight=False,
    )


def _table(metric: MetricComparison) -> Table:
    from rich.text import Text

    best = max(system.score.score for system in metric.systems.values())
    tests = ("difference", "95% interval", "p (random.)", "p (bootstrap)")
    table = figure_table("system", (metric.label, "95% interval", "runs ±", *tests))
    for name, system in metric.systems.items():
        own, against = system.score, system.against
        score = Text(f"{own.score:.2f}{system.mark}", style="bold" if own.score == best else "")
        cells = ["", "", "", ""]
        if against is not None:
            cells = [
                f"{against.difference:+.2f}",
                _range(against.interval, "+"),
                f"{against.p_randomisation:.4f}",
                f"{against.p_bootstrap:.4f}",
            ]
        spread = "" if own.deviation is None else f"{own.deviation:.2f}"
        table.add_row(Text(name), score, _range(own.interval), spread, *cells)
    return table


def _range(interval: Interval, sign: str = "") -> str:
    return f"{interval.low:{sign}.2f} to {interval.high:{sign}.2f}"
