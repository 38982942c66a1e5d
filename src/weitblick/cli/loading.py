"""A model for a command: the one named with -m, on its device, with its threads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from weitblick.cli.console import log, warn
from weitblick.errors import UserError
from weitblick.files import STANDARD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weitblick.memory import Memory
    from weitblick.memory.glossary import Glossary
    from weitblick.translation.translator import Translator

SHIPPED = "shipped"
"""How reports call the model that comes with the package."""


def load_translator(model: str | None, device: str, threads: int | None, *, int8: bool = False) -> Translator:
    prepare_torch(threads)
    from weitblick.translation.translator import Translator

    begun = time.monotonic()
    translator = Translator.load(model, device, int8, warn=warn)
    log.debug("model %s on %s, loaded in %.1f s", model or SHIPPED, device, time.monotonic() - begun)
    return translator


def read_memory(translator: Translator, files: Sequence[str] | None, glossary: Glossary | None = None) -> Memory | None:
    """The approved translations in some files, for this model; the terms of a glossary count as the latest."""
    if not files and glossary is None:
        return None
    from weitblick.memory import Memory

    approvals = translator.approvals  # a model that cannot use them says so before they are read
    languages = (translator.pipeline.source_language, translator.pipeline.target_language)
    memory = Memory.read(files, languages, approvals.check) if files else Memory()
    if glossary is not None:
        if memory.folder is not None:  # which stays as it is
            memory = Memory.copy_of(memory)
        memory.extend((term.source, term.target, term.origin) for term in glossary.terms)
    approvals.trust(memory)
    return memory


def read_glossary(glossaries: Sequence[str] | None, kept: Sequence[str] | None) -> Glossary | None:
    from weitblick.memory.glossary import Glossary

    return Glossary.read(glossaries or (), kept or ()) if glossaries or kept else None


def prepare_torch(threads: int | None) -> None:
    from weitblick.allocator import tune_allocator
    from weitblick.threads import use_threads

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
