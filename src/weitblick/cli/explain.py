"""`weitblick explain`: see which context decided a translation."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from weitblick.cli.console import (
    SHIPPED,
    check_inputs,
    files_read,
    load_translator,
    log,
    print_json,
    progress_bar,
    read_memory,
    set_log_level,
)
from weitblick.cli.options import Beam, Device, Json, MemoryFiles, Model, Quiet, Threads, Verbose
from weitblick.cli.real_files import AnyFormat, sort_inputs
from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD, output_in, protect_inputs

if TYPE_CHECKING:
    from weitblick.documents.document import Document
    from weitblick.explanation.schema import Explanation
    from weitblick.files.masked_document import MaskedDocument
    from weitblick.files.translatable_file import TranslatableFile
    from weitblick.translation.translator import Translator

OutputKind = Literal["html", "json", "png", "svg", "pdf", "latex"]
ENDINGS: dict[str, OutputKind] = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".png": "png",
    ".svg": "svg",
    ".pdf": "pdf",
    ".tex": "latex",
}
KINDS: tuple[OutputKind, ...] = get_args(OutputKind)
PICTURES: tuple[OutputKind, ...] = ("png", "svg", "pdf")
FIGURE_SENTENCES = 5


def explain(
    path: Annotated[
        str,
        typer.Argument(
            metavar="DOCUMENT",
            help="A document in any format of `weitblick data convert`, or an explanation that was saved as JSON; - is "
            "standard input.",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="What to write; - is stdout.")],
    model: Model = None,
    memory: MemoryFiles = None,
    format: Annotated[OutputKind | None, typer.Option(help="What to write; by the output's name if absent.")] = None,
    document: Annotated[
        str | None, typer.Option(metavar="ID|NUMBER", help="Which document of the file; the first if not given.")
    ] = None,
    sentence: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Figures, latex: the sentence of the query word, from 1.")
    ] = None,
    word: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="The query word in it, from 1: of the source, or of the target with "
            "decoder integration. If not given, the word that context changed most.",
        ),
    ] = None,
    heads: Annotated[
        list[int] | None,
        typer.Option("--head", min=1, metavar="N", help="A head to show; the average of all if absent. Repeatable."),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--max-sentences",
            min=1,
            metavar="N",
            help="Context sentences to keep for each word and head (html, json: 24; figures: 5).",
        ),
    ] = None,
    statistics: Annotated[
        bool,
        typer.Option(
            "--statistics",
            help="All documents of the file: how far attention reaches and how sparse it is, as json or a figure.",
        ),
    ] = False,
    beam: Beam = None,
    from_format: Annotated[
        AnyFormat | None, typer.Option("--from", help="Format of the input; known by name and content if absent.")
    ] = None,
    threads: Threads = None,
    device: Device = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Show which sentences and words of a document decided its translation.

    Example: weitblick explain speech.txt -m runs/ours/best -o report.html

    Example: weitblick explain speech.txt -m runs/ours/best -o figure.pdf --sentence 8 --word 12 --head 1 --head 3

    Example: weitblick explain dev.en -m runs/ours/best -o reach.png --statistics

    The report is one page that needs no network. What is saved as JSON can be shown later: weitblick explain
    saved.json -o report.html
    """
    set_log_level(quiet, verbose)
    kind = _kind(output, format, statistics)
    check_inputs([path])
    output = output_in(output, Path(path).name)
    protect_inputs([path, *files_read(model, memory)], [output])
    started = time.perf_counter()
    given = _Given(path, from_format, document, statistics, model, max(most or 0, 1), beam, device, threads, memory)
    if statistics:
        summary = _write_statistics(output, kind, _explanations(given))
    else:
        explanation = next(_explanations(given))
        _write(output, kind, explanation, _Wanted(sentence, word, heads or [], most))
        from weitblick.explanation.influence import summarise

        summary = {"document": explanation.document, **summarise(explanation), "notes": list(explanation.notes)}
    seconds = round(time.perf_counter() - started, 2)
    _report({"output": output, "format": kind, "seconds": seconds, **summary}, as_json)


def _kind(output: str, format: OutputKind | None, statistics: bool) -> OutputKind:
    chosen = format or ENDINGS.get(Path(output).suffix.lower())
    allowed = ("json", *PICTURES) if statistics else KINDS
    if chosen not in allowed:
        what = f"--format {format} is not for --statistics" if format else f"the name {output} does not tell a format"
        raise UserError(what, remedy=f"use --format {'|'.join(allowed)}")
    if output == STANDARD and chosen in PICTURES:
        raise UserError(f"{chosen} cannot go to standard output", remedy="name a file with -o")
    return chosen


@dataclass(frozen=True)
class _Given:
    """What is to be explained, with which model. `most`: context sentences to keep for each word and head."""

    path: str
    format: str | None
    document: str | None
    every: bool
    model: str | None
    most: int
    beam: int | None
    device: str
    threads: int | None
    memory: list[str] | None


