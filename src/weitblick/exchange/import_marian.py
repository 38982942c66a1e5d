"""A Marian model of transformers (OPUS-MT and others) or of Marian itself as a model of ours: `weitblick import`.

Only the order of words changes: our special ids come first, in our order. Whatever else a Marian model does otherwise
(post-norm, swish, its positions, its generation settings) is an option that our models have, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weitblick.config.recipe import ContextSection, DropoutSection, GenerationSection, ModelSection
from weitblick.errors import UserError
from weitblick.exchange.marian_folder import CONFIG, MarianFolder, read_marian_folder
from weitblick.exchange.marian_generation import generation_section
from weitblick.exchange.marian_weights import check_sizes, fill, stored_positions
from weitblick.exchange.marian_words import Rows, arrange
from weitblick.exchange.native_marian import native_model, read_native_model
from weitblick.model.build import build
from weitblick.model.document_model import DocumentModel
from weitblick.model.folder import save_model
from weitblick.sentence.transformer import Transformer
from weitblick.text.marian_pipeline import CODE, MarianPipeline, MarianSettings, sentencepiece_model
from weitblick.text.vocabulary import Vocabulary
from weitblick.validation import parse_value

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}


@dataclass(frozen=True)
class Imported:
    model: DocumentModel
    pipeline: MarianPipeline
    section: ModelSection
    facts: dict[str, Any]

    def save(self, folder: str | Path) -> None:
        save_model(folder, self.model, self.pipeline, self.section, self.facts)


@dataclass(frozen=True)
class TextWishes:
    """What a folder may leave open: its languages, the `>>code<<` of the target language where it is not the
    language itself, and whether source text is treated with Moses' normaliser first."""

    source_language: str | None = None
    target_language: str | None = None
    code: str | None = None
    normalize_punctuation: bool = False


def import_marian(path: str | Path, wishes: TextWishes = TextWishes()) -> Imported:
    """Reads a folder of transformers, or files of Marian's own. Languages are asked for where nothing says them."""
    native = native_model(Path(path))
    folder = read_marian_folder(Path(path)) if native is None else read_native_model(native)
    check_sizes(folder)
    source_rows, rows = _rows(folder)
    joint = source_rows is rows
    vocabulary = Vocabulary(rows.tokens)
    vocabularies = (vocabulary if joint else Vocabulary(source_rows.tokens), vocabulary)
    section = model_section(folder, generation_section(folder, rows), joint)
    pipeline = _pipeline(folder, vocabularies, wishes)
    model = build(section, ContextSection(), len(vocabularies[0]), len(vocabularies[1])).eval()
    assert isinstance(model.sentence, Transformer)
    fill(model.sentence, folder, source_rows, rows)
    facts = {
        "languages": f"{pipeline.source_language} -> {pipeline.target_language}",
        "imported_from": _origin(folder),
        **folder.card,
    }
    return Imported(model, pipeline, section, facts)


def _origin(folder: MarianFolder) -> str:
    """A name on the hub if the folder has one; OPUS-MT's folders name a place on the machine where they were made."""
    written = str(folder.config.get("_name_or_path") or "")
    known = re.search(r"Helsinki-NLP/[\w.-]+$", written)
    return known[0] if known else written or folder.path.resolve().name


def _rows(folder: MarianFolder) -> tuple[Rows, Rows]:
    """Of the source and of the target table; the same object where both are one."""
    source, target = folder.vocabularies
    eos, unk = folder.special["eos_token"], folder.special["unk_token"]
    pad, end, start = (folder.token(f"{name}_token_id") for name in ("pad", "eos", "decoder_start"))
    rows = arrange(target, folder.sizes[1], pad, end, target[unk], start)
    if folder.shared and source is target:
        return rows, rows
    source_pad = source.get(folder.special["pad_token"], pad)
    return arrange(source, folder.sizes[0], source_pad, source[eos], source[unk], source_pad), rows


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
    dropout = config.get("dropout", 0.1)
    dropouts = {"embedding": dropout, "attention": config.get("attention_dropout", 0.0), "residual": dropout}
    values = {
        "dimension": number("d_model"),
        "feed_forward": number("encoder_ffn_dim"),
        "encoder_layers": number("encoder_layers"),
        "decoder_layers": number("decoder_layers"),
        "heads": number("encoder_attention_heads"),
        "norm": config.get("norm", "post"),
        "activation": ACTIVATIONS[activation],
        "attention_biases": True,
        "tied_embeddings": ("all" if joint else "output") if tied else "none",
        "scaled_embeddings": bool(config.get("scale_embedding", False)),
        "positions": stored_positions(folder),
        "dropout": parse_value(DropoutSection, dropouts, where, item="dropout: "),
        "generation": generation,
    }
    return parse_value(ModelSection, values, where)


# Text


def _pipeline(folder: MarianFolder, vocabularies: tuple[Vocabulary, Vocabulary], wishes: TextWishes) -> MarianPipeline:
    models = tuple(sentencepiece_model(path) for path in folder.sentencepiece)
    named = re.search(r"(?:^|[-_])([a-z]{2,3})[-_]([a-z]{2,3})$", folder.path.resolve().name)
    sides = zip(
        (wishes.source_language, wishes.target_language),
        ("source_lang", "target_lang"),
        named.groups() if named else (None, None),
        strict=True,
    )
    source, target = (wish or folder.tokenizer.get(key) or guess for wish, key, guess in sides)
    code = _language_code(folder, wishes)
    if not source or not target:
        missing = "--source-language" if not source else "--target-language"
        raise UserError("does not say its languages", where=folder.path, remedy=f"give {missing}")
    settings = MarianSettings(
        code=code,
        decodes_with="target" if folder.tokenizer.get("separate_vocabs") else "source",
        normalize_punctuation=wishes.normalize_punctuation,
        clean_up_spaces=bool(folder.tokenizer.get("clean_up_tokenization_spaces")),
    )
    longest = min(folder.number("max_position_embeddings", 512), _longest_text(folder)) - 1  # the end of sentence
    return MarianPipeline((models[0], models[1]), (str(source), str(target)), vocabularies, longest, settings)


def _longest_text(folder: MarianFolder) -> int:
    """transformers writes a number beyond all bounds where there is none."""
    value = folder.tokenizer.get("model_max_length")
    return min(int(value), 100_000) if isinstance(value, int | float) and value > 1 else 512


def _language_code(folder: MarianFolder, wishes: TextWishes) -> str | None:
    """The >>xx<< of a multilingual model's target language."""
    known = {
        token.removeprefix(CODE[0]).removesuffix(CODE[1])
        for token in folder.vocabularies[0]
        if token.startswith(CODE[0]) and token.endswith(CODE[1])
    }
    codes, wanted = ", ".join(sorted(known)), wishes.code or wishes.target_language
    if not known:
        if wishes.code:
            raise UserError(f"translates into one language, and has no code {wishes.code!r}", where=folder.path)
        return None
    if wanted is None and len(known) > 1:
        raise UserError(
            f"translates into {len(known)} languages: {codes}",
            where=folder.path,
            remedy="choose one with --target-language",
        )
    wanted = wanted or codes
    if wanted not in known:
        what = "code" if wishes.code else "target language"
        raise UserError(f"has no {what} {wanted!r}", where=folder.path, remedy=f"choose one with --code: {codes}")
    return f"{CODE[0]}{wanted}{CODE[1]}"
