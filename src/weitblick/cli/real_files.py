"""Files of other programs (`weitblick.formats`) and whole folders of them, for `weitblick translate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from weitblick.cli.console import log, progress_bar
from weitblick.cli.options import FormatName
from weitblick.errors import UserError
from weitblick.files import STANDARD, atomic_path, make_folder

if TYPE_CHECKING:
    from weitblick.documents import Document
    from weitblick.formats import TranslatableFile
    from weitblick.formats.translation import Translate
    from weitblick.translation.sharing import Team

FileFormatName = Literal["srt", "vtt", "ass", "docx", "odt", "xliff", "po", "markdown", "html", "json", "csv", "txt"]
"""The keys of `formats.FORMATS`, which help and completion can list without importing the readers."""

AnyFormat = Literal[FormatName, FileFormatName]


@dataclass(frozen=True)
class Inputs:
    """What is to be translated, by what it is."""

    folders: list[Path]
    files: list[TranslatableFile]
    corpora: list[str]


def sort_inputs(names: Sequence[str], format: str | None, language: str = "en") -> Inputs:
    """Folders, files of other programs, and corpora. Files are read at once: what is wrong with one is said before any
    is translated."""
    from weitblick.formats import FORMATS, format_of, read_file

    found = Inputs([], [], [])
    for name in names:
        if name != STANDARD and Path(name).is_dir():
            found.folders.append(Path(name))
        elif format in FORMATS:
            found.files.append(read_file(name, format, language=language))
        elif format is not None or (len(names) > 1 and _is_companion(names)):
            found.corpora.append(name)
        elif kind := format_of(name):
            file = read_file(name, kind, language=language)
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


def _is_companion(names: Sequence[str]) -> bool:
    """Whether the last file says where the documents of the first begin."""
    return Path(names[-1]).suffix in (".docids", ".starts", ".doc")


def translate_real_file(file: TranslatableFile, output: str, team: Team) -> None:
    from weitblick.formats.translation import translate_file

    _remember(file, team)
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


def _remember(file: TranslatableFile, team: Team) -> None:
    """What is translated in a file already goes into the memory, if there is one."""
    memory = team.options.memory
    for sentence in file.document.sentences if memory is not None else ():
        if sentence.status == "locked" and sentence.target and memory is not None:
            memory.add(sentence.source, sentence.target, origin=str(file.path))


def translate_real_folder(folder: Path, output: str, team: Team) -> None:
    from weitblick.formats.translation import translate_folder

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
        prepare=lambda file: _remember(file, team),
        say=lambda message: log.info("%s", message),
        warn=lambda message: log.warning("%s", message),
    )


def _translate(team: Team) -> Translate:
    def translate(document: Document) -> Document:
        return next(iter(team.translations([document]))).document if document.sentences else document

    return translate


def _with_bar(translate: Translate, team: Team) -> Translate:
    """Each file of a folder has a bar of its own."""
    from weitblick.translation.progress import reporting

    passes = team.options.passes_of(team.translator.model)

    def translate_with_bar(document: Document) -> Document:
        free = sum(sentence.status != "locked" for sentence in document.sentences)
        with progress_bar(free * passes, document.id) as advance, reporting(advance):
            return translate(document)

    return translate_with_bar
