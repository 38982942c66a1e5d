"""A sentence model for Bergamot, the engine of Firefox: `weitblick export firefox`. Context stays behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml
from torch import Tensor, nn

from weitblick.checkpoints.folder import LoadedModel, as_array
from weitblick.checkpoints.marian_binary import in_marians_order, write_binary
from weitblick.checkpoints.marian_weights import SILENT
from weitblick.common.errors import UserError
from weitblick.common.files import atomic_folder
from weitblick.common.recipe import ModelSection
from weitblick.model.layers import FeedForward, SourceAttention
from weitblick.model.ssru import RecurrentTransformer
from weitblick.text.base import BOS, PAD, Side, TextPipeline
from weitblick.text.marian_pipeline import MarianPipeline
from weitblick.text.sentencepiece_pipeline import SentencePiecePipeline

MARKS = ("model.bin", "decoder.yml")
VOCABULARY, SOURCE_VOCABULARY, TARGET_VOCABULARY = "vocab.spm", "srcvocab.spm", "trgvocab.spm"
SETTINGS = "special:model.yml"
MULTIPLE = 8  # of which the engine wants the number of words
VERSION = "v1.9.56"  # of Marian, in which every option that is named here has its present meaning


def export_firefox(loaded: LoadedModel, folder: str | Path, *, int8: bool = True) -> None:
    """Writes model.bin, its vocabularies and decoder.yml, which Bergamot and slimt read; int8: in Firefox's 8 bits."""
    model, section, pipeline = loaded.model.sentence, loaded.model_section, loaded.pipeline
    if not isinstance(model, RecurrentTransformer):
        raise UserError(
            f"Firefox's engine has no {section.architecture} of ours", remedy="export a model of architecture ssru"
        )
    _check(section, pipeline)
    arrays = _arrays(model, section)
    matrices = frozenset(name for name, array in arrays.items() if min(array.shape) > 1) if int8 else frozenset()
    text = yaml.safe_dump(_settings(model, section)).encode() + b"\0"
    arrays[SETTINGS] = np.frombuffer(text, dtype=np.int8)
    vocabularies = _vocabularies(pipeline)
    names = list(vocabularies) * (3 - len(vocabularies))
    decoder = {
        "relative-paths": True,
        "models": ["model.bin"],
        "vocabs": names,
        "beam-size": section.generation.beam,
        "normalize": section.generation.length_penalty,
        "word-penalty": 0,
        "max-length-factor": 2.0,
        "gemm-precision": "int8shiftAll" if int8 else "float32",
    }
    with atomic_folder(folder) as temporary:
        write_binary(temporary / "model.bin", arrays, matrices)
        for name, content in vocabularies.items():
            (temporary / name).write_bytes(content)
        (temporary / "decoder.yml").write_text(yaml.safe_dump(decoder, sort_keys=False), encoding="utf-8")


CHOICES: tuple[tuple[str, object], ...] = (
    ("positions", "tensor2tensor"),
    ("scaled_embeddings", True),
    ("norm", "post"),
    ("source_end", True),
)


def _check(section: ModelSection, pipeline: TextPipeline) -> None:
    """What Marian's students are not, and this engine does not compute."""
    for option, expected in CHOICES:
        found = getattr(section, option)
        if found != expected:
            raise UserError(f"model.{option} is {found!r}, Firefox's engine knows {expected!r}")
    if section.activation == "gelu":
        raise UserError("model.activation is 'gelu', which is another function there", remedy="export relu or swish")
    if not isinstance(pipeline, MarianPipeline | SentencePiecePipeline):
        raise UserError("Firefox's engine reads SentencePiece only", remedy="train with text.kind: sentencepiece")
    if isinstance(pipeline, SentencePiecePipeline) and not pipeline.joint_vocabulary:
        raise UserError("has two vocabularies of one SentencePiece model, which Firefox's engine cannot read")


# Text


def _vocabularies(pipeline: TextPipeline) -> dict[str, bytes]:
    """The SentencePiece files by name; one where both sides have the same."""
    if isinstance(pipeline, SentencePiecePipeline):
        return {VOCABULARY: in_marians_order(pipeline.model, _pieces(pipeline, "source"), MULTIPLE)}
    assert isinstance(pipeline, MarianPipeline)
    if pipeline.joint_vocabulary:
        return {VOCABULARY: in_marians_order(pipeline.models["target"], _pieces(pipeline, "target"), MULTIPLE)}
    sides: tuple[tuple[str, Side], ...] = ((SOURCE_VOCABULARY, "source"), (TARGET_VOCABULARY, "target"))
    return {name: in_marians_order(pipeline.models[side], _pieces(pipeline, side), MULTIPLE) for name, side in sides}


def _pieces(pipeline: TextPipeline, side: Side) -> list[str]:
    """As the rows of the table come: the end, what is unknown, ordinary pieces."""
    return list(pipeline.vocabulary(side).tokens[BOS + 1 :])


# Weights


