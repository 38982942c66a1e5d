"""The rows of a document as a model reads them: with names for placeholders, addresses and the like, which it must not
touch; what it says as people read it, with all of these in it; and a memory, of which it reads the same names."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from weitblick.common.errors import UserError
from weitblick.documents.document import Document, Sentence
from weitblick.files.inline_marks import InlineMark, source_marks
from weitblick.files.masked_document import Align, MaskedDocument, MaskedPair, Translate, mask_pair
from weitblick.files.translatable_file import TranslatableFile
from weitblick.memory.matches import LocatedPair, Pair
from weitblick.memory.store import SAMPLE, Memory
from weitblick.text.carried import Alphabet
from weitblick.translation.completion import Completion
from weitblick.workbench.schema import Segment
from weitblick.workbench.store import Store
from weitblick.workbench.transfer import read_again

MOST_FILES = 16
"""Documents whose files stay read."""


class RowMask:
    """The mask of one document's rows. Without a file, or with one that is read in another way than when it was
    uploaded, each row is masked on its own."""

    def __init__(
        self, file: TranslatableFile | None, sources: Sequence[str], language: str, alphabet: Alphabet | None = None
    ) -> None:
        self.file = file if file is not None and file.document.sources == list(sources) else None
        if self.file is not None:
            self._masked: MaskedDocument = self.file
        else:
            rows = Document("1", tuple(Sentence(source) for source in sources))
            self._masked = MaskedDocument.of_sentences(rows, language, alphabet)
        self._sources = self._masked.masked().sources

    def row(self, segment: Segment) -> Segment:
        """A row as a model reads it."""
        return replace(
            segment, source=self.source(segment.position), target=self.text(segment.position, segment.target)
        )

    def source(self, position: int) -> str:
        """The source of a row as a model reads it."""
        return self._sources[position]

    def text(self, position: int, target: str) -> str:
        """A translation of a row as a model reads it."""
        return self._masked.mask_target(position, target) if target.strip() else target

    def complete(self, position: int, typed: str, complete: Callable[[str], Completion | None]) -> str:
        """What follows the beginning of a translation that somebody has typed, as people read it. complete: what a
        model makes of such a beginning."""
        begun = self._masked.masks[position].begun(typed)
        found = complete(self.text(position, typed + begun))
        rest = "" if found is None else self._masked.rest(position, found.begun, found.whole)
        return begun + (rest.lstrip() if not begun and (not typed or typed[-1].isspace()) else rest)

    def names(self, position: int) -> Mapping[str, str]:
        """What the names in a row stand for, as people read it."""
        return self._masked.names(position)

    def marks(self) -> list[list[InlineMark]]:
        """Of each row, placeholders and formatting, with their places in the source."""
        if self.file is not None:
            return self.file.marks()
        return [source_marks(mask) for mask in self._masked.masks]

    def unmask(self, found: Mapping[int, str], align: Align, translate: Translate) -> dict[int, str]:
        """What a model says for some rows, as people read it. Rows that have lost something get a second chance; what
        is lost even then is put back where its neighbours went."""
        return self._masked.unmask(self._masked.retry(found, translate), align)[0]


class MaskedMemory(Memory):
    """The memory of a project as a model reads it for one document. Rows of that document have the names that they have
    there, other pairs their own; `of` holds what people read. It has no pairs of its own."""

    def __init__(
        self, of: Memory, mask: RowMask, rows: Mapping[int, int], language: str, alphabet: Alphabet | None = None
    ) -> None:
        self.folder = None
        self.of, self._mask, self._rows, self._language, self._alphabet = of, mask, rows, language, alphabet

    def __len__(self) -> int:
        return len(self.of)

    def sample(self, count: int = SAMPLE, after: int = 0) -> list[LocatedPair]:
        return self.of.sample(count, after)

    def candidates(self, sources: Sequence[str], limit: int) -> list[list[Pair]]:
        return [[self._read(pair) for pair in own] for own in self.of.candidates(sources, limit)]

    def masked(self, pair: Pair) -> MaskedPair:
        """A pair as a model reads it."""
        position = self._rows.get(pair.id)
        if position is None:
            return mask_pair(pair.source, pair.target, self._language, self._alphabet)
        return MaskedPair(
            self._mask.source(position), self._mask.text(position, pair.target), self._mask.names(position)
        )

    def _read(self, pair: Pair) -> Pair:
        masked = self.masked(pair)
        return replace(pair, source=masked.source, target=masked.target)


class RowMasks:
    """The masks of documents, made when they are first asked for; those that were asked for last are kept."""

    def __init__(self, store: Store, language: str, alphabet: Alphabet | None = None) -> None:
        self._store, self._language, self._alphabet = store, language, alphabet
        self._lock = threading.Lock()
        self._masks: OrderedDict[str, RowMask] = OrderedDict()

    def of(self, document: str) -> RowMask:
        """The mask of a document."""
        with self._lock:
            if document in self._masks:
                self._masks.move_to_end(document)
                return self._masks[document]
        sources = [segment.source for segment in self._store.segments(document)]
        mask = RowMask(self._read(document, sources), sources, self._language, self._alphabet)
        self._keep(document, mask)
        return mask

    def remember(self, document: str, file: TranslatableFile) -> None:
        """A document that was added just now, whose file need not be parsed again."""
        read = file.read_for(self._language, self._alphabet)
        self._keep(document, RowMask(read, file.document.sources, self._language, self._alphabet))

    def _keep(self, document: str, mask: RowMask) -> None:
        with self._lock:
            self._masks[document] = mask
            while len(self._masks) > MOST_FILES:
                self._masks.popitem(last=False)

    def forget(self, document: str) -> None:
        """A document that is gone."""
        with self._lock:
            self._masks.pop(document, None)

    def _read(self, document: str, sources: Sequence[str]) -> TranslatableFile | None:
        name = self._store.document(document).name
        try:
            return read_again(name, self._store.file(document), sources, self._language, self._alphabet)
        except UserError:  # of a format that an earlier version read
            return None
