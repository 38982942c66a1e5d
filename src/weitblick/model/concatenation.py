"""Concatenation baselines (Tiedemann and Scherrer 2017): a sentence model that reads the sentences before as one.

k-to-1 puts the k - 1 previous source sentences before the current one and translates the current one. k-to-k does so on
both sides, and the translation of the current sentence is what stands behind the last separator. The sentence model is
left as it is: only its text changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weitblick.common.recipe import ContextSection
from weitblick.model.batch import Batch, Packed, pack_pairs
from weitblick.text.base import EOS, UNK

if TYPE_CHECKING:
    from weitblick.model.document_model import DocumentModel

SOURCE_SEPARATOR = EOS  # the end of a sentence, as the encoder knows it
TARGET_SEPARATOR = UNK  # a search may produce it, and texts hardly have it

Ids = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Concatenation:
    """How many sentences before are read, and whether their translations are read and produced as well (k-to-k)."""

    previous: int
    both_sides: bool

    @classmethod
    def of(cls, section: ContextSection) -> Concatenation | None:
        if section.kind != "concatenation":
            return None
        assert section.sentences is not None
        return cls(section.sentences, section.integration == "decoder")

    def source(self, before: Sequence[Ids], current: Ids) -> list[int]:
        """The current source sentence behind the last ones of those before it."""
        return _join(before[-self.previous :], current, SOURCE_SEPARATOR)

    def target(self, before: Sequence[Ids], current: Ids) -> list[int]:
        """What is to be produced for the current sentence, given the targets before it."""
        return (
            _join(before[-self.previous :], current, TARGET_SEPARATOR) if self.both_sides else list(map(int, current))
        )

    def batch(self, batch: Batch) -> Batch:
        """The batch with its sentences behind those before them; nothing else is left to be context."""
        everything, current = batch.all_sentences, batch.current
        sources = _by_place(everything.source, first=0)
        targets = _by_place(everything.target, first=1)
        own = _by_place(current.source, first=0), _by_place(current.target, first=1)
        joined: tuple[list[list[int]], list[list[int]]] = ([], [])
        for (document, position), source in own[0].items():
            before = [(document, place) for place in range(max(0, position - self.previous), position)]
            before = [place for place in before if place in sources]
            joined[0].append(self.source([sources[place] for place in before], source))
            joined[1].append(self.target([targets[place] for place in before], own[1][document, position]))
        documents, positions = zip(*own[0], strict=True)
        pairs = pack_pairs(*joined, documents, positions).to(current.labels.device)
        return Batch(pairs, name=batch.name)

    @staticmethod
    def cut(ids: Sequence[int]) -> list[int]:
        """The translation of the current sentence: what stands behind the last separator, if there is one."""
        places = [place for place, word in enumerate(ids) if word == TARGET_SEPARATOR]
        return list(ids[places[-1] + 1 :]) if places else list(ids)


def reads_documents(model: DocumentModel) -> bool:
    """Whether anything but the current sentence matters to a model: it has a context module, or it concatenates."""
    return model.context is not None or Concatenation.of(model.section) is not None


def batch_as_read(model: DocumentModel, batch: Batch) -> Batch:
    """The batch as the model reads it: with sentences behind those before them if it concatenates, else as it is."""
    concatenation = Concatenation.of(model.section)
    return batch if concatenation is None else concatenation.batch(batch)


def _join(before: Sequence[Ids], current: Ids, separator: int) -> list[int]:
    return [*(int(word) for ids in before for word in (*ids, separator)), *map(int, current)]


def _by_place(packed: Packed, first: int) -> Mapping[tuple[int, int], np.ndarray]:
    """The words of packed sentences by document and position, without `</s>` at the end or `<s>` at the start."""
    layout = packed.layout
    tokens, starts, lengths = packed.tokens.cpu().numpy(), layout.starts.tolist(), layout.lengths.tolist()
    places = zip(layout.documents.tolist(), layout.positions.tolist(), starts, lengths, strict=True)
    return {(d, p): tokens[start + first : start + first + length - 1] for d, p, start, length in places}
