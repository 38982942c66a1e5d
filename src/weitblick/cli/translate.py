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

from weitblick.cli.console import (
    check_inputs,
    files_read,
    load_translator,
    log,
    prepare_torch,
    progress_bar,
    read_glossary,
    read_memory,
    scored_line,
    set_log_level,
    shows_progress,
)
from weitblick.cli.options import (
    AskedFormality,
    BatchTokens,
    Beam,
    Device,
    FormatName,
    LengthPenalty,
    MemoryFiles,
    Model,
    NBest,
    Passes,
    Quiet,
    Threads,
    Verbose,
)
from weitblick.cli.real_files import (
    AnyFormat,
    check_outputs,
    sort_inputs,
    translate_real_file,
    translate_real_folder,
    with_language_warning,
)
from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD, output_in, protect_inputs, text_writer
from weitblick.common.imports import load_torch
from weitblick.translation.options import OPTIONS, TranslationOptions

if TYPE_CHECKING:
    from weitblick.common.process import World
    from weitblick.documents.corpora.formats import Corpus
    from weitblick.documents.document import Document
    from weitblick.memory.glossary import Glossary, GlossaryCheck
    from weitblick.translation.results import TranslatedDocument, Translation
    from weitblick.translation.translator import Translator

COMPANIONS = ("docids", "starts", "opus")  # formats whose further files belong to the first


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
    memory: MemoryFiles = None,
    glossary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Terms and their translations, TSV, CSV, XLSX or TBX; said in the form that fits.",
        ),
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
    length_penalty: LengthPenalty = None,
    no_context: Annotated[bool, typer.Option("--no-context", help="Translate every sentence on its own.")] = False,
    passes: Passes = 2,
    formality: AskedFormality = "auto",
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="A confidence and a log-probability for each sentence: two more columns, or metadata in jsonl.",
        ),
    ] = False,
    n_best: NBest = 1,
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
    shortlist: Annotated[str | None, typer.Option(metavar="FILE", help=OPTIONS["shortlist"].help)] = None,
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

    options = TranslationOptions(
        beam, length_penalty, n_best, not no_context, passes, batch_tokens, formality=formality
    )  # fmt: skip
    load_torch()
    prepare_torch(threads)
    from weitblick.checkpoints.installed import choose_model
    from weitblick.common.process import join_world

    world = join_world(device)
    chosen = choose_model(model, source_language, target_language)
    translator = load_translator(None if chosen is None else str(chosen), str(world.device), threads, int8=int8)
    options, check = _with_files(
        options, translator, memory, read_glossary(glossary, keep, translator.pipeline), shortlist
    )
    if stream:
        from weitblick.cli.stream import translate_stream

        translate_stream(translator, inputs, output, options, scores, check)
    else:
        with _out_of_memory_explained():
            _translate_files(translator, inputs, output, (from_format, to_format), options, scores, world, check)
    for line in check.lines() if check is not None else ():
        log.info("%s", line)
    world.close()


def _with_files(
    options: TranslationOptions,
    translator: Translator,
    memory: list[str] | None,
    terms: Glossary | None,
    shortlist: str | None,
) -> tuple[TranslationOptions, GlossaryCheck | None]:
    """The options with what a memory, a glossary and a shortlist say, and what counts the terms that are missed."""
    options = replace(options, memory=read_memory(translator, memory), terms=None if terms is None else terms.index)
    if shortlist is not None:
        from weitblick.fast.shortlist import Shortlist

        options = replace(options, shortlist=Shortlist.load(shortlist, translator.pipeline))
    if terms is None:
        return options, None
    from weitblick.memory.glossary import GlossaryCheck

    return options, GlossaryCheck(terms)


def _inputs(files: list[str]) -> list[str]:
    """Without files standard input is read, unless that is a keyboard."""
    check_inputs(files, folders=True)
    if not files and sys.stdin.isatty():
        raise UserError("no document is named", remedy="name a file, or - for standard input")
    return files or [STANDARD]


