"""The recipe: everything a run is made of, as typed models. Field descriptions become the reference in the docs."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Beta = Annotated[float, Field(ge=0, lt=1)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_default=True, coerce_numbers_to_str=True, allow_inf_nan=False)


class DropoutSection(Section):
    embedding: float = Field(0.1, ge=0, lt=1, description="on embeddings plus positions")
    attention: float = Field(0.1, ge=0, lt=1, description="on attention weights")
    residual: float = Field(0.1, ge=0, lt=1, description="on the output of attention and feed-forward sub-layers")
    output: float = Field(0.2, ge=0, lt=1, description="on the readout (RNNSearch only)")


class GenerationSection(Section):
    """How a model is searched for translations where nothing else is asked for. An imported model brings its own."""

    beam: int = Field(4, gt=0, description="hypotheses per sentence; 1 is greedy search")
    length_penalty: float = Field(1.0, ge=0, description="scores are log-probabilities over length ** this")
    longest: int | None = Field(
        None,
        gt=2,
        description="most pieces of a translation, its start and end included; twice the source if not given",
    )
    stop: Literal["settled", "beam", "first", "never"] = Field(
        "settled",
        description="when a sentence is done: its best translations are settled; or as transformers does, with "
        "early_stopping false (beam), true (first), never",
    )
    free_end: bool = Field(False, description="at the greatest length the end costs nothing (forced_eos_token_id)")
    forbidden: list[int] = Field([], description="ids that are never produced, besides <pad> and <s>")
    renormalize: bool = Field(False, description="probabilities are those among words that may be produced")


class ModelSection(Section):
    architecture: Literal["transformer", "ssru", "rnnsearch"] = Field(
        "transformer",
        description="the sentence-level model; ssru: a transformer with recurrent units in its decoder (Firefox's)",
    )
    dimension: int = Field(512, gt=0, description="width of states and embeddings")
    feed_forward: int = Field(2048, gt=0, description="width inside feed-forward sub-layers")
    encoder_layers: int = Field(4, gt=0, description="layers of the encoder")
    decoder_layers: int = Field(4, gt=0, description="layers of the decoder")
    heads: int = Field(8, gt=0, description="attention heads; divides the dimension")
    norm: Literal["post", "pre"] = Field("post", description="layer norm after (the paper) or before each sub-layer")
    activation: Literal["relu", "gelu", "swish"] = Field("relu", description="of feed-forward sub-layers")
    attention_biases: bool = Field(False, description="biases in attention projections")
    tied_embeddings: Literal["none", "output", "all"] = Field(
        "output", description="output: target embedding = output projection; all: source too (joint vocabulary)"
    )
    scaled_embeddings: bool = Field(True, description="embeddings are multiplied with the root of the dimension")
    positions: Literal["tensor2tensor", "marian"] = Field(
        "tensor2tensor", description="how sinusoids fall: to 1/10000 exactly, or by 10000^(-2i/dimension) (Marian)"
    )
    source_end: bool = Field(
        True, description="the encoder reads an end of sentence behind the words; OpenNMT-py's models do not"
    )
    dropout: DropoutSection = Field(default_factory=DropoutSection, description="dropout rates")
    generation: GenerationSection = Field(
        default_factory=GenerationSection, description="how translations are searched for unless asked otherwise"
    )

    @model_validator(mode="after")
    def _check(self) -> ModelSection:
        if self.dimension % self.heads:
            raise ValueError(f"dimension {self.dimension} is not a multiple of heads {self.heads}")
        if not self.source_end and self.architecture == "rnnsearch":
            raise ValueError("rnnsearch always reads an end of sentence (source_end)")
        return self


READ_PREVIOUS = {"zhang": 2, "han": 3, "concatenation": 1}
"""Baselines that read a fixed number of sentences before, and how many if nothing else is said."""


class ToldSection(Section):
    source: list[str] = Field(description="source words, in any case")
    target: list[str] = Field(description="words of context.decides that they tell")


class ContextSection(Section):
    kind: Literal["none", "sentence", "word", "hierarchical", "zhang", "han", "concatenation"] = Field(
        "none",
        description="flat attention over sentences or words, hierarchical (H-Attention), or a baseline; concatenation: "
        "the sentence model reads the sentences before as part of the current one (encoder: k-to-1, decoder: k-to-k)",
    )
    sentence_attention: Literal["sparse", "soft", "entmax15"] = Field(
        "sparse", description="hierarchical: over sentences; flat sentence attention in the paper is soft"
    )
    word_attention: Literal["soft", "sparse", "entmax15"] = Field(
        "soft", description="hierarchical: over the words of a sentence; flat word attention in the paper is soft"
    )
    integration: Literal["encoder", "decoder"] = Field(
        "encoder", description="encoder: source context; decoder: source and target (bilingual) context"
    )
    direction: Literal["offline", "online"] = Field("offline", description="past and future context, or past only")
    states: Literal["live", "frozen"] = Field(
        "live", description="context states of the model itself, or constants of the stage-1 model (the paper)"
    )
    values: Literal["states", "words"] = Field(
        "states",
        description="decoder: what a target word of the context says: the state that predicted it (the paper), or the "
        "word itself, so that earlier wordings can be taken up",
    )
    backpropagate: bool = Field(False, description="let gradients reach live context states")
    heads: int | None = Field(None, gt=0, description="heads of the context layer; the model's if not given")
    dropout: float = Field(
        0.1, ge=0, lt=1, description="inside the context layer: on what attention and feed-forward give"
    )
    attention_dropout: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="on the weights of context attention, at every level; model.dropout.attention if not given",
    )
    sentences: int | None = Field(
        None,
        gt=0,
        description="zhang, han, concatenation: how many previous sentences; if not given 2, 3 (as in the papers), 1",
    )
    gate: Literal["mix", "add"] = Field(
        "mix",
        description="mix: states and what was read share one place, as in the paper; add: what was read is added to "
        "the states and starts as nothing, so that a trained sentence model is not disturbed",
    )
    gate_start: float = Field(
        0.0, description="start of a learned gate bias; 3 starts near pass-through; 0: no bias, as in the paper"
    )
    retrieval_start: bool = Field(
        False, description="start query and key projections near the identity: like attends to like at once"
    )
    order: bool = Field(
        False,
        description="let scores see the signed distance between sentences and a word's place in its sentence; starts "
        "without effect",
    )
    decides: list[list[str]] = Field(
        default_factory=list,
        description="decoder: sets of target words between which context decides (a list of words is one set): where "
        "they are expected without it, it shares out the probability that those of a set have together, and it changes "
        "nothing else. Empty: it is read everywhere",
    )
    decides_for: list[str] = Field(
        default_factory=list, description="with decides: source words without which context decides nothing; empty: any"
    )
    told_by_source: list[ToldSection] = Field(
        default_factory=list,
        description="with decides_for: words that source words tell, which then stay",
    )
    own_odds: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="with decides: weight of the sentence model's own log-odds between these words, of which it knows "
        "how frequent each is and what the sentence itself tells; what context says has the rest",
    )
    path: Literal["auto", "dense", "routed"] = Field("auto", description="how word attention is computed; all agree")

    @model_validator(mode="after")
    def _check_kind(self) -> ContextSection:
        if self.values == "words" and (self.integration == "encoder" or self.kind in READ_PREVIOUS):
            raise ValueError("values: words needs integration: decoder and kind: sentence, word or hierarchical")
        if self.gate == "add" and self.kind in ("none", *READ_PREVIOUS):
            raise ValueError("gate: add needs kind: sentence, word or hierarchical")
        if self.order and self.kind in ("none", *READ_PREVIOUS):
            raise ValueError("order: true needs kind: sentence, word or hierarchical")
        return self

    @field_validator("decides", mode="before")
    @classmethod
    def _one_set(cls, value: Any) -> Any:
        return [value] if isinstance(value, list) and value and isinstance(value[0], str) else value

    @property
    def decided_words(self) -> list[str]:
        """Those of all sets."""
        return [word for words in self.decides for word in words]

    @model_validator(mode="after")
    def _check_decides(self) -> ContextSection:
        twice = [word for word, times in Counter(self.decided_words).items() if times > 1]
        if twice:
            raise ValueError(f"decides has {twice[0]!r} twice: a word is in one set")
        if self.decides and (self.integration == "encoder" or self.kind in ("none", "zhang", "concatenation")):
            raise ValueError("decides needs integration: decoder and a context that is read behind the decoder")
        if self.own_odds and not self.decides:
            raise ValueError("own_odds needs decides")
        if (self.decides_for and not self.decides) or (self.told_by_source and not self.decides_for):
            raise ValueError("decides_for needs decides, and told_by_source needs decides_for")
        told = [word for one in self.told_by_source for word in one.target]
        if unknown := [word for word in told if word not in self.decided_words]:
            raise ValueError(f"told_by_source names {unknown[0]!r}, which is in no set of decides")
        return self

    @model_validator(mode="after")
    def _complete_baselines(self) -> ContextSection:
        if self.kind not in READ_PREVIOUS:
            return self
        if self.direction == "offline" and "direction" in self.model_fields_set:
            raise ValueError(f"{self.kind} reads previous sentences only; set direction to online")
        self.direction = "online"
        if self.sentences is None:
            self.sentences = READ_PREVIOUS[self.kind]
        return self


class TextSection(Section):
    kind: Literal["moses", "sentencepiece"] = Field(
        "moses", description="the paper's Moses tokenisation, truecasing and BPE, or SentencePiece"
    )
    source_language: str = Field("en", description="ISO 639-1 code")
    target_language: str = Field("de", description="ISO 639-1 code")
    merges: int = Field(30000, gt=0, description="BPE merges (moses) or pieces (sentencepiece), learned jointly")
    joint_vocabulary: bool = Field(False, description="one vocabulary for both sides")
    symbols: list[str] = Field(
        default_factory=list,
        description="sentencepiece: texts that are always one piece, wherever they stand, such as masked spans; they "
        "come after all other pieces, and count among these",
    )
    words: list[str] = Field(
        default_factory=list, description="sentencepiece: words that are to be one piece, however rare they are"
    )
    split_digits: bool = Field(
        False, description="sentencepiece: every digit is a piece of its own, so that any number can be copied"
    )
    longest_sentence: int = Field(256, gt=0, description="longer sentences are not trained on, and split to translate")

    @model_validator(mode="after")
    def _check_pieces(self) -> TextSection:
        if self.kind != "sentencepiece" and (self.symbols or self.words or self.split_digits):
            raise ValueError("symbols, words and split_digits need kind: sentencepiece")
        if any(not symbol or symbol != "".join(symbol.split()) or "▁" in symbol for symbol in self.symbols):
            raise ValueError("a symbol is a text without spaces")
        if len(set(self.symbols)) < len(self.symbols):
            raise ValueError("a symbol is named twice")
        return self


def as_files(value: object) -> object:
    """The files of a corpus; one alone needs no list."""
    return [value] if isinstance(value, str) else value


class DataSection(Section):
    dir: str | None = Field(
        None, description="folder with {train,dev,test}.{source,target language}, or one file of both sides for each"
    )
    train: list[str] | None = Field(None, description="training corpus: SOURCE TARGET files or one file of both")
    text: list[str] | None = Field(
        None, description="corpus that the text pipeline is learned from, if not the training corpus"
    )
    dev: list[str] | None = Field(None, description="development corpus")
    test: list[str] | None = Field(None, description="test corpus (studies only)")
    format: str | None = Field(None, description="format of the corpora; guessed from their names if not given")
    mix: list[str] | None = Field(None, description="discourse-rich corpus mixed into stage 2: SOURCE TARGET")
    mix_share: float = Field(0.0, ge=0, lt=1, description="share of stage-2 documents taken from the mixed-in corpus")

    _files = field_validator("train", "text", "dev", "test", "mix", mode="before")(as_files)


class StageSection(Section):
    updates: int = Field(100_000, ge=0, description="limit of updates")
    epochs: int = Field(35, ge=0, description="limit of epochs")
    batch_tokens: int = Field(1000, gt=0, description="target tokens of a batch, about (of one process)")
    accumulate: int = Field(1, gt=0, description="batches per update")
    learning_rate: float = Field(1e-4, gt=0, description="peak rate")
    schedule: Literal["constant", "inverse_sqrt", "linear"] = Field("constant", description="after warm-up")
    warmup: int = Field(0, ge=0, description="updates of linear warm-up")
    betas: tuple[Beta, Beta] = Field((0.9, 0.999), description="Adam's")
    weight_decay: float = Field(0.0, ge=0, description="decoupled weight decay")
    clip: float = Field(5.0, gt=0, description="gradient norm")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="share spread over the vocabulary")
    dropout: float | None = Field(None, ge=0, lt=1, description="set all of the model's dropouts in this stage")
    validate_every: int = Field(1000, gt=0, description="updates between validations")
    save_every: int = Field(1000, gt=0, description="updates between saves of the resumable state")
    patience: int = Field(10, gt=0, description="validations without a better dev perplexity before stopping")
    result: Literal["best", "last"] = Field(
        "best", description="what a stage ends with: the best weights by dev perplexity, or the last"
    )
    average: int = Field(1, gt=0, description="average the best so many checkpoints at the end")
    precision: Literal["float32", "bfloat16", "float16"] = Field(
        "float32",
        description="of matrix products: bfloat16 on GPUs and on CPUs that have it (AVX-512 BF16), float16 on GPUs; "
        "elsewhere float32",
    )


class ContextStageSection(StageSection):
    batch_documents: int | None = Field(
        None, gt=0, description="documents a batch; the token budget alone if not given"
    )
    sentence_rate: float = Field(1.0, ge=0, description="rate of the sentence model's parameters, times learning_rate")
    hold_sentence_model: int = Field(0, ge=0, description="updates for which the sentence model is held fixed")
    hold_gate: int = Field(
        0, ge=0, description="updates for which the gate is held at its start, so that it cannot shut"
    )
    context_dropout: float = Field(0.1, ge=0, lt=1, description="share of sentences trained without context")
    source_word_dropout: float = Field(
        0.0, ge=0, lt=1, description="share of words hidden in the current source sentence, its context left whole"
    )
    target_context: Literal["reference", "translation", "mixed"] = Field(
        "reference",
        description="target context in training and validation: references, the stage-1 model's translations (as the "
        "paper's authors have it; made once, kept beside the run), or, in training, these in every second document",
    )


class DecisionStageSection(Section):
    passes: int = Field(8, gt=0, description="times over all decisions, the rate falling to zero")
    batch: int = Field(64, gt=0, description="decisions of an update")
    learning_rate: float = Field(1e-3, gt=0, description="peak rate of Adam")
    weights: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict, description="how much words of context.decides count; 1 if not named"
    )
    held_out: float = Field(0.05, gt=0, lt=1, description="share of the decisions that the layer is judged by")


class MemorySection(Section):
    kind: Literal["none", "pointer"] = Field("none", description="whether the model can point at approved translations")
    dimension: int = Field(128, gt=0, description="width of queries and keys")
    hidden: int = Field(32, gt=0, description="width of the network that decides on the pointer's share")
    candidates: int = Field(32, gt=0, description="approved sentences that a sentence may look at")
    sentence_attention: Literal["sparse", "none"] = Field(
        "sparse", description="a few of these sentences by their best-matching words first; none: all words at once"
    )


class MemoryStageSection(Section):
    documents: int = Field(480, gt=0, description="training documents, in runs of twelve that belong together")
    runs: Literal["order", "related"] = Field(
        "order",
        description="which documents belong together: those that follow each other in the corpus or, if it is in no "
        "order, those that share rare expressions",
    )
    dev_documents: int = Field(48, gt=0, description="dev documents that the pointer is judged by")
    before: int = Field(5, ge=0, description="documents before that a project remembers")
    random: float = Field(0.5, ge=0, le=1, description="share of documents seen with a memory of another text, too")
    caution: float = Field(
        0.8, ge=0, description="taken from the logit of the fitted share, which is too bold for a search"
    )


class Recipe(Section):
    base: str | list[str] | None = Field(
        None, description="the recipe, or recipes laid over each other in this order, that this one changes"
    )
    output: str = Field("runs/run", description="the run's folder")
    seed: int = Field(1, ge=0, lt=2**63, description="of everything random")
    threads: int | None = Field(None, gt=0, description="threads of PyTorch on the CPU; all cores if not given")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, ...")
    stage: Literal["both", "sentence", "context", "decision", "memory"] = Field(
        "both",
        description="which stages to run; for the model of stage1, which is left as it is: decision, a context layer "
        "that decides between a few words; memory, a pointer to approved translations",
    )
    stage1: str | None = Field(
        None,
        description="model folder of another run to start from; stage: sentence trains it on, and a context layer of "
        "the same kind and integration is taken over too",
    )
    start: str | None = Field(
        None,
        description="model folder whose weights stage 1 starts from, though its vocabulary is another one and it may "
        "have fewer layers",
    )
    data: DataSection = Field(default_factory=DataSection, description="corpora")
    text: TextSection = Field(default_factory=TextSection, description="text pipeline")
    model: ModelSection = Field(default_factory=ModelSection, description="sentence-level model")
    context: ContextSection = Field(default_factory=ContextSection, description="document-level context")
    sentence_stage: StageSection = Field(default_factory=StageSection, description="stage 1")
    context_stage: ContextStageSection = Field(default_factory=ContextStageSection, description="stage 2")
    decision_stage: DecisionStageSection = Field(
        default_factory=DecisionStageSection, description="training of a context layer with context.decides alone"
    )
    memory: MemorySection = Field(default_factory=MemorySection, description="pointer to approved translations")
    memory_stage: MemoryStageSection = Field(
        default_factory=MemoryStageSection, description="training of that pointer, the rest of the model untouched"
    )

    @model_validator(mode="after")
    def _check_combination(self) -> Recipe:
        if self.context.kind == "zhang" and self.model.architecture == "rnnsearch":
            raise ValueError("context.kind zhang reads inside the layers of a transformer, not rnnsearch")
        heads = self.context.heads or self.model.heads
        if self.context.kind != "none" and self.model.dimension % heads:
            raise ValueError(f"context.heads: dimension {self.model.dimension} is not a multiple of heads {heads}")
        if self.model.tied_embeddings == "all" and not self.text.joint_vocabulary and self.stage1 is None:
            raise ValueError("model.tied_embeddings: all needs text.joint_vocabulary: true")
        if self.start is not None and self.stage1 is not None:
            raise ValueError("start: has no place beside stage1, a model that is gone on with as it is")
        return self
