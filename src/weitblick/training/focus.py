"""Training where context decides: a weight on chosen words, and everything else held to what it is without context.

Of all the words of a corpus context decides a few, and the loss of the others drowns theirs. With `context_stage.focus`
the words named there are what is learned. Everywhere else the model is asked to say what it says without context
(their divergence is the loss), so that context can be of use and do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from weitblick.batches.batch import Batch
from weitblick.config.recipe import ContextStageSection
from weitblick.errors import UserError
from weitblick.model.context import ContextOptions
from weitblick.model.document_model import DocumentModel, ModelOutput
from weitblick.text.base import TextPipeline

EXPECTED = 0.05
"""Where a word in focus is that probable without context, what is really said there is learned as well."""


@dataclass(frozen=True)
class Focus:
    """ids [n] of target words and their weights [n]; sources [m]: ids of source words of which a sentence must have
    one, any if there are none; hold: weight of the divergence elsewhere; others: share of other sentences trained on.
    """

    ids: Tensor
    weights: Tensor
    sources: Tensor
    hold: float
    others: float

    @classmethod
    def of(cls, section: ContextStageSection, pipeline: TextPipeline) -> Focus | None:
        if not section.focus:
            return None
        return cls(
            torch.tensor(_ids(pipeline.encode_target, list(section.focus), "focus")),
            torch.tensor(list(section.focus.values())),
            torch.tensor(_ids(pipeline.encode_source, section.focus_source, "focus_source"), dtype=torch.long),
            section.hold_words,
            section.focus_others,
        )

    def weight(self, batch: Batch) -> Tensor:
        """[T] of the words that the current sentences must predict; 0 outside of focus."""
        labels, device = batch.current.labels, batch.current.labels.device
        place = labels[:, None] == self.ids.to(device)  # [T, n]
        weight = (place * self.weights.to(device)).sum(-1)
        if len(self.sources):
            source = batch.current.source
            found = torch.isin(source.tokens, self.sources.to(device))
            having = torch.zeros(batch.current.sentences, dtype=torch.bool, device=device)
            having[source.layout.sentence[found]] = True
            weight = weight * having[batch.current.target.layout.sentence]
        return weight

    def narrow(self, batch: Batch) -> Batch:
        """The batch with only those sentences to train on that have a word in focus, and some others; all are context."""
        layout = batch.current.target.layout
        kept = torch.rand(batch.current.sentences, device=layout.lengths.device) < self.others
        kept[layout.sentence[self.weight(batch) > 0]] = True
        if not kept.any():
            kept[0] = True
        return replace(batch, current=batch.current.choose(kept), context=batch.all_sentences)

    def loss(self, model: DocumentModel, batch: Batch, options: ContextOptions) -> tuple[Tensor, Tensor, ModelOutput]:
        """The loss and the negative log-likelihood, each as much as if every word of the batch had the mean of those in
        focus, and the pass that they come from."""
        everything = batch.all_sentences
        context = model.offer(everything.source, everything.target)
        output = model(batch, options, context=context)
        with torch.no_grad():
            current = batch.current
            memory, _ = model.encode(current.source)
            plain = model.decode(current.target, memory, current.source.layout)
        weight, labels = self.weight(batch), batch.current.labels
        learned, held, likelihood = (output.states.new_zeros((), dtype=torch.float32) for _ in range(3))
        for rows in output.words.softmax.chunks():
            now, before = output.words.softmax.table(rows), plain.words.softmax.table(rows)
            expected = before[:, self.ids.to(labels.device)].logsumexp(-1) > torch.tensor(EXPECTED).log()
            said = -now.gather(1, labels[rows, None])[:, 0]
            divergence = (before.exp() * (before - now)).sum(-1)
            focused = weight[rows] > 0
            learned = learned + (said * weight[rows]).sum()
            held = held + torch.where(expected, said, divergence)[~focused].sum()
            likelihood = likelihood + (said.detach() * weight[rows]).sum()
        scale, rest = len(labels) / weight.sum().clamp_min(1e-6), len(labels) / (weight == 0).sum().clamp_min(1)
        return learned * scale + self.hold * held * rest, likelihood * scale, output


def _ids(encode: object, words: Sequence[str], key: str) -> list[int]:
    """One id a word: a word of several pieces cannot be told by its first."""
    assert callable(encode)
    found = []
    for word, ids in zip(words, encode(list(words)), strict=True):
        if len(ids) != 1:
            raise UserError(
                f"context_stage.{key}: {word!r} is {len(ids)} pieces in this model's vocabulary",
                remedy="name words that are one piece",
            )
        found.append(ids[0])
    return found
