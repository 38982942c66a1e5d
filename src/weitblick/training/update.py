"""One update of a stage: the task, Adam and its rates, regularisation, and the sums that are logged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from weitblick.common.errors import UserError
from weitblick.common.process import World
from weitblick.common.recipe import ContextStageSection, StageSection
from weitblick.model.batch import Batch
from weitblick.model.concatenation import batch_as_read
from weitblick.model.context_module import PLAIN, ContextOptions
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import EOS, UNK
from weitblick.training.batching import DocumentPlan, SentencePlan, document_plans, load_batch, sentence_plans
from weitblick.training.store import CorpusStore

if TYPE_CHECKING:
    from weitblick.model.context_module import ContextResult


CLIP_ROUNDING = 1e-6
"""As in PyTorch's clipping: no division by zero."""


def rate_factor(stage: StageSection, update: int) -> float:
    """The rate of the `update`-th update (from 1) as a share of the peak."""
    if update <= stage.warmup:
        return update / stage.warmup
    if stage.schedule == "inverse_sqrt":
        return (max(1, stage.warmup) / update) ** 0.5
    if stage.schedule == "linear":
        return max(0.0, (stage.updates - update + 1) / max(1, stage.updates - stage.warmup))
    return 1.0


class Optimiser:
    """Adam over two groups: the context layer's parameters, and the sentence model's at a share of the rate."""

    def __init__(self, model: DocumentModel, stage: StageSection) -> None:
        self.stage = stage
        new = {id(p) for p in model.context_parameters()}
        trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        share = stage.sentence_rate if isinstance(stage, ContextStageSection) else 1.0
        if model.context is not None and model.context.fixes_sentence_model:
            share = 0.0
        self.old = [(name, p) for name, p in trained if id(p) not in new]
        self.new = [(name, p) for name, p in trained if id(p) in new]
        self.gates = [] if model.context is None else model.context.gate_parameters()
        if share == 0 and not self.new:
            raise UserError(
                "nothing would be trained: sentence_rate is 0, and there is no context layer",
                remedy="set context.kind, or context_stage.sentence_rate",
            )
        self.shares = (share, 1.0)
        groups = [{"params": [p for _, p in group]} for group in (self.old, self.new)]
        self.adam = torch.optim.AdamW(
            groups, lr=stage.learning_rate, betas=stage.betas, weight_decay=stage.weight_decay, fused=True
        )

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [p for _, p in (*self.old, *self.new)]

    def held(self, update: int) -> bool:
        """True while the sentence model is fixed: as long as there is something else to train."""
        if not isinstance(self.stage, ContextStageSection) or not self.new:
            return False
        return update <= self.stage.hold_sentence_model or self.shares[0] == 0

    def prepare(self, update: int) -> float:
        """Sets rates and what is trained for this update; returns the rate of the new parameters."""
        rate = self.stage.learning_rate * rate_factor(self.stage, update)
        for group, share in zip(self.adam.param_groups, self.shares, strict=True):
            group["lr"] = rate * share
        hold = self.held(update)
        for _, parameter in self.old:
            parameter.requires_grad_(not hold)
        if isinstance(self.stage, ContextStageSection):
            for parameter in self.gates:
                parameter.requires_grad_(update > self.stage.hold_gate)
        return rate

    def step(self, scale: float) -> float:
        """Scales gradients, clips, updates; returns the gradient norm before clipping."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients) * scale
        if torch.isfinite(norm):
            within = (self.stage.clip / (norm + CLIP_ROUNDING)).clamp(max=1.0)
            torch._foreach_mul_(gradients, within * scale)  # both at once: every pass reads all of them from memory
            self.adam.step()
            torch.autograd.graph.increment_version(self.parameters)  # fused Adam does not: packed weights would stay
        return float(norm)

    def zero(self) -> None:
        self.adam.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Adam's moments and step counts by parameter name, for the resumable state."""
        out = {}
        for name, parameter in (*self.old, *self.new):
            for key, value in self.adam.state.get(parameter, {}).items():
                out[f"{key}/{name}"] = value
        return out

    def restore(self, tensors: dict[str, torch.Tensor], path: Path) -> None:
        names = dict((*self.old, *self.new))
        for full, value in tensors.items():
            key, _, name = full.partition("/")
            if name not in names or (key != "step" and value.shape != names[name].shape):
                raise UserError(f"{full!r} belongs to another model", where=path, remedy="delete the state")
            parameter = names[name]
            device = parameter.device if key != "step" or self.adam.defaults["fused"] else torch.device("cpu")
            self.adam.state[parameter][key] = value.to(device)


