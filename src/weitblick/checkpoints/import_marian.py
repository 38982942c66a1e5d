"""A Marian model of transformers (OPUS-MT and others) or of Marian itself (Firefox's, too) as a model of ours.

Only the order of words changes: our special ids come first, in our order. Whatever else a Marian model does otherwise
(post-norm, swish, its positions, its generation settings) is an option that our models have, too.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weitblick.checkpoints.folder import build, save_model
from weitblick.checkpoints.marian_folder import CONFIG, MarianFolder, Rows, arrange, read_marian_folder
from weitblick.checkpoints.marian_weights import check_sizes, fill, generation_section, stored_positions
from weitblick.checkpoints.native_marian import native_model, read_native_model
from weitblick.common.errors import UserError, parse_value
from weitblick.common.files import check_regular_file
from weitblick.common.recipe import ContextSection, DropoutSection, GenerationSection, ModelSection
from weitblick.fast.shortlist import ABSENT, Shortlist
from weitblick.model.document_model import DocumentModel
from weitblick.model.ssru import RecurrentTransformer
from weitblick.model.transformer import Transformer
from weitblick.text.base import BOS, EOS, PAD, UNK, TextPipeline, Vocabulary
from weitblick.text.marian_pipeline import CODE, MarianPipeline, MarianSettings, sentencepiece_model

MAGIC = 0xF11A48D5013417F5
HEADER = struct.Struct("<6Q")
MOST_BEST = 10_000
REMEDY = "copy it again; or move it away, and the model is imported without a shortlist"


def shortlist_file(model: Path) -> Path | None:
    """The shortlist beside a model, if there is one."""
    return next(iter(sorted(model.parent.glob("lex*.bin"))), None)


def read_shortlist(path: Path, rows: tuple[Rows, Rows], pipeline: TextPipeline) -> Shortlist:
    """The shortlist in our ids; rows: of the source and of the target table. Where both are one, a source word may be
    said as it is."""
    first, offsets, ids = _read(path)
    source, target = (_ours(side) for side in rows)
    if len(offsets) - 1 > len(source) or (len(ids) and int(ids.max()) >= len(target)) or first > len(target):
        raise UserError("is a shortlist of another vocabulary", where=path, remedy=REMEDY)
    counts = np.diff(offsets)
    shared = rows[0] is rows[1]
    table = np.full((len(pipeline.source_vocabulary), int(counts.max(initial=0)) + shared), ABSENT)
    words = np.repeat(source[: len(counts)], counts)  # [ids] the source word of each, in our ids
    columns = np.arange(len(ids)) - np.repeat(offsets[:-1], counts)
    table[words, columns] = target[ids]
    if shared:
        table[:, -1] = np.arange(len(table))
    common = np.union1d([PAD, BOS, EOS, UNK], target[:first])
    return Shortlist(common, table, pipeline.fingerprint())


def _ours(rows: Rows) -> np.ndarray:
    """[V] our id of each row of the original."""
    known = [(origin, number) for number, origin in enumerate(rows.origins) if origin is not None]
    found = np.full(max(origin for origin, _ in known) + 1, UNK)
    for origin, number in reversed(known):  # of a row that two of our ids share, the first
        found[origin] = number
    return found


def _read(path: Path) -> tuple[int, np.ndarray, np.ndarray]:
    """first, offsets and ids, whose sizes are held against the file's before anything is made of them."""
    check_regular_file(path, REMEDY)
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(HEADER.size)
        if len(head) < HEADER.size or HEADER.unpack(head)[0] != MAGIC:
            raise UserError("is no binary shortlist of Marian", where=path, remedy=REMEDY)
        _, _, first, best, offset_count, id_count = HEADER.unpack(head)
        needed = HEADER.size + 8 * offset_count + 4 * id_count
        if needed != size or offset_count < 1:
            raise UserError(f"has {size} bytes, its head says {needed}", where=path, remedy=REMEDY)
        offsets = np.frombuffer(file.read(8 * offset_count), "<u8").astype(np.int64)
        ids = np.frombuffer(file.read(4 * id_count), "<u4").astype(np.int64)
    steps = np.diff(offsets)
    if offsets[0] != 0 or offsets[-1] != id_count or (steps < 0).any() or steps.max(initial=0) > MOST_BEST:
        raise UserError(f"has offsets that are not in order (best {best})", where=path, remedy=REMEDY)
    return first, offsets, ids


SHORTLIST = "shortlist"  # the file in a model folder, for translate --shortlist
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}


@dataclass(frozen=True)
class Imported:
    model: DocumentModel
    pipeline: TextPipeline
    section: ModelSection
    facts: dict[str, Any]
    attachments: dict[str, bytes] = field(default_factory=dict)

    def save(self, folder: str | Path) -> None:
        save_model(folder, self.model, self.pipeline, self.section, self.facts, attachments=self.attachments)


Finish = Callable[[Imported], Imported]
"""What is done with a model before it is saved."""


@dataclass(frozen=True)
class TextOptions:
    """What a folder may leave open: its languages, the `>>code<<` of the target language where it is not the
    language itself, and whether source text is treated with Moses' normaliser first."""

    source_language: str | None = None
    target_language: str | None = None
    code: str | None = None
    normalize_punctuation: bool = False