@contextmanager
def _out_of_memory_explained() -> Iterator[None]:
    from weitblick.common.process import explain_out_of_memory

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
    check: GlossaryCheck | None,
) -> None:
    from weitblick.files.masked_document import translate_corpus
    from weitblick.text.carried import Alphabet
    from weitblick.translation.searching import reporting
    from weitblick.translation.sharing import Team

    team = Team(translator, options, world, check)
    if not world.first:
        team.work_for_first()
        return
    alphabet = Alphabet(translator.pipeline)
    pipeline = translator.pipeline
    given = sort_inputs(files, formats[0], pipeline.source_language, alphabet, pipeline.target_language)
    for folder in given.folders:
        translate_real_folder(folder, output, team)
    corpora = _corpora(given.corpora, formats[0], translator) if given.corpora else []
    names = [str(file.path) for file in given.files] + [str(corpus.paths[0]) for corpus in corpora]
    paths = _outputs(output, names, files)
    check_outputs(given, paths, written_as=formats[1] or ("jsonl" if scores or options.n_best > 1 else None))

    def again(document: Document) -> Document:
        return translator.translate_window([document], replace(options, n_best=1))[0].document

    # Translations on the terminal are progress enough.
    hidden = output == STANDARD and sys.stdout is not None and sys.stdout.isatty()
    work = _work(corpora, [file.document for file in given.files], translator, options)
    with progress_bar(work, "translating", hidden=hidden) as advance, reporting(advance):
        for file, path in zip(given.files, paths, strict=False):
            if formats[1] or scores or options.n_best > 1:  # only a corpus has room for that
                shape = _Shape(formats[1] or "jsonl", scores, options.n_best)
                (found,) = team.translations([file.masked()])
                shape.write([file.unmasked_translations(found, translator.align, again)[0]], path)
            else:
                translate_real_file(file, path, team)
        for corpus, path in zip(corpora, paths[len(given.files) :], strict=True):
            log.debug("%s: read as %s", corpus.paths[0], corpus.format.name)
            shape = _Shape(formats[1] or corpus.format.name, scores, options.n_best)
            documents = with_language_warning(corpus, str(corpus.paths[0]), pipeline.source_language)
            shape.write(translate_corpus(documents, alphabet, team.translations, translator.align, again), path)
    team.end_work()


def _corpora(files: list[str], format: str | None, translator: Translator) -> list[Corpus]:
    """Every file is a corpus, except where the format spreads one over several files."""
    from weitblick.documents.corpora.formats import Corpus, format_named, guess_format

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
        from weitblick.documents.corpora.formats import format_named

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
        from weitblick.documents.corpora.formats import write_translations

        write_translations((self._document(one) for one in translated), path, self.format)

    def _document(self, one: TranslatedDocument) -> Document:
        if not self.scores and not self.with_metadata and not (self.in_metadata and _has_terms(one)):
            return one.document
        sentences = []
        for sentence, translations in zip(one.document.sentences, one.translations, strict=True):
            if translations and self.with_metadata:
                found = [{"target": t.text, **_figures(t)} for t in translations]
                extra = {**_figures(translations[0]), **({"n_best": found} if len(found) > 1 else {})}
                sentence = replace(sentence, metadata={**sentence.metadata, **extra, **_terms(translations[0])})
            elif translations and self.in_metadata:
                sentence = replace(sentence, metadata={**sentence.metadata, **_terms(translations[0])})
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


def _has_terms(one: TranslatedDocument) -> bool:
    return any(translations and translations[0].terms for translations in one.translations)


def _terms(translation: Translation) -> dict[str, object]:
    """The terms of a sentence and why its translation says them."""
    return {"terms": [use.as_json() for use in translation.terms]} if translation.terms else {}


def _work(
    corpora: Sequence[Corpus], files: Sequence[Document], translator: Translator, options: TranslationOptions
) -> int | None:
    """How many sentences there are to translate, in all passes; None if that cannot be known before they are read."""
    from weitblick.documents.corpora.formats import read_documents

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
