"""The rows of a document as a model reads them: with names for placeholders, addresses and the like, which it must not
touch; what it says as people read it, with all of these in it; and a memory, of which it reads the same names."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from weitblick.errors import UserError
from weitblick.formats import TranslatableFile
from weitblick.formats.file import Align
from weitblick.formats.pairs import VeiledPair, veiled_pair
from weitblick.formats.translation import Translate
from weitblick.memory import Memory, Pair
from weitblick.memory.matches import LocatedPair
from weitblick.memory.store import SAMPLE
from weitblick.server.files import read_upload
from weitblick.server.records import Segment
from weitblick.server.store import Store

MOST_FILES = 16
"""Documents whose files stay read."""


class Veil:
    """Of one document. Without a file, or with one that is read in another way than when it was uploaded, rows are
    what they are."""

    def __init__(self, file: TranslatableFile | None, sources: Sequence[str]) -> None:
        self._file = file if file is not None and file.document.sources == list(sources) else None
        self._sources = list(sources) if self._file is None else self._file.veiled().sources

    def row(self, segment: Segment) -> Segment:
        """A row as a model reads it."""
        return replace(
            segment, source=self.source(segment.position), target=self.text(segment.position, segment.target)
        )

    def source(self, position: int) -> str:
        return self._sources[position]

    def text(self, position: int, target: str) -> str:
        """A translation of a row as a model reads it."""
        return target if self._file is None or not target.strip() else self._file.veil(position, target)

    def names(self, position: int) -> Mapping[str, str]:
        """What the names in a row stand for, as people read it."""
        return {} if self._file is None else self._file.names(position)

    def lifted(self, found: Mapping[int, str], align: Align, translate: Translate) -> dict[int, str]:
        """What a model says for some rows, as people read it. Rows that have lost something get a second chance; what
        is lost even then is put back where its neighbours went."""
        if self._file is None:
            return dict(found)
        return self._file.unveil(self._file.tried_again(found, translate), align)[0]


class VeiledMemory(Memory):
    """The memory of a project as a model reads it for one document. Rows of that document have the names that they have
    there, other pairs their own; `of` holds what people read. It has no pairs of its own."""

    def __init__(self, of: Memory, veil: Veil, rows: Mapping[int, int], language: str) -> None:
        self.folder = None
        self.of, self._veil, self._rows, self._language = of, veil, rows, language

    def __len__(self) -> int:
        return len(self.of)

    def sample(self, count: int = SAMPLE) -> list[LocatedPair]:
        return self.of.sample(count)

    def candidates(self, sources: Sequence[str], limit: int) -> list[list[Pair]]:
        return [[self._read(pair) for pair in own] for own in self.of.candidates(sources, limit)]

    def veiled(self, pair: Pair) -> VeiledPair:
        position = self._rows.get(pair.id)
        if position is None:
            return veiled_pair(pair.source, pair.target, self._language)
        return VeiledPair(
            self._veil.source(position), self._veil.text(position, pair.target), self._veil.names(position)
        )

    def _read(self, pair: Pair) -> Pair:
        veiled = self.veiled(pair)
        return replace(pair, source=veiled.source, target=veiled.target)


class Veils:
    """Made when they are first asked for; those that were asked for last are kept."""

    def __init__(self, store: Store, language: str) -> None:
        self._store, self._language = store, language
        self._lock = threading.Lock()
        self._veils: OrderedDict[str, Veil] = OrderedDict()

    def of(self, document: str) -> Veil:
        with self._lock:
            if document in self._veils:
                self._veils.move_to_end(document)
                return self._veils[document]
        veil = Veil(self._read(document), [segment.source for segment in self._store.segments(document)])
        with self._lock:
            self._veils[document] = veil
            while len(self._veils) > MOST_FILES:
                self._veils.popitem(last=False)
        return veil

    def forget(self, document: str) -> None:
        with self._lock:
            self._veils.pop(document, None)

    def _read(self, document: str) -> TranslatableFile | None:
        name = self._store.document(document).name
        try:
            return read_upload(name, self._store.file(document), self._language)
        except UserError:  # of a format that an earlier version read
            return None
