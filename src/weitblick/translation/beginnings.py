"""What a decoder thinks behind beginnings of translations: words with which several begin are read once.

All beginnings of translations of one source that anybody asked for are a tree of words, which grows with what is asked.
One pass of the decoder reads the new words of all trees; keys and values of the words above them are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from weitblick.model.batch import Grid, Layout, runs
from weitblick.model.context import Sources
from weitblick.model.output import CHUNK_ELEMENTS, normalisers
from weitblick.model.sentence_model import DecoderStates
from weitblick.model.transformer import Transformer
from weitblick.text.base import BOS

PART_WORDS = 4096
"""New words, and words of their sources, that are read in one pass."""
ROOM = 64
"""Words of a tree for which there is room at once."""


class PrefixTree:
    """Beginnings of translations of one source: words and depths of the nodes, the first of which begins them all;
    rows: where the states of each node stand among those of all trees; seen [n, n]: which nodes each has above it,
    and itself."""

    def __init__(self) -> None:
        self.words: list[int] = [BOS]
        self.depths: list[int] = [0]
        self.rows: list[int] = []
        self._below: list[dict[int, int]] = [{}]  # of each node those behind it, by their words
        self._seen = np.zeros((ROOM, ROOM), dtype=bool)
        self._seen[0, 0] = True

    def path(self, words: Sequence[int]) -> list[int]:
        """The nodes behind which each of these words is predicted, and what follows them: one more than words."""
        node, found, below = 0, [0], self._below
        for word in words:
            node = below[node].get(word) or self._grow(node, word)
            found.append(node)
        return found

    @property
    def is_growing(self) -> bool:
        """Whether it has nodes without states."""
        return len(self.rows) < len(self.words)

    def seen(self, nodes: slice) -> np.ndarray:
        """Of these nodes, which ones each sees."""
        found: np.ndarray = self._seen[nodes, : len(self.words)]
        return found

    def _grow(self, above: int, word: int) -> int:
        node = self._below[above][word] = len(self.words)
        self._below.append({})
        self.words.append(word)
        self.depths.append(self.depths[above] + 1)
        if node == len(self._seen):
            self._seen = np.pad(self._seen, (0, node))
        self._seen[node] = self._seen[above]
        self._seen[node, node] = True
        return node


class Beginnings:
    """The states of one model's decoder behind beginnings of translations of some sources. encoder_states [T, d]: of
    all sources, without context."""

    def __init__(self, model: Transformer, sources: Sources, encoder_states: Tensor) -> None:
        self.model, self.sources, self.encoder_states = model, sources, encoder_states
        self._trees: dict[int, PrefixTree] = {}
        self._source_cells: dict[int, list[Tensor]] = {}  # of each source keys and values [W, 2d], by layer
        self._count = 0
        wide, size = 2 * model.dimension, model.dimension
        self._cells = [_Rows(wide, encoder_states) for _ in model.decoder]  # keys and values of each layer
        self._attended, self._final = _Rows(size, encoder_states), _Rows(size, encoder_states)
        self._queries = _Rows(size, encoder_states)  # of the last layer, to the source
        self._normalisers: dict[int, float] = {}

    def steps(self, numbers: Sequence[int], beginnings: Sequence[Sequence[int]]) -> list[list[int]]:
        """Of each beginning of a translation of the source with this number the rows of its states: behind its start,
        and behind each of its words."""
        trees = [self._trees.setdefault(number, PrefixTree()) for number in numbers]
        paths = [tree.path(words) for tree, words in zip(trees, beginnings, strict=True)]
        new = [number for number in dict.fromkeys(numbers) if self._trees[number].is_growing]
        self._project([number for number in new if number not in self._source_cells])
        sizes = [len(self._trees[number].words) + int(self.sources.lengths[number]) for number in new]
        for part in runs(sizes, PART_WORDS):
            self._read([new[n] for n in part])
        return [[tree.rows[node] for node in path] for tree, path in zip(trees, paths, strict=True)]

    def states(self, rows: Sequence[int]) -> DecoderStates:
        """Those in some rows."""
        index = torch.tensor(rows, dtype=torch.long, device=self.encoder_states.device)
        return DecoderStates(self._attended.values[index], self._final.values[index])

    def log_probabilities(self, rows: Sequence[int], words: Sequence[int]) -> list[float]:
        """Of each word behind the state in this row, without context."""
        if not rows:
            return []
        weight, bias = self.model.output()
        missing = [row for row in dict.fromkeys(rows) if row not in self._normalisers]
        device, together = weight.device, max(1, CHUNK_ELEMENTS // len(weight))
        for some in torch.tensor(missing, dtype=torch.long, device=device).split(together) if missing else ():
            found = normalisers(self._final.values[some], weight, bias)[0]
            self._normalisers.update(zip(some.tolist(), found.tolist(), strict=True))
        index, ids = torch.tensor(rows, device=device), torch.tensor(words, device=device)
        logits = (self._final.values[index] * weight[ids]).sum(-1).float() + bias[ids]
        return [logit - self._normalisers[row] for row, logit in zip(rows, logits.tolist(), strict=True)]

    def weights(self, numbers: Sequence[int], beginnings: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Attention [words + 1, Ws] of each beginning to the words of its source, in the last layer, averaged."""
        rows = self.steps(numbers, beginnings)
        found: list[np.ndarray] = []
        sizes = [len(own) + int(self.sources.lengths[number]) for number, own in zip(numbers, rows, strict=True)]
        for part in runs(sizes, PART_WORDS):
            layout = Layout.of([len(rows[n]) for n in part], device=self.encoder_states.device)
            chosen = [numbers[n] for n in part]
            index = torch.tensor([row for n in part for row in rows[n]], device=self.encoder_states.device)
            cells, bias = self._source(chosen, len(self._cells) - 1)
            q, keys = self._heads(layout.pad(self._queries.values[index])), self._heads(cells.chunk(2, -1)[0])
            scores = q @ keys.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias
            shares = scores.softmax(-1).mean(1).float().cpu().numpy()
            lengths = zip(layout.host_lengths, self.sources.lengths[chosen].tolist(), strict=True)
            found += [own[:size, :words] for own, (size, words) in zip(shares, lengths, strict=True)]
        return found

    def _project(self, numbers: Sequence[int]) -> None:
        """Keys and values of these sources in each layer."""
        if not numbers:
            return
        states, lengths = self.encoder_states[self.sources.rows(numbers)], self.sources.lengths[numbers].tolist()
        layers = [layer.source_attention.memory(states).split(lengths) for layer in self.model.decoder]
        self._source_cells.update(zip(numbers, map(list, zip(*layers, strict=True)), strict=True))

    def _source(self, numbers: Sequence[int], layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values [S, W, 2d] of some sources in a layer, and a bias [S, 1, 1, W], -inf at padding."""
        cells = [self._source_cells[number][layer] for number in numbers]
        padded = torch.nn.utils.rnn.pad_sequence(cells, batch_first=True)
        lengths = torch.tensor([len(own) for own in cells], device=padded.device)
        absent = torch.arange(padded.shape[1], device=padded.device) >= lengths[:, None]
        bias = torch.zeros(absent.shape, dtype=padded.dtype, device=padded.device).masked_fill_(absent, -torch.inf)
        return padded, bias[:, None, None]

    def _heads(self, x: Tensor) -> Tensor:
        """[S, W, d] -> [S, H, W, d / H]"""
        return x.unflatten(-1, (self.model.decoder[0].attention.heads, -1)).transpose(1, 2)

    @torch.no_grad()
    def _read(self, numbers: Sequence[int]) -> None:
        """Computes the states at the nodes of some trees that have none."""
        model, trees = self.model, [self._trees[number] for number in numbers]
        new = _NewNodes(trees, self._count, self.encoder_states.device)
        self._count += new.layout.tokens
        embedding = model.target_embedding
        x = embedding.words(new.words)
        x = x + embedding.positions(int(new.depths.max()) + 1, x).index_select(0, new.depths)
        attended = queries = x
        for number, layer in enumerate(model.decoder):
            around, size = layer.around_attention, x.shape[1]
            projected = layer.attention.input(around.enter(x))  # [T, 3d]
            cells = self._cells[number].add(projected[:, size:])
            padded = new.grid.pad(projected[:, :size])
            read = [
                self._attend(q, cells[own.cells], own.bias) for q, own in zip(padded, new.groups, strict=True)
            ]  # fmt: skip
            x = around.leave(x, layer.attention.output(new.grid.pack(read)))
            around = layer.around_source_attention
            queries = layer.source_attention.query(around.enter(x))
            read = []
            for q, own in zip(new.grid.pad(queries), new.groups, strict=True):
                read.append(self._attend(q, *self._source([numbers[n] for n in own.members], number)))
            x = around.leave(x, layer.source_attention.output(new.grid.pack(read)))
            around = layer.around_feed_forward
            attended = around.enter(x)
            x = around.leave(x, layer.feed_forward(attended))
        self._attended.add(attended)
        self._final.add(model.decoder_norm(x))
        self._queries.add(queries)

    def _attend(self, queries: Tensor, cells: Tensor, bias: Tensor) -> Tensor:
        """Queries [S, W, d] over keys and values [S, C, 2d], by a bias [S, 1, W or 1, C] -> [S, W, d]"""
        keys, values = (self._heads(part) for part in cells.chunk(2, -1))
        read = functional.scaled_dot_product_attention(self._heads(queries), keys, values, attn_mask=bias)
        return read.transpose(1, 2).flatten(2)


@dataclass(frozen=True)
class _Group:
    """Trees of like size, by their places among some: cells [S, C] rows of all of their nodes; bias [S, 1, W, C] which
    of these each new node does not see."""

    members: list[int]
    cells: Tensor
    bias: Tensor


class _NewNodes:
    """The nodes of some trees that have no states: words and depths [T], and whom they see. They get the rows from
    `first` on."""

    def __init__(self, trees: Sequence[PrefixTree], first: int, device: torch.device) -> None:
        begun = [len(tree.rows) for tree in trees]
        sizes = [len(tree.words) - old for tree, old in zip(trees, begun, strict=True)]
        for tree, size in zip(trees, sizes, strict=True):
            tree.rows.extend(range(first, first + size))
            first += size
        self.layout = Layout.of(sizes, device=device)
        members = Layout.of([len(tree.words) for tree in trees]).grid.members
        self.grid = Grid(self.layout, members)
        self.groups = [_group(own, [(trees[n], begun[n]) for n in own], device) for own in members]
        pairs = list(zip(trees, begun, strict=True))
        words = [word for tree, old in pairs for word in tree.words[old:]]
        depths = [depth for tree, old in pairs for depth in tree.depths[old:]]
        self.words, self.depths = torch.tensor(words, device=device), torch.tensor(depths, device=device)


def _group(members: list[int], trees: Sequence[tuple[PrefixTree, int]], device: torch.device) -> _Group:
    """trees: each with the number of its nodes that are not new."""
    widest = max(len(tree.words) for tree, _ in trees)
    cells = np.zeros((len(trees), widest), dtype=np.int64)
    bias = np.full(
        (len(trees), 1, max(len(tree.words) - old for tree, old in trees), widest), -np.inf, dtype=np.float32
    )
    bias[..., 0] = 0.0  # padding sees something, whose result is dropped
    for place, (tree, old) in enumerate(trees):
        size = len(tree.words)
        cells[place, :size] = tree.rows
        bias[place, 0, : size - old, :size][tree.seen(slice(old, size))] = 0.0
    return _Group(members, torch.from_numpy(cells).to(device), torch.from_numpy(bias).to(device))


class _Rows:
    """Rows [n, d] to which more can be added."""

    def __init__(self, width: int, like: Tensor) -> None:
        self._room, self._count = like.new_empty(1024, width), 0

    @property
    def values(self) -> Tensor:
        return self._room[: self._count]

    def add(self, rows: Tensor) -> Tensor:
        """All rows, with more of them."""
        needed = self._count + len(rows)
        if needed > len(self._room):
            grown = self._room.new_empty(max(needed, 2 * len(self._room)), self._room.shape[1])
            grown[: self._count] = self.values
            self._room = grown
        self._room[self._count : needed] = rows
        self._count = needed
        return self.values
