"""Folders that commands write: only what such a command wrote is ever replaced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weitblick.errors import UserError


def check_output_folder(path: str | Path, marks: Sequence[str], source: str | Path | None = None) -> Path:
    """The folder may be written: it is not there, or empty, or holds the files that mark what we write; and it is not
    the one that is read."""
    folder = Path(path)
    if source is not None:
        ours, theirs = folder.resolve(), Path(source).resolve()
        if ours == theirs or ours in theirs.parents:
            raise UserError("holds the model that is read, and is not written over", where=folder)
    if folder.exists() and not folder.is_dir():
        raise UserError("is a file, not a folder", where=folder, remedy="name another output")
    if folder.is_dir() and any(folder.iterdir()) and not all((folder / name).exists() for name in marks):
        raise UserError(
            "holds other things than a model, and is not written over", where=folder, remedy="name another output"
        )
    return folder
