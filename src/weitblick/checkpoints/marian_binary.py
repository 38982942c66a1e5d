"""Marian's binary files (`.bin`), as Firefox's translation models come: named arrays in one file, read and written.

Little-endian: u64 version 1, u64 number of arrays n; n times four u64 (length of the name with its NUL, type, number of
dimensions, bytes of data); the names; the dimensions as i32; u64 number of padding bytes, and these; the data.

A matrix of type intgemm8 is int8 values and behind them one float32 multiplier: a weight is its value divided by it. It
lies there transposed, under the shape that it has when it does not; but tables of embeddings lie as their shape says.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weitblick.common.errors import UserError
from weitblick.common.files import check_regular_file
from weitblick.text.sentencepiece_pipeline import message, varint

VERSION = 1
FLOAT32, INT8, INTGEMM8 = 0x404, 0x101, 0x4101
TYPES = {FLOAT32: "float32", INT8: "int8", INTGEMM8: "intgemm8"}
EMBEDDINGS = "Wemb"  # in the name of a table whose 8-bit values are not transposed
ALIGNMENT = 256
MOST_DIMENSIONS, MOST_ARRAYS = 8, 100_000  # more than any model has
LEVELS = 127
REMEDY = "copy it again"


@dataclass(frozen=True)
class _Entry:
    """One array of a file: where its data begins and how many bytes it has."""

    name: str
    kind: int
    shape: tuple[int, ...]
    start: int
    length: int

    @property
    def values(self) -> int:
        return math.prod(self.shape)

    @property
    def needed(self) -> int:
        """Bytes that such an array has at least; writers may fill up what follows."""
        return {FLOAT32: 4 * self.values, INT8: self.values, INTGEMM8: self.values + 4}[self.kind]


def read_binary(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a file by name: float32 (8-bit weights as value / multiplier, never transposed) and int8.

    Nothing is allocated before every size that the file claims has been held against the size that it has.
    """
    check_regular_file(path, REMEDY)
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return {entry.name: _array(data, entry, path) for entry in _entries(data, path)}
    except (OSError, ValueError) as error:
        raise UserError(f"is no binary model of Marian ({error})", where=path, remedy=REMEDY) from None


def _entries(data: mmap.mmap, path: Path) -> list[_Entry]:
    reader = Reader(data, path)
    (version,) = reader.numbers("Q", 1)
    if version != VERSION:
        raise UserError(f"is no binary model of Marian (version {version})", where=path, remedy="name another file")
    (count,) = reader.numbers("Q", 1)
    if count > MOST_ARRAYS:
        raise UserError(f"is cut short, or its sizes lie: {count} arrays are announced", where=path, remedy=REMEDY)
    headers = [reader.numbers("Q", 4) for _ in range(count)]
    names = [reader.name(length) for length, _, _, _ in headers]
    shapes = [_shape(reader, dimensions, name) for name, (_, _, dimensions, _) in zip(names, headers, strict=True)]
    (padding,) = reader.numbers("Q", 1)
    reader.skip(padding)
    entries = []
    for name, shape, (_, kind, _, length) in zip(names, shapes, headers, strict=True):
        if kind not in TYPES:
            known = ", ".join(TYPES.values())
            raise UserError(f"{name!r} is of a type ({kind:#x}) that is not read here; known: {known}", where=path)
        entry = _Entry(name, kind, shape, reader.place, length)
        if length < entry.needed:
            raise UserError(
                f"{name!r} of shape {shape} needs {entry.needed} bytes, the file gives it {length}",
                where=path,
                remedy=REMEDY,
            )
        reader.skip(length)
        entries.append(entry)
    if len(set(names)) != len(names):
        raise UserError("names an array twice", where=path, remedy=REMEDY)
    return entries


def _shape(reader: Reader, dimensions: int, name: str) -> tuple[int, ...]:
    shape = reader.numbers("i", dimensions) if dimensions <= MOST_DIMENSIONS else ()
    if not shape or min(shape) < 1:
        raise UserError(f"{name!r} has no shape of an array", where=reader.path, remedy=REMEDY)
    return shape


