"""A sentence-level model that reads its document: how context enters the encoder or the decoder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from weitblick.batches.batch import Batch, Packed
from weitblick.config.recipe import ContextSection
from weitblick.model.layout import Layout
from weitblick.model.sentence_model import DecodeCache, DecoderStates, SentenceModel

if TYPE_CHECKING:
    from weitblick.model.context_bank import ContextBank
    from weitblick.model.context_layer import ContextLayer, ContextResult


@dataclass(frozen=True)
class ModelOutput:
    """states [T, d] ready for the output projection, and what the context layer did, where there is one."""

    states: Tensor
    context: ContextResult | None = None


@dataclass(frozen=True)
class Reading:
    """How the current sentences read their context.

    use        [S] sentences that get no context where false; None: all get it
    documents  [S] document of the bank that each sentence reads; None: its own
    floor      least share of the context in the gate
    record     keep attention weights
    """

    use: Tensor | None = None
    documents: Tensor | None = None
    floor: float = 0.0
    record: bool = False

    def layout(self, layout: Layout) -> Layout:
        return layout if self.documents is None else replace(layout, documents=self.documents)


PLAIN = Reading()


class DocumentModel(nn.Module):
    """The sentence model, the context layer behind its encoder or decoder, and, where context states are frozen, the
    stage-1 model that they come from."""

    def __init__(
        self,
        sentence: SentenceModel,
        context: ContextLayer | None,
        section: ContextSection,
        frozen: SentenceModel | None = None,
    ) -> None:
        super().__init__()
        self.sentence, self.context, self.section = sentence, context, section
        self.frozen = frozen
        if frozen is not None:
            frozen.requires_grad_(False)

    @property
    def in_encoder(self) -> bool:
        return self.context is not None and self.section.integration == "encoder"

    @property
    def in_decoder(self) -> bool:
        return self.context is not None and self.section.integration == "decoder"

    def train(self, mode: bool = True) -> DocumentModel:
        super().train(mode)
        if self.frozen is not None:
            self.frozen.eval()
        return self

    def context_parameters(self) -> list[nn.Parameter]:
        return [] if self.context is None else list(self.context.parameters())

    def forward(
        self,
        batch: Batch,
        reading: Reading = PLAIN,
        source_tokens: Tensor | None = None,
        bank: ContextBank | None = None,
    ) -> ModelOutput:
        """One teacher-forced pass. `source_tokens` replaces the current source (words hidden), not the context's;
        `bank` replaces the batch's own context (that of other documents, as a control)."""
        current = batch.current
        source = current.source if source_tokens is None else Packed(source_tokens, current.source.layout)
        if self.context is None:
            memory = self.sentence.encode(source.tokens, source.layout)
            return ModelOutput(self._decode(current.target, memory, source.layout).final)
        apart = self.frozen is not None or batch.context is not None or source_tokens is not None
        everything = batch.all_sentences
        if bank is None and apart:
            bank = self.bank(everything.source, everything.target)
        memory = self.sentence.encode(source.tokens, source.layout)
        if self.in_encoder:
            bank = bank or self.context.prepare(*self._detached(memory, memory), source.layout)
            result = self._read(memory, memory, source.layout, bank, reading)
            return ModelOutput(self._decode(current.target, result.states, source.layout).final, result)
        decoded = self._decode(current.target, memory, source.layout)
        layout = current.target.layout
        bank = bank or self.context.prepare(*self._detached(decoded.attended, decoded.final), layout)
        result = self._read(decoded.final, decoded.attended, layout, bank, reading)
        return ModelOutput(result.states, result)

    def bank(self, source: Packed, target: Packed | None) -> ContextBank:
        """The context that these sentences offer, from a pass of their own without gradient."""
        assert self.context is not None
        model = self.sentence if self.frozen is None else self.frozen
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.section.backpropagate and self.frozen is None):
            memory = model.encode(source.tokens, source.layout)
            if self.in_encoder:
                states, layout = (memory, memory), source.layout
            else:
                assert target is not None, "bilingual context needs target sentences"
                decoded = model.decode(target.tokens, target.layout, memory, source.layout)
                states, layout = (decoded.attended, decoded.final), target.layout
        return self.context.prepare(*states, layout)

    def encode(
        self, source: Packed, bank: ContextBank | None, reading: Reading = PLAIN
    ) -> tuple[Tensor, ContextResult | None]:
        """The memory that the decoder reads [T, d]."""
        memory = self.sentence.encode(source.tokens, source.layout)
        if not self.in_encoder or bank is None:
            return memory, None
        result = self._read(memory, memory, source.layout, bank, reading)
        return result.states, result

    def decode(
        self, target: Packed, memory: Tensor, source_layout: Layout, bank: ContextBank | None, reading: Reading = PLAIN
    ) -> ModelOutput:
        """Teacher-forced decoding over a memory from `encode`."""
        states = self._decode(target, memory, source_layout)
        if not self.in_decoder or bank is None:
            return ModelOutput(states.final)
        result = self._read(states.final, states.attended, target.layout, bank, reading)
        return ModelOutput(result.states, result)

    def step(self, tokens: Tensor, cache: DecodeCache, hypotheses: Layout, bank: ContextBank | None) -> Tensor:
        """The next step of all hypotheses [N] -> states [N, d]; `hypotheses` has one token for each."""
        states = self.sentence.step(tokens, cache)
        if not self.in_decoder or bank is None:
            return states.final
        return self._read(states.final, states.attended, hypotheses, bank, PLAIN).states

    def _decode(self, target: Packed, memory: Tensor, source_layout: Layout) -> DecoderStates:
        return self.sentence.decode(target.tokens, target.layout, memory, source_layout)

    def _detached(self, *states: Tensor) -> tuple[Tensor, ...]:
        return states if self.section.backpropagate else tuple(state.detach() for state in states)

    def _read(
        self, states: Tensor, queries: Tensor, layout: Layout, bank: ContextBank, reading: Reading
    ) -> ContextResult:
        assert self.context is not None
        return self.context(
            states, queries, reading.layout(layout), bank, use=reading.use, floor=reading.floor, record=reading.record
        )
