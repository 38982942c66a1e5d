"""Beginnings that hypotheses must have, word by word, whatever the model would say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weitblick.model.batch import IdLists
from weitblick.model.output import Candidates, WordDistribution
from weitblick.text.base import UNK, TextPipeline

FREE = -1
BEGINS_A_WORD = "▁"


@dataclass(frozen=True)
class Forced:
    """ids [S, P]: the word of each step, FREE behind those that are given; lengths [S]: how many are given
    barred [V]: words that may not come directly behind them, where `ends` [S] says so"""

    ids: Tensor
    lengths: Tensor
    barred: Tensor
    ends: Tensor

    @classmethod
    def of(cls, prefixes: IdLists, ends: Sequence[bool], barred: Tensor) -> Forced:
        """ends: whether the last word of each prefix ends there."""
        longest = max((len(prefix) for prefix in prefixes), default=0)
        rows = [[*prefix, *[FREE] * (longest - len(prefix))] for prefix in prefixes]
        ids = torch.tensor(rows, dtype=torch.long, device=barred.device).view(len(prefixes), longest)
        return cls(ids, (ids != FREE).sum(1), barred, torch.tensor(list(ends), device=barred.device))

    def select(self, sentences: Tensor) -> Forced:
        """Those of some of the sentences."""
        return Forced(self.ids[sentences], self.lengths[sentences], self.barred, self.ends[sentences])

    def apply(self, found: Candidates, words: WordDistribution, step: int) -> Candidates:
        """The candidates [N, k] of a step, of which some have no choice, or not every one."""
        each = len(found.ids) // max(1, len(self.ids))
        if step < self.ids.shape[1]:
            found = _forced(found, words, self.ids[:, step].repeat_interleave(each))
        closing = (self.ends & (self.lengths == step)).repeat_interleave(each)
        return _closed(found, words, closing.nonzero()[:, 0], self.barred) if bool(closing.any()) else found


def _forced(found: Candidates, words: WordDistribution, forced: Tensor) -> Candidates:
    """forced [N]: the only word of a hypothesis, FREE where it may choose."""
    is_forced = forced != FREE
    own = words.log_probabilities(forced.clamp_min(UNK))
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
