"""Dev perplexity with context, and the controls that tell use of context from mere capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from weitblick.batches.batch import Batch, Pairs
from weitblick.batches.batching import DocumentPlan, SentencePlan, load_batch
from weitblick.batches.store import CorpusStore
from weitblick.distributed import World
from weitblick.model.context import ContextOptions
from weitblick.model.document_model import DocumentModel, ModelOutput


@dataclass(frozen=True)
class Validation:
    """Mean negative log-likelihoods per target token; `gate` is the context's share, support the sentences attended."""

    loss: float
    loss_without_context: float | None = None
    loss_random_context: float | None = None
    gate: float | None = None
    support: float | None = None

    @property
    def perplexity(self) -> float:
        return float(np.exp(min(self.loss, 50)))

    def figures(self) -> dict[str, float]:
        values = {"dev_loss": self.loss, "dev_perplexity": self.perplexity}
        if self.loss_without_context is not None and self.loss_random_context is not None:
            values["dev_perplexity_without_context"] = float(np.exp(min(self.loss_without_context, 50)))
            values["dev_perplexity_random_context"] = float(np.exp(min(self.loss_random_context, 50)))
            values["context_worth"] = self.loss_random_context - self.loss
        if self.gate is not None and self.support is not None:
            values |= {"context_share": self.gate, "support": self.support}
        return values


@torch.no_grad()
def validate(
    model: DocumentModel, store: CorpusStore, plans: Sequence[SentencePlan | DocumentPlan], seed: int, world: World
) -> Validation:
    """Each process takes its share of the plans; the sums are put together."""
    training = model.training
    model.eval()
    other = _other_plans(len(plans), seed)
    sums = torch.zeros(7, dtype=torch.float64)  # tokens, three losses, gate, support, queries
    for index in range(world.rank, len(plans), world.size):
        batch = load_batch([store], plans[index]).to(world.device)
        output = model(batch)
        sums[0] += len(batch.current.labels)
        sums[1] += _loss(output, batch)
        if output.context is None:
            continue
        present = output.context.present
        sums[4] += (1 - output.context.gate[present]).double().sum().cpu()
        sums[5] += output.context.support[present].double().sum().cpu()
        sums[6] += present.sum().cpu()
        none = torch.zeros(batch.current.sentences, dtype=torch.bool, device=world.device)
        sums[2] += _loss(model(batch, ContextOptions(use=none)), batch)
        stranger = load_batch([store], plans[other[index]]).to(world.device).all_sentences
        sums[3] += _loss(random_context(model, batch, stranger), batch)
    model.train(training)
    sums = world.sum(sums).cpu()
    tokens, with_context, without, randomly, gate, support, queries = sums.tolist()
    if not queries:
        return Validation(with_context / tokens)
    return Validation(with_context / tokens, without / tokens, randomly / tokens, gate / queries, support / queries)


def random_context(model: DocumentModel, batch: Batch, stranger: Pairs) -> ModelOutput:
    """The batch read with the documents of another batch as context."""
    context = model.offer(stranger.source, stranger.target)
    count = int(stranger.source.layout.documents.max()) + 1
    documents = batch.current.source.layout.documents % count
    return model(batch, ContextOptions(documents=documents), context=context)


def _loss(output: ModelOutput, batch: Batch) -> float:
    return -float(output.words.log_probabilities(batch.current.labels).double().sum())


def _other_plans(count: int, seed: int) -> list[int]:
    """For each plan another one, chosen at random once for all."""
    order = np.random.default_rng([seed, 3]).permutation(count)
    other = [0] * count
    for place, index in enumerate(order):
        other[index] = int(order[(place + 1) % count])
    return other
