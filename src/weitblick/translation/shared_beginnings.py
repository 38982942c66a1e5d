"""How probable many translations of a few sources are: words with which several begin are read once.

All translations of one source are a tree of words, whose nodes stand in depth-first order: a node's subtree is behind
it, up to `ends`. So a word is seen by its own subtree and by nobody else, and one pass of the decoder reads all trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional

from weitblick.model.batch import Grid, Layout, runs
from weitblick.model.context import Sources
from weitblick.model.output import CHUNK_ELEMENTS, normalisers
from weitblick.model.transformer import Transformer
from weitblick.text.base import BOS

PART_WORDS = 4096
"""Words of trees and sources that are read in one pass."""


@dataclass(frozen=True)
class PrefixTree:
    """The words that a decoder reads to predict some rows, each once: words, depths, ends [n] of the nodes; paths: of
    each row the nodes behind which its words are predicted."""

    words: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    paths: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> PrefixTree:
        """The tree of some rows of words, none of them empty."""
        tree = cls(paths=[[]] * len(rows))
        path: list[int] = []
        for number in sorted(range(len(rows)), key=lambda number: list(rows[number][:-1])):
            read = [BOS, *rows[number][:-1]]
            pairs = enumerate(zip(path, read, strict=False))
            shared = next((n for n, (node, word) in pairs if tree.words[node] != word), min(len(path), len(read)))
            tree._close(path[shared:])
            path = path[:shared]
            for depth in range(shared, len(read)):
                path.append(len(tree.words))
                tree.words.append(read[depth])
                tree.depths.append(depth)
                tree.ends.append(0)
            tree.paths[number] = path
        tree._close(path)
        return tree

    def _close(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            self.ends[node] = len(self.words)


def tree_states(
    model: Transformer, trees: Sequence[PrefixTree], encoder_states: Tensor, source_layout: Layout
) -> Tensor:
    """[T, d] the decoder's final states at all nodes of trees, each over the states of its own source."""
    device = encoder_states.device
    words, depths, ends = (
        torch.tensor(list(chain.from_iterable(column)), device=device)
        for column in zip(*((tree.words, tree.depths, tree.ends) for tree in trees), strict=True)
    )
    layout = Layout.of([len(tree.words) for tree in trees], device=device)
    encoder_states, source_layout = model.readable(encoder_states, source_layout)
    source_grid = Grid(source_layout, layout.grid.members)
    seen = [_seen(own) for own in layout.grid.pad(ends)]
    embedding = model.target_embedding
    x = embedding.words(words)
    x = x + embedding.positions(int(depths.max()) + 1, x).index_select(0, depths)
    for layer in model.decoder:
        around, attention = layer.around_attention, layer.attention
        projected = layout.grid.pad(attention.input(around.enter(x)))
        read = [_attend(own, mask, attention.heads) for own, mask in zip(projected, seen, strict=True)]
        x = around.leave(x, attention.output(layout.grid.pack(read)))
        x, _ = layer.read_source(x, layout, encoder_states, source_grid)
    final: Tensor = model.decoder_norm(x)
    return final


def _seen(ends: Tensor) -> Tensor:
    """Ends [S, W] -> [S, 1, W, W] whether each node sees each other: itself, and those in whose subtree it stands."""
    places = torch.arange(ends.shape[1], device=ends.device)
    above = (places[:, None] >= places) & (places[:, None] < ends[:, None])
    return (above | (places[:, None] == places))[:, None]


def _attend(projected: Tensor, seen: Tensor, heads: int) -> Tensor:
    """Queries, keys and values [S, W, 3d] -> [S, W, d]"""
    q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in projected.chunk(3, -1))
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(2)


@torch.no_grad()
def score_alternatives(
    model: Transformer,
    sources: Sources,
    encoder_states: Tensor,
    numbers: Sequence[int],
    rows: Sequence[Sequence[int]],
    begun: Sequence[int],
) -> list[float]:
    """Of each row of words, a translation or its beginning of the source with this number, the log-probability of those
    from `begun` on, without context. encoder_states: of all sources."""
    members: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        members.setdefault(number, []).append(place)
    chosen = list(members)
    trees = [PrefixTree.of([rows[place] for place in members[number]]) for number in chosen]
    scores = [0.0] * len(rows)
    sizes = [len(tree.words) + int(sources.lengths[number]) for tree, number in zip(trees, chosen, strict=True)]
    for part in runs(sizes, PART_WORDS):
        some = [chosen[n] for n in part]
        states = encoder_states.index_select(0, sources.rows(some))
        final = tree_states(model, [trees[n] for n in part], states, sources.pack(some).layout)
        steps: list[int] = []  # all predictions that are asked for, row by row: the node behind which, the word
        words: list[int] = []
        owners: list[int] = []
        first = 0
        for n in part:
            for place, path in zip(members[chosen[n]], trees[n].paths, strict=True):
                asked = rows[place][begun[place] :]
                steps += [first + node for node in path[begun[place] :]]
                words += asked
                owners += [place] * len(asked)
            first += len(trees[n].words)
        for place, value in zip(owners, _log_probabilities(model, final, steps, words), strict=True):
            scores[place] += value
    return scores


def _log_probabilities(model: Transformer, states: Tensor, steps: Sequence[int], words: Sequence[int]) -> list[float]:
    """Of words [n] behind the states at steps [n] of states [T, d]; what several steps share is computed once."""
    weight, bias = model.output()
    known, which = torch.tensor(steps, device=states.device).unique(return_inverse=True)
    ids, own = torch.tensor(words, device=states.device), states[known]
    together = max(1, CHUNK_ELEMENTS // len(weight))
    parts = [normalisers(some, weight, bias)[0] for some in own.split(together)]
    logits = (own[which] * weight[ids]).sum(-1).float() + bias[ids]
    found: list[float] = (logits - torch.cat(parts)[which]).tolist()
    return found
