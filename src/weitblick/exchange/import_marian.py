"""A Marian model of transformers (OPUS-MT and others) as a model of ours: `weitblick import`.

Only the order of words changes: our special ids come first, in our order. Whatever else a Marian model does otherwise
(post-norm, swish, its positions, its generation settings) is an option that our models have, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from weitblick.config.recipe import ContextSection, DropoutSection, GenerationSection, ModelSection
from weitblick.errors import UserError
from weitblick.exchange.marian_folder import CONFIG, GENERATION, MarianFolder, Tensors, read_marian_folder
from weitblick.model.build import build
from weitblick.model.document_model import DocumentModel
from weitblick.model.folder import save_model
from weitblick.sentence.sentence_model import SentenceModel
from weitblick.sentence.transformer import DecoderLayer, EncoderLayer, SubLayer, Transformer
from weitblick.text.marian_pipeline import CODE, MODEL_FILES, MarianPipeline, MarianSettings, sentencepiece_model
from weitblick.text.special import BOS, EOS, PAD
from weitblick.text.vocabulary import Vocabulary
from weitblick.validation import parse_value

SILENT = -1e4
"""The output bias of a row that stands for no word of the original: its probability is zero in 32 bits, and its share
in label smoothing finite."""

EMBEDDINGS = ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
SHARED = "model.shared.weight"
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}

# Settings of generation that would change translations and that no beam search here has, with what leaves them out.
UNSUPPORTED = {
    "do_sample": (False, None),
    "min_length": (0, None),
    "min_new_tokens": (0, None),
    "no_repeat_ngram_size": (0, None),
    "encoder_no_repeat_ngram_size": (0, None),
    "repetition_penalty": (1.0, None),
    "num_beam_groups": (1, None),
    "sequence_bias": (None,),
    "suppress_tokens": (None,),
    "begin_suppress_tokens": (None,),
}


@dataclass(frozen=True)
class Imported:
    model: DocumentModel
    pipeline: MarianPipeline
    section: ModelSection
    facts: dict[str, Any]

    def save(self, folder: str | Path) -> None:
        save_model(folder, self.model, self.pipeline, self.section, self.facts)


def import_marian(
    path: str | Path,
    source_language: str | None = None,
    target_language: str | None = None,
    *,
    normalize_punctuation: bool = False,
) -> Imported:
    """Reads a folder of transformers. Languages are asked for where the folder does not say them."""
    folder = read_marian_folder(Path(path))
    source, target = folder.vocabularies
    special = folder.special
    end, start = (
        folder.number("eos_token_id"),
        folder.number("decoder_start_token_id", folder.config.get("pad_token_id")),
    )
    pad = folder.number("pad_token_id")
    rows = arrange(target, folder.sizes[1], pad, end, target[special["unk_token"]], start)
    source_rows = rows
    if not folder.shared or source is not target:
        source_pad = source.get(special["pad_token"], pad)
        ends = (source[special["eos_token"]], source[special["unk_token"]])
        source_rows = arrange(source, folder.sizes[0], source_pad, *ends, source_pad)
    joint = folder.shared and source is target
    vocabulary = Vocabulary(rows.tokens)
    vocabularies = (vocabulary if joint else Vocabulary(source_rows.tokens), vocabulary)
    section = model_section(folder, generation_section(folder, rows), joint)
    pipeline = _pipeline(folder, vocabularies, (source_language, target_language), normalize_punctuation)
    model = build(section, ContextSection(), len(vocabularies[0]), len(vocabularies[1])).eval()
    assert isinstance(model.sentence, Transformer)
    with torch.no_grad():
        _fill(model.sentence, folder, Tensors(folder.path), source_rows, rows)
    facts = {
        "languages": f"{pipeline.source_language} -> {pipeline.target_language}",
        "imported_from": folder.config.get("_name_or_path") or folder.path.resolve().name,
    }
    return Imported(model, pipeline, section, facts)


# Words


@dataclass(frozen=True)
class Rows:
    """tokens: the ordinary ones, in our order; origins: for each of our ids the row of the original, or None;
    silent: our ids that stand for no word of the original."""

    tokens: list[str]
    origins: list[int | None]
    silent: list[int]

    def table(self, original: Tensor) -> Tensor:
        """[V, d] of the original -> [V', d]"""
        index = torch.tensor([-1 if row is None else row for row in self.origins])
        rows: Tensor = original[index.clamp_min(0)]
        rows[index < 0] = 0
        return rows


def arrange(vocabulary: dict[str, int], size: int, pad: int, end: int, unknown: int, start: int) -> Rows:
    """Our order of a vocabulary of `size` words. What the decoder starts from, usually <pad>, is our <s>."""
    if start == pad:
        special: list[int | None] = [None, pad, end, unknown]
        silent = PAD
    else:
        special = [pad, start, end, unknown]
        silent = BOS
    names = {number: token for token, number in vocabulary.items()}
    ordinary = [number for number in range(size) if number not in (pad, end, unknown)]
    tokens = [names.get(number, f"<unused {number}>") for number in ordinary]
    return Rows(tokens, [*special, *ordinary], [silent])


# Configuration


def model_section(folder: MarianFolder, generation: GenerationSection, joint: bool) -> ModelSection:
    number, config = folder.number, folder.config
    where = folder.path / CONFIG
    for encoder, decoder in (
        ("encoder_attention_heads", "decoder_attention_heads"),
        ("encoder_ffn_dim", "decoder_ffn_dim"),
    ):
        if number(encoder) != number(decoder):
            raise UserError(
                f"{encoder} {number(encoder)} and {decoder} {number(decoder)} differ, which no model here can",
                where=where,
            )
    activation = config.get("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        raise UserError(f"activation {activation!r} is not known; known: {', '.join(ACTIVATIONS)}", where=where)
    if number("d_model") % 2:
        raise UserError(f"d_model {number('d_model')} is odd: positions need an even number", where=where)
    tied = bool(config.get("tie_word_embeddings", True))
    dropout = float(config.get("dropout", 0.1))
    values = {
        "dimension": number("d_model"),
        "feed_forward": number("encoder_ffn_dim"),
        "encoder_layers": number("encoder_layers"),
        "decoder_layers": number("decoder_layers"),
        "heads": number("encoder_attention_heads"),
        "norm": "post",
        "activation": ACTIVATIONS[activation],
        "attention_biases": True,
        "tied_embeddings": ("all" if joint else "output") if tied else "none",
        "scaled_embeddings": bool(config.get("scale_embedding", False)),
        "positions": "marian",
        "dropout": DropoutSection(
            embedding=dropout, attention=float(config.get("attention_dropout", 0.0)), residual=dropout
        ),
        "generation": generation,
    }
    return parse_value(ModelSection, values, where)


def generation_section(folder: MarianFolder, rows: Rows) -> GenerationSection:
    """What `generate` does where nothing else is asked for; older folders say it in config.json."""
    settings, where = folder.generation, folder.path / GENERATION
    if settings is None:
        settings, where = folder.config, folder.path / CONFIG
        if "num_beams" not in settings and "max_length" not in settings:
            settings = {**settings, "num_beams": GenerationSection().beam}
    for key, harmless in UNSUPPORTED.items():
        if settings.get(key) not in harmless:
            raise UserError(f"{key} is {settings[key]!r}, which is not known here", where=where, remedy="take it out")
    early = settings.get("early_stopping") or False
    longest = settings.get("max_length")
    if settings.get("max_new_tokens") is not None:
        longest = settings["max_new_tokens"] + 1
    values = {
        "beam": settings.get("num_beams") or 1,
        "length_penalty": 1.0 if settings.get("length_penalty") is None else settings["length_penalty"],
        "longest": longest,
        "stop": {False: "beam", True: "first"}.get(early, early),
        "free_end": settings.get("forced_eos_token_id", folder.config.get("forced_eos_token_id")) is not None,
        "forbidden": _forbidden(settings.get("bad_words_ids") or [], rows, where),
        "renormalize": bool(settings.get("renormalize_logits")),
    }
    return parse_value(GenerationSection, values, where)


def _forbidden(bad_words: list[list[int]], rows: Rows, where: Path) -> list[int]:
    ids = {origin: number for number, origin in enumerate(rows.origins) if origin is not None}
    found = set()
    for word in bad_words:
        if not isinstance(word, list) or len(word) != 1 or word[0] not in ids:
            raise UserError(f"bad_words_ids has {word!r}, which is not one word", where=where, remedy="take it out")
        found.add(ids[word[0]])
    return sorted(found - {PAD, BOS, EOS})  # never produced here in any case; and the end cannot be forbidden there


# Text


def _pipeline(
    folder: MarianFolder,
    vocabularies: tuple[Vocabulary, Vocabulary],
    wished: tuple[str | None, str | None],
    normalize_punctuation: bool,
) -> MarianPipeline:
    models = tuple(sentencepiece_model(folder.path / name) for name in MODEL_FILES.values())
    named = re.search(r"(?:^|[-_])([a-z]{2,3})[-_]([a-z]{2,3})$", folder.path.resolve().name)
    sides = zip(wished, ("source_lang", "target_lang"), named.groups() if named else (None, None), strict=True)
    source, target = (wish or folder.tokenizer.get(key) or guess for wish, key, guess in sides)
    code = _language_code(folder, wished[1])
    if not source or not target:
        missing = "--source-language" if not source else "--target-language"
        raise UserError("does not say its languages", where=folder.path, remedy=f"give {missing}")
    settings = MarianSettings(
        code=code,
        decodes_with="target" if folder.tokenizer.get("separate_vocabs") else "source",
        normalize_punctuation=normalize_punctuation,
        clean_up_spaces=bool(folder.tokenizer.get("clean_up_tokenization_spaces")),
    )
    longest = min(folder.number("max_position_embeddings", 512), _longest_text(folder)) - 1  # the end of sentence
    return MarianPipeline((models[0], models[1]), (source, target), vocabularies, longest, settings)


def _longest_text(folder: MarianFolder) -> int:
    """transformers writes a number beyond all bounds where there is none."""
    return min(int(folder.tokenizer.get("model_max_length") or 512), 100_000)


def _language_code(folder: MarianFolder, target: str | None) -> str | None:
    """The >>xx<< of a multilingual model's target language."""
    codes = [
        token.removeprefix(CODE[0]).removesuffix(CODE[1])
        for token in folder.vocabularies[0]
        if token.startswith(CODE[0]) and token.endswith(CODE[1])
    ]
    if not codes:
        return None
    if target is None and len(codes) > 1:
        raise UserError(
            f"translates into {len(codes)} languages: {', '.join(sorted(codes))}",
            where=folder.path,
            remedy="choose one with --target-language",
        )
    wanted = target or codes[0]
    if wanted not in codes:
        raise UserError(
            f"has no target language {wanted!r}", where=folder.path, remedy=f"choose one of {', '.join(sorted(codes))}"
        )
    return f"{CODE[0]}{wanted}{CODE[1]}"


# Weights


def _fill(model: Transformer, folder: MarianFolder, tensors: Tensors, source_rows: Rows, rows: Rows) -> None:
    _fill_tables(model, folder, tensors, source_rows, rows)
    for number, encoder in enumerate(model.encoder):
        _fill_encoder_layer(encoder, _Layer(tensors, f"model.encoder.layers.{number}.", model.dimension))
    for number, decoder in enumerate(model.decoder):
        _fill_decoder_layer(decoder, _Layer(tensors, f"model.decoder.layers.{number}.", model.dimension))


def _fill_tables(model: SentenceModel, folder: MarianFolder, tensors: Tensors, source_rows: Rows, rows: Rows) -> None:
    (source_size, target_size), d = folder.sizes, model.dimension
    encoder, decoder, output = (f"{name}.weight" for name in EMBEDDINGS)
    tied = (output,) if model.output_table is None else ()
    if folder.shared:  # stored under one of its names, or under each
        source = tensors.take((source_size, d), encoder, SHARED, decoder, *tied)
        target = tensors.take((target_size, d), decoder, SHARED, encoder, *tied)
    else:
        source = tensors.take((source_size, d), encoder)
        target = tensors.take((target_size, d), decoder, *tied)
    model.source_table.weight.copy_(source_rows.table(source))
    model.target_table.weight.copy_(rows.table(target))
    if model.output_table is not None:
        model.output_table.copy_(rows.table(tensors.take((target_size, d), output)))
    bias = torch.zeros(1, target_size)
    if "final_logits_bias" in tensors:
        bias = tensors.take((1, target_size), "final_logits_bias")
    model.output_bias.copy_(rows.table(bias[0]))
    model.output_bias[rows.silent] = SILENT


@dataclass(frozen=True)
class _Layer:
    """The tensors of one layer."""

    tensors: Tensors
    prefix: str
    d: int

    def linear(self, module: nn.Module, *names: str) -> None:
        """Several projections of the original, one below the other, are one of ours."""
        assert isinstance(module, nn.Linear)
        rows, columns = module.weight.shape[0] // len(names), module.weight.shape[1]
        for part, name in enumerate(names):
            place = slice(part * rows, (part + 1) * rows)
            module.weight[place].copy_(self.tensors.take((rows, columns), f"{self.prefix}{name}.weight"))
            module.bias[place].copy_(self.tensors.take((rows,), f"{self.prefix}{name}.bias"))

    def norm(self, around: SubLayer, name: str) -> None:
        around.norm.weight.copy_(self.tensors.take((self.d,), f"{self.prefix}{name}.weight"))
        around.norm.bias.copy_(self.tensors.take((self.d,), f"{self.prefix}{name}.bias"))


def _fill_encoder_layer(layer: EncoderLayer | DecoderLayer, given: _Layer) -> None:
    given.linear(layer.attention.input, *(f"self_attn.{part}_proj" for part in "qkv"))
    given.linear(layer.attention.output, "self_attn.out_proj")
    given.norm(layer.around_attention, "self_attn_layer_norm")
    given.linear(layer.feed_forward.input, "fc1")
    given.linear(layer.feed_forward.output, "fc2")
    given.norm(layer.around_feed_forward, "final_layer_norm")


def _fill_decoder_layer(layer: DecoderLayer, given: _Layer) -> None:
    _fill_encoder_layer(layer, given)
    given.linear(layer.source_attention.query, "encoder_attn.q_proj")
    given.linear(layer.source_attention.memory, "encoder_attn.k_proj", "encoder_attn.v_proj")
    given.linear(layer.source_attention.output, "encoder_attn.out_proj")
    given.norm(layer.around_source_attention, "encoder_attn_layer_norm")
