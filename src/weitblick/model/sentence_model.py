"""What a sentence-level model must offer to carry a context layer, whatever its inside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from weitblick.common.recipe import ModelSection
from weitblick.model.batch import Layout
from weitblick.text.base import PAD


@dataclass(frozen=True)
class DecoderStates:
    """attended [T, d]: the last layer's state after attention to the source; final [T, d]: its output."""

    attended: Tensor
    final: Tensor


class DecodeCache(ABC):
    """What decoding remembers between steps: S sentences with K hypotheses each, hypotheses of a sentence adjacent."""

    def __init__(self) -> None:
        self.length = 0
        self.latest: DecoderStates | None = None  # of the step before

    def remember(self, states: DecoderStates) -> DecoderStates:
        self.latest = states
        return states

    @abstractmethod
    def select_sentences(self, sentences: Tensor) -> None:
        """Keep these sentences' memories [S']."""

    @abstractmethod
    def select_hypotheses(self, hypotheses: Tensor) -> None:
        """Keep and reorder these hypotheses' pasts [S' * K]."""


class SentenceModel(nn.Module, ABC):
    """Encoder and decoder of single sentences. Tokens are packed (see `batch.Layout`).

    `dimension` d is the width of embeddings and decoder states, `encoder_dimension` that of encoder states.
    """

    def __init__(self, model: ModelSection, source_size: int, target_size: int) -> None:
        super().__init__()
        self.dimension = self.encoder_dimension = model.dimension
        self.embedding_scale = model.dimension**0.5 if model.scaled_embeddings else 1.0
        self.generation = model.generation
        self.target_table = nn.Embedding(target_size, model.dimension, padding_idx=PAD)
        if model.tied_embeddings == "all":
            if source_size != target_size:
                raise ValueError("tied_embeddings: all needs one vocabulary for both sides (joint_vocabulary: true)")
            self.source_table = self.target_table
        else:
            self.source_table = nn.Embedding(source_size, model.dimension, padding_idx=PAD)
        self.output_bias = nn.Parameter(self.target_table.weight.new_zeros(target_size))
        tied = model.tied_embeddings != "none"
        self.output_table = (
            None if tied else nn.Parameter(self.target_table.weight.new_zeros(target_size, self.dimension))
        )

        self.approximate_output: Callable[[Tensor], Tensor] | None = None  # logits in 8 bits, of a quantised model

    def initialise(self) -> None:
        """Xavier for matrices, zeros for biases, embeddings with variance 1/d (they are scaled by sqrt(d))."""
        for name, parameter in self.named_parameters():
            if "norm" in name:
                continue
            if name.rsplit(".", 1)[-1].startswith("bias") or name.endswith("bias"):  # of a GRU: bias_ih_l0
                nn.init.zeros_(parameter)
            elif "table" in name:
                nn.init.normal_(parameter, std=self.dimension**-0.5)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def output(self) -> tuple[Tensor, Tensor]:
        """Weight [V, d] and bias [V] of the projection to the target vocabulary."""
        weight = self.target_table.weight if self.output_table is None else self.output_table
        return weight, self.output_bias

    def next_words(self, tokens: Tensor) -> Tensor:
        """[T] tokens as the decoder reads them -> embeddings [T, d] of the words that its steps predict; what stands at
        the last step of a sentence, which predicts no word, is of no use."""
        return self.target_table(tokens.roll(-1)) * self.embedding_scale

    @abstractmethod
    def encode(
        self, tokens: Tensor, layout: Layout, extras: Sequence[Callable[[Tensor], Tensor]] | None = None
    ) -> Tensor:
        """[T] -> last encoder states [T, encoder_dimension]; `extras`: sub-layers behind the self-attentions"""

    @abstractmethod
    def decode(
        self,
        tokens: Tensor,
        layout: Layout,
        encoder_states: Tensor,
        source_layout: Layout,
        extras: Sequence[Callable[[Tensor], Tensor]] | None = None,
    ) -> DecoderStates:
        """Target tokens shifted right [T] and encoder states [Ts, ...] -> decoder states at every step"""

    @abstractmethod
    def start(self, encoder_states: Tensor, source_layout: Layout) -> DecodeCache:
        """A cache to decode all sentences of `source_layout` from."""

    @abstractmethod
    def step(
        self, tokens: Tensor, cache: DecodeCache, extras: Sequence[Callable[[Tensor], Tensor]] | None = None
    ) -> DecoderStates:
        """The next step of every hypothesis: tokens [S * K] -> states [S * K, d]; advances the cache."""

    @abstractmethod
    def source_weights(self, tokens: Tensor, layout: Layout, encoder_states: Tensor, source_layout: Layout) -> Tensor:
        """[S, Wt, Ws] mean weights of the last attention to the source, for alignments."""

    def decode_with_weights(
        self, tokens: Tensor, layout: Layout, encoder_states: Tensor, source_layout: Layout
    ) -> tuple[DecoderStates, Tensor]:
        """What `decode` and `source_weights` give, in one pass where a model can."""
        given = tokens, layout, encoder_states, source_layout
        return self.decode(*given), self.source_weights(*given)
