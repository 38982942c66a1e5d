"""`weitblick data check`: what is wrong with a parallel corpus, and the corpus without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weitblick.cli.console import print_json, print_text
from weitblick.cli.options import Corpus, InputFormat, Json, OutputFormat, SourceLanguage, TargetLanguage, language_pair
from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD, protect_inputs

if TYPE_CHECKING:
    from weitblick.documents.checking import Finding
    from weitblick.documents.corpora.formats import Corpus as Documents
    from weitblick.documents.document import Document


class Kind(StrEnum):
    """The kinds of `documents.checking`, as choices of an option that may be repeated."""

    MISALIGNED = "misaligned"
    EMPTY = "empty"
    COPIED = "copied"
    WRONG_LANGUAGE = "wrong-language"
    LENGTH_RATIO = "length-ratio"
    DUPLICATE = "duplicate"
    HELD_OUT = "held-out"


def check(
    corpus: Corpus,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Source side of a held-out corpus that must share no sentence. Repeatable."),
    ] = None,
    by_document: Annotated[
        bool,
        typer.Option(
            "--by-document",
            help="With --against: find whole documents of which at least half is held out, and leave single sentences.",
        ),
    ] = False,
    output: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the cleaned corpus; once for each side."),
    ] = None,
    ignore: Annotated[list[Kind] | None, typer.Option(help="A kind of finding to ignore. Repeatable.")] = None,
    show: Annotated[int, typer.Option(help="Findings to print of each kind; JSON has all.")] = 20,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    as_json: Json = False,
) -> None:
    """Find misaligned, empty, copied or wrong-language lines, odd length ratios, duplicates and test data in training.

    Exit code 0: nothing found; 1: something found. With -o a corpus without the faulty sentences is written.

    Example: weitblick data check train.en train.de --against test.en -o clean.en -o clean.de

    Example: weitblick data check all.en all.de --against dev.en --against test.en --by-document -o train.en -o train.de
    """
    from weitblick.documents.checking import line_counts_differ, shared_sentences
    from weitblick.documents.corpora.formats import Corpus as Documents
    from weitblick.documents.corpora.formats import write_documents

    if by_document and not against:
        raise UserError("--by-document without --against", remedy="name what is held out: --against test.en")
    protect_inputs([*corpus, *(against or [])], output or [])
    pair = language_pair(source_language, target_language)
    held_out = shared_sentences(Documents([path], languages=pair) for path in against or [])
    documents = Documents(corpus, from_format, languages=pair, lenient=True)
    report = _Report(set(ignore or []))
    clean = report.clean(documents, held_out, by_document)
    if output:
        write_documents(clean, output, to_format or (documents.format.name if documents.format.write else None))
    else:
        for _ in clean:
            pass
    if (finding := line_counts_differ(documents)) and finding.kind not in report.ignored:
        report.findings.insert(0, finding)
    if as_json and STANDARD not in (output or []):
        print_json(report.as_json())
    else:
        report.print(corpus[0], show, to_stderr=STANDARD in (output or []))
    if report.findings:
        raise typer.Exit(1)


class _Report:
    """What `check` finds while the corpus streams through it."""

    def __init__(self, ignored: set[str]) -> None:
        self.ignored = ignored
        self.findings: list[Finding] = []
        self.documents = self.sentences = self.kept_documents = self.kept_sentences = 0

    def clean(self, corpus: Documents, held_out: set[bytes], by_document: bool) -> Iterator[Document]:
        """The documents without their faulty sentences; findings and counts are noted on the way."""
        from weitblick.documents.checking import cleaned, examine

        for located, found in examine(corpus, held_out, by_document=by_document):
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
