"""`weitblick translate`: documents in, the same documents in another language out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import log, progress_bar, set_log_level, shows_progress
from weitblick.cli.loading import (
    check_inputs,
    files_read,
    load_translator,
    prepare_torch,
    read_glossary,
    read_memory,
)
from weitblick.cli.options import (
    Approved,
    BatchTokens,
    Beam,
    Device,
    FormatName,
    Model,
    Quiet,
    Threads,
    Verbose,
)
from weitblick.cli.real_files import AnyFormat, sort_inputs, translate_real_file, translate_real_folder
from weitblick.errors import UserError
from weitblick.files import STANDARD, output_in, protect_inputs, read_lines, text_writer

if TYPE_CHECKING:
    from weitblick.distributed import World
    from weitblick.documents import Document
    from weitblick.documents.corpora import Corpus
    from weitblick.memory.glossary import GlossaryCheck
    from weitblick.translation.options import TranslationOptions
    from weitblick.translation.translator import Translator
    from weitblick.translation.units import TranslatedDocument, Translation

COMPANIONS = ("docids", "starts", "opus")  # formats whose further files belong to the first
DOCUMENT_OPENING = "<d>"


def register(app: typer.Typer) -> None:
    app.command("translate", rich_help_panel="Train and translate")(translate)


def translate(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Subtitles, Office files, web pages, catalogues, plain text, or corpora in any format of "
            "`weitblick data convert`; a folder of them; - or none is standard input.",
        ),
    ] = None,
    model: Model = None,
    source_language: Annotated[
        str | None,
        typer.Option("--source-language", metavar="CODE", help="Choose an installed model by its languages."),
    ] = None,
    target_language: Annotated[str | None, typer.Option("--target-language", metavar="CODE", help="The same.")] = None,
    memory: Approved = None,
    glossary: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Terms and their translations, a tab between them; inflected as need be."),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Terms that are not translated, one a line.")
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="A file, or a folder for several inputs (with a slash at its end it is made); - is stdout.",
        ),
    ] = STANDARD,
    beam: Beam = None,
    length_penalty: Annotated[
        float | None,
        typer.Option(help="Scores are log-probabilities over length ** this; the model's own, usually 1, if absent."),
    ] = None,
    no_context: Annotated[bool, typer.Option("--no-context", help="Translate every sentence on its own.")] = False,
    passes: Annotated[int, typer.Option(help="Passes over a document where translations are context.")] = 2,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="A confidence and a log-probability for each sentence: two more columns, or metadata in jsonl.",
        ),
    ] = False,
    n_best: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="The N best translations of each sentence: NUMBER ||| TEXT ||| SCORES, or jsonl."
        ),
    ] = 1,
    from_format: Annotated[
        AnyFormat | None, typer.Option("--from", help="Format of the input; known by name and content if absent.")
    ] = None,
    to_format: Annotated[
        FormatName | None, typer.Option("--to", help="Format of the output; the input's if absent.")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Translate each line of standard input as it comes (online models).")
    ] = False,
    int8: Annotated[
        bool, typer.Option("--int8", help="8-bit linear layers on the CPU: faster, and a little less exact.")
    ] = False,
    shortlist: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Choose among the words of `weitblick data shortlist` only: faster."),
    ] = None,
    batch_tokens: BatchTokens = 4096,
    threads: Threads = None,
    device: Device = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Translate whole documents: every sentence with the rest of its document in view, one line for each line.

    Example: weitblick translate talk.en -o talk.de

    Example: cat talk.en | weitblick translate - -m runs/tiny/best --beam 1

    Example: weitblick translate film.srt report.docx -o german/

    Example: weitblick translate inbox -o outbox

    Example: weitblick translate report.en --memory approved.tmx -o report.de
    """
    set_log_level(quiet, verbose)
    inputs = _inputs(files or [])
    if beam is not None and n_best > beam:
        raise UserError(f"--n-best {n_best} is more than --beam {beam}", remedy=f"use --beam {n_best}")
    read: list[str | Path] = [*inputs, *files_read(model, memory, glossary, keep, shortlist)]
    protect_inputs(read, [output_in(output, Path(name).name) for name in inputs])  # before a model is loaded

    from weitblick.translation.options import TranslationOptions

    options = TranslationOptions(beam, length_penalty, n_best, not no_context, passes, batch_tokens)
    prepare_torch(threads)
    from weitblick.distributed import join_world

    world = join_world(device)
    from weitblick.exchange.installed import choose_model

    chosen = choose_model(model, source_language, target_language)
    translator = load_translator(None if chosen is None else str(chosen), str(world.device), threads, int8=int8)
    terms = read_glossary(glossary, keep)
    options = replace(options, memory=read_memory(translator, memory, terms))
    if shortlist is not None:
        from weitblick.translation.shortlist import Shortlist

        options = replace(options, shortlist=Shortlist.load(shortlist, translator.pipeline))
    from weitblick.memory.glossary import GlossaryCheck

    check = GlossaryCheck(terms)
    if stream:
        _stream(translator, inputs, output, options, scores, check)
    else:
        with _out_of_memory_explained():
            _translate_files(translator, inputs, output, (from_format, to_format), options, scores, world, check)
    for line in check.lines():
        log.info("%s", line)
    world.close()


