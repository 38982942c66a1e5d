"""Dev loss with context, and the controls that tell use of context from mere capacity: none, and that of another
document. Documents are paired, not batches, so a control never reads its own context, however small dev is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from weitblick.common.intervals import Estimate, Resampling
from weitblick.common.process import World
from weitblick.model.batch import Batch
from weitblick.model.concatenation import batch_as_read
from weitblick.model.context import ModelOutput, Shared
from weitblick.model.context_module import ContextOptions
from weitblick.model.document_model import DocumentModel
from weitblick.training.batching import DocumentPlan, SentencePlan, load_batch, load_documents
from weitblick.training.store import CorpusStore
from weitblick.training.update import ContextSums

HIGHEST = 50.0  # of a loss whose perplexity is shown


@dataclass(frozen=True)
class Controls:
    """What context is worth: gains of log-probability per token, with intervals over documents. `own_minus_random` is
    None where there is no other document."""

    loss_without: float
    own_minus_none: Estimate
    loss_random: float | None = None
    own_minus_random: Estimate | None = None


@dataclass(frozen=True)
class Validation:
    """Mean negative log-likelihood per target token; what the context layer did; and the controls, if there is one."""

    loss: float
    reading: ContextSums | None = None
    controls: Controls | None = None

    @property
    def perplexity(self) -> float:
        return _perplexity(self.loss)

    def figures(self) -> dict[str, float | list[float]]:
        """For the log: a number or an interval by name."""
        values: dict[str, float | list[float]] = {"dev_loss": self.loss, "dev_perplexity": self.perplexity}
        if (controls := self.controls) is not None:
            values["dev_perplexity_without_context"] = _perplexity(controls.loss_without)
            values |= _named("own_minus_none", controls.own_minus_none)
            if controls.loss_random is not None and controls.own_minus_random is not None:
                values["dev_perplexity_random_context"] = _perplexity(controls.loss_random)
                values |= _named("own_minus_random", controls.own_minus_random)
        if self.reading is not None and self.reading.queries:
            values |= {"context_share": self.reading.mean_share, "support": self.reading.mean_support}
        return values

    def __str__(self) -> str:
        text = f"dev perplexity {self.perplexity:.4g}"
        if self.controls is not None:
            text += f"  own - none {self.controls.own_minus_none}"
            if self.controls.own_minus_random is not None:
                text += f"  own - random {self.controls.own_minus_random}"
        if self.reading is not None and self.reading.queries:
            text += f"  context share {self.reading.mean_share:.3f}  support {self.reading.mean_support:.3g}"
        return text


def _perplexity(loss: float) -> float:
    return float(np.exp(min(loss, HIGHEST)))


def _named(name: str, estimate: Estimate) -> dict[str, float | list[float]]:
    return {name: estimate.mean, f"{name}_interval": [estimate.low, estimate.high]}


@dataclass
class _Losses:
    """Of each document of dev [D]: target tokens, and losses with its own context, without, with that of another."""

    tokens: Tensor
    own: Tensor
    none: Tensor
    random: Tensor

    @classmethod
    def zeros(cls, documents: int) -> _Losses:
        return cls(*torch.zeros(4, documents, dtype=torch.float64))

    def sum(self, world: World) -> _Losses:
        return _Losses(*world.sum(torch.stack([self.tokens, self.own, self.none, self.random])).cpu())


@torch.no_grad()
def validate(
    model: DocumentModel,
    store: CorpusStore,
    plans: Sequence[SentencePlan | DocumentPlan],
    seed: int,
    world: World,
    *,
    translated: CorpusStore | None = None,
) -> Validation:
    """Each process takes its share of the plans; the sums are put together. Losses with and without context and with
    that of another document differ behind the sentence model's own states: these are computed once. `translated`: the
    same documents with translations as targets, to be the target context where the plans say so."""
    training = model.training
    model.eval()
    partners = other_documents(store, seed)
    losses, reading = _Losses.zeros(len(store)), ContextSums()
    for plan in plans[world.rank :: world.size]:
        batch = batch_as_read(model, load_batch([store], plan, None if translated is None else [translated]))
        batch = batch.to(world.device)
        documents = _documents_of(plan, batch, store)
        shared = Shared()
        output = model(batch, shared=shared)
        losses.tokens.index_add_(0, documents, torch.ones(len(documents), dtype=torch.float64))
        losses.own.index_add_(0, documents, _losses(output, batch))
        if output.context is None:
            continue
        reading += ContextSums.of(output.context)
        nobody = torch.zeros(batch.current.sentences, dtype=torch.bool, device=world.device)
        losses.none.index_add_(0, documents, _losses(model(batch, ContextOptions(use=nobody), shared=shared), batch))
        if partners is not None and isinstance(plan, DocumentPlan):
            numbers = [int(partners[part.document]) for part in plan.parts]
            others = load_documents(translated or store, numbers).to(world.device)
            context = model.offer(others.source, others.target)
            losses.random.index_add_(0, documents, _losses(model(batch, context=context, shared=shared), batch))
    model.train(training)
    losses, reading = losses.sum(world), reading.sum(world)
    loss = float(losses.own.sum() / losses.tokens.sum())
    if not reading.queries:
        return Validation(loss)
    return Validation(loss, reading, _controls(losses, seed, partners is not None))


def _controls(losses: _Losses, seed: int, with_random: bool) -> Controls:
    kept = losses.tokens > 0
    tokens, own, none, random = (x[kept].numpy() for x in (losses.tokens, losses.own, losses.none, losses.random))
    resampling = Resampling(len(tokens), (seed, 8))
    without, gain = float(none.sum() / tokens.sum()), resampling.ratio(none - own, tokens)
    if not with_random:
        return Controls(without, gain)
    return Controls(without, gain, float(random.sum() / tokens.sum()), resampling.ratio(random - own, tokens))


def _documents_of(plan: SentencePlan | DocumentPlan, batch: Batch, store: CorpusStore) -> Tensor:
    """[T] for each target token the document of the store that it belongs to."""
    layout = batch.current.target.layout
    if isinstance(plan, DocumentPlan):
        numbers = torch.tensor([part.document for part in plan.parts])[layout.documents.cpu()]
    else:
        starts = torch.from_numpy(np.asarray(store.documents)[1:].copy())
        numbers = torch.searchsorted(starts, torch.from_numpy(plan.sentences), right=True)
    return numbers[layout.sentence.cpu()]


def _losses(output: ModelOutput, batch: Batch) -> Tensor:
    """[T] negative log-likelihoods"""
    return -output.words.log_probabilities(batch.current.labels).double().cpu()


def other_documents(store: CorpusStore, seed: int) -> np.ndarray | None:
    """[D] for each document another one, at random among those of about its length; None if there is only one.

    Like lengths keep a control comparable, and its memory within that of the batch.
    """
    count = len(store)
    if count < 2:
        return None
    order = np.random.default_rng([seed, 3]).permutation(count)
    sentences = np.diff(np.asarray(store.documents))
    order = order[np.argsort(np.log2(sentences[order]).astype(int), kind="stable")]
    partners = np.empty(count, dtype=np.int64)
    partners[order] = np.roll(order, -1)
    return partners
