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
from typing import IO, Any

import numpy as np

from weitblick.documents.document import Document
from weitblick.errors import UserError
from weitblick.files import atomic_folder, check_format_version, read_json, write_json
from weitblick.text.pipeline import TextPipeline

FORMAT_VERSION = 1
SIDES = ("source", "target")
CHUNK_SENTENCES = 20_000  # encoded and written at a time, whole documents


Ids = Sequence[int] | np.ndarray


class CorpusStore:
    """A prepared corpus, opened in milliseconds whatever its size."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.facts = read_json(self.folder / "store.json")
        check_format_version(self.facts, FORMAT_VERSION, self.folder / "store.json")
        self.documents = self._open("documents")
        self.offsets = {side: self._open(f"{side}.offsets") for side in SIDES}
        self.ids = {side: self._open(f"{side}.ids") for side in SIDES}

    def _open(self, name: str) -> np.ndarray:
        path = self.folder / f"{name}.npy"
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UserError(
                f"cannot be opened ({error})", where=path, remedy="delete the folder: it will be made again"
            ) from None

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
        facts = {
            "format_version": FORMAT_VERSION,
            "documents": documents,
            "sentences": self.sentences,
            "sentences_left_out": self.left_out,
            "tokens": {side: self._ids[side].count for side in SIDES},
        }
        write_json(self._temporary / "store.json", facts)
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
