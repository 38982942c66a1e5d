"""A prepared corpus on disk: documents -> sentences -> ids, memory-mapped, never loaded whole.

A folder of plain `.npy` arrays (any NumPy opens them) and a `store.json`:
    documents.npy       [documents + 1] first sentence of each document
    {side}.offsets.npy  [sentences + 1] first id of each sentence
    {side}.ids.npy      [ids] uint16 or int32
    document_ids.txt    the documents' own ids, a line each
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from weitblick.common.errors import UserError, parse_json
from weitblick.common.files import atomic_folder, check_files, check_regular_file, read_lines, sha256, write_json
from weitblick.documents.document import Document
from weitblick.text.base import TextPipeline

FORMAT_VERSION: Literal[1] = 1
REMEDY = "delete the folder: it will be made again"
SIDES = ("source", "target")
CHUNK_SENTENCES = 20_000  # encoded and written at a time, whole documents


Ids = Sequence[int] | np.ndarray


class StoreFacts(BaseModel):
    """store.json: how much there is, and the checksums of the arrays."""

    format_version: Literal[1] = FORMAT_VERSION
    documents: int
    sentences: int
    sentences_left_out: int = 0
    tokens: dict[str, int]
    files: dict[str, str] = Field(default_factory=dict)


class CorpusStore:
    """A prepared corpus, opened in milliseconds whatever its size."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / "store.json"
        check_regular_file(path)
        self.facts = parse_json(StoreFacts, "\n".join(read_lines(path)), path, remedy=REMEDY)
        self.documents = self._open("documents")
        self.offsets = {side: self._open(f"{side}.offsets") for side in SIDES}
        self.ids = {side: self._open(f"{side}.ids") for side in SIDES}

    def _open(self, name: str) -> np.ndarray:
        path = self.folder / f"{name}.npy"
        check_regular_file(path)
        try:
            _check_header(path)
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"cannot be opened ({error})", where=path, remedy=REMEDY) from None
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu" or not len(array):
            raise UserError("is not a row of whole numbers", where=path, remedy=REMEDY)
        return array

    def check(self, source_vocabulary: int, target_vocabulary: int) -> None:
        """Reads everything once: the files must be those that were written, and all ids known."""
        check_files(self.folder, self.facts.files, self.folder / "store.json")
        starts, count = self.documents, len(self.offsets["source"]) - 1
        ids = {"source": source_vocabulary, "target": target_vocabulary}
        sound = len(self.offsets["target"]) == count + 1 and _rises(starts, count)
        sound &= all(_rises(self.offsets[side], len(self.ids[side])) for side in SIDES)
        sound &= all(int(self.ids[side].min()) >= 0 and int(self.ids[side].max()) < ids[side] for side in SIDES)
        if not sound:
            raise UserError("does not hold together", where=self.folder, remedy=REMEDY)

    def __len__(self) -> int:
        return len(self.documents) - 1

    @property
    def sentences(self) -> int:
        return len(self.offsets["source"]) - 1

    def sentence(self, side: str, index: int) -> np.ndarray:
        offsets = self.offsets[side]
        return self.ids[side][offsets[index] : offsets[index + 1]]

    def document(self, index: int) -> range:
        """The sentence numbers of a document."""
        return range(int(self.documents[index]), int(self.documents[index + 1]))

    def lengths(self, side: str) -> np.ndarray:
        """[sentences] ids of each sentence"""
        return np.diff(self.offsets[side])


def _check_header(path: Path) -> None:
    """Refuses an array whose header is said to be longer than its file: NumPy would ask for that much memory."""
    with path.open("rb") as file:
        major, _ = np.lib.format.read_magic(file)
        length = int.from_bytes(file.read(2 if major == 1 else 4), "little")
        if file.tell() + length > path.stat().st_size:
            raise ValueError(f"a header of {length} bytes in a file of {path.stat().st_size}")


def _rises(offsets: np.ndarray, end: int) -> bool:
    return int(offsets[0]) == 0 and int(offsets[-1]) == end and bool((np.diff(offsets) >= 0).all())