def _settings(model: RecurrentTransformer, section: ModelSection) -> dict[str, object]:
    return {
        "version": VERSION,
        "type": "transformer",
        "dim-emb": section.dimension,
        "dim-vocabs": [len(_words(table.weight)) for table in (model.source_table, model.target_table)],
        "enc-depth": section.encoder_layers,
        "dec-depth": section.decoder_layers,
        "enc-cell": "gru",
        "dec-cell": "ssru",
        "dec-cell-base-depth": 2,
        "dec-cell-high-depth": 1,
        "skip": False,
        "layer-normalization": False,
        "input-types": [],
        "lemma-dim-emb": 0,
        "tied-embeddings": section.tied_embeddings == "output",
        "tied-embeddings-all": section.tied_embeddings == "all",
        "tied-embeddings-src": False,
        "transformer-heads": section.heads,
        "transformer-no-projection": False,
        "transformer-pool": False,
        "transformer-dim-ffn": section.feed_forward,
        "transformer-decoder-dim-ffn": section.feed_forward,
        "transformer-ffn-depth": 2,
        "transformer-decoder-ffn-depth": 2,
        "transformer-ffn-activation": section.activation,
        "transformer-dim-aan": section.feed_forward,
        "transformer-aan-depth": 2,
        "transformer-aan-activation": "relu",
        "transformer-aan-nogate": False,
        "transformer-decoder-autoreg": "rnn",
        "transformer-tied-layers": [],
        "transformer-guided-alignment-layer": "last",
        "transformer-preprocess": "",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess": "dan",
        "transformer-postprocess-top": "",
        "transformer-train-position-embeddings": False,
        "transformer-rnn-projection": False,
        "bert-train-type-embeddings": True,
        "bert-type-vocab-size": 2,
        "ulr": False,
        "ulr-dim-emb": 0,
        "ulr-trainable-transformation": False,
        "factors-combine": "sum",
        "factors-dim-emb": 0,
    }


def _arrays(model: RecurrentTransformer, section: ModelSection) -> dict[str, np.ndarray]:
    """Our weights under Marian's names; matrices lie the other way there, and <pad> and <s> are no words."""
    found: dict[str, np.ndarray] = {}
    if section.tied_embeddings == "all":
        found["Wemb"] = _words(model.target_table.weight)
    else:
        found["encoder_Wemb"] = _words(model.source_table.weight)
        found["decoder_Wemb"] = _words(model.target_table.weight)
    if model.output_table is not None:
        found["decoder_ff_logit_out_W"] = _words(model.output_table).T.copy()
    found["decoder_ff_logit_out_b"] = _words(model.output_bias, SILENT)[None]
    for number, encoder in enumerate(model.encoder, 1):
        prefix = f"encoder_l{number}_"
        parts = [_linear_parts(encoder.attention.input, 3), _linear_parts(encoder.attention.output, 1)]
        found |= _attention(f"{prefix}self", [part for group in parts for part in group])
        found |= _norm(encoder.around_attention.norm, f"{prefix}self_Wo")
        found |= _feed_forward(encoder.feed_forward, encoder.around_feed_forward.norm, prefix)
    for number, decoder in enumerate(model.decoder, 1):
        prefix = f"decoder_l{number}_"
        (value,), (forget,) = _linear_parts(decoder.unit.value, 1), _linear_parts(decoder.unit.forget, 1)
        found |= {f"{prefix}rnn_W": value[0], f"{prefix}rnn_Wf": forget[0], f"{prefix}rnn_bf": forget[1]}
        found |= _norm(decoder.around_unit.norm, f"{prefix}rnn_ffn")
        found |= _attention(f"{prefix}context", _source_attention(decoder.source_attention))
        found |= _norm(decoder.around_source_attention.norm, f"{prefix}context_Wo")
        found |= _feed_forward(decoder.feed_forward, decoder.around_feed_forward.norm, prefix)
    return found


Part = tuple[np.ndarray, np.ndarray]  # weight [in, out] and bias [1, out]


def _words(table: Tensor, filling: float = 0.0) -> np.ndarray:
    """[V, ...] -> [V', ...] without <pad> and <s>, filled up to a multiple of MULTIPLE"""
    words = as_array(table)[max(PAD, BOS) + 1 :]
    more = np.full((-len(words) % MULTIPLE, *words.shape[1:]), filling, dtype=words.dtype)
    return np.concatenate([words, more])


def _linear_parts(linear: nn.Module, count: int) -> list[Part]:
    """One projection of ours is `count` of theirs, side by side."""
    assert isinstance(linear, nn.Linear)
    rows = linear.out_features // count
    bias = linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
    weights, biases = linear.weight.split(rows), bias.split(rows)
    return [(as_array(w).T.copy(), as_array(b)[None]) for w, b in zip(weights, biases, strict=True)]


def _source_attention(attention: SourceAttention) -> list[Part]:
    return [
        *_linear_parts(attention.query, 1),
        *_linear_parts(attention.memory, 2),
        *_linear_parts(attention.output, 1),
    ]


def _attention(prefix: str, parts: list[Part]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for name, (weight, bias) in zip("qkvo", parts, strict=True):
        found |= {f"{prefix}_W{name}": weight, f"{prefix}_b{name}": bias}
    return found


def _feed_forward(module: FeedForward, norm: nn.LayerNorm, prefix: str) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for number, linear in enumerate((module.input, module.output), 1):
        ((weight, bias),) = _linear_parts(linear, 1)
        found |= {f"{prefix}ffn_W{number}": weight, f"{prefix}ffn_b{number}": bias}
    return found | _norm(norm, f"{prefix}ffn_ffn")


def _norm(norm: nn.LayerNorm, name: str) -> dict[str, np.ndarray]:
    return {f"{name}_ln_scale": as_array(norm.weight)[None], f"{name}_ln_bias": as_array(norm.bias)[None]}
