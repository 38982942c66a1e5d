"""A sentence-level model that reads its document: what its documents offer, and where that is read (see `context`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from weitblick.common.recipe import ContextSection
from weitblick.model.batch import Batch, IdLists, Layout, Packed, Pairs
from weitblick.model.context import Context, ModelOutput, Shared, Sides, Sources
from weitblick.model.context_module import PLAIN, Bank, ContextModule, ContextOptions, ContextResult, Projected
from weitblick.model.modifiers import WordChoice, joined_sets
from weitblick.model.output import Softmax, WordDistribution
from weitblick.model.sentence_model import DecodeCache, DecoderStates, SentenceModel

SubLayers = Sequence[Callable[[Tensor], Tensor]] | None
T = TypeVar("T")


class DocumentModel(nn.Module):
    """The sentence model, the context module in its encoder or decoder, and, where context states are frozen, the
    stage-1 model that they come from. pointer: the `MemoryPointer` of `weitblick.memory`, kept and trained with it.

    Context is read in one of two ways. As in the paper, every word reads it, and a gate mixes what was read into the
    word's state. Or (`decide_between`, as the shipped model does it) only those steps read it at which the sentence
    model expects one of some words, such as *er*, *sie* and *es*, and it only shares out what these have together."""

    def __init__(
        self,
        sentence: SentenceModel,
        context: ContextModule | None,
        section: ContextSection,
        frozen: SentenceModel | None = None,
        pointer: Any = None,
    ) -> None:
        super().__init__()
        self.sentence, self.context, self.section = sentence, context, section
        self.frozen, self.pointer = frozen, pointer
        if frozen is not None:
            frozen.requires_grad_(False)
        self.choice_words: Tensor | None
        self.register_buffer("choice_words", None, persistent=False)
        self.choice_sets: Tensor | None
        self.register_buffer("choice_sets", None, persistent=False)

    # Who reads what.

    @property
    def sides(self) -> Sides | None:
        """Which side is context, and which side's words read it; None for a model without a context module."""
        if self.context is None:
            return None
        if self.section.integration == "encoder":
            return Sides(keys="source", queries="source")
        return Sides(keys="source" if self.context.own_encoder else "target", queries="target")

    @property
    def reads_translations(self) -> bool:
        """Whether target sentences are context."""
        return self.sides is not None and self.sides.keys == "target"

    def context_side(self, source: T, target: T) -> T:
        """Of what belongs to the source and to the target, that of the sentences which are context."""
        return target if self.reads_translations else source

    def query_side(self, source: T, target: T) -> T:
        """Of what belongs to the source and to the target, that of the words which read the context."""
        return target if self.sides is not None and self.sides.queries == "target" else source

    @property
    def online(self) -> bool:
        """Whether only sentences before are read."""
        return self.section.direction == "online"

    @property
    def provider(self) -> SentenceModel:
        """The sentence model that context states come from: the stage-1 model where they are frozen."""
        return self.sentence if self.frozen is None else self.frozen

    def first_pass(self) -> DocumentModel:
        """What translates a document before there are translations to read: with frozen states, the stage-1 model."""
        if self.frozen is None or not self.reads_translations:
            return self
        return DocumentModel(self.frozen, None, self.section)

    def train(self, mode: bool = True) -> DocumentModel:
        super().train(mode)
        if self.frozen is not None:
            self.frozen.eval()
        return self

    def context_parameters(self) -> list[nn.Parameter]:
        return [] if self.context is None else list(self.context.parameters())

    def decide_between(self, sets: Sequence[Sequence[int]]) -> None:
        """Reads context only where target words of these sets are expected without it, and lets it share out the
        probability that those of a set have together; it changes nothing else."""
        self.choice_words, self.choice_sets = joined_sets(sets, self.sentence.output_bias.device) or (None, None)

    # What documents offer.

    def context_of(self, sources: Sources, states: Tensor, targets: IdLists | None = None) -> Context | None:
        """What documents offer, part by part. states [T, d]: the sentence model's own of the sources; targets: their
        translations, without which a model that reads translations has nothing to read."""
        if self.context is None or (self.reads_translations and targets is None):
            return None
        keys, values, layout = self.states_offered(sources, states, targets)
        return Context(layout, self.context.prepare(keys, values, layout))

    def offer(self, source: Packed, target: Packed | None = None) -> Context | None:
        """What these sentences offer, from a pass of their own in one piece; with a gradient only if context states
        are to have one."""
        if self.context is None:
            return None
        with self._no_gradient_unless_wanted():
            keys, values = self._keys_and_values(source, target)
        layout = self._offered_layout(source, target)
        return Context(layout, self.context.prepare(keys, values, layout))

    def project(self, sources: Sources, states: Tensor, targets: IdLists | None) -> Projected:
        """Sentences ready to be kept and read later, as a stream does; arguments as of `context_of`."""
        assert self.context is not None
        return self.context.project(*self.states_offered(sources, states, targets))

    def context_from(self, projected: Sequence[Projected]) -> Context | None:
        """What sentences that were projected before offer."""
        if self.context is None or not projected:
            return None
        together = Projected.together(projected)
        return Context(together.layout, self.context.bank(together))

    def states_offered(
        self, sources: Sources, states: Tensor, targets: IdLists | None
    ) -> tuple[Tensor, Tensor, Layout]:
        """Keys and values [T, d] of what the documents offer, and its layout; what a sentence offers does not depend on
        the others. Arguments as of `context_of`."""
        assert self.context is not None
        if self.context.own_encoder:
            return *self._keys_and_values(sources.pack(range(len(sources))), None), sources.layout()
        if self.provider is not self.sentence:
            states = sources.encode(self.provider)
        if not self.reads_translations:
            return states, states, sources.layout()
        assert targets is not None, "this model reads translations"
        pairs = [
            self._keys_and_values(source, target, states.index_select(0, rows))
            for source, target, rows in sources.pairs(targets)
        ]
        keys, values = (torch.cat(column) for column in zip(*pairs, strict=True))
        return keys, values, sources.layout([len(target) + 1 for target in targets])

    def _keys_and_values(
        self, source: Packed, target: Packed | None, encoder_states: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """[T, d] that sentences offer; encoder_states: the provider's, of the source, if they are there."""
        assert self.context is not None
        if self.context.own_encoder:
            embedded = self.provider.source_table(source.tokens).detach()
            return embedded, embedded
        if encoder_states is None:
            encoder_states = self.provider.encode(source.tokens, source.layout)
        if not self.reads_translations:
            return encoder_states, encoder_states
        assert target is not None, "bilingual context needs target sentences"
        decoded = self.provider.decode(target.tokens, target.layout, encoder_states, source.layout)
        return self.offered_by(target, decoded)

    def offered_by(self, target: Packed, states: DecoderStates) -> tuple[Tensor, Tensor]:
        """Keys and values [T, d] of target sentences, from the states of the provider's decoder at their steps."""
        return self._of_target(self.provider, target.tokens, states)

    def _of_target(self, model: SentenceModel, tokens: Tensor, states: DecoderStates) -> tuple[Tensor, Tensor]:
        """Keys and values [T, d] that target sentences offer, from the decoder's pass of `model` over them."""
        return states.attended, model.next_words(tokens) if self.section.values == "words" else states.final

    def _offered_layout(self, source: Packed, target: Packed | None) -> Layout:
        if not self.reads_translations:
            return source.layout
        assert target is not None
        return target.layout

    def _no_gradient_unless_wanted(self) -> torch.set_grad_enabled:
        wanted = self.section.backpropagate and self.frozen is None
        return torch.set_grad_enabled(torch.is_grad_enabled() and wanted)

    # Where it is read.

    def forward(
        self,
        batch: Batch,
        options: ContextOptions = PLAIN,
        source_tokens: Tensor | None = None,
        context: Context | None = None,
        shared: Shared | None = None,
    ) -> ModelOutput:
        """One teacher-forced pass. `source_tokens` replaces the current source (words hidden), not the context's;
        `context` replaces the batch's own (by that of other documents, as a control). `shared`: between passes over
        this batch, with the same `source_tokens`."""
        current, shared = batch.current, shared or Shared()
        source = current.source if source_tokens is None else Packed(source_tokens, current.source.layout)
        context = shared.context if context is None else context
        own = self.context is not None and (context is None or context.bank is None)
        if own and self._apart(batch, source_tokens):
            everything = batch.all_sentences
            found = self.offer(everything.source, everything.target)
            assert found is not None
            context, own = found if context is None else replace(context, layout=found.layout, bank=found.bank), False
            shared.context = context
        if own and not self.reads_translations:
            if shared.encoded is None:
                shared.encoded = self.sentence.encode(source.tokens, source.layout)
            context = self._live(shared.encoded, shared.encoded, source.layout, batch.rest, context)
            shared.context = context
        encoder_states, read = self.encode(source, context, options, shared.encoded)
        if read is None:
            shared.encoded = encoder_states

        target = current.target

        def decode(extras: SubLayers) -> DecoderStates:
            return self.sentence.decode(target.tokens, target.layout, encoder_states, source.layout, extras)

        output = self._decode(
            lambda extras: decode(extras) if extras or read is not None else shared.states(lambda: decode(None)),
            target,
            context,
            options,
            live=own and self.reads_translations,
            rest=batch.rest,
        )
        return output if read is None else replace(output, context=read)

    def encode(
        self,
        source: Packed,
        context: Context | None = None,
        options: ContextOptions = PLAIN,
        states: Tensor | None = None,
    ) -> tuple[Tensor, ContextResult | None]:
        """The encoder states that the decoder reads [T, ...]. states: the sentence model's own, if they are there."""
        bank = None if context is None or self.sides is None or self.sides.queries == "target" else context.bank
        if bank is None:
            return self.sentence.encode(source.tokens, source.layout) if states is None else states, None
        assert self.context is not None
        layout = source.layout
        inside = self.context.inside(layout, bank, options)
        if inside is not None:  # its layers read the context: states without are of no use
            result = inside.result(self.sentence.encode(source.tokens, source.layout, inside.sub_layers))
        else:
            own = self.sentence.encode(source.tokens, source.layout) if states is None else states
            result = self.context(own, own, layout, bank, options)
        return result.states, result

    def decode(
        self,
        target: Packed,
        encoder_states: Tensor,
        source_layout: Layout,
        context: Context | None = None,
        options: ContextOptions = PLAIN,
        only_where_decided: bool = False,
        states: DecoderStates | None = None,
    ) -> ModelOutput:
        """Teacher-forced decoding over states from `encode`; only_where_decided: a model that decides between words
        reads context only where it expects them, which gives the same words, but no account of what was read; states:
        the sentence model's own over these encoder states, if they are there."""
        decode = self.sentence.decode
        return self._decode(
            lambda extras: states or decode(target.tokens, target.layout, encoder_states, source_layout, extras),
            target,
            context,
            options,
            only_where_decided=only_where_decided and self.choice_words is not None,
        )

    def step(
        self, tokens: Tensor, cache: DecodeCache, hypotheses: Layout, context: Context | None = None
    ) -> WordDistribution:
        """The next step of all hypotheses [N]; `hypotheses` has one token for each."""
        return self._decode(
            lambda extras: cache.remember(self.sentence.step(tokens, cache, extras)),
            Packed(tokens, hypotheses),
            context,
            PLAIN,
            only_where_decided=self.choice_words is not None,
        ).words

    def _decode(
        self,
        run: Callable[[SubLayers], DecoderStates],
        target: Packed,
        context: Context | None,
        options: ContextOptions,
        live: bool = False,
        rest: Pairs | None = None,
        only_where_decided: bool = False,
    ) -> ModelOutput:
        """Runs the decoder and reads the context inside its layers, behind them and at the output; live: the sentences
        of this very pass are the context, together with the rest of their documents; only_where_decided: as of
        `decode`."""
        reads = self.sides is not None and self.sides.queries == "target"
        bank = None if context is None or not reads else context.bank
        if bank is None and not live:
            return self._output(run(None), None, target, context)
        assert self.context is not None
        layout = target.layout
        inside = None if bank is None else self.context.inside(layout, bank, options)
        if inside is not None:
            states = run(inside.sub_layers)
            return self._output(states, inside.result(states.final), target, context)
        states = run(None)
        if only_where_decided:
            softmax = self.softmax(states)
            choice = self._read_where_expected(states, softmax, layout, bank)
            return self._mixed(states, WordDistribution(softmax).then(choice), target, context)
        if live:
            keys, values = self._of_target(self.sentence, target.tokens, states)
            bank = self._live(keys, values, target.layout, rest, context).bank
        result = self.context(states.final, states.attended, layout, bank, options)
        return self._output(states, result, target, context)

    def _read_where_expected(
        self, states: DecoderStates, softmax: Softmax, layout: Layout, bank: Bank | None
    ) -> WordChoice:
        """What context decides, read only at the steps where the words it decides between are expected."""
        assert self.context is not None
        steps = self._expecting(softmax)
        if not len(steps):
            return self.word_choice(steps, states.final[steps])
        sentence = layout.sentence[steps]
        few = Layout(torch.ones_like(steps), layout.documents[sentence], layout.positions[sentence])
        own = states.final[steps]
        return self.word_choice(steps, self.context(own, states.attended[steps], few, bank).states, own)

    def softmax(self, states: DecoderStates) -> Softmax:
        """What the sentence model says after its decoder's states."""
        return Softmax(states.final, *self.sentence.output(), self.sentence.approximate_output)

    def _expecting(self, softmax: Softmax) -> Tensor:
        """[m] the steps that expect the words that context decides between."""
        assert self.choice_words is not None
        return softmax.expect(self.choice_words).nonzero()[:, 0]

    def word_choice(self, steps: Tensor, read: Tensor, own: Tensor | None = None) -> WordChoice:
        """From states that have read context [m, d] and the sentence model's own: the mean of what both say, by
        `context.own_odds`; without these, what context says alone."""
        assert self.choice_words is not None
        assert self.choice_sets is not None
        weight, bias = (x[self.choice_words] for x in self.sentence.output())
        scores = torch.addmm(bias, read, weight.t())
        if own is not None and self.section.own_odds:
            scores = scores.lerp(torch.addmm(bias, own, weight.t()), self.section.own_odds)
        return WordChoice(self.choice_words, self.choice_sets, steps, scores)

    def _output(
        self, states: DecoderStates, result: ContextResult | None, target: Packed, context: Context | None
    ) -> ModelOutput:
        """The distribution of words after the context module and, where there is one, the pointer."""
        if result is not None and self.choice_words is None:
            states = DecoderStates(states.attended, result.states)
        softmax = self.softmax(states)
        choice = None
        if result is not None and self.choice_words is not None:
            steps = self._expecting(softmax)
            choice = self.word_choice(steps, result.states[steps], states.final[steps])
        return replace(self._mixed(states, WordDistribution(softmax).then(choice), target, context), context=result)

    def _mixed(
        self, states: DecoderStates, words: WordDistribution, target: Packed, context: Context | None
    ) -> ModelOutput:
        """What the model and a choice by context say, and what the pointer adds."""
        pointer = None if context is None else context.pointer
        return ModelOutput(words if pointer is None else words.then(pointer.point(states, words, target)))

    def _apart(self, batch: Batch, source_tokens: Tensor | None) -> bool:
        """Whether context states need a pass of their own: the current sentences' states are not what is read."""
        assert self.context is not None
        other_states = self.context.own_encoder or self.frozen is not None or source_tokens is not None
        return other_states or (batch.context is not None and batch.rest is None)

    def _live(self, keys: Tensor, values: Tensor, layout: Layout, rest: Pairs | None, given: Context | None) -> Context:
        """The current sentences' own states as context, and those of the rest of their documents, which alone need a
        pass; keys and values stay one tensor where they are the same."""
        assert self.context is not None
        same = values is keys
        if not self.section.backpropagate:
            keys, values = keys.detach(), values.detach()
        if rest is not None:
            with self._no_gradient_unless_wanted():
                more_keys, more_values = self._keys_and_values(rest.source, rest.target)
            keys, values = torch.cat([keys, more_keys]), torch.cat([values, more_values])
            layout = Layout.join([layout, self._offered_layout(rest.source, rest.target)])
        values = keys if same else values
        return replace(given or Context(), layout=layout, bank=self.context.prepare(keys, values, layout))
