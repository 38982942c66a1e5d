"""Beginnings that hypotheses must have, word by word, whatever the model would say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weitblick.model.batch import IdLists, Layout
from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.output import Candidates, WordDistribution
from weitblick.model.sentence_model import DecodeCache
from weitblick.text.base import UNK, TextPipeline

FREE = -1
BEGINS_A_WORD = "▁"


@dataclass(frozen=True)
class Forced:
    """ids, values [S, P]: the word of each step, FREE behind those that are given, and their log-probabilities
    lengths [S]: how many are given; shortest: the least of them
    barred [V]: words that may not come directly behind them, where `ends` [S] says so"""

    ids: Tensor
    values: Tensor
    lengths: Tensor
    shortest: int
    barred: Tensor
    ends: Tensor

    @classmethod
    def of(cls, prefixes: IdLists, scores: Sequence[Sequence[float]], ends: Sequence[bool], barred: Tensor) -> Forced:
        """scores: the log-probabilities of the words of each prefix; ends: whether its last word ends there."""
        device, lengths = barred.device, [len(prefix) for prefix in prefixes]
        longest = max(lengths, default=0)
        rows = [[*prefix, *[FREE] * (longest - len(prefix))] for prefix in prefixes]
        values = [[*own[:size], *[0.0] * (longest - size)] for own, size in zip(scores, lengths, strict=True)]
        shape = len(prefixes), longest
        return cls(
            torch.tensor(rows, dtype=torch.long, device=device).view(shape),
            torch.tensor(values, dtype=torch.float32, device=device).view(shape),
            torch.tensor(lengths, dtype=torch.long, device=device),
            min(lengths, default=0),
            barred,
            torch.tensor(list(ends), device=device),
        )

    def select(self, sentences: Tensor) -> Forced:
        """Those of some of the sentences."""
        ids, values, lengths = self.ids[sentences], self.values[sentences], self.lengths[sentences]
        return Forced(ids, values, lengths, self.shortest, self.barred, self.ends[sentences])

    def only(self, step: int) -> Candidates:
        """The candidates [S, 1] of a step at which no sentence has a choice, as long as each has one hypothesis."""
        values = self.values[:, step : step + 1]
        return Candidates(values, self.ids[:, step : step + 1], values.new_full((len(values),), -torch.inf))

    def apply(self, found: Candidates, words: WordDistribution, step: int) -> Candidates:
        """The candidates [N, k] of a step, of which some have no choice, or not every one."""
        each = len(found.ids) // max(1, len(self.ids))
        if step < self.ids.shape[1]:
            ids, values = (x[:, step].repeat_interleave(each) for x in (self.ids, self.values))
            found = _forced(found, ids, values)
        closing = (self.ends & (self.lengths == step)).repeat_interleave(each)
        return _closed(found, words, closing.nonzero()[:, 0], self.barred) if bool(closing.any()) else found


def step_forced(
    model: DocumentModel, tokens: Tensor, cache: DecodeCache, hypotheses: Layout, context: Context | None
) -> None:
    """A step of hypotheses whose next words are given: nobody asks how probable others are."""
    if context is None or model.choice_words is not None:  # what is read is read at the output
        model.sentence.step(tokens, cache)
    else:
        model.step(tokens, cache, hypotheses, context)


def _forced(found: Candidates, forced: Tensor, own: Tensor) -> Candidates:
    """forced, own [N]: the only word of a hypothesis, FREE where it may choose, and its log-probability."""
    is_forced = forced != FREE
    ids, values = found.ids.clone(), found.log_probabilities.masked_fill(is_forced[:, None], -torch.inf)
    ids[is_forced] = UNK  # what has no probability must not look like an end
    ids[is_forced, 0], values[is_forced, 0] = forced[is_forced], own[is_forced].to(values.dtype)
    return Candidates(values, ids, found.end)


def _closed(found: Candidates, words: WordDistribution, rows: Tensor, barred: Tensor) -> Candidates:
    """Candidates of which those in some rows [n] choose among the words that are not barred."""
    few = words.at(rows)
    table = few.table(slice(0, len(rows))).masked_fill(barred, -torch.inf)
    best, which = table.topk(min(found.ids.shape[1], table.shape[1]))
    ids, values = found.ids.clone(), found.log_probabilities.clone()
    ids[rows, : which.shape[1]], values[rows, : which.shape[1]] = which, best.to(values.dtype)
    return Candidates(values, ids, found.end)


def continuing_pieces(pipeline: TextPipeline, size: int, device: torch.device | str = "cpu") -> Tensor:
    """[size] which pieces of the target language go on with a word that could end: none where pieces themselves tell
    that their word goes on. The special ones are never chosen."""
    tokens = pipeline.target_vocabulary.tokens[:size]
    marks = any(token.startswith(BEGINS_A_WORD) for token in tokens)
    goes_on = [marks and (token[:1].isalnum() or token[:1] in "-'’<") for token in tokens]
    found = torch.tensor([*goes_on, *[True] * (size - len(tokens))], device=device)
    found[: UNK + 1] = torch.tensor([True, True, False, True], device=device)
    return found
