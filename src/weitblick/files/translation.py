"""One file, or all files of a folder, translated into files of the same kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.common.files import atomic_path
from weitblick.files.formats import UnreadFileError, format_of, read_file
from weitblick.files.masked_document import Align, Translate
from weitblick.files.translatable_file import TranslatableFile
from weitblick.text.carried import Alphabet

MOST_NOTES = 10  # lines about single sentences; of more, their number


def translate_file(file: TranslatableFile, translate: Translate, align: Align) -> tuple[bytes, list[str]]:
    """The bytes of the translated file, and what its reader should know."""
    translated = file.retried(translate(file.masked()), translate)
    document, mended = file.unmasked(translated, align)
    data, notes = file.rendered(document, align)
    shown = mended[:MOST_NOTES]
    if len(mended) > MOST_NOTES:
        shown.append(f"{len(mended) - MOST_NOTES} more sentences like these")
    return data, [*file.notes, *shown, *notes]


@dataclass(frozen=True)
class Task:
    """A file of a folder and where its translation goes; `done`: that is there already, and newer."""

    source: Path
    output: Path
    done: bool


def tasks_of(folder: Path, output: Path) -> Iterator[Task]:
    """The files below a folder, in order, hidden ones left out; the tree of the output is that of the folder."""
    if output.resolve() == folder.resolve():
        raise UserError("is the input, which is never written over", where=output, remedy="name another folder")
    inner = output.resolve()
    for root, folders, names in os.walk(folder):
        here = Path(root)
        folders[:] = sorted(name for name in folders if name[0] != "." and (here / name).resolve() != inner)
        for name in sorted(names):
            if name[0] == "." or not (here / name).is_file():
                continue
            source = here / name
            target = output / source.relative_to(folder)
            done = target.is_file() and target.stat().st_mtime_ns >= source.stat().st_mtime_ns
            yield Task(source, target, done)


def translate_folder(
    folder: Path,
    output: Path,
    translate: Translate,
    align: Align,
    *,
    language: str = "en",
    target_language: str | None = None,
    alphabet: Alphabet | None = None,
    prepare: Callable[[TranslatableFile], None] = lambda file: None,
    say: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Translate every file below `folder` into the same place below `output`; `prepare` sees each before it is.

    A file that was translated before and has not changed since is left alone, so that the command can be stopped and
    started again. A file of a kind that is not read is named and left out; if one is damaged, the others are translated
    all the same, and the end is an error.
    """
    tasks = list(tasks_of(folder, output))
    if not tasks:
        raise UserError("holds no file", where=folder, remedy="name a folder with files to translate")
    done = sum(task.done for task in tasks)
    if done:
        say(f"{done} of {len(tasks)} files have been translated before and are left as they are")
    failed = 0
    for number, task in enumerate(tasks, 1):
        if task.done:
            continue
        try:
            file = read_file(
                task.source,
                format_of(task.source) or "txt",
                language=language,
                alphabet=alphabet,
                target_language=target_language,
            )
            prepare(file)
            data, notes = translate_file(file, translate, align)
            task.output.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(task.output) as temporary:
                temporary.write_bytes(data)
        except UserError as error:
            failed += not isinstance(error, UnreadFileError)
            warn(str(error))
            continue
        sentences = len(file.document.sentences)
        say(f"{number}/{len(tasks)} {task.output} ({file.format}, {sentences} sentence{'s' * (sentences != 1)})")
        for note in notes:
            say(f"{task.source}: {note}")
    if failed:
        raise UserError(f"{failed} of {len(tasks)} files could not be translated", where=folder, remedy="see above")
