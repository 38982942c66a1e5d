"""The decoder's states of the hypotheses that win, looked up when a search is over."""

from __future__ import annotations

import torch
from torch import Tensor

from weitblick.sentence.sentence_model import DecoderStates


class Track:
    """Every step's states, and from which hypothesis of the step before each one grew. When a search has ended, those
    of the best hypothesis of each sentence at all of its steps are `states` [T, d], one sentence behind the other."""

    def __init__(self) -> None:
        self._steps: list[DecoderStates] = []  # [N of the step, d]
        self._origins: list[Tensor | None] = []  # [N of the next step]; None: each from its own
        self.states: DecoderStates | None = None

    def add(self, states: DecoderStates) -> None:
        self._steps.append(states)

    def grew_from(self, rows: Tensor | None) -> None:
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
