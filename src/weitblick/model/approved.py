"""Approved translations as a model reads them: keys of every word, and for each sentence the few worth looking at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from weitblick.batches.batch import Packed
from weitblick.kernels.pointer import pointer_kernels
from weitblick.model.bank import ApprovedKeys, Bank, Place, Reader
from weitblick.model.compiled_pointer import CompiledPointer
from weitblick.model.plain_pointer import PlainPointer
from weitblick.model.pointer import MemoryPointer
from weitblick.model.sources import Sources
from weitblick.model.words import Pointed, Softmax
from weitblick.sentence.sentence_model import DecoderStates, SentenceModel


@dataclass(frozen=True)
class ApprovedSentence:
    """Word ids of an approved pair, and for each target word whether it continues the one before."""

    source: Sequence[int]
    target: Sequence[int]
    inside: Sequence[bool]


@torch.no_grad()
def approved_keys(
    sentence: SentenceModel, pointer: MemoryPointer, approved: Sequence[ApprovedSentence]
) -> list[ApprovedKeys]:
    """The keys of approved pairs, each on its own: what a pair says does not depend on the others."""
    if not approved:
        return []
    device = next(sentence.parameters()).device
    order = sorted(range(len(approved)), key=lambda index: len(approved[index].target))
    chosen = [approved[index] for index in order]
    sources = Sources([pair.source for pair in chosen], list(range(len(chosen))), [0] * len(chosen), device)
    states = sources.encode(sentence)
    found: dict[int, ApprovedKeys] = {}
    waiting = zip(order, chosen, strict=True)
    for source, target, rows in sources.pairs([pair.target for pair in chosen]):
        decoded = sentence.decode(target.tokens, target.layout, states.index_select(0, rows), source.layout)
        expected, favourite = Softmax(decoded.final, *sentence.output()).judge(target.next_tokens())
        columns = (column.split(target.layout.host_lengths) for column in (pointer.keys(decoded), expected, favourite))
        for keys, likely, wanted in zip(*columns, strict=True):
            index, pair = next(waiting)
            own = keys.clone(), likely.clone(), wanted.clone()  # not views: a pair that is kept would keep all others
            found[index] = ApprovedKeys.of(*own, pair.source, pair.target, pair.inside)
    return [found[index] for index in range(len(approved))]


class Approved:
    """The pointer of some sentences to approved translations (see `words.Pointer`), compiled where it can be."""

    def __init__(
        self,
        pointer: MemoryPointer,
        approved: Sequence[ApprovedKeys],
        readers: Mapping[Place, Reader],
        origins: Sequence[Any] = (),
    ) -> None:
        """`origins`: whatever the caller wants to be told of an approved translation that a word came from."""
        self.pointer, self.readers, self.origins = pointer, readers, origins
        self._bank = Bank(approved, pointer)
        self._compiled: CompiledPointer | None = None

    def point(self, states: DecoderStates, words: Softmax, target: Packed) -> Pointed | None:
        kernels = pointer_kernels(states.attended)
        if kernels is not None and self.pointer.section.dimension % kernels.lanes == 0:
            if self._compiled is None:
                self._compiled = CompiledPointer(kernels, self.pointer, self._bank, self.readers)
            return self._compiled.point(states, words, target)
        return self._plain.point(states, words, target)

    @cached_property
    def _plain(self) -> PlainPointer:
        return PlainPointer(self.pointer, self._bank, self.readers)

    def origin(self, document: int, position: int, index: int) -> tuple[int, int]:
        """The approved translation, by its number, and the word in it, of a place that `point` gave."""
        reader = self.readers[document, position]
        sentence, word = divmod(index, self._bank.width)
        return reader.numbers[sentence], word
