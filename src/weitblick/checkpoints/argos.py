"""Packages of Argos Translate (`.argosmodel`): a zip of metadata.json, sentencepiece.model and a folder of CTranslate2.

Nothing is written where the zip says: of its members those that a model needs are read, by their names.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from weitblick.checkpoints.ctranslate2_folder import PACKAGE, PACKED_MODEL
from weitblick.common.errors import UserError
from weitblick.common.files import check_regular_file

SUFFIX = ".argosmodel"
NEEDED = re.compile(rf"{PACKAGE}|README\.md|[\w.-]+\.(model|spm)|{PACKED_MODEL}/[\w.-]+\.(bin|json|txt)", re.ASCII)
LEFT_OUT = "stanza"
MOST_BYTES = 8 << 30  # more than any package has
CHUNK = 1 << 20
REMEDY = "copy it again"


def is_package(path: Path) -> bool:
    """Whether a file is meant to be a package."""
    return path.suffix == SUFFIX and not path.is_dir()


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A folder with what a model needs of a package, for as long as it is used."""
    check_regular_file(path, REMEDY)
    with tempfile.TemporaryDirectory(prefix="weitblick-") as temporary:
        folder = Path(temporary) / path.stem
        folder.mkdir()
        try:
            with zipfile.ZipFile(path) as package:
                _unpack(package, folder, path)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise UserError(f"is no package of Argos Translate ({error})", where=path, remedy=REMEDY) from None
        except OSError as error:
            raise UserError(f"cannot be unpacked ({error.strerror or error})", where=path) from None
        yield folder


def _unpack(package: zipfile.ZipFile, folder: Path, path: Path) -> None:
    members = package.infolist()
    for member in members:
        parts = PurePosixPath(member.filename.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in member.filename:
            raise UserError(f"has a member that leaves its folder: {member.filename!r}", where=path)
    roots = [member.filename.removesuffix(PACKAGE) for member in members if _is_metadata(member.filename)]
    if not roots:
        raise UserError(f"has no {PACKAGE}: it is no package of Argos Translate", where=path)
    needed = {
        name: member
        for member in members
        if member.filename.startswith(roots[0]) and NEEDED.fullmatch(name := member.filename.removeprefix(roots[0]))
    }
    total = sum(member.file_size for member in needed.values())
    free = shutil.disk_usage(folder).free
    if total > MOST_BYTES or total > free:
        raise UserError(f"unpacked has {total >> 20:,} MB, {free >> 20:,} MB are free", where=path)
    for name, member in needed.items():
        (folder / name).parent.mkdir(exist_ok=True)
        with package.open(member) as given, open(folder / name, "wb") as out:
            shutil.copyfileobj(given, out, CHUNK)
    if any(member.filename.startswith(f"{roots[0]}{LEFT_OUT}") for member in members):
        (folder / LEFT_OUT).mkdir()  # the reader says that it is left out


def _is_metadata(name: str) -> bool:
    return PurePosixPath(name).name == PACKAGE and name.count("/") <= 1