class Reader:
    """Goes through a binary file, little-endian; whatever is said to lie beyond its end is refused."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data, self.path, self.place = data, path, 0

    def skip(self, length: int) -> int:
        """Passes over so many bytes and gives where they began."""
        start = self.place
        if length > len(self.data) - start:
            raise UserError(
                f"is cut short, or its sizes lie: {length} bytes are announced where {len(self.data) - start} follow",
                where=self.path,
                remedy=REMEDY,
            )
        self.place += length
        return start

    def numbers(self, kind: str, count: int) -> tuple[int, ...]:
        start = self.skip(count * struct.calcsize(f"<{kind}"))
        return struct.unpack_from(f"<{count}{kind}", self.data, start)

    def name(self, length: int) -> str:
        start = self.skip(length)
        text = self.data[start : start + length]
        try:
            return text.removesuffix(b"\0").decode("utf-8")
        except UnicodeDecodeError:
            raise UserError("has a name that is not text", where=self.path, remedy=REMEDY) from None


def _array(data: mmap.mmap, entry: _Entry, path: Path) -> np.ndarray:
    if entry.kind == FLOAT32:
        return np.frombuffer(data, "<f4", entry.values, entry.start).reshape(entry.shape).copy()
    if entry.kind == INT8:
        return np.frombuffer(data, np.int8, entry.values, entry.start).reshape(entry.shape).copy()
    (multiplier,) = struct.unpack_from("<f", data, entry.start + entry.values)
    if not math.isfinite(multiplier) or multiplier <= 0:
        raise UserError(f"{entry.name!r} has the multiplier {multiplier}", where=path, remedy=REMEDY)
    values = np.frombuffer(data, np.int8, entry.values, entry.start).astype(np.float32) / np.float32(multiplier)
    if EMBEDDINGS in entry.name or len(entry.shape) != 2:
        return values.reshape(entry.shape)
    rows, columns = entry.shape
    return np.ascontiguousarray(values.reshape(columns, rows).T)


# Writing


def quantized(matrix: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """int8 values and the multiplier of a matrix, by its greatest magnitude."""
    most = np.float32(np.abs(matrix).max())
    multiplier = np.float32(LEVELS) / most if most > 0 else np.float32(1)
    return np.clip(np.rint(matrix * multiplier), -LEVELS, LEVELS).astype(np.int8), multiplier


def write_binary(path: Path, arrays: Mapping[str, np.ndarray], eight_bits: frozenset[str] = frozenset()) -> None:
    """Writes float32 and int8 arrays; matrices named in `eight_bits` as intgemm8."""
    names, headers, shapes, contents = [], [], [], []
    for name, array in arrays.items():
        text = name.encode() + b"\0"
        kind, content = _content(name, array, name in eight_bits)
        content += bytes(-len(content) % ALIGNMENT)
        names.append(text)
        headers.append(struct.pack("<4Q", len(text), kind, array.ndim, len(content)))
        shapes.append(np.array(array.shape, dtype="<i4").tobytes())
        contents.append(content)
    head = struct.pack("<2Q", VERSION, len(arrays)) + b"".join((*headers, *names, *shapes))
    padding = -(len(head) + 8) % ALIGNMENT
    with open(path, "wb") as file:
        file.write(head + struct.pack("<Q", padding) + bytes(padding))
        file.writelines(contents)


def _content(name: str, array: np.ndarray, eight_bits: bool) -> tuple[int, bytes]:
    if array.dtype == np.int8:
        return INT8, array.tobytes()
    if not eight_bits:
        return FLOAT32, array.astype("<f4").tobytes()
    values, multiplier = quantized(array.astype(np.float32))
    stored = values if EMBEDDINGS in name else values.T
    return INTGEMM8, np.ascontiguousarray(stored).tobytes() + struct.pack("<f", multiplier)


# SentencePiece models whose pieces are put in another order, without the protocol compiler that wrote them.
#
# A model is a message of fields: pieces (field 1, repeated), settings of training (2) and of normalisation (3), ... Of
# a setting that is there twice the later one counts, so settings are changed by adding to the end.

PIECE, TRAINING, NORMALISATION = 1, 2, 3
TEXT, KIND = 1, 3  # of a piece
UNUSED = 5  # a kind of piece that no text is ever cut into
BYTES, VARINT = 2, 0  # wire types
UNKNOWN_ID, START_ID, END_ID, PADDING_ID = 40, 41, 42, 43  # of the settings of training
DUMMY_PREFIX, WITHOUT_EXTRA_SPACES = 3, 4  # of the settings of normalisation


def in_marians_order(model: bytes, pieces: Sequence[str], multiple: int = 1) -> bytes:
    """The model with these pieces in this order: `</s>` first, `<unk>` second, neither `<s>` nor `<pad>`; and behind
    them as many unused ones as fill up a multiple of `multiple`.

    Text is given a space before it and single spaces in it, as the text pipelines here do on their own.
    """
    own: dict[str, bytes] = {}
    rest = b""
    for field, content, whole in _fields(model):
        if field == PIECE and content is not None:
            text = next((value for number, value, _ in _fields(content) if number == TEXT and value is not None), b"")
            own[text.decode("utf-8")] = whole
        else:
            rest += whole
    missing = [piece for piece in pieces if piece not in own]
    if missing or [*pieces[:2]] != ["</s>", "<unk>"]:
        raise UserError(f"the vocabulary has words that are no pieces of its SentencePiece model: {missing[:3]}")
    unused = [_unused_piece(f"<unused {number}>") for number in range(-len(pieces) % multiple)]
    ids = ((UNKNOWN_ID, 1), (START_ID, -1), (END_ID, 0), (PADDING_ID, -1))
    training = b"".join(varint(number << 3 | VARINT) + varint(value % 2**64) for number, value in ids)
    spaces = b"".join(varint(number << 3 | VARINT) + b"\1" for number in (DUMMY_PREFIX, WITHOUT_EXTRA_SPACES))
    settings = message(TRAINING, training) + message(NORMALISATION, spaces)
    return b"".join([*(own[piece] for piece in pieces), *unused, rest, settings])


def _unused_piece(text: str) -> bytes:
    return message(PIECE, message(TEXT, text.encode()) + varint(KIND << 3 | VARINT) + varint(UNUSED))


def _fields(message: bytes) -> Iterator[tuple[int, bytes | None, bytes]]:
    """Number, content if it is bytes, and the whole field as it stands."""
    place = 0
    while place < len(message):
        start = place
        key, place = _read_varint(message, place)
        content: bytes | None = None
        if key & 7 == BYTES:
            length, place = _read_varint(message, place)
            content = message[place : place + length]
            place += length
        elif key & 7 == VARINT:
            _, place = _read_varint(message, place)
        else:
            place += {1: 8, 5: 4}[key & 7]
        yield key >> 3, content, message[start:place]


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