def import_marian(path: str | Path, options: TextOptions = TextOptions()) -> Imported:
    """Reads a folder of transformers, or files of Marian's own. Languages are asked for where nothing says them."""
    native = native_model(Path(path))
    if native is None:
        return import_folder(read_marian_folder(Path(path)), options)
    return import_folder(read_native_model(native), options, shortlist_file(native))


def import_folder(folder: MarianFolder, options: TextOptions, lexicon: Path | None = None) -> Imported:
    """What was read of other programs' files as a model of ours; lexicon: a shortlist of Marian."""
    check_sizes(folder)
    source_rows, rows = _rows(folder)
    joint = source_rows is rows
    vocabulary = Vocabulary(rows.tokens)
    vocabularies = (vocabulary if joint else Vocabulary(source_rows.tokens), vocabulary)
    section = model_section(folder, generation_section(folder, rows), joint)
    pipeline = _pipeline(folder, vocabularies, options)
    model = build(section, ContextSection(), len(vocabularies[0]), len(vocabularies[1])).eval()
    assert isinstance(model.sentence, Transformer | RecurrentTransformer)
    fill(model.sentence, folder, source_rows, rows)
    facts = {
        "languages": f"{pipeline.source_language} -> {pipeline.target_language}",
        "imported_from": _origin(folder),
        **folder.card,
    }
    attachments: dict[str, bytes] = {}
    if lexicon is not None:
        attachments[SHORTLIST] = read_shortlist(lexicon, (source_rows, rows), pipeline).content()
    return Imported(model, pipeline, section, facts, attachments)


def _origin(folder: MarianFolder) -> str:
    """A name on the hub if the folder has one; OPUS-MT's folders name a place on the machine where they were made."""
    written = str(folder.config.get("_name_or_path") or "")
    known = re.search(r"Helsinki-NLP/[\w.-]+$", written)
    return known[0] if known else written or folder.path.resolve().name


def _rows(folder: MarianFolder) -> tuple[Rows, Rows]:
    """Of the source and of the target table; the same object where both are one."""
    if folder.rows is not None:
        return folder.rows
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
        "architecture": folder.architecture,
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
        "source_end": bool(config.get("source_end", True)),
        "dropout": parse_value(DropoutSection, dropouts, where, item="dropout: "),
        "generation": generation,
    }
    return parse_value(ModelSection, values, where)


# Text


def _pipeline(folder: MarianFolder, vocabularies: tuple[Vocabulary, Vocabulary], options: TextOptions) -> TextPipeline:
    if folder.pipeline is not None:
        return folder.pipeline
    models = tuple(sentencepiece_model(path) for path in folder.sentencepiece)
    named = re.search(r"(?:^|[-_])([a-z]{2,3})[-_]([a-z]{2,3})$", folder.path.resolve().name)
    sides = zip(
        (options.source_language, options.target_language),
        ("source_lang", "target_lang"),
        named.groups() if named else (None, None),
        strict=True,
    )
    source, target = (wish or folder.tokenizer.get(key) or guess for wish, key, guess in sides)
    code = _language_code(folder, options)
    if not source or not target:
        missing = "--source-language" if not source else "--target-language"
        raise UserError("does not say its languages", where=folder.path, remedy=f"give {missing}")
    settings = MarianSettings(
        code=code,
        decodes_with="target" if folder.tokenizer.get("separate_vocabs") else "source",
        normalize_punctuation=options.normalize_punctuation,
        clean_up_spaces=bool(folder.tokenizer.get("clean_up_tokenization_spaces")),
    )
    longest = min(folder.number("max_position_embeddings", 512), _longest_text(folder)) - 1  # the end of sentence
    return MarianPipeline((models[0], models[1]), (str(source), str(target)), vocabularies, longest, settings)


def _longest_text(folder: MarianFolder) -> int:
    """transformers writes a number beyond all bounds where there is none."""
    value = folder.tokenizer.get("model_max_length")
    return min(int(value), 100_000) if isinstance(value, int | float) and value > 1 else 512


def _language_code(folder: MarianFolder, options: TextOptions) -> str | None:
    """The >>xx<< of a multilingual model's target language."""
    known = {
        token.removeprefix(CODE[0]).removesuffix(CODE[1])
        for token in folder.vocabularies[0]
        if token.startswith(CODE[0]) and token.endswith(CODE[1])
    }
    codes, wanted = ", ".join(sorted(known)), options.code or options.target_language
    if not known:
        if options.code:
            raise UserError(f"translates into one language, and has no code {options.code!r}", where=folder.path)
        return None
    if wanted is None and len(known) > 1:
        raise UserError(
            f"translates into {len(known)} languages: {codes}",
            where=folder.path,
            remedy="choose one with --target-language",
        )
    wanted = wanted or codes
    if wanted not in known:
        what = "code" if options.code else "target language"
        raise UserError(f"has no {what} {wanted!r}", where=folder.path, remedy=f"choose one with --code: {codes}")
    return f"{CODE[0]}{wanted}{CODE[1]}"
