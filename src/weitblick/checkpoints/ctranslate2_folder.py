"""Folders of CTranslate2 and packages of Argos Translate, read as Marian models are: Transformers with an encoder and
a decoder, as OpenNMT-py, Marian and `weitblick export ctranslate2` make them.

A folder has no text pipeline of its own: ours writes one into `text`; otherwise a SentencePiece model lies beside it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from torch import Tensor

from weitblick.checkpoints.ctranslate2_binary import Variables, is_ctranslate2, read_variables
from weitblick.checkpoints.ctranslate2_weights import (
    LONGEST,
    Layers,
    activation_of,
    embeddings_are_scaled,
    heads_of,
    place_of_norms,
    positions_of,
    refuse_others,
)
from weitblick.checkpoints.marian_folder import SPECIAL, MarianFolder, Rows, Tensors
from weitblick.common.errors import UserError
from weitblick.common.files import check_regular_file, read_json
from weitblick.common.recipe import GenerationSection
from weitblick.text.base import BOS, EOS, PAD, PIPELINE_FILE, SPECIAL_TOKENS, UNK, TextPipeline, load_pipeline
from weitblick.text.marian_pipeline import MODEL_FILES, sentencepiece_model

log = logging.getLogger("weitblick")

MODEL, CONFIG, TEXT = "model.bin", "config.json", "text"
PACKAGE, PACKED_MODEL, PACKED_PIECES = "metadata.json", "model", "sentencepiece.model"  # of Argos
WHOLE = "copy the whole folder again"
PADDING = ("<pad>", "<blank>")  # ours and Marian's, OpenNMT's
EPSILON = 1e-5  # of layer norms, here and there
SAME_VOCABULARY = 0.5  # share of words that are pieces of the SentencePiece model, at least
ARGOS_PENALTY = 0.2  # for length, as Argos Translate searches; its beam is 4, as ours


def ctranslate2_folder(path: Path) -> Path | None:
    """The folder that is meant, if it is one of CTranslate2, or of Argos with one in it."""
    if path.name == MODEL and is_ctranslate2(path):
        return path.parent
    for folder in (path, path / PACKED_MODEL):
        if is_ctranslate2(folder / MODEL) or ((folder / MODEL).is_file() and any(folder.glob("*_vocabulary.*"))):
            return folder
    return path / PACKED_MODEL if (path / PACKAGE).is_file() and (path / PACKED_MODEL).is_dir() else None


def read_ctranslate2_folder(folder: Path) -> MarianFolder:
    package = _package(folder)
    variables = read_variables(folder / MODEL)
    heads = heads_of(variables)
    settings = _settings(folder, variables)
    table = variables.take("encoder/embeddings_0/weight", "encoder/embeddings/weight")
    d = int(table.shape[-1])
    positions, order = positions_of(variables, d)
    layers = Layers(variables, d, order)
    tensors = layers.all()
    config = {
        "d_model": d,
        "encoder_layers": layers.count("encoder"),
        "decoder_layers": layers.count("decoder"),
        "encoder_attention_heads": heads[0],
        "decoder_attention_heads": heads[1],
        "encoder_ffn_dim": len(tensors["model.encoder.layers.0.fc1.bias"]),
        "decoder_ffn_dim": len(tensors["model.decoder.layers.0.fc1.bias"]),
        "activation_function": activation_of(variables),
        "norm": place_of_norms(variables, tensors),
        "scale_embedding": embeddings_are_scaled(variables, d),
        "max_position_embeddings": LONGEST,
        "source_end": settings.source_end,
    }
    refuse_others(variables)
    tokens = _vocabularies(folder, tensors)
    rows = _rows(tokens, settings, folder)
    tables = [tensors[f"model.{side}.embed_tokens.weight"] for side in ("encoder", "decoder")]
    one = tokens[0] is tokens[1] and np.array_equal(tables[0], tables[1])
    config |= {
        "vocab_size": len(tables[0]),
        "decoder_vocab_size": len(tables[1]),
        "share_encoder_decoder_embeddings": one,
        "tie_word_embeddings": np.array_equal(tables[1], tensors["lm_head.weight"]),
    }
    own = _own_pipeline(folder, tokens)
    return MarianFolder(
        path=folder.parent if package else folder,
        config=config,
        generation=_generation(tokens[1], settings, bool(package)),
        tokenizer={"separate_vocabs": True, **_languages(package)},
        vocabularies=(_numbered(tokens[0]), _numbered(tokens[1])),
        special=dict(SPECIAL),
        sentencepiece=_sentencepiece(folder, tokens) if own is None else (folder, folder),
        tensors=Tensors(variables.path, {name: _tensor(array) for name, array in tensors.items()}),
        positions=positions,
        rows=(rows[1], rows[1]) if one else rows,
        pipeline=own,
    )


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


# Words


@dataclass(frozen=True)
class _Settings:
    """Special words; start: None if the decoder starts from zeros."""

    unknown: str
    end: str
    start: str | None
    source_end: bool


def _settings(folder: Path, variables: Variables) -> _Settings:
    config: Any = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    if not isinstance(config, dict):
        raise UserError("holds no keys and values", where=folder / CONFIG, remedy=WHOLE)
    zeros = bool(variables.number("decoder/start_from_zero_embedding"))
    flags = {name: variables.number(f"with_{name}") for name in ("source_bos", "source_eos", "target_bos")}
    if config.get("add_source_bos") or flags["source_bos"]:
        raise UserError("reads a start of sentence (add_source_bos), which no model here does", where=folder)
    epsilon = config.get("layer_norm_epsilon")
    if epsilon is not None and not (isinstance(epsilon, int | float) and 0 < epsilon <= EPSILON):
        raise UserError(f"layer_norm_epsilon is {epsilon!r}; known here: at most {EPSILON:g}", where=folder / CONFIG)
    end = str(config.get("eos_token") or SPECIAL["eos_token"])
    start = config.get("decoder_start_token", end if flags["target_bos"] == 0 else SPECIAL_TOKENS[BOS])
    if start is None and not zeros:
        raise UserError("decoder_start_token is open: it would be given with each text", where=folder / CONFIG)
    return _Settings(
        unknown=str(config.get("unk_token") or SPECIAL["unk_token"]),
        end=end,
        start=None if zeros else str(start),
        # transformers' tokenizer writes the end itself, so that converted Marian models do not say so.
        source_end=bool(config.get("add_source_eos") or flags["source_eos"]) or zeros,
    )


def _vocabularies(folder: Path, tensors: dict[str, np.ndarray]) -> tuple[list[str], list[str]]:
    """Of source and target, the same object where there is one."""
    shared = _vocabulary(folder, "shared_vocabulary")
    found = (shared, shared) if shared else tuple(_vocabulary(folder, f"{s}_vocabulary") for s in ("source", "target"))
    for side, name, tokens in zip(("encoder", "decoder"), ("source", "target"), found, strict=True):
        if not tokens:
            raise UserError(f"has no {name}_vocabulary.json or .txt", where=folder, remedy=WHOLE)
        size = len(tensors[f"model.{side}.embed_tokens.weight"])
        if len(tokens) != size:
            raise UserError(
                f"the {name} vocabulary has {len(tokens)} words, but the model has {size}",
                where=folder,
                remedy="vocabulary and model do not belong together",
            )
    source, target = found
    assert source is not None
    assert target is not None
    if len(tensors["lm_head.weight"]) != len(target):
        raise UserError(f"says {len(tensors['lm_head.weight'])} words, and reads {len(target)}", where=folder / MODEL)
    return source, target


def _vocabulary(folder: Path, name: str) -> list[str] | None:
    for path in (folder / f"{name}.json", folder / f"{name}.txt"):
        if not path.is_file():
            continue
        check_regular_file(path)
        if path.suffix == ".json":
            tokens = read_json(path)
            if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
                raise UserError("holds no list of words", where=path, remedy="copy it again")
            return tokens
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            raise UserError("is not text in UTF-8", where=path, remedy="copy it again") from None
        return text.removesuffix("\n").split("\n")
    return None


def _numbered(tokens: list[str]) -> dict[str, int]:
    """Of a word that is there twice the first counts."""
    return {token: number for number, token in reversed(list(enumerate(tokens)))}


def _rows(tokens: tuple[list[str], list[str]], settings: _Settings, folder: Path) -> tuple[Rows, Rows]:
    source, target = (_side_rows(side, settings, folder, target=place == 1) for place, side in enumerate(tokens))
    return source, target


def _side_rows(tokens: list[str], settings: _Settings, folder: Path, target: bool) -> Rows:
    """Our order of a vocabulary: our special words first, then the ordinary ones."""
    numbers = _numbered(tokens)
    start = None if settings.start is None else numbers.get(settings.start)
    needed = [settings.unknown, *([settings.end] if target or settings.source_end else [])]
    needed += [settings.start] if target and settings.start is not None else []
    for word in needed:
        if word not in numbers:
            raise UserError(f"its vocabulary has no {word!r}", where=folder, remedy=WHOLE)
    padding = next((numbers[word] for word in PADDING if word in numbers), None)
    special = [padding, start, numbers.get(settings.end), numbers[settings.unknown]]
    taken = {number for number in special if number is not None}
    ordinary = [number for number in range(len(tokens)) if number not in taken]
    names = [tokens[n] if numbers[tokens[n]] == n else f"<unused {n}>" for n in ordinary]
    silent = [n for n in (PAD, BOS) if special[n] is None or special[n] in (special[EOS], special[UNK])]
    return Rows(names, [*special, *ordinary], silent)


def _generation(target: list[str], settings: _Settings, argos: bool) -> dict[str, Any]:
    """Unknown words are never said: CTranslate2 is told so, or puts a source word there."""
    numbers = _numbered(target)
    return {
        "eos_token_id": numbers[settings.end],
        "bad_words_ids": [[numbers[settings.unknown]]],
        "num_beams": GenerationSection().beam,
        "length_penalty": ARGOS_PENALTY if argos else None,
        "early_stopping": GenerationSection().stop,
    }


# Text


def _own_pipeline(folder: Path, tokens: tuple[list[str], list[str]]) -> TextPipeline | None:
    """What `weitblick export ctranslate2` wrote beside the model."""
    if not (folder / TEXT / PIPELINE_FILE).is_file():
        return None
    pipeline = load_pipeline(folder / TEXT)
    if [list(v.tokens) for v in (pipeline.source_vocabulary, pipeline.target_vocabulary)] != list(tokens):
        raise UserError("has other words than the model", where=folder / TEXT, remedy=WHOLE)
    return pipeline


def _sentencepiece(folder: Path, tokens: tuple[list[str], list[str]]) -> tuple[Path, Path]:
    """The files that cut source and target sentences; they lie in the folder, in a package beside it."""
    for place in (folder, folder.parent) if (folder.parent / PACKAGE).is_file() else (folder,):
        both = (place / MODEL_FILES["source"], place / MODEL_FILES["target"])
        single = [place / PACKED_PIECES] if (place / PACKED_PIECES).is_file() else sorted(place.glob("*.spm"))
        found = both if all(path.is_file() for path in both) else (single[0], single[0]) if len(single) == 1 else None
        if found is not None:
            for path, side in zip(found, tokens, strict=True):
                _check_pieces(path, side)
            return found
        if (place / "bpe.model").is_file():
            raise UserError("cuts words by BPE; only SentencePiece is known here", where=place / "bpe.model")
    raise UserError(
        "has nothing that cuts text into its words",
        where=folder,
        remedy=f"put {PACKED_PIECES}, or {' and '.join(MODEL_FILES.values())}, of the same model into it",
    )


def _check_pieces(path: Path, tokens: list[str]) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(path))
    pieces = {processor.id_to_piece(number) for number in range(processor.get_piece_size())}
    ordinary = [token for token in tokens if not re.fullmatch(r"<.*>|>>.*<<|averaged\d+|madeupword\d+", token)]
    share = sum(token in pieces for token in ordinary) / max(1, len(ordinary))
    if share < SAME_VOCABULARY:
        raise UserError(
            f"is of another vocabulary: {share:.0%} of the model's words are pieces of it",
            where=path,
            remedy="copy the one that the model was trained with",
        )


# Packages of Argos Translate


def _package(folder: Path) -> dict[str, Any]:
    """What a package says of itself; empty for a folder that is none."""
    path = folder.parent / PACKAGE
    if folder.name != PACKED_MODEL or not path.is_file():
        return {}
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError("holds no keys and values", where=path, remedy="copy the package again")
    kind = value.get("type", "translate")
    if kind != "translate":
        raise UserError(f"is a package of type {kind!r}, not translate", where=path)
    if value.get("target_prefix"):
        raise UserError(
            f"starts every translation with {value['target_prefix']!r}, which no model here does", where=path
        )
    if any(folder.parent.glob("stanza*")):
        log.info("stanza is left out: sentences are split as in all files here")
    return value


def _languages(package: dict[str, Any]) -> dict[str, str]:
    named = {"source_lang": package.get("from_code"), "target_lang": package.get("to_code")}
    return {key: code for key, code in named.items() if isinstance(code, str) and code}
