"""RNNSearch, modified as in the paper: a bidirectional GRU, additive attention, a GRU of two layers.

Shapes here: K hypotheses of each of S sentences (one in training), W source words; encoder states are 2 d wide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from weitblick.common.recipe import ModelSection
from weitblick.model.batch import Layout
from weitblick.model.layers import Dropout
from weitblick.model.sentence_model import DecodeCache, DecoderStates, SentenceModel

Extras = Sequence[Callable[[Tensor], Tensor]] | None


class GatedUnit(nn.Module):
    """A GRU cell whose inputs come projected, so that what is known beforehand is projected for all steps at once."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.recurrent = nn.Linear(dimension, 3 * dimension)

    def forward(self, projected: Tensor, state: Tensor) -> Tensor:
        """projected inputs [n, 3 d], state [n, d] -> state [n, d]"""
        reset, update, new = projected.chunk(3, -1)
        of_reset, of_update, of_new = self.recurrent(state).chunk(3, -1)
        candidate = torch.tanh(new + torch.sigmoid(reset + of_reset) * of_new)
        return torch.lerp(candidate, state, torch.sigmoid(update + of_update))


@dataclass(frozen=True)
class SourceMemory:
    """What attention reads: encoder states [S, W, 2 d], their keys [S, W, d], and a bias [S, 1, W], -inf at padding."""

    states: Tensor
    keys: Tensor
    bias: Tensor

    def select(self, sentences: Tensor | slice) -> SourceMemory:
        return SourceMemory(self.states[sentences], self.keys[sentences], self.bias[sentences])


@dataclass(frozen=True)
class Word:
    """What a previous target word [n, d] contributes, projected for attention, lower unit and readout."""

    query: Tensor
    unit: Tensor
    readout: Tensor