def _inputs(files: list[str]) -> list[str]:
    """Without files standard input is read, unless that is a keyboard."""
    check_inputs(files, folders=True)
    if not files and sys.stdin.isatty():
        raise UserError("no document is named", remedy="name a file, or - for standard input")
    return files or [STANDARD]


@contextmanager
def _out_of_memory_explained() -> Iterator[None]:
    from weitblick.allocator import explain_out_of_memory

    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if (explained := explain_out_of_memory(error)) is None:
            raise
        raise UserError(explained, remedy="lower --batch-tokens or --beam") from None


def _translate_files(
    translator: Translator,
    files: list[str],
    output: str,
    formats: tuple[str | None, str | None],
    options: TranslationOptions,
    scores: bool,
    world: World,
    check: GlossaryCheck,
) -> None:
    from weitblick.translation.progress import reporting
    from weitblick.translation.sharing import Team

    team = Team(translator, options, world, check)
    if not world.first:
        team.follow()
        return
    given = sort_inputs(files, formats[0], translator.pipeline.source_language)
    for folder in given.folders:
        translate_real_folder(folder, output, team)
    corpora = _corpora(given.corpora, formats[0], translator) if given.corpora else []
    names = [str(file.path) for file in given.files] + [str(corpus.paths[0]) for corpus in corpora]
    paths = _outputs(output, names, files)
    # Translations on the terminal are progress enough.
    hidden = output == STANDARD and sys.stdout is not None and sys.stdout.isatty()
    work = _work(corpora, [file.document for file in given.files], translator, options)
    with progress_bar(work, "translating", hidden=hidden) as advance, reporting(advance):
        for file, path in zip(given.files, paths, strict=False):
            if formats[1] or scores or options.n_best > 1:  # only a corpus has room for that
                shape = _Shape(formats[1] or "jsonl", scores, options.n_best)
                shape.write(team.translations([file.document]), path)
            else:
                translate_real_file(file, path, team)
        for corpus, path in zip(corpora, paths[len(given.files) :], strict=True):
            log.debug("%s: read as %s", corpus.paths[0], corpus.format.name)
            shape = _Shape(formats[1] or corpus.format.name, scores, options.n_best)
            shape.write(team.translations(corpus), path)
    team.dismiss()


def _corpora(files: list[str], format: str | None, translator: Translator) -> list[Corpus]:
    """Every file is a corpus, except where the format spreads one over several files."""
    from weitblick.documents.corpora import Corpus, format_named, guess_format

    pipeline = translator.pipeline
    languages = (pipeline.source_language, pipeline.target_language)
    name = format_named(format).name if format else guess_format(files) if len(files) > 1 else None
    together = [files] if name in COMPANIONS else [[file] for file in files]
    return [Corpus(paths, format, languages=languages) for paths in together]


def _outputs(output: str, inputs: Sequence[str], files: Sequence[str]) -> list[str]:
    """Where each input goes: nothing is written over an input, nor twice to one place."""
    paths = [output_in(output, Path(name).name, folder=len(inputs) > 1) for name in inputs]
    protect_inputs(files, paths)
    twice = next((path for path in paths if paths.count(path) > 1 and path != STANDARD), None)
    if twice is not None:
        raise UserError("two inputs of one name would go here", where=twice, remedy="translate them one by one")
    return paths


