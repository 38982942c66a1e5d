"""What commands say: results on standard output; messages, by log level, and progress on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD, text_writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from weitblick.documents.document import Document
    from weitblick.memory.glossary import Glossary
    from weitblick.memory.store import Memory
    from weitblick.text.base import TextPipeline
    from weitblick.translation.results import Translation
    from weitblick.translation.translator import Translator


Advance = Callable[[int], None]
MOST_WARNINGS = 20
"""Of one kind: who has more of them knows by then."""

log = logging.getLogger("weitblick")


class _StandardError(logging.Handler):
    """Messages in the form of our errors. The stream is looked up each time: tests and pipes exchange it."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "warning: " if record.levelno >= logging.WARNING else ""
        sys.stderr.write(f"weitblick: {level}{record.getMessage()}\n")


def set_log_level(quiet: bool = False, verbose: bool = False) -> None:
    """`--quiet` shows errors only, `--verbose` details as well; otherwise what a user should know."""
    log.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)
    if not log.handlers:
        log.addHandler(_StandardError())
        log.propagate = False


def warn(message: str) -> None:
    log.warning("%s", message)


def print_text(text: str) -> None:
    with text_writer(STANDARD) as stream:
        stream.write(text + "\n")


def print_json(value: Mapping[str, Any]) -> None:
    """The one object that a command prints with --json."""
    print_text(json.dumps(value, ensure_ascii=False))


def wide_console() -> Console:
    """For tables: as wide as the terminal; a file or a pipe has no width to fit into."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=160)


def figure_table(first: str, columns: Iterable[str], **options: Any) -> Table:
    """A table without lines: a column of names, and columns of figures to the right of it."""
    from rich.table import Table

    table = Table(first, box=None, pad_edge=False, **options)
    for name in columns:
        table.add_column(name, justify="right")
    return table


def shows_progress() -> bool:
    return sys.stderr.isatty() and log.isEnabledFor(logging.INFO)


@contextmanager
def progress_bar(total: int | None, what: str, *, hidden: bool = False) -> Iterator[Advance]:
    """How much is done and how long the rest will take, on standard error if that is a terminal."""
    if hidden or not shows_progress():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    left = (TextColumn("left"), TimeRemainingColumn()) if total is not None else (TimeElapsedColumn(),)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *left)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda count: bars.advance(task, count)


# A model for a command: the one named with -m, on its device, with its threads.

SHIPPED = "shipped"
"""How reports call the model that comes with the package."""


def load_translator(model: str | None, device: str, threads: int | None, *, int8: bool = False) -> Translator:
    prepare_torch(threads)
    from weitblick.translation.translator import Translator

    begun = time.monotonic()
    translator = Translator.load(model, device, int8, warn=warn)
    log.debug("model %s on %s, loaded in %.1f s", model or SHIPPED, device, time.monotonic() - begun)
    return translator


def read_memory(translator: Translator, files: Sequence[str] | None) -> Memory | None:
    """The approved translations in some files, for this model."""
    if not files:
        return None
    from weitblick.memory.store import Memory

    approvals = translator.approvals
    languages = (translator.pipeline.source_language, translator.pipeline.target_language)
    memory = Memory.read(files, languages, approvals.check)
    approvals.trust(memory)
    return memory


def read_glossary(
    glossaries: Sequence[str] | None, kept: Sequence[str] | None, pipeline: TextPipeline
) -> Glossary | None:
    """The terms of glossaries (TSV, CSV, XLSX, TBX) and of files of terms that stay as they are."""
    if not glossaries and not kept:
        return None
    return glossary_of_files(glossaries or (), kept or (), (pipeline.source_language, pipeline.target_language))


def glossary_of_files(glossaries: Sequence[str], kept: Sequence[str], languages: tuple[str, str]) -> Glossary:
    """The terms of glossaries and of files of terms that stay as they are, in a pair of languages."""
    from weitblick.memory.glossary import Glossary

    found = Glossary.read(glossaries, kept, languages)
    for line in islice(found.contradictions(), MOST_WARNINGS):
        warn(line)
    return found


def prepare_torch(threads: int | None) -> None:
    from weitblick.common.process import tune_allocator
    from weitblick.common.threads import use_threads

    tune_allocator()
    use_threads(threads)


def files_read(*given: str | Sequence[str] | None) -> list[Path]:
    """Every file that a command reads, by whatever option: of folders (models, memories) all that is in them."""
    names = [name for one in given if one for name in ([one] if isinstance(one, str) else one)]
    paths = [Path(name) for name in names]
    return [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]


def check_inputs(paths: Sequence[str], *, folders: bool = False) -> None:
    """Every input is there, before a model is loaded; a model among them has been named the wrong way."""
    for name in paths:
        path = Path(name)
        if name == STANDARD:
            continue
        if not path.exists():
            raise UserError("no such file", where=name, remedy="check the path")
        if path.is_dir() and (path / "config.json").exists():
            raise UserError("is a model, not a document", where=name, remedy=f"name it with -m {name}")
        if path.is_dir() and not folders:
            raise UserError("is a directory, not a file", where=name, remedy="name a file")


def scored_line(translation: Translation) -> str:
    """A translation with its confidence and log-probability, tabs between them."""
    return f"{translation.text}\t{translation.confidence:.4f}\t{translation.log_probability:.4f}"


def write_counted(documents: Iterable[Document], output: Sequence[str], to_format: str | None) -> None:
    """Writes documents to the files of their sides, and says how many there were unless they go to standard output."""
    from weitblick.documents.corpora.formats import write_documents

    count = sentences = 0

    def counted() -> Iterator[Document]:
        nonlocal count, sentences
        for document in documents:
            count, sentences = count + 1, sentences + len(document.sentences)
            yield document

    write_documents(counted(), output, to_format)
    if STANDARD not in output:
        print_text(f"{count} documents, {sentences} sentences in {', '.join(output)}")