class _ArrayFile:
    """Appends to a `.npy` file whose length is known only at the end."""

    HEADER = 128

    def __init__(self, path: Path, dtype: np.dtype) -> None:
        self.dtype, self.count = np.dtype(dtype), 0
        self.stream: IO[bytes] = path.open("wb")
        self.stream.write(b"\0" * self.HEADER)

    def append(self, values: Sequence[int] | np.ndarray) -> None:
        array = np.asarray(values, dtype=self.dtype)
        self.count += len(array)
        self.stream.write(array.tobytes())

    def close(self) -> None:
        header = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': ({self.count},), }}"
        header = header.ljust(self.HEADER - 10 - 1) + "\n"
        self.stream.seek(0)
        self.stream.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode("ascii"))
        self.stream.close()


class StoreWriter:
    """Writes a store document by document; used as a context, it appears complete or not at all."""

    def __init__(self, folder: str | Path, vocabulary: int) -> None:
        self.folder, self.left_out = Path(folder), 0
        self.dtype = np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.int32)
        self.sentences = 0

    def __enter__(self) -> StoreWriter:
        self._stack = ExitStack()
        temporary = self._stack.enter_context(atomic_folder(self.folder))
        self._temporary = temporary
        self._starts = _ArrayFile(temporary / "documents.npy", np.dtype(np.int64))
        self._ids = {side: _ArrayFile(temporary / f"{side}.ids.npy", self.dtype) for side in SIDES}
        self._offsets = {side: _ArrayFile(temporary / f"{side}.offsets.npy", np.dtype(np.int64)) for side in SIDES}
        self._names = self._stack.enter_context(open(temporary / "document_ids.txt", "w", encoding="utf-8"))
        return self

    def add(self, name: str, sources: Sequence[Ids], targets: Sequence[Ids]) -> None:
        if not sources:
            return
        self._starts.append([self.sentences])
        self._names.write(" ".join(name.split()) + "\n")
        self.sentences += len(sources)
        for side, sentences in zip(SIDES, (sources, targets), strict=True):
            lengths = np.array([len(s) for s in sentences])
            self._offsets[side].append(self._ids[side].count + lengths.cumsum() - lengths)
            self._ids[side].append(np.concatenate([np.asarray(s, dtype=self.dtype) for s in sentences]))

    def __exit__(self, *failure: Any) -> None:
        documents = self._starts.count
        self._starts.append([self.sentences])
        for side in SIDES:
            self._offsets[side].append([self._ids[side].count])
        for array in (self._starts, *self._ids.values(), *self._offsets.values()):
            array.close()
        if failure[0] is None and not self.sentences:
            failure = (UserError, UserError("no sentence pair to train on", where=self.folder), None)
            self._stack.__exit__(*failure)
            raise failure[1]
        if failure[0] is None:
            facts = StoreFacts(
                documents=documents,
                sentences=self.sentences,
                sentences_left_out=self.left_out,
                tokens={side: self._ids[side].count for side in SIDES},
                files={path.name: sha256(path) for path in sorted(self._temporary.glob("*.npy"))},
            )
            write_json(self._temporary / "store.json", facts.model_dump())
        self._stack.__exit__(*failure)


def prepare_store(documents: Iterable[Document], pipeline: TextPipeline, folder: str | Path) -> CorpusStore:
    """Encodes a corpus into a store, streaming. Pairs with an empty or over-long side are left out and counted."""
    limit = pipeline.longest_sentence
    vocabulary = max(len(pipeline.source_vocabulary), len(pipeline.target_vocabulary))
    with StoreWriter(folder, vocabulary) as writer:
        for chunk in _chunks(documents):
            sources = iter(pipeline.encode_source([s.source for d in chunk for s in d.sentences]))
            targets = iter(pipeline.encode_target([s.target or "" for d in chunk for s in d.sentences]))
            for document in chunk:
                count = len(document.sentences)
                pairs = list(zip(islice(sources, count), islice(targets, count), strict=True))
                kept = [(x, y) for x, y in pairs if 0 < len(x) <= limit and 0 < len(y) <= limit]
                writer.left_out += count - len(kept)
                writer.add(document.id, [x for x, _ in kept], [y for _, y in kept])
    return CorpusStore(folder)


def _chunks(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents of so many sentences together: memory is bounded however long or short documents are."""
    chunk: list[Document] = []
    sentences = 0
    for document in documents:
        chunk.append(document)
        sentences += len(document.sentences)
        if sentences >= CHUNK_SENTENCES:
            yield chunk
            chunk, sentences = [], 0
    if chunk:
        yield chunk