# Regularisation that makes a model need its context: context dropout, word dropout.


def regularise(model: DocumentModel, batch: Batch, section: StageSection) -> tuple[ContextOptions, Tensor | None]:
    """How this batch reads its context, and its source with words hidden, where any are."""
    if not isinstance(section, ContextStageSection):
        return PLAIN, None
    source, hidden = batch.current.source.tokens, None
    if section.source_word_dropout:  # also without a context layer, so that baselines differ in context alone
        drop = torch.rand(len(source), device=source.device) < section.source_word_dropout
        hidden = torch.where(drop & (source != EOS), UNK, source)
    if model.context is None:
        return PLAIN, hidden
    use = torch.rand(batch.current.sentences, device=source.device) >= section.context_dropout
    return ContextOptions(use=use), hidden


@dataclass(frozen=True)
class ContextSums:
    """Over words that read context (`queries`): the context's share of the gate, and the sentences attended."""

    queries: float = 0.0
    share: float = 0.0
    support: float = 0.0

    @classmethod
    def of(cls, result: ContextResult) -> ContextSums:
        present = result.present
        share, support = (1 - result.gate[present]).double().sum(), result.support[present].double().sum()
        return cls(float(present.sum()), float(share), float(support))

    def __add__(self, other: ContextSums) -> ContextSums:
        return ContextSums(self.queries + other.queries, self.share + other.share, self.support + other.support)

    def sum(self, world: World) -> ContextSums:
        return ContextSums(*world.sum(torch.tensor(astuple(self), dtype=torch.float64)).tolist())

    @property
    def mean_share(self) -> float:
        return self.share / self.queries

    @property
    def mean_support(self) -> float:
        return self.support / self.queries


@dataclass(frozen=True)
class UpdateSums:
    """Of some updates: target tokens, the loss with and without label smoothing, and how context was read."""

    tokens: float = 0.0
    loss: float = 0.0
    likelihood: float = 0.0
    reading: ContextSums = field(default_factory=ContextSums)

    def __add__(self, other: UpdateSums) -> UpdateSums:
        return UpdateSums(
            self.tokens + other.tokens,
            self.loss + other.loss,
            self.likelihood + other.likelihood,
            self.reading + other.reading,
        )

    def sum(self, world: World) -> UpdateSums:
        values = torch.tensor([self.tokens, self.loss, self.likelihood, *astuple(self.reading)], dtype=torch.float64)
        tokens, loss, likelihood, *reading = world.sum(values).tolist()
        return UpdateSums(tokens, loss, likelihood, ContextSums(*reading))

    @property
    def finite(self) -> bool:
        return bool(np.isfinite([self.loss, self.likelihood]).all())

    def means(self) -> dict[str, float]:
        values = {
            "loss": self.loss / self.tokens,
            "perplexity": float(np.exp(min(self.likelihood / self.tokens, 50))),
        }
        if self.reading.queries:
            values |= {"context_share": self.reading.mean_share, "support": self.reading.mean_support}
        return values


# What a stage trains, on what, and where it leaves its files.

Plan = SentencePlan | DocumentPlan
DEV_TOKENS = 4000