class _Shape:
    """How translations are written: in a document format, with scores if wanted, or as a list of the n best."""

    def __init__(self, format: str, scores: bool, n_best: int) -> None:
        from weitblick.documents.corpora import format_named

        self.format, self.scores = format_named(format).name, scores
        self.in_metadata = self.format == "jsonl"
        self.as_list = n_best > 1 and not self.in_metadata
        if scores and not self.as_list and self.format in ("tsv", "prose"):
            raise UserError(f"format {self.format} has no room for scores", remedy="write them with --to jsonl")
        self.with_metadata = self.in_metadata and (scores or n_best > 1)

    def write(self, translated: Iterable[TranslatedDocument], path: str) -> None:
        if self.as_list:
            with text_writer(path) as out:
                number = 0
                for one in translated:
                    for line in self._list(one, number):
                        out.write(line + "\n")
                    number += len(one.translations)
            return
        from weitblick.documents.corpora import write_translations

        write_translations((self._document(one) for one in translated), path, self.format)

    def _document(self, one: TranslatedDocument) -> Document:
        if not self.scores and not self.with_metadata:
            return one.document
        sentences = []
        for sentence, translations in zip(one.document.sentences, one.translations, strict=True):
            if translations and self.with_metadata:
                found = [{"target": t.text, **_figures(t)} for t in translations]
                extra = {**_figures(translations[0]), **({"n_best": found} if len(found) > 1 else {})}
                sentence = replace(sentence, metadata={**sentence.metadata, **extra})
            elif translations:
                sentence = replace(sentence, target=scored_line(translations[0]))
            sentences.append(sentence)
        return replace(one.document, sentences=tuple(sentences))

    def _list(self, one: TranslatedDocument, first: int) -> Iterator[str]:
        """A line for each translation; one without scores for sentences that were not translated."""
        for number, (sentence, translations) in enumerate(
            zip(one.document.sentences, one.translations, strict=True), first
        ):
            if not translations:
                yield f"{number} ||| {sentence.target} |||"
            for t in translations:
                yield f"{number} ||| {t.text} ||| {t.confidence:.4f} {t.log_probability:.4f}"


def _figures(translation: Translation) -> dict[str, float]:
    return {
        "confidence": round(translation.confidence, 6),
        "log_probability": round(translation.log_probability, 6),
    }


def scored_line(translation: Translation) -> str:
    return f"{translation.text}\t{translation.confidence:.4f}\t{translation.log_probability:.4f}"


def _stream(
    translator: Translator,
    files: list[str],
    output: str,
    options: TranslationOptions,
    scores: bool,
    check: GlossaryCheck,
) -> None:
    from weitblick.documents import Document, Sentence

    if files != [STANDARD] or output != STANDARD or options.n_best > 1:
        raise UserError("--stream reads standard input and writes one line for each to standard output")
    stream = translator.stream(
        beam=options.beam,
        length_penalty=options.length_penalty,
        context=options.context,
        passes=options.passes,
        memory=options.memory,
        shortlist=options.shortlist,
    )
    documents = 1
    for line in read_lines(STANDARD):
        if not line.strip() or line.strip() == DOCUMENT_OPENING:
            documents += stream.count > 0
            stream.end_document()
            answer = line.strip()
        else:
            translations = stream.translations(line)
            text = translations[0].text if translations else line
            answer = scored_line(translations[0]) if scores and translations else text
            check(Document(str(documents), (Sentence(line, text),)), first=stream.count)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def _work(
    corpora: Sequence[Corpus], files: Sequence[Document], translator: Translator, options: TranslationOptions
) -> int | None:
    """How many sentences there are to translate, in all passes; None if that cannot be known before they are read."""
    from weitblick.documents import read_documents

    paths = [path for corpus in corpora for path in corpus.paths]
    if not shows_progress() or not all(Path(path).is_file() or Path(path).is_dir() for path in paths):
        return None
    languages = (translator.pipeline.source_language, translator.pipeline.target_language)
    read = (read_documents(corpus.paths, corpus.format.name, languages=languages) for corpus in corpora)
    documents = chain(files, *read)
    sentences = sum(
        1 for document in documents for s in document.sentences if s.source.strip() and s.status != "locked"
    )
    return sentences * options.passes_of(translator.model)
