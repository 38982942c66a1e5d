"""A sentence-level model that reads its document: how context enters the encoder or the decoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from weitblick.batches.batch import Batch, Packed
from weitblick.batches.layout import Layout
from weitblick.config.recipe import ContextSection
from weitblick.context.module import Bank, ContextModule
from weitblick.sentence.sentence_model import DecodeCache, DecoderStates, SentenceModel

if TYPE_CHECKING:
    from weitblick.context.layer import ContextResult

SubLayers = Sequence[Callable[[Tensor], Tensor]] | None


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
    """The sentence model, the context module in its encoder or decoder, and, where context states are frozen, the
    stage-1 model that they come from."""

    def __init__(
        self,
        sentence: SentenceModel,
        context: ContextModule | None,
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

    @property
    def reads_target(self) -> bool:
        """Whether target sentences are context: translations must be there before others can read them."""
        return self.in_decoder and self.context is not None and not self.context.own_encoder

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
        bank: Bank | None = None,
    ) -> ModelOutput:
        """One teacher-forced pass. `source_tokens` replaces the current source (words hidden), not the context's;
        `bank` replaces the batch's own context (that of other documents, as a control)."""
        current = batch.current
        source = current.source if source_tokens is None else Packed(source_tokens, current.source.layout)
        live = self.context is not None and bank is None
        if live and self._apart(batch, source_tokens):
            everything = batch.all_sentences
            bank, live = self.bank(everything.source, everything.target), False
        memory, read = self._encode(source, bank, reading, live)
        output = self._decode(current.target, memory, source.layout, bank, reading, live)
        return output if read is None else replace(output, context=read)

    def _apart(self, batch: Batch, source_tokens: Tensor | None) -> bool:
        """Whether context states need a pass of their own: the current sentences' states are not what is read."""
        assert self.context is not None
        other_states = self.context.own_encoder or self.frozen is not None
        return other_states or batch.context is not None or source_tokens is not None

    def bank(self, source: Packed, target: Packed | None) -> Bank:
        """The context that these sentences offer, from a pass of their own without gradient."""
        assert self.context is not None
        model = self.sentence if self.frozen is None else self.frozen
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.section.backpropagate and self.frozen is None):
            if self.context.own_encoder:
                keys = values = model.source_table(source.tokens).detach()
                layout = source.layout
            elif self.in_encoder:
                keys = values = model.encode(source.tokens, source.layout)
                layout = source.layout
            else:
                assert target is not None, "bilingual context needs target sentences"
                memory = model.encode(source.tokens, source.layout)
                decoded = model.decode(target.tokens, target.layout, memory, source.layout)
                keys, values, layout = *self.target_context(model, target.tokens, decoded), target.layout
        return self.context.prepare(keys, values, layout)

    def target_context(self, model: SentenceModel, tokens: Tensor, states: DecoderStates) -> tuple[Tensor, Tensor]:
        """Keys and values [T, d] that target sentences offer, from the decoder's pass of `model` over them."""
        return states.attended, model.next_words(tokens) if self.section.values == "words" else states.final

    def encode(
        self, source: Packed, bank: Bank | None, reading: Reading = PLAIN
    ) -> tuple[Tensor, ContextResult | None]:
        """The memory that the decoder reads [T, ...]. Without a bank there is no context."""
        return self._encode(source, bank, reading)

    def decode(
        self, target: Packed, memory: Tensor, source_layout: Layout, bank: Bank | None, reading: Reading = PLAIN
    ) -> ModelOutput:
        """Teacher-forced decoding over a memory from `encode`."""
        return self._decode(target, memory, source_layout, bank, reading)

    def step(self, tokens: Tensor, cache: DecodeCache, hypotheses: Layout, bank: Bank | None) -> Tensor:
        """The next step of all hypotheses [N] -> states [N, d]; `hypotheses` has one token for each."""
        if not self.in_decoder or bank is None:
            return self.sentence.step(tokens, cache).final
        return self._read(
            lambda extras: self.sentence.step(tokens, cache, extras), Packed(tokens, hypotheses), bank
        ).states

    def _encode(
        self, source: Packed, bank: Bank | None, reading: Reading, live: bool = False
    ) -> tuple[Tensor, ContextResult | None]:
        def run(extras: SubLayers = None) -> DecoderStates:
            memory = self.sentence.encode(source.tokens, source.layout, extras)
            return DecoderStates(memory, memory)

        if not self.in_encoder or (bank is None and not live):
            return run().final, None
        result = self._read(run, source, bank, reading)
        return result.states, result

    def _decode(
        self,
        target: Packed,
        memory: Tensor,
        source_layout: Layout,
        bank: Bank | None,
        reading: Reading,
        live: bool = False,
    ) -> ModelOutput:
        def run(extras: SubLayers = None) -> DecoderStates:
            return self.sentence.decode(target.tokens, target.layout, memory, source_layout, extras)

        if not self.in_decoder or (bank is None and not live):
            return ModelOutput(run().final)
        result = self._read(run, target, bank, reading)
        return ModelOutput(result.states, result)

    def _read(
        self,
        run: Callable[[SubLayers], DecoderStates],
        readers: Packed,
        bank: Bank | None,
        reading: Reading = PLAIN,
    ) -> ContextResult:
        """Runs the encoder or decoder and reads the context, inside its layers or behind them; without a bank, the
        sentences of this very pass are the context."""
        assert self.context is not None
        layout = reading.layout(readers.layout)
        how: dict[str, Any] = {"use": reading.use, "floor": reading.floor, "record": reading.record}
        inside = None if bank is None else self.context.inside(layout, bank, **how)
        if inside is not None:
            return inside.result(run(inside.sub_layers).final)
        states = run(None)
        if bank is None:
            bank = self.context.prepare(*self._as_context(readers.tokens, states), readers.layout)
        return self.context(states.final, states.attended, layout, bank, **how)

    def _as_context(self, tokens: Tensor, states: DecoderStates) -> tuple[Tensor, Tensor]:
        """Keys and values; one and the same tensor where they are the same states."""
        keys, values = self.target_context(self.sentence, tokens, states)
        if self.section.backpropagate:
            return keys, values
        kept = keys.detach()
        return kept, kept if values is keys else values.detach()