class Decoder(nn.Module):
    """One step: attend with the last state and the previous word, update both units, read out."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        d = dimension
        self.initial = nn.Linear(d, 2 * d)
        self.key, self.query = nn.Linear(2 * d, d), nn.Linear(d, d, bias=False)
        self.energy = nn.Linear(d, 1, bias=False)
        self.lower, self.upper = GatedUnit(d), GatedUnit(d)
        self.lower_context, self.upper_input = nn.Linear(2 * d, 3 * d, bias=False), nn.Linear(d, 3 * d)
        self.word_query, self.word_unit = nn.Linear(d, d, bias=False), nn.Linear(d, 3 * d)
        self.readout_state, self.readout_context = nn.Linear(d, d), nn.Linear(2 * d, d, bias=False)
        self.word_readout = nn.Linear(d, d, bias=False)

    def start(self, backward: Tensor) -> Tensor:
        """The backward encoder's last state [S, d] -> first states of both units [2, S, d]"""
        return torch.stack(torch.tanh(self.initial(backward)).chunk(2, -1))

    def memory(self, states: Tensor, layout: Layout) -> SourceMemory:
        """Packed encoder states [T, 2 d] -> what attention reads."""
        mask = layout.mask
        bias = torch.zeros(mask.shape, dtype=states.dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
        return SourceMemory(layout.pad(states), layout.pad(self.key(states)), bias[:, None])

    def word(self, embedded: Tensor) -> Word:
        return Word(self.word_query(embedded), self.word_unit(embedded), self.word_readout(embedded))

    def step(self, word: Word, states: Tensor, memory: SourceMemory) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """states [2, S * K, d] -> new states, the context in d dimensions, the readout (both [S * K, d]) and attention
        weights [S, K, W]"""
        lower, upper = states
        sentences = memory.keys.shape[0]
        query = (self.query(upper) + word.query).view(sentences, -1, 1, upper.shape[-1])
        scores = self.energy(torch.tanh(memory.keys[:, None] + query)).squeeze(-1)  # [S, K, W]
        weights = torch.softmax(scores + memory.bias, -1)
        context = (weights @ memory.states).flatten(0, 1)  # [S * K, 2 d]
        lower = self.lower(word.unit + self.lower_context(context), lower)
        upper = self.upper(self.upper_input(lower), upper)
        attended = self.readout_context(context)
        readout = torch.tanh(self.readout_state(upper) + attended + word.readout)
        return torch.stack([lower, upper]), attended, readout, weights


class RNNSearchCache(DecodeCache):
    """Memories and first states by sentence; states of both units by hypothesis once there are any."""

    def __init__(self, memory: SourceMemory, first: Tensor) -> None:
        super().__init__()
        self.memory, self.first = memory, first
        self.states: Tensor | None = None

    def select_sentences(self, sentences: Tensor) -> None:
        self.memory = self.memory.select(sentences)
        self.first = self.first.index_select(1, sentences)

    def select_hypotheses(self, hypotheses: Tensor) -> None:
        if self.states is not None:
            self.states = self.states.index_select(1, hypotheses)


class RNNSearch(SentenceModel):
    def __init__(self, model: ModelSection, source_size: int, target_size: int) -> None:
        super().__init__(model, source_size, target_size)
        d = self.dimension
        self.encoder_dimension = 2 * d
        self.encoder = nn.GRU(d, d, batch_first=True, bidirectional=True)
        self.decoder = Decoder(d)
        self.dropout = Dropout(model.dropout.output)
        self.initialise()

    def _embed(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        return table(tokens) * self.embedding_scale

    def encode(self, tokens: Tensor, layout: Layout, extras: Extras = None) -> Tensor:
        """[T] -> states of both directions [T, 2 d]"""
        assert not extras, "RNNSearch has no layers that could hold sub-layers"
        if not layout.sentences:
            return self.source_table.weight.new_zeros(0, self.encoder_dimension)
        padded = layout.pad(self._embed(self.source_table, tokens))
        packed = pack_padded_sequence(padded, layout.lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.encoder(packed)[0], batch_first=True, total_length=layout.longest)
        return layout.pack(states)

    def _first(self, encoder_states: Tensor, layout: Layout) -> Tensor:
        """[2, S, d] from the state with which the backward encoder leaves each sentence: that of its first word."""
        return self.decoder.start(encoder_states[layout.starts, self.dimension :])

    def decode(
        self, tokens: Tensor, layout: Layout, encoder_states: Tensor, source_layout: Layout, extras: Extras = None
    ) -> DecoderStates:
        assert not extras, "RNNSearch has no layers that could hold sub-layers"
        steps = self._steps(tokens, layout, encoder_states, source_layout)
        index = _by_time(layout)
        attended, readout = (torch.cat([step[i] for step in steps])[index] for i in (0, 1))
        return DecoderStates(attended, self.dropout(readout))

    def _steps(
        self, tokens: Tensor, layout: Layout, encoder_states: Tensor, source_layout: Layout
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Context, readout and weights of every step; the longest sentences stand first, so that the sentences still
        going on at a step are the first rows."""
        order, going_on = _order(layout)
        words = self.decoder.word(self._embed(self.target_table, tokens))
        query, unit, readout = (layout.pad(part)[order] for part in (words.query, words.unit, words.readout))
        reads = self.decoder.memory(encoder_states, source_layout).select(order)
        states = self._first(encoder_states, source_layout)[:, order]
        steps = []
        for time, count in enumerate(going_on):
            word = Word(query[:count, time], unit[:count, time], readout[:count, time])
            states, attended, read, weights = self.decoder.step(word, states[:, :count], reads.select(slice(count)))
            steps.append((attended, read, weights))
        return steps

    def start(self, encoder_states: Tensor, source_layout: Layout) -> RNNSearchCache:
        return RNNSearchCache(
            self.decoder.memory(encoder_states, source_layout), self._first(encoder_states, source_layout)
        )

    def step(self, tokens: Tensor, cache: DecodeCache, extras: Extras = None) -> DecoderStates:
        assert isinstance(cache, RNNSearchCache)
        assert not extras, "RNNSearch has no layers that could hold sub-layers"
        if cache.states is None:
            cache.states = cache.first.repeat_interleave(len(tokens) // max(1, cache.first.shape[1]), 1)
        word = self.decoder.word(self._embed(self.target_table, tokens))
        cache.states, attended, readout, _ = self.decoder.step(word, cache.states, cache.memory)
        cache.length += 1
        return DecoderStates(attended, self.dropout(readout))

    def source_weights(self, tokens: Tensor, layout: Layout, encoder_states: Tensor, source_layout: Layout) -> Tensor:
        steps = self._steps(tokens, layout, encoder_states, source_layout)
        weights = torch.cat([step[2] for step in steps])[:, 0]
        return layout.pad(weights[_by_time(layout)])


def _order(layout: Layout) -> tuple[Tensor, list[int]]:
    """Sentences by falling length, and how many of them have a token at each time."""
    order = torch.argsort(layout.lengths, descending=True, stable=True)
    return order, layout.mask.sum(0).tolist()


def _by_time(layout: Layout) -> Tensor:
    """[T] where each packed token stands when tokens go by time, and at each time by falling length of sentence."""
    order, going_on = _order(layout)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device)
    counts = torch.tensor(going_on, device=order.device)
    return (counts.cumsum(0) - counts)[layout.offset] + rank[layout.sentence]
