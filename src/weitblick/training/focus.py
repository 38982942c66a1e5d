"""Training where context decides: a weight on chosen words, and everything else held to what it is without context.

Of all the words of a corpus context decides a few, and the loss of the others drowns theirs. With `context_stage.focus`
the words named there are what is learned, and what is said where one of them could have been. Everywhere else the model
is asked to say what it says without context (their divergence is the loss): context can be of use and do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from weitblick.batches.batch import Batch
from weitblick.config.recipe import ContextStageSection
from weitblick.model.context import ContextOptions
from weitblick.model.document_model import DocumentModel, ModelOutput
from weitblick.model.words import EXPECTED
from weitblick.text.base import TextPipeline

EXPECTED_WEIGHT = 0.5
"""Of what is really said where words in focus are expected without context."""


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
        sources = pipeline.single_pieces(section.focus_source, "source", "context_stage.focus_source")
        return cls(
            torch.tensor(pipeline.single_pieces(list(section.focus), "target", "context_stage.focus")),
            torch.tensor(list(section.focus.values())),
            torch.tensor(sources, dtype=torch.long),
            section.hold_words,
            section.focus_others,
        )

    def weight(self, batch: Batch) -> Tensor:
        """[T] of the words that the current sentences must predict; 0 outside of focus."""
        labels = batch.current.labels
        place = labels[:, None] == self.ids.to(labels.device)  # [T, n]
        weight = (place * self.weights.to(labels.device)).sum(-1)
        return weight * self.asked(batch)[batch.current.target.layout.sentence]

    def asked(self, batch: Batch) -> Tensor:
        """[S] which sentences have a source word that asks for words in focus."""
        source = batch.current.source
        if not len(self.sources):
            return torch.ones(batch.current.sentences, dtype=torch.bool, device=source.tokens.device)
        having = torch.zeros(batch.current.sentences, dtype=torch.bool, device=source.tokens.device)
        having[source.layout.sentence[torch.isin(source.tokens, self.sources.to(having.device))]] = True
        return having

    def narrow(self, batch: Batch) -> Batch:
        """The batch, to train only on sentences that ask for words in focus, and on some others; all are context."""
        kept = self.asked(batch)
        kept = kept | (torch.rand(kept.shape, device=kept.device) < self.others)
        if not kept.any():
            kept[0] = True
        return replace(batch, current=batch.current.choose(kept), context=batch.all_sentences)

    def loss(self, model: DocumentModel, batch: Batch, options: ContextOptions) -> tuple[Tensor, Tensor, ModelOutput]:
        """The loss, the negative log-likelihood of what is learned, each as much as if every word of the batch had the
        mean, and the pass that they come from."""
        everything = batch.all_sentences
        context = model.offer(everything.source, everything.target)
        output = model(batch, options, context=context)
        with torch.no_grad():
            current = batch.current
            memory, _ = model.encode(current.source)
            plain = model.decode(current.target, memory, current.source.layout)
        labels, asked = batch.current.labels, self.asked(batch)[batch.current.target.layout.sentence]
        weights, said, divergence, likely = [], [], [], []  # [n] of each chunk
        for rows in output.words.softmax.chunks():
            now, before = output.words.own_table(rows), plain.words.own_table(rows)
            expected = before[:, self.ids.to(labels.device)].exp().sum(-1) >= EXPECTED
            own = self.weight(batch)[rows]
            weights.append(torch.where(own > 0, own, (expected & asked[rows]) * EXPECTED_WEIGHT))
            likely.append(expected)
            said.append(-now.gather(1, labels[rows, None])[:, 0])
            divergence.append((before.exp() * (before - now)).sum(-1))
        weight, likelihood = torch.cat(weights), torch.cat(said)
        learned = (likelihood * weight).sum() / weight.sum().clamp_min(1e-6)
        rest = weight == 0
        if model.decides is not None:  # elsewhere nothing can diverge
            rest &= torch.cat(likely)
        held = torch.cat(divergence)[rest].sum() / rest.sum().clamp_min(1)
        tokens = len(labels)
        return (learned + self.hold * held) * tokens, learned.detach() * tokens, output
