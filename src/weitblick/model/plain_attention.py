"""From packed queries and projected sentences to what is read, document by document, with all attention weights.

bank = lay_out(projected, settings)              once for a batch of documents
read = attend(queries, layout, bank, settings)   any number of times
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from weitblick.model import attention_definition as formulas
from weitblick.model.attention_definition import Masks
from weitblick.model.batch import Layout
from weitblick.model.context_module import AttentionWeights, Bank, Projected
from weitblick.model.dispatch import definition
from weitblick.model.layers import Dropout, dropout_mask
from weitblick.model.sparsemax import Kind


@dataclass(frozen=True)
class WeightDropout:
    """The masks of one forward pass. They follow from a seed, so that the backward pass draws them again, in the same
    order, and none has to be kept."""

    rate: float
    seed: int

    @staticmethod
    def drawn(dropout: Dropout) -> WeightDropout | None:
        """New masks, from PyTorch's random numbers on the CPU; None where nothing is dropped."""
        if not dropout.training or dropout.rate == 0:
            return None
        return WeightDropout(dropout.rate, int(torch.empty((), dtype=torch.int64).random_()))

    def other(self) -> WeightDropout:
        """Masks that have nothing to do with these."""
        return replace(self, seed=self.seed ^ 1)

    def masks(self, device: torch.device) -> Masks:
        """A mask at each call, from the first one on."""
        generator = torch.Generator(device).manual_seed(self.seed)
        return lambda weights: dropout_mask(weights, self.rate, generator)


Path = Literal["auto", "dense", "routed"]

TOGETHER = 16
"""Sentences whose words are added up by one product."""


@dataclass(frozen=True)
class AttentionSettings:
    """heads H, d_k; how weights over sentences and over words are normalised; whether only sentences before are read;
    how words are read where the engine may choose."""

    heads: int
    width: int
    sentence_kind: Kind = "sparse"
    word_kind: Kind = "soft"
    online: bool = False
    path: Path = "auto"

    @property
    def wants_probes(self) -> bool:
        """Whether doubles choose how to read a document by how widely it reads itself (see PROBES)."""
        return self.path == "auto" and self.sentence_kind != "soft" and not self.online


PROBES = "sentence_probes"
"""Among projected rows: the sentence query of one word of each sentence. The definition does not read them."""


class AttentionBank(Bank):
    """The sentences of a batch of documents, projected as attention reads them."""

    def __init__(self, projected: Projected) -> None:
        self.projected = projected


@dataclass(frozen=True)
class Attended:
    """What Tq queries read.

    output  [Tq, H * d_k] before the output projection; zeros where nothing is visible
    present [Tq] whether any context sentence is visible
    support [Tq] mean number of sentences with weight, over heads
    """

    output: Tensor
    present: Tensor
    support: Tensor
    weights: AttentionWeights | None = None


@definition
def lay_out(projected: Projected, settings: AttentionSettings) -> AttentionBank:
    """Projected sentences as `attend` reads them."""
    return AttentionBank(projected)


@definition
def attend(
    queries: Mapping[str, Tensor],
    layout: Layout,
    bank: AttentionBank,
    settings: AttentionSettings,
    dropout: WeightDropout | None = None,
) -> Attended:
    """What packed queries read, with all weights as they are before dropout, document by document. queries:
    `sentence_queries`, `word_queries` or both, [Tq, ...]; with both, attention is hierarchical. Doubles give no
    weights."""
    context = bank.projected
    columns = Columns(context.layout)
    heads, tokens, flat = settings.heads, layout.tokens, "sentence_queries" not in queries
    of_token, positions = layout.documents[layout.sentence], layout.positions[layout.sentence]
    some = next(iter(context.rows.values()))
    wide = torch.promote_types(some.dtype, torch.float32)
    values = some.new_zeros(tokens, heads, settings.width, dtype=wide)
    by_sentence = some.new_zeros(tokens, heads, columns.positions.shape[1], dtype=wide)
    by_word = None
    if "word_queries" in queries:
        by_word = some.new_zeros(tokens, heads, columns.word_columns.shape[1], dtype=wide)
    seen_of = torch.zeros(tokens, columns.positions.shape[1], dtype=torch.bool, device=some.device)
    row_of = torch.full((tokens,), -1, device=some.device)
    masks = dropout.masks(some.device) if dropout is not None else None
    for row, document in enumerate(columns.documents):
        chosen = (of_token == document).nonzero()[:, 0]
        if not len(chosen):
            continue
        row_of[chosen] = row
        place = columns.places(row, flat, int(positions[chosen].max()) if settings.online else None)
        if not len(place["sentence"]):
            continue
        q = {name: _by_head(rows[chosen], heads, wide) for name, rows in queries.items()}
        k = {name: _by_head(rows[place[name.split("_")[0]]], heads, wide) for name, rows in context.rows.items()}
        seen = formulas.visible(positions[chosen], columns.positions[row, : len(place["sentence"])], settings.online)
        with torch.autocast(some.device.type, enabled=False):
            found, alpha, inside = _define(q, k, place["real"], seen, settings, masks)
        count = alpha.shape[-1]
        values[chosen] = found.transpose(0, 1)
        by_sentence[chosen, :, :count] = alpha.transpose(0, 1)
        if by_word is not None and inside is not None:
            by_word[chosen, :, : inside.shape[-1]] = inside.transpose(0, 1)
        seen_of[chosen, :count] = seen
    weights = AttentionWeights(
        by_sentence,
        by_word,
        row_of,
        columns.positions,
        columns.word_columns,
        columns.word_indices,
        seen_of,
        flat,
    )
    support = (by_sentence.detach() > 0).sum(2).to(wide).mean(1)
    return Attended(values.flatten(1), seen_of.any(1), support, weights)


