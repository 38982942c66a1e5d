"""CTranslate2's model files (`model.bin`): named variables in one file, read without CTranslate2.

Little-endian: u32 version; text name of the specification, u32 revision; u32 number of variables, and of each its text
name, u8 number of dimensions, these as u32, u8 type, u32 bytes, data; u32 number of aliases, and of each two texts: its
name and the variable's. A text is u16 length and so many bytes, the last of which is NUL. Before version 4 a type is
the bytes of a value, and a number of values follows; before version 3 there are no aliases.

Weights of 8 bits have a scale for each row, those of 16 bits one for all (`NAME_scale`): a weight is its value divided
by it.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from weitblick.checkpoints.marian_binary import MOST_ARRAYS, MOST_DIMENSIONS, REMEDY, Reader
from weitblick.common.errors import UserError
from weitblick.common.files import check_regular_file

VERSIONS = range(2, 7)
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
BYTES = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "float16": 2, "bfloat16": 2}
TYPES_BEFORE = {4: "float32", 2: "int16", 1: "int8"}  # by the bytes of a value, before version 4
SCALE = "_scale"
SCALE_OF_16_BITS = 1000.0  # where a file has none
HEAD = re.compile(rb"[\x02-\x0f]\0\0\0.\0\w+\0", re.DOTALL)


def is_ctranslate2(path: Path) -> bool:
    """Whether a file begins as CTranslate2's do."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return HEAD.match(file.read(256)) is not None


@dataclass
class Variables:
    """What a file holds: the name and revision of its specification, and its variables as they are stored; `left`:
    names that nobody has asked for yet."""

    path: Path
    name: str
    revision: int
    stored: dict[str, np.ndarray]
    left: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = {name for name in self.stored if not name.endswith(SCALE)}

    def __contains__(self, name: str) -> bool:
        return name in self.stored

    def number(self, *names: str) -> float | None:
        """The first of these scalars that is there."""
        for name in names:
            if name in self.stored:
                self.left.discard(name)
                if self.stored[name].size != 1:
                    raise UserError(f"{name!r} is no single number", where=self.path, remedy=REMEDY)
                return float(self.stored[name].reshape(()))
        return None

    def take(self, *names: str) -> np.ndarray:
        """The first of these arrays that is there, as float32."""
        found = next((name for name in names if name in self.stored), None)
        if found is None:
            raise UserError(f"variable {names[0]!r} is missing", where=self.path, remedy=REMEDY)
        self.left.discard(found)
        values = self.stored[found]
        if values.size == 0 or values.ndim == 0:
            raise UserError(f"{found!r} has no shape of an array", where=self.path, remedy=REMEDY)
        if values.dtype not in (np.int8, np.int16):
            return values.astype(np.float32)
        scale = self._scale(found, values)
        return values.astype(np.float32) / scale.reshape(-1, *[1] * (values.ndim - 1))

    def _scale(self, name: str, values: np.ndarray) -> np.ndarray:
        scale = self.stored.get(f"{name}{SCALE}")
        if scale is None and values.dtype == np.int16:
            return np.array(SCALE_OF_16_BITS, np.float32)
        if scale is None or scale.size not in (1, len(values)):
            raise UserError(f"{name!r} has no scale for each of its rows", where=self.path, remedy=REMEDY)
        scale = scale.astype(np.float32)
        if not np.isfinite(scale).all() or (scale <= 0).any():
            raise UserError(f"{name!r} has a scale that is no positive number", where=self.path, remedy=REMEDY)
        return scale


def read_variables(path: Path) -> Variables:
    """All variables of a file.

    Nothing is allocated before every size that the file claims has been held against the size that it has.
    """
    check_regular_file(path, REMEDY)
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(Reader(data, path))
    except (OSError, ValueError, struct.error) as error:
        raise UserError(f"is no model of CTranslate2 ({error})", where=path, remedy=REMEDY) from None


@dataclass(frozen=True)
class _Entry:
    """A variable of a file, and where its data begins."""

    name: str
    kind: str
    shape: tuple[int, ...]
    start: int


def _read(reader: Reader) -> Variables:
    (version,) = reader.numbers("I", 1)
    if version not in VERSIONS:
        known = f"{VERSIONS[0]} to {VERSIONS[-1]}"
        raise UserError(f"is no model of CTranslate2 that is known (version {version})", where=reader.path,
                        remedy=f"name one of version {known}")  # fmt: skip
    name = _text(reader)
    (revision,) = reader.numbers("I", 1)
    entries = [_entry(reader, version) for _ in range(_count(reader, "variables"))]
    aliases = []
    if version >= 3:
        aliases = [(_text(reader), _text(reader)) for _ in range(_count(reader, "aliases"))]
    if reader.place != len(reader.data):
        raise UserError(f"has {len(reader.data) - reader.place} bytes too many", where=reader.path, remedy=REMEDY)
    stored = {entry.name: _array(reader, entry) for entry in entries}
    for alias, original in aliases:
        if original not in stored:
            raise UserError(f"{alias!r} stands for {original!r}, which is missing", where=reader.path, remedy=REMEDY)
        stored[alias] = stored[original]
        if f"{original}{SCALE}" in stored:
            stored[f"{alias}{SCALE}"] = stored[f"{original}{SCALE}"]
    return Variables(reader.path, name, revision, stored)


def _text(reader: Reader) -> str:
    return reader.name(reader.numbers("H", 1)[0])


def _count(reader: Reader, what: str) -> int:
    (count,) = reader.numbers("I", 1)
    if count > MOST_ARRAYS:
        raise UserError(
            f"is cut short, or its sizes lie: {count} {what} are announced", where=reader.path, remedy=REMEDY
        )
    return count


def _entry(reader: Reader, version: int) -> _Entry:
    name = _text(reader)
    (dimensions,) = reader.numbers("B", 1)
    if dimensions > MOST_DIMENSIONS:
        raise UserError(f"{name!r} has {dimensions} dimensions", where=reader.path, remedy=REMEDY)
    shape = reader.numbers("I", dimensions)
    (number,) = reader.numbers("B", 1)
    (length,) = reader.numbers("I", 1)
    kind = TYPES_BEFORE.get(number) if version < 4 else TYPES[number] if number < len(TYPES) else None
    if kind is None:
        known = ", ".join(TYPES)
        raise UserError(f"{name!r} is of a type ({number}) that is not read here; known: {known}", where=reader.path)
    length *= BYTES[kind] if version < 4 else 1
    if length != BYTES[kind] * math.prod(shape):
        raise UserError(
            f"{name!r} of shape {shape} needs {BYTES[kind] * math.prod(shape)} bytes, the file gives it {length}",
            where=reader.path,
            remedy=REMEDY,
        )
    return _Entry(name, kind, shape, reader.skip(length))


def _array(reader: Reader, entry: _Entry) -> np.ndarray:
    count = math.prod(entry.shape)
    if entry.kind == "bfloat16":  # the upper half of a float32
        upper = np.frombuffer(reader.data, "<u2", count, entry.start).astype(np.uint32) << 16
        return upper.view(np.float32).reshape(entry.shape)
    kind = np.dtype(entry.kind).newbyteorder("<")
    return np.frombuffer(reader.data, kind, count, entry.start).reshape(entry.shape).astype(entry.kind)
