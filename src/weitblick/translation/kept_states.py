"""States that are kept so that nothing is computed twice: a search's own, those of translations, those between jobs.

What a translation offers as context are the decoder's states at its steps. A search has computed them already for the
hypothesis that wins (`BestStates`); what no search found here, as drafts and approved translations, takes a pass of the
decoder (`TranslationStates`). A server that comes back to a document keeps them from job to job (`KeptStates`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence

import torch
from torch import Tensor

from weitblick.model.batch import IdLists, Packed
from weitblick.model.context import Context, Sources
from weitblick.model.document_model import DocumentModel
from weitblick.model.sentence_model import DecoderStates, SentenceModel

KEPT_TOKENS = 50_000
"""Tokens whose states are kept between jobs: 100 MB at 256 numbers for a source token and 512 for one of a target."""

OnStates = Callable[[Sequence[int], Packed, DecoderStates], None]


class BestStates:
    """The decoder's states of the best hypotheses of a search.

    It keeps every step's states, and from which hypothesis of the step before each one grew. When the search has ended,
    those of the best hypothesis of each sentence at all of its steps are `states` [T, d], sentence after sentence.
    """

    def __init__(self) -> None:
        self._steps: list[DecoderStates] = []  # [N of the step, d]
        self._origins: list[Tensor | None] = []  # [N of the next step]; None: each from its own
        self.states: DecoderStates | None = None

    def add(self, states: DecoderStates) -> None:
        self._steps.append(states)

    def continues_from(self, rows: Tensor | None) -> None:
        self._origins.append(rows)

    def end(self, last: Tensor, lengths: Tensor) -> None:
        """The best hypotheses [S] have `lengths` [S] steps, and are in row `last` [S] of their last one."""
        if not bool(lengths.all()):
            return  # scores that are not finite: nothing was found
        rows = self._rows(last, lengths)
        chosen = rows[torch.arange(rows.shape[1], device=rows.device) < lengths[:, None]]
        attended = torch.cat([states.attended for states in self._steps]).index_select(0, chosen)
        final = torch.cat([states.final for states in self._steps]).index_select(0, chosen)
        self.states = DecoderStates(attended, final)
        self._steps, self._origins = [], []

    def _rows(self, last: Tensor, lengths: Tensor) -> Tensor:
        """[S, L] rows of the hypotheses among those of all steps; any one behind their last step."""
        count = int(lengths.max())
        rows = last.new_zeros(len(last), count)
        first = sum(len(states.final) for states in self._steps)
        for _ in range(len(self._steps) - count):  # steps of hypotheses that did not win
            first -= len(self._steps.pop().final)
        current = last
        for number in range(count - 1, -1, -1):
            first -= len(self._steps[number].final)
            current = torch.where(lengths == number + 1, last, current)
            rows[:, number] = first + current
            origins = self._origins[number - 1] if number else None
            if origins is not None:
                current = origins[current.clamp(max=len(origins) - 1)]
        return rows


class KeptStates:
    """The states of the latest sources and translations, for the next job on the same document."""

    def __init__(self, tokens: int = KEPT_TOKENS) -> None:
        self.tokens = tokens
        self._held = 0
        self._states: OrderedDict[Hashable, Tensor] = OrderedDict()

    def get(self, key: Hashable) -> Tensor | None:
        if key in self._states:
            self._states.move_to_end(key)
        return self._states.get(key)

    def put(self, key: Hashable, states: Tensor) -> None:
        states = states.clone()  # not a view: one sentence would hold the memory of all that were computed with it
        self._held += len(states) - len(self._states.pop(key, ()))
        self._states[key] = states
        while self._held > self.tokens:
            self._held -= len(self._states.popitem(last=False)[1])


def encode_sources(
    sources: Sources, model: SentenceModel, kept: KeptStates | None = None
) -> Generator[None, None, Tensor]:
    """The encoder states [T, d] of all sources, with a pause after each part."""
    key = (id(model), tuple(map(tuple, sources.ids)))
    known = None if kept is None else kept.get(key)
    if known is not None:
        return known
    parts = []
    for part in sources.parts(sources.lengths):
        packed = sources.pack(part)
        parts.append(model.encode(packed.tokens, packed.layout))
        yield
    states = torch.cat(parts)
    if kept is not None:
        kept.put(key, states)
    return states


class TranslationStates:
    """What the translations of some sentences offer as context: keys and values of each.

    `add` takes the decoder's states of translations that a search has found; for all others there is a pass of the
    decoder. `on_states` is called with the sentences, translations and states of both.
    """

    def __init__(
        self,
        model: DocumentModel,
        sources: Sources,
        encoder_states: Tensor,
        *,
        on_states: OnStates | None = None,
        kept: KeptStates | None = None,
    ) -> None:
        """encoder_states [T, d]: those of the sentence model itself, of all sources."""
        self.model, self.sources, self.encoder_states = model, sources, encoder_states
        self.on_states, self.kept = on_states, kept
        self._words: dict[int, list[int]] = {}  # of the translation that is known of a sentence
        self._offered: dict[int, tuple[Tensor, Tensor]] = {}

    def add(self, sentences: Sequence[int], translations: IdLists, states: DecoderStates) -> None:
        """The provider's states at all steps of the translations of these sentences [T, d]."""
        target = self.sources.choose(sentences).pack_targets(range(len(sentences)), translations)
        keys, values = (rows.split(target.layout.host_lengths) for rows in self.model.offered_by(target, states))
        for place, index in enumerate(sentences):
            self._words[index], self._offered[index] = list(translations[place]), (keys[place], values[place])
            if self.kept is not None:
                self.kept.put(self._key(index, self._words[index]), torch.cat(self._offered[index], 1))
        if self.on_states is not None:
            self.on_states(sentences, target, states)

    @torch.no_grad()
    def compute(self, targets: IdLists) -> Iterator[None]:
        """What is not known of these translations of all sentences, with a pause after each part."""
        new = [index for index, target in enumerate(targets) if self._words.get(index) != list(target)]
        missing = [index for index in new if not self._was_kept(index, list(targets[index]))]
        if not missing:
            return
        sources, provider = self.sources.choose(missing), self.model.provider
        if provider is self.model.sentence:
            encoded = self.encoder_states.index_select(0, self.sources.rows(missing))
        else:
            encoded = sources.encode(provider)
        begun = 0
        for source, target, rows in sources.pairs([targets[index] for index in missing]):
            states = provider.decode(target.tokens, target.layout, encoded.index_select(0, rows), source.layout)
            part = missing[begun : begun + target.layout.sentences]
            self.add(part, [targets[index] for index in part], states)
            begun += len(part)
            yield

    @torch.no_grad()
    def context(self, targets: IdLists) -> Context:
        """What these translations of all sentences offer."""
        for _ in self.compute(targets):
            pass
        assert self.model.context is not None
        offered = [self._offered[index] for index in range(len(targets))]
        keys, values = (torch.cat(column) for column in zip(*offered, strict=True))
        layout = self.sources.layout([len(target) + 1 for target in targets])
        return Context(layout, self.model.context.prepare(keys, values, layout))

    def _was_kept(self, index: int, target: list[int]) -> bool:
        """Takes the states of a translation from an earlier job, if they are there."""
        known = None if self.kept is None else self.kept.get(self._key(index, target))
        if known is None:
            return False
        keys, values = known.chunk(2, 1)
        self._words[index], self._offered[index] = target, (keys, values)
        return True

    def _key(self, index: int, target: list[int]) -> Hashable:
        return id(self.model), tuple(self.sources.ids[index]), tuple(target)