def _define(
    q: Mapping[str, Tensor],
    k: Mapping[str, Tensor],
    real: Tensor,
    seen: Tensor,
    settings: AttentionSettings,
    masks: Masks | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Output [H, Q, d_k], sentence weights [H, Q, J], word weights [H, Q, N] of one document."""
    if "word_queries" not in q:
        keys, values = k["sentence_keys"], k["sentence_values"]
        kind = settings.sentence_kind
        return *formulas.sentence_attention(q["sentence_queries"], keys, values, seen, kind, masks), None
    keys, values = k["word_keys"], k["word_values"]
    if "sentence_queries" not in q:
        return _define_flat_words(q["word_queries"], keys, values, real, seen, settings, masks)
    output, alpha, inside = formulas.hierarchical_attention(
        q["sentence_queries"],
        q["word_queries"],
        k["sentence_keys"],
        keys,
        values,
        real,
        seen,
        settings.sentence_kind,
        settings.word_kind,
        masks,
    )
    return output, alpha, inside[:, :, real]


def _define_flat_words(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    real: Tensor,
    seen: Tensor,
    settings: AttentionSettings,
    masks: Masks | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Of keys and values [H, N, d_k]. Each word is given as a sentence of its own: attention to all words is the same
    so, and nothing is padded."""
    column = real.nonzero()[:, 0]  # [N]
    alone = torch.ones_like(column, dtype=torch.bool)[:, None]
    cells = keys.unsqueeze(2), values.unsqueeze(2)
    output, words = formulas.word_attention(queries, *cells, alone, seen[:, column], settings.word_kind, masks)
    words = words.squeeze(-1)
    return output, _by_sentence(words, column), words


def _by_sentence(words: Tensor, column: Tensor) -> Tensor:
    """Weights of words [..., N] added up to those of their sentences [..., J]; column [N]: of each, in ascending order.
    A product for some sentences at a time, lest most of it be with zeros."""
    ends = column.bincount().cumsum(0)[TOGETHER - 1 :: TOGETHER].tolist()
    begins = [0, *ends]
    sums = []
    for begin, end in zip(begins, [*ends, words.shape[-1]], strict=True):
        if begin < end:
            own = torch.nn.functional.one_hot(column[begin:end] - column[begin])
            sums.append(words[..., begin:end] @ own.to(words.dtype))
    return torch.cat(sums, -1)


def _by_head(rows: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """[..., H * d_k] -> [H, ..., d_k]"""
    return rows.to(dtype).unflatten(-1, (heads, -1)).movedim(-2, 0)


class Columns:
    """The sentences with words of each document in the order of their positions, and their words, as columns.

    documents     the document numbers, one for each row of the tables, which are padded with -1
    positions     [D, J] of the sentences; word_columns, word_indices [D, N]: of each word the column of its sentence,
                  and its place in it
    """

    def __init__(self, layout: Layout) -> None:
        words = layout.lengths - 1
        kept = (words > 0).nonzero()[:, 0]  # in the order of the layout, as projected rows are
        words, documents, positions = words[kept], layout.documents[kept], layout.positions[kept]
        starts = words.cumsum(0) - words
        self.documents: list[int] = documents.unique().tolist()
        self._rows: list[Tensor] = []  # [J] rows of the sentences of each document
        for document in self.documents:
            own = (documents == document).nonzero()[:, 0]
            self._rows.append(own[positions[own].argsort()])
        self._words, self._starts = words, starts
        size = max((len(rows) for rows in self._rows), default=0)
        total = max((int(words[rows].sum()) for rows in self._rows), default=0)
        self.positions = words.new_full((max(1, len(self._rows)), size), -1)
        self.word_columns = words.new_full((max(1, len(self._rows)), total), -1)
        self.word_indices = self.word_columns.clone()
        for row, rows in enumerate(self._rows):
            self.positions[row, : len(rows)] = positions[rows]
            column, place = self._real(rows).nonzero().unbind(1)
            self.word_columns[row, : len(column)] = column
            self.word_indices[row, : len(place)] = place

    def _real(self, rows: Tensor) -> Tensor:
        """[J, W] where the sentences in these rows have a word."""
        words = self._words[rows]
        return torch.arange(max(words.tolist(), default=0), device=rows.device) < words[:, None]

    def places(self, row: int, flat: bool, before: int | None) -> dict[str, Tensor]:
        """sentence: [J] the projected rows of a document's sentences, or of those `before` a position; word: [J, W] of
        their words (any word where there is none), or without gaps if flat [N]; real: [J, W]."""
        rows = self._rows[row]
        if before is not None:
            rows = rows[: int((self.positions[row, : len(rows)] < before).sum())]
        real = self._real(rows)
        word = self._starts[rows][:, None] + torch.arange(real.shape[1], device=rows.device)
        return {"sentence": rows, "word": word[real] if flat else torch.where(real, word, 0), "real": real}
