"""`weitblick explain`: see which context decided a translation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weitblick.errors import UserError
from weitblick.files import STANDARD

if TYPE_CHECKING:
    from weitblick.documents import Document
    from weitblick.explanation.schema import Explanation
    from weitblick.translation.translator import Translator

FORMATS = {"html": ".html", "json": ".json", "png": ".png", "svg": ".svg", "latex": ".tex"}
FIGURE_SENTENCES = 5


def register(app: typer.Typer) -> None:
    app.command("explain", rich_help_panel="See the context")(explain)


def explain(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] DOCUMENT",
            help="A model folder (the model that comes with weitblick if not named) and a document in any format of "
            "`weitblick data convert`, or an explanation that was saved as JSON.",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="What to write; - is stdout.")],
    format: Annotated[
        str | None, typer.Option(metavar="|".join(FORMATS), help="What to write (by the output's name).")
    ] = None,
    document: Annotated[
        str | None, typer.Option(metavar="ID|NUMBER", help="Which document of the file; the first if not given.")
    ] = None,
    sentence: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="png, svg, latex: the sentence of the query word, from 1.")
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
        str | None, typer.Option(metavar="1,3,...", help="Heads to show; their average if not given.")
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
    corpus: Annotated[
        bool,
        typer.Option(
            "--corpus",
            help="All documents of the file: how far attention reaches and how sparse it is, as json, png or svg.",
        ),
    ] = False,
    beam: Annotated[int, typer.Option(min=1, help="Beam of the search.")] = 4,
    from_format: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Format of the document (guessed).")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object about what was written.")] = False,
) -> None:
    """Show which sentences and words of a document decided its translation.

    Example: weitblick explain runs/ours/model speech.txt -o report.html

    Example: weitblick explain runs/ours/model speech.txt -o figure.svg --sentence 8 --word 12 --heads 1,3

    Example: weitblick explain runs/ours/model dev.en -o reach.png --corpus

    The report is one page that needs no network. What is saved as JSON can be shown later: weitblick explain
    saved.json -o report.html
    """
    kind = _format(output, format, corpus)
    model, path = _inputs(inputs)
    started = time.perf_counter()
    explanations = _explanations(model, path, from_format, document, every=corpus, most=most, beam=beam, device=device)
    if corpus:
        summary = _write_corpus(output, kind, explanations)
    else:
        explanation = next(explanations)
        _write(output, kind, explanation, sentence, word, heads, most)
        summary = _summary(explanation)
    seconds = round(time.perf_counter() - started, 2)
    _report({"output": output, "format": kind, "seconds": seconds, **summary}, as_json)


def _format(output: str, format: str | None, corpus: bool) -> str:
    endings = {ending: name for name, ending in FORMATS.items()} | {".htm": "html"}
    chosen = format or endings.get(Path(output).suffix.lower())
    allowed = ["json", "png", "svg"] if corpus else list(FORMATS)
    if chosen not in allowed:
        what = f"--format {format}" if format else f"the name {output} does not tell a format"
        raise UserError(what if not format else f"{what} is unknown here", remedy=f"use --format {'|'.join(allowed)}")
    if output == STANDARD and chosen in ("png", "svg"):
        raise UserError(f"{chosen} cannot go to standard output", remedy="name a file with -o")
    return chosen


def _inputs(inputs: list[str]) -> tuple[str | None, str]:
    if len(inputs) > 2:
        raise UserError(f"explain takes a model and a document, not {len(inputs)} files", remedy="see --help")
    if len(inputs) == 1 and Path(inputs[0]).is_dir() and (Path(inputs[0]) / "config.json").exists():
        raise UserError("is a model; the document is missing", where=inputs[0], remedy="name a document after it")
    return (None, inputs[0]) if len(inputs) == 1 else (inputs[0], inputs[1])


def _explanations(
    model: str | None,
    path: str,
    from_format: str | None,
    wanted: str | None,
    *,
    every: bool,
    most: int | None,
    beam: int,
    device: str,
) -> Iterator[Explanation]:
    from weitblick.explanation.schema import Explanation

    if model is None and path.endswith(".json") and from_format is None:
        yield Explanation.load(path)
        return
    documents = _documents(path, from_format, wanted, every)
    translator = _load(model, device)
    from weitblick.explanation.explain import MOST_SENTENCES
    from weitblick.explanation.explain import explain as explain_document

    for document in documents:
        title = document.id if not document.id.isdigit() else f"{Path(path).name} {document.id}"
        yield explain_document(
            translator,
            document,
            title=title,
            model_name=model or "default",
            most=max(most or 0, MOST_SENTENCES),
            beam=beam,
        )


def _load(model: str | None, device: str) -> Translator:
    from weitblick.translation.translator import Translator

    return Translator.load(model, device=device)


def _documents(path: str, from_format: str | None, wanted: str | None, every: bool) -> Iterator[Document]:
    """The documents to explain; the first is read at once, so that what is wrong with it is said before a model is
    loaded."""
    from weitblick.documents import read_documents

    documents = iter(read_documents([path], from_format))
    first = next(documents, None)
    if first is None:
        raise UserError("holds no document", where=path, remedy="name a file with at least one sentence")
    if every:
        return _chain(first, documents)
    if wanted is None:
        if next(documents, None) is not None:
            typer.echo(f"{path}: several documents; this is the first (--document chooses another)", err=True)
        return iter([first])
    for number, document in enumerate(_chain(first, documents), 1):
        if wanted in (document.id, str(number)):
            return iter([document])
    raise UserError(f"no document {wanted}", where=path, remedy="name its id or its number, from 1")


def _chain(first: Document, others: Iterator[Document]) -> Iterator[Document]:
    yield first
    yield from others


def _write(
    output: str,
    kind: str,
    explanation: Explanation,
    sentence: int | None,
    word: int | None,
    heads: str | None,
    most: int | None,
) -> None:
    if kind == "html":
        from weitblick.explanation.page import write_page

        write_page(output, explanation)
    elif kind == "json":
        explanation.save(output)
    else:
        _write_figure(output, kind, explanation, sentence, word, heads, most)


def _write_figure(
    output: str,
    kind: str,
    explanation: Explanation,
    sentence: int | None,
    word: int | None,
    heads: str | None,
    most: int | None,
) -> None:
    from weitblick.explanation.choice import choose, most_influenced
    from weitblick.files import text_writer

    if sentence is None and word is not None:
        raise UserError("--word without --sentence", remedy="say which sentence the word is in")
    if sentence and (word or sentence > len(explanation.sentences)):
        place: tuple[int, int] | None = (sentence - 1, (word or 1) - 1)
    else:
        place = most_influenced(explanation, only=sentence)
    if place is None:
        raise UserError(
            f"context changed no word of {explanation.document}" + (f" in sentence {sentence}" if sentence else ""),
            remedy="name the query word with --sentence and --word",
        )
    choice = choose(explanation, *place, _heads(heads), most or FIGURE_SENTENCES)
    if kind == "latex":
        from weitblick.explanation.latex import latex_table

        with text_writer(output) as stream:
            stream.write(latex_table(explanation, choice))
    else:
        from weitblick.explanation.figure import write_figure

        write_figure(output, explanation, choice, kind)


def _heads(text: str | None) -> list[int]:
    if text is None:
        return []
    try:
        return [int(part) - 1 for part in text.split(",")]
    except ValueError:
        raise UserError(f"--heads {text} is not a list of numbers", remedy="write it like 1,3") from None


def _write_corpus(output: str, kind: str, explanations: Iterator[Explanation]) -> dict[str, Any]:
    from weitblick.explanation.corpus import gather, write_plots
    from weitblick.files import write_json

    statistics = gather(explanations).statistics()
    if kind == "json":
        write_json(output, statistics)
    else:
        write_plots(output, statistics, kind)
    return {key: statistics[key] for key in ("documents", "words")} | {
        key: value for key, value in statistics["all_heads"].items() if key != "mass_by_distance"
    }


def _summary(explanation: Explanation) -> dict[str, Any]:
    from weitblick.explanation.summary import summarise

    return {"document": explanation.document, **summarise(explanation), "notes": list(explanation.notes)}


def _report(summary: dict[str, Any], as_json: bool) -> None:
    """What was written: on standard output, unless that is where it was written to."""
    output = summary["output"]
    if as_json:
        import json

        typer.echo(json.dumps(summary, ensure_ascii=False), err=output == STANDARD)
        return
    for note in summary.get("notes", []):
        typer.echo(note, err=True)
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
