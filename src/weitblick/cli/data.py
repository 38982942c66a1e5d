"""`weitblick data`: convert, measure, split, check and select from corpora of documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weitblick.cli.variadic import InputFormat, OutputFormat, Outputs, OutputsCommand
from weitblick.errors import UserError
from weitblick.files import STANDARD

if TYPE_CHECKING:
    from weitblick.documents import Corpus, Document
    from weitblick.documents.checking import Finding
    from weitblick.documents.statistics import Statistics

data_app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

Inputs = Annotated[
    list[str], typer.Argument(metavar="SOURCE [TARGET]", help="Files, plain, .gz or .xz; - is standard input.")
]
Languages = Annotated[
    str | None, typer.Option(metavar="SRC-TGT", help="Such as en-de; for prose and files that hold several languages.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def register(app: typer.Typer) -> None:
    from weitblick.cli import antecedents, discourse, select

    data_app.command("convert", cls=OutputsCommand)(convert)
    data_app.command("stats")(stats)
    data_app.command("split")(split)
    data_app.command("check", cls=OutputsCommand)(check)
    select.register(data_app)
    antecedents.register(data_app)
    discourse.register(data_app)
    app.add_typer(
        data_app,
        name="data",
        help="Corpora of documents: convert, measure, split, check, select, generate.",
        rich_help_panel="Data",
    )


def convert(
    inputs: Inputs,
    output: Outputs,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
    side: Annotated[str, typer.Option(help="Which side to write: source, target or both.")] = "both",
    languages: Languages = None,
) -> None:
    """Convert a corpus from one format to another.

    Example: weitblick data convert dev.en dev.de -o dev.jsonl

    Example: weitblick data convert dev.jsonl -o dev.en dev.de --to d-lines

    Example: weitblick data convert approved.jsonl -o approved.tmx --languages en-de

    Formats: text, d-lines, jsonl, tsv, tmx, docids, prose; read only: starts, ids, news-commentary, ted-xml, ted-tags,
    wmt-sgm, wmt-xml, opus.
    """
    from weitblick.cli.corpora import languages_of, only_side, parse_languages
    from weitblick.documents import read_documents, write_documents

    pair = parse_languages(languages)
    documents = only_side(read_documents(inputs, from_format, languages=pair), side)
    write_documents(documents, output, to_format, languages=pair or languages_of(inputs))


def stats(
    inputs: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE [TARGET]", help="Files of one corpus; - is standard input.")
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SOURCE[,TARGET]", help="One of several corpora; NAME may be CORPUS/PART. Repeatable."
        ),
    ] = None,
    from_format: InputFormat = None,
    languages: Languages = None,
    as_json: AsJson = False,
) -> None:
    """Count documents, sentences and words: the paper's Table 1 for any corpus.

    Example: weitblick data stats dev.en dev.de --json

    Example: weitblick data stats --corpus TED/train=t.en,t.de --corpus TED/dev=d.en,d.de
    """
    from weitblick.cli.corpora import parse_languages, print_json
    from weitblick.documents import read_documents
    from weitblick.documents.statistics import measure

    if bool(inputs) == bool(corpus):
        raise UserError("stats needs either files or --corpus", remedy="see weitblick data stats --help")
    pair = parse_languages(languages)
    if inputs:
        measured = measure(read_documents(inputs, from_format, languages=pair))
        if as_json:
            print_json(asdict(measured))
        else:
            _print_statistics(measured)
        return
    named: dict[str, Statistics] = {}
    for text in corpus or []:
        name, equals, files = text.partition("=")
        if not equals or not files or name in named:
            raise UserError(
                f"--corpus {text}: not a new NAME=SOURCE[,TARGET]", remedy="write --corpus dev=dev.en,dev.de"
            )
        named[name] = measure(read_documents(files.split(","), from_format, languages=pair))
    if as_json:
        print_json({"corpora": {name: asdict(measured) for name, measured in named.items()}})
    else:
        _print_table_one(named)


def split(
    inputs: Inputs,
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for train, dev and test.")],
    dev: Annotated[float, typer.Option(help="Documents: a share below 1, or a count.")] = 0.1,
    test: Annotated[float, typer.Option(help="Documents: a share below 1, or a count.")] = 0.1,
    train: Annotated[float | None, typer.Option(help="Documents: a share below 1, or a count (the rest).")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same parts.")] = 1,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
    languages: Languages = None,
    as_json: AsJson = False,
) -> None:
    """Split a corpus by document into train, dev and test, at random but by seed.

    Writes DIR/train.*, DIR/dev.* and DIR/test.* with the endings of the input.

    Example: weitblick data split all.en all.de -o corpus --dev 100 --test 0.05 --seed 7
    """
    from weitblick.cli.corpora import endings, parse_languages, print_json, print_text, rereadable
    from weitblick.documents.split import PARTS, assign, sizes, write_split

    pair = parse_languages(languages)
    with rereadable(inputs, from_format, pair) as (read, format):
        total = sum(1 for _ in read())
        counts = sizes(total, dev, test, train)
        to_format = to_format or format
        has_target = next(read()).sentences[0].target is not None
        file_endings = endings(inputs, to_format, pair, has_target)
        outputs = [[folder / f"{part}{ending}" for ending in file_endings] for part in PARTS]
        write_split(read, assign(total, counts, seed), outputs, to_format)
    documents = dict(zip(PARTS, counts, strict=True))
    if as_json:
        files = {
            part: [str(path) for path in paths] for part, paths in zip(PARTS, outputs, strict=True) if documents[part]
        }
        print_json({"seed": seed, "documents": documents, "files": files})
    else:
        for (part, count), paths in zip(documents.items(), outputs, strict=True):
            print_text(f"{part}: {count} documents" + (f" in {', '.join(map(str, paths))}" if count else ""))


def check(
    inputs: Inputs,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE", help="Source side of a held-out corpus that must share no sentence. Repeatable."
        ),
    ] = None,
    output: Annotated[
        list[str] | None, typer.Option("--output", "-o", metavar="OUT [OUT2]", help="Write the cleaned corpus.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="A kind of finding to ignore. Repeatable.")
    ] = None,
    show: Annotated[int, typer.Option(help="Findings to print of each kind; JSON has all.")] = 20,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
    languages: Languages = None,
    as_json: AsJson = False,
) -> None:
    """Find misaligned, empty, copied or wrong-language lines, odd length ratios, duplicates and test data in training.

    Exit code 0: nothing found; 1: something found. With -o a corpus without the faulty sentences is written.
    Kinds: misaligned, empty, copied, wrong-language, length-ratio, duplicate, held-out.

    Example: weitblick data check train.en train.de --against test.en -o clean.en clean.de
    """
    from weitblick.cli.corpora import parse_languages, print_json
    from weitblick.documents import Corpus, write_documents
    from weitblick.documents.checking import KINDS, line_counts_differ, shared_sentences

    if unknown := set(ignore or []) - set(KINDS):
        raise UserError(f"--ignore {min(unknown)}: unknown kind", remedy=f"kinds: {', '.join(KINDS)}")
    pair = parse_languages(languages)
    held_out = shared_sentences(Corpus([path], languages=pair) for path in against or [])
    corpus = Corpus(inputs, from_format, languages=pair, lenient=True)
    report = _Report(set(ignore or []))
    clean = report.clean(corpus, held_out)
    if output:
        write_documents(clean, output, to_format or (corpus.format.name if corpus.format.write else None))
    else:
        for _ in clean:
            pass
    if (finding := line_counts_differ(corpus)) and finding.kind not in report.ignored:
        report.findings.insert(0, finding)
    if as_json and STANDARD not in (output or []):
        print_json(report.as_json())
    else:
        report.print(inputs[0], show, to_stderr=STANDARD in (output or []))
    if report.findings:
        raise typer.Exit(1)


class _Report:
    """What `check` finds while the corpus streams through it."""

    def __init__(self, ignored: set[str]) -> None:
        self.ignored = ignored
        self.findings: list[Finding] = []
        self.documents = self.sentences = self.kept_documents = self.kept_sentences = 0

    def clean(self, corpus: Corpus, held_out: set[bytes]) -> Iterator[Document]:
        """The documents without their faulty sentences; findings and counts are noted on the way."""
        from weitblick.documents.checking import cleaned, examine

        for located, found in examine(corpus, held_out):
            findings = [finding for finding in found if finding.kind not in self.ignored]
            self.findings += findings
            self.documents += 1
            self.sentences += len(located.lines)
            document = cleaned(located, findings)
            if document is not None:
                self.kept_documents += 1
                self.kept_sentences += len(document.sentences)
                yield document

    def counts(self) -> dict[str, int]:
        return dict(Counter(finding.kind for finding in self.findings))

    def as_json(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "sentences": self.sentences,
            "kept_documents": self.kept_documents,
            "kept_sentences": self.kept_sentences,
            "counts": self.counts(),
            "findings": [finding._asdict() for finding in self.findings],
        }

    def print(self, path: str, show: int, *, to_stderr: bool) -> None:
        """To standard output, unless the cleaned corpus goes there."""
        from weitblick.cli.corpora import print_text

        text = "\n".join(self._lines(path, show))
        if to_stderr:
            typer.echo(text, err=True)
        else:
            print_text(text)

    def _lines(self, path: str, show: int) -> Iterator[str]:
        for kind, count in self.counts().items():
            of_kind = [finding for finding in self.findings if finding.kind == kind]
            for finding in of_kind[:show]:
                yield f"{path}:{finding.line}: {kind}: {finding.detail}"
            if count > show:
                yield f"{path}: {kind}: and {count - show} more (--show {count} prints all)"
        summary = ", ".join(f"{count} {kind}" for kind, count in self.counts().items()) or "nothing found"
        yield (
            f"{self.documents} documents, {self.sentences} sentences: {summary}; "
            f"clean: {self.kept_documents} documents, {self.kept_sentences} sentences"
        )


def _print_statistics(measured: Statistics) -> None:
    from weitblick.cli.corpora import print_text

    labels = {name: name.replace("_", " ") for name in asdict(measured)}
    width = max(map(len, labels.values()))
    values = {name: f"{value:,}" for name, value in asdict(measured).items() if value is not None}
    print_text("\n".join(f"{labels[name]:{width}}  {value:>12}" for name, value in values.items()))


def _print_table_one(named: dict[str, Statistics]) -> None:
    from rich.console import Console
    from rich.table import Table

    from weitblick.cli.corpora import print_text
    from weitblick.documents.statistics import table_rows

    table = Table("corpus", "sentences", "average document length")
    for row in table_rows(named):
        table.add_row(*row)
    console = Console()
    with console.capture() as capture:
        console.print(table)
    print_text(capture.get().rstrip("\n"))