@dataclass(frozen=True)
class StageTask:
    """`documents`: batches are of whole documents (stage 2), not of sentences (stage 1). `translated`: a model's
    translations of the stores, which `translated_share` of the documents read as context; `dev_translated`: the same of
    dev, all of which reads them."""

    name: str
    folder: Path
    section: StageSection
    stores: Sequence[CorpusStore]
    dev: CorpusStore
    seed: int
    documents: bool
    mix_share: float = 0.0
    translated: Sequence[CorpusStore] | None = None
    translated_share: float = 0.0
    dev_translated: CorpusStore | None = None

    def plans(self, epoch: int) -> Sequence[Plan]:
        if not self.documents:
            return sentence_plans(self.stores[0], self.section.batch_tokens, self.seed, epoch)
        most = self.section.batch_documents if isinstance(self.section, ContextStageSection) else None
        return document_plans(
            self.stores,
            self.section.batch_tokens,
            self.seed,
            epoch,
            batch_documents=most,
            mix_share=self.mix_share,
            translated_share=self.translated_share,
        )

    def dev_plans(self) -> Sequence[Plan]:
        if not self.documents:
            return sentence_plans(self.dev, DEV_TOKENS, 0, 0)
        return document_plans([self.dev], DEV_TOKENS, 0, 0, translated_share=float(self.dev_translated is not None))

    def documents_translated(self, processes: int) -> list[set[int]]:
        """For each store, the documents whose translations this stage's updates read as context. Which they are depends
        on the seed alone, so they are known before the first update."""
        found: list[set[int]] = [set() for _ in self.stores]
        left = self.section.updates * self.section.accumulate * processes
        for epoch in range(self.section.epochs):
            plans = self.plans(epoch)[: max(0, left)]
            left -= len(plans)
            for plan in plans:
                assert isinstance(plan, DocumentPlan)
                for part in plan.parts:
                    if part.translated:
                        found[part.store].add(part.document)
            if not plans or all(len(own) == len(store) for own, store in zip(found, self.stores, strict=True)):
                break
        return found


# One update: batches forward and backward, gradients summed over processes, a step of Adam.

HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def half_precision(precision: str, device: torch.device) -> torch.dtype | None:
    """The type of matrix products; None: float32. A CPU that has no products of bfloat16 of its own emulates them, far
    more slowly than float32, and none has float16: these train in float32."""
    if device.type == "cpu" and not (precision == "bfloat16" and torch.cpu._is_avx512_bf16_supported()):
        return None
    return HALF.get(precision)


class Updater:
    """Makes the updates of a stage. What is random in one depends on the seed, its number and the process alone."""

    def __init__(self, task: StageTask, model: DocumentModel, optimiser: Optimiser, world: World) -> None:
        self.task, self.model, self.optimiser, self.world = task, model, optimiser, world
        self.half = half_precision(task.section.precision, world.device)
        self.scaler = torch.amp.GradScaler(world.device.type, enabled=self.half == torch.float16)

    def __call__(self, plans: Sequence[Plan], update: int) -> UpdateSums:
        """The `update`-th update (from 1) from this process's batches; sums over all processes."""
        torch.manual_seed(
            np.random.SeedSequence([self.task.seed, update, self.world.rank, 7]).generate_state(1)[0].item()
        )
        self.optimiser.prepare(update)
        sums = UpdateSums()
        names = []
        for plan in plans:
            batch = batch_as_read(self.model, load_batch(self.task.stores, plan, self.task.translated))
            batch = batch.to(self.world.device)
            names.append(batch.name)
            sums += self._backward(batch, update)
        self.world.sum_gradients(self.optimiser.parameters)
        sums = sums.sum(self.world)
        self._step(sums, f"update {update} ({'; '.join(names)})")
        return sums

    def _backward(self, batch: Batch, update: int) -> UpdateSums:
        section = self.task.section
        options, hidden = regularise(self.model, batch, section)
        with torch.autocast(self.world.device.type, self.half) if self.half else nullcontext():
            output = self.model(batch, options, hidden)
            loss, likelihood = output.words.loss(batch.current.labels, section.label_smoothing)
        self.scaler.scale(loss / section.batch_tokens).backward()
        reading = ContextSums() if output.context is None else ContextSums.of(output.context)
        return UpdateSums(len(batch.current.labels), float(loss.detach()), float(likelihood), reading)

    def _step(self, sums: UpdateSums, where: str) -> None:
        """In half precision a step whose gradients overflow is left out, and the scale falls; elsewhere that is the
        end: nothing finite would come of it any more."""
        if self.half == torch.float16:
            self.scaler.unscale_(self.optimiser.adam)
        norm = self.optimiser.step(self.task.section.batch_tokens / max(1.0, sums.tokens))
        if self.half == torch.float16:
            self.scaler.update()
        elif not np.isfinite(norm) or not sums.finite:
            raise UserError(
                f"the loss or its gradient is not finite at {where}",
                where=self.task.folder,
                remedy="the last saved state is kept; lower learning_rate or clip, or look at these texts",
            )
        self.optimiser.zero()