def _explanations(given: _Given) -> Iterator[Explanation]:
    from weitblick.explanation.storage import load_explanation

    if given.model is None and given.path.endswith(".json") and given.format is None:
        yield load_explanation(given.path)
        return
    real = sort_inputs([given.path], given.format).files
    documents = _documents(real, given.path, given.format, given.document, given.every)
    translator = load_translator(given.model, given.device, given.threads)
    approved = read_memory(translator, given.memory)
    from weitblick.explanation.explain import explain as explain_document
    from weitblick.explanation.explain import explain_documents, passes_over
    from weitblick.explanation.packing import MOST_SENTENCES
    from weitblick.translation.searching import reporting

    masked = (_masked(real, document, translator) for document in documents)
    if given.every:
        everything = [one.masked() for one in masked]
        work = sum(len(document.sentences) for document in everything) * passes_over(translator.model)
        with progress_bar(work, f"explaining {len(everything)} documents") as advance, reporting(advance):
            name = given.model or SHIPPED
            yield from explain_documents(translator, everything, model_name=name, beam=given.beam, memory=approved)
        return
    for one in masked:  # one of them
        document = one.document
        title = document.id if not document.id.isdigit() else f"{Path(given.path).name} {document.id}"
        work = len(document.sentences) * passes_over(translator.model)
        with progress_bar(work, f"explaining {title}") as advance, reporting(advance):
            explanation = explain_document(
                translator,
                one,
                title=title,
                model_name=given.model or SHIPPED,
                most=max(given.most, MOST_SENTENCES),
                beam=given.beam,
                memory=approved,
            )
        yield explanation


def _masked(real: Sequence[TranslatableFile], document: Document, translator: Translator) -> MaskedDocument:
    """A document as `translate` reads it with this model."""
    from weitblick.files.masked_document import MaskedDocument
    from weitblick.text.carried import Alphabet

    alphabet = Alphabet(translator.pipeline)
    if not real:
        return MaskedDocument.of_corpus(document, alphabet)
    return real[0].read_for(
        translator.pipeline.source_language, alphabet, target_language=translator.pipeline.target_language
    )


def _documents(
    real: Sequence[TranslatableFile], path: str, from_format: str | None, wanted: str | None, every: bool
) -> Iterator[Document]:
    """The documents to explain; the first is read at once, so that what is wrong with it is said before a model is
    loaded."""
    from weitblick.documents.corpora.formats import read_documents

    documents = iter([real[0].document] if real else read_documents([path], from_format))
    first = next(documents, None)
    if first is None:
        raise UserError("holds no document", where=path, remedy="name a file with at least one sentence")
    if every:
        return chain([first], documents)
    if wanted is None:
        if next(documents, None) is not None:
            log.info("%s: several documents; this is the first (--document chooses another)", path)
        return iter([first])
    for number, document in enumerate(chain([first], documents), 1):
        if wanted in (document.id, str(number)):
            return iter([document])
    raise UserError(f"no document {wanted}", where=path, remedy="name its id or its number, from 1")


@dataclass(frozen=True)
class _Wanted:
    """What a figure or table is to show, counted from 1; `most`: its context sentences."""

    sentence: int | None
    word: int | None
    heads: list[int]
    most: int | None

    def place(self, explanation: Explanation) -> tuple[int, int]:
        """Sentence and word, from 0: those named, or where context changed most."""
        from weitblick.explanation.figure import most_influenced

        sentence, word = self.sentence, self.word
        if sentence is None and word is not None:
            raise UserError("--word without --sentence", remedy="say which sentence the word is in")
        if sentence and (word or sentence > len(explanation.sentences)):
            return sentence - 1, (word or 1) - 1
        place = most_influenced(explanation, only=sentence)
        if place is None:
            raise UserError(
                f"context changed no word of {explanation.document}" + (f" in sentence {sentence}" if sentence else ""),
                remedy="name the query word with --sentence and --word",
            )
        return place


def _write(output: str, kind: OutputKind, explanation: Explanation, wanted: _Wanted) -> None:
    if kind == "html":
        from weitblick.explanation.page import write_page

        write_page(output, explanation)
        return
    if kind == "json":
        from weitblick.explanation.storage import save_explanation

        save_explanation(output, explanation)
        return
    from weitblick.common.files import text_writer
    from weitblick.explanation.figure import choose, latex_table, write_figure

    heads = [head - 1 for head in wanted.heads]
    choice = choose(explanation, *wanted.place(explanation), heads, wanted.most or FIGURE_SENTENCES)
    if kind == "latex":
        with text_writer(output) as stream:
            stream.write(latex_table(explanation, choice))
    else:
        write_figure(output, explanation, choice, kind)


def _write_statistics(output: str, kind: OutputKind, explanations: Iterator[Explanation]) -> dict[str, Any]:
    from weitblick.common.files import write_json
    from weitblick.explanation.corpus import gather, write_plots

    statistics = gather(explanations).statistics()
    if kind == "json":
        write_json(output, statistics)
    else:
        write_plots(output, statistics, kind)
    return {key: statistics[key] for key in ("documents", "words")} | {
        key: value for key, value in statistics["all_heads"].items() if key != "mass_by_distance"
    }


def _report(summary: dict[str, Any], as_json: bool) -> None:
    """What was written: on standard output, unless that is where it was written to."""
    output = summary["output"]
    if as_json and output == STANDARD:
        typer.echo(json.dumps(summary, ensure_ascii=False), err=True)
    elif as_json:
        print_json(summary)
    if as_json:
        return
    for note in summary.get("notes", []):
        log.info("%s", note)
    if output == STANDARD:
        return
    size = Path(output).stat().st_size / 1e6
    if "sentences" in summary and summary["context_share"] is None:
        about = f"{summary['sentences']} sentences, without context"
    elif "sentences" in summary:
        about = (
            f"{summary['sentences']} sentences; context changed {summary['sentences_changed']} translations and "
            f"mattered for {summary['words_influenced']} words"
        )
    else:
        about = f"attention of {summary['words']} words in {summary['documents']} documents"
    typer.echo(f"{output}: {about} ({size:.1f} MB, {summary['seconds']:.1f} s)")
