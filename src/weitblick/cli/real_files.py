"""Files of other programs (`weitblick.files`) and whole folders of them, for `weitblick translate`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from weitblick.cli.console import log, progress_bar
from weitblick.cli.options import FormatName
from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD, atomic_path, make_folder

if TYPE_CHECKING:
    from weitblick.documents.document import Document
    from weitblick.files.masked_document import Translate
    from weitblick.files.translatable_file import TranslatableFile
    from weitblick.text.carried import Alphabet
    from weitblick.translation.sharing import Team

FileFormatName = Literal[
    "srt", "vtt", "ass", "docx", "pptx", "xlsx", "odt", "xliff", "po", "markdown", "html", "json", "csv", "txt"
]
"""The keys of `formats.FILE_FORMATS`, which help and completion can list without importing the readers."""

BINARY = ("docx", "pptx", "xlsx", "odt")
AnyFormat = Literal[FormatName, FileFormatName]


@dataclass(frozen=True)
class Inputs:
    """What is to be translated, by what it is."""

    folders: list[Path]
    files: list[TranslatableFile]
    corpora: list[str]


def sort_inputs(
    names: Sequence[str],
    format: str | None,
    language: str = "en",
    alphabet: Alphabet | None = None,
    target_language: str | None = None,
) -> Inputs:
    """Folders, files of other programs, and corpora. Files are read at once: what is wrong with one is said before any
    is translated."""
    from weitblick.files.formats import FILE_FORMATS, format_of, read_file

    read = partial(read_file, language=language, alphabet=alphabet, target_language=target_language)
    found = Inputs([], [], [])
    for name in names:
        if name != STANDARD and Path(name).is_dir():
            found.folders.append(Path(name))
        elif format in FILE_FORMATS:
            found.files.append(read(name, format))
        elif format is not None or (len(names) > 1 and _is_companion(names)):
            found.corpora.append(name)
        elif kind := format_of(name):
            file = read(name, kind)
            if kind == "txt":
                log.info("%s: read as one text; --from text takes blank lines for borders of documents", name)
            found.files.append(file)
        else:
            if name != STANDARD and Path(name).suffix == ".txt":
                log.info("%s: read as a corpus, a sentence a line; --from txt takes it for one text", name)
            found.corpora.append(name)
    if found.folders and (len(names) > 1 or format):
        raise UserError("a folder is translated alone, each file by its own format", where=found.folders[0])
    return found


def check_outputs(given: Inputs, paths: Sequence[str], written_as: str | None) -> None:
    """Refuses outputs whose names promise another format than is written, and binary files on a terminal."""
    from weitblick.files.formats import FILE_FORMATS, UNREAD

    formats = [written_as or file.format for file in given.files] + [written_as] * len(given.corpora)
    for path, format in zip(paths, formats, strict=False):
        if path == STANDARD:
            if format in BINARY and sys.stdout is not None and sys.stdout.isatty():
                raise UserError(
                    f"a {format} file is no text for a terminal", remedy=f"name a file to write: -o OUT.{format}"
                )
            continue
        ending = Path(path).suffix.lower()
        other = next((row.name for row in FILE_FORMATS.values() if ending in row.endings), None)
        promised = f"{UNREAD[ending]}, which is not written" if ending in UNREAD and ending != ".doc" else None
        if format in FILE_FORMATS and other is not None and other != format and {other, format} != {"txt", "markdown"}:
            promised = f"the name of a {other} file"
        if format not in FILE_FORMATS and other in BINARY:
            promised = f"the name of a {other} file"
        if promised:
            kind = format or "plain text"
            raise UserError(f"is {promised}; the translation is {kind}", where=path, remedy=_named_so(path, format))


def _named_so(path: str, format: str | None) -> str:
    from weitblick.files.formats import FILE_FORMATS

    ending = FILE_FORMATS[format].endings[0] if format in FILE_FORMATS else ".txt"
    return f"name it {Path(path).with_suffix(ending)}"


def _is_companion(names: Sequence[str]) -> bool:
    """Whether the last file says where the documents of the first begin."""
    return Path(names[-1]).suffix in (".docids", ".starts", ".doc")


def translate_real_file(file: TranslatableFile, output: str, team: Team) -> None:
    from weitblick.files.translation import translate_file

    _prepare(file, team)
    data, notes = translate_file(file, _translate(team), team.translator.align)
    for note in notes:
        log.info("%s: %s", file.path, note)
    if output == STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with atomic_path(output) as temporary:
        temporary.write_bytes(data)


def _prepare(file: TranslatableFile, team: Team) -> None:
    """What is done and said before a file is translated."""
    warn_of_language(str(file.path), file.document.sources, team.translator.pipeline.source_language)
    _remember(file, team)


def warn_of_language(name: str, sources: Sequence[str], expected: str) -> None:
    """Says that a document is in another language than the model reads."""
    from weitblick.files.checks.languages import wrong_language

    if (found := wrong_language(sources, expected)) is not None:
        log.warning("%s: looks like %s, and the model translates from %s", name, found, expected)


def with_language_warning(documents: Iterable[Document], name: str, expected: str) -> Iterator[Document]:
    """The same documents; what there is to say about the language of the first is said before it is translated."""
    for number, document in enumerate(documents):
        if number == 0:
            warn_of_language(name, document.sources, expected)
        yield document


def _remember(file: TranslatableFile, team: Team) -> None:
    """What is translated in a file already goes into the memory, if there is one."""
    memory = team.options.memory
    for sentence in file.document.sentences if memory is not None else ():
        if sentence.status == "locked" and sentence.target and memory is not None:
            memory.add(sentence.source, sentence.target, origin=str(file.path))


def translate_real_folder(folder: Path, output: str, team: Team) -> None:
    from weitblick.files.translation import translate_folder
    from weitblick.text.carried import Alphabet

    if output == STANDARD:
        raise UserError("a folder needs a folder to go to", where=folder, remedy="name one with -o")
    if Path(output).is_file():
        raise UserError("is a file, but a folder needs a folder to go to", where=output, remedy="name a folder")
    if not Path(output).exists():
        make_folder(output)
        log.info("%s: made", output)
    language = team.translator.pipeline.source_language
    translate_folder(
        folder,
        Path(output),
        _with_bar(_translate(team), team),
        team.translator.align,
        language=language,
        target_language=team.translator.pipeline.target_language,
        alphabet=Alphabet(team.translator.pipeline),
        prepare=lambda file: _prepare(file, team),
        say=lambda message: log.info("%s", message),
        warn=lambda message: log.warning("%s", message),
    )


def _translate(team: Team) -> Translate:
    def translate(document: Document) -> Document:
        return next(iter(team.translations([document]))).document if document.sentences else document

    return translate


def _with_bar(translate: Translate, team: Team) -> Translate:
    """Each file of a folder has a bar of its own."""
    from weitblick.translation.searching import reporting

    passes = team.options.passes_of(team.translator.model)

    def translate_with_bar(document: Document) -> Document:
        free = sum(sentence.status != "locked" for sentence in document.sentences)
        with progress_bar(free * passes, document.id) as advance, reporting(advance):
            return translate(document)

    return translate_with_bar
