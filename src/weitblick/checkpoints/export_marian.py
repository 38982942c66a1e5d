"""A sentence model for transformers, with Marian's tokenizer: `weitblick export marian`. Context stays behind.

A post-norm model is a Marian model there; of a pre-norm model transformers' name is Pegasus, otherwise the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from weitblick.checkpoints.folder import LoadedModel
from weitblick.checkpoints.marian_folder import (
    CONFIG,
    GENERATION,
    SAFE_WEIGHTS,
    TARGET_VOCABULARY,
    TOKENIZER,
    VOCABULARY,
)
from weitblick.common.errors import UserError
from weitblick.common.files import atomic_folder, write_json
from weitblick.common.recipe import GenerationSection, ModelSection
from weitblick.model.layers import sinusoids
from weitblick.model.transformer import DecoderLayer, EncoderLayer, Transformer
from weitblick.text.base import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, TextPipeline
from weitblick.text.marian_pipeline import MODEL_FILES, MarianPipeline
from weitblick.text.sentencepiece_pipeline import SentencePiecePipeline

MARKS = (CONFIG, SAFE_WEIGHTS, VOCABULARY)
LONGEST = 512  # positions, and words of a translation

# Our SentencePiece models are given a space before the text and single spaces in it. Settings behind a model's others
# (field 3, normalizer_spec: add_dummy_prefix and remove_extra_whitespaces) let SentencePiece do the same.
AS_CLEANED = b"\x1a\x04\x18\x01\x20\x01"


def export_marian(loaded: LoadedModel, folder: str | Path) -> str:
    """Writes a folder that `MarianTokenizer` and `AutoModelForSeq2SeqLM` of transformers read; gives the model type."""
    section, pipeline = loaded.model_section, loaded.pipeline
    model = loaded.model.sentence
    if not isinstance(model, Transformer):
        raise UserError(f"Marian has no {section.architecture}", remedy="export a transformer")
    if section.norm == "pre" and section.tied_embeddings != "all":
        raise UserError(
            f"a pre-norm model with tied_embeddings: {section.tied_embeddings} has no like in transformers",
            remedy="use weitblick export ctranslate2",
        )
    if not section.source_end:
        raise UserError(
            "reads no end of sentence, as all of Marian's models do", remedy="use weitblick export ctranslate2"
        )
    models = _sentencepiece_models(pipeline)
    kind = "pegasus" if section.norm == "pre" else "marian"
    with atomic_folder(folder) as temporary:
        for name, content in zip(MODEL_FILES.values(), models, strict=True):
            (temporary / name).write_bytes(content)
        _write_text(temporary, pipeline)
        write_json(temporary / CONFIG, _config(section, kind, model))
        write_json(temporary / GENERATION, _generation(section.generation))
        save_file(_tensors(model, section), temporary / SAFE_WEIGHTS, metadata={"format": "pt"})
    return kind


def _sentencepiece_models(pipeline: TextPipeline) -> tuple[bytes, bytes]:
    if isinstance(pipeline, MarianPipeline):
        return pipeline.models["source"], pipeline.models["target"]
    if isinstance(pipeline, SentencePiecePipeline) and pipeline.joint_vocabulary:
        model = pipeline.model + AS_CLEANED
        return model, model
    what = (
        "separate vocabularies of one SentencePiece model" if isinstance(pipeline, SentencePiecePipeline) else "Moses"
    )
    raise UserError(
        f"Marian's tokenizer cannot do what the model's text pipeline does ({what})",
        remedy="use weitblick export ctranslate2",
    )


def _write_text(folder: Path, pipeline: TextPipeline) -> None:
    separate = pipeline.source_vocabulary != pipeline.target_vocabulary
    vocabularies = {VOCABULARY: pipeline.source_vocabulary}
    if separate:
        vocabularies[TARGET_VOCABULARY] = pipeline.target_vocabulary
    for name, vocabulary in vocabularies.items():
        # Ours may have ordinary words that look like special ones; there the special ones keep the name.
        table = {token: number for number, token in reversed(list(enumerate(vocabulary.tokens)))}
        write_json(folder / name, dict(sorted(table.items(), key=lambda item: item[1])))
    settings: dict[str, Any] = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": pipeline.source_language,
        "target_lang": pipeline.target_language,
        "separate_vocabs": separate,
        "model_max_length": min(pipeline.longest_sentence + 1, LONGEST),
    }
    if isinstance(pipeline, MarianPipeline):
        settings["clean_up_tokenization_spaces"] = pipeline.settings.clean_up_spaces
    write_json(folder / TOKENIZER, settings | _special())


def _special() -> dict[str, Any]:
    return {f"{name}_token": SPECIAL_TOKENS[number] for name, number in (("eos", EOS), ("unk", UNK), ("pad", PAD))}


def _ids() -> dict[str, int]:
    return {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": BOS, "forced_eos_token_id": EOS}


def _config(section: ModelSection, kind: str, model: Transformer) -> dict[str, Any]:
    """The keys that Marian and Pegasus have in common, and which of the two it is."""
    architecture = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}[kind]
    sizes = (model.source_table.num_embeddings, model.target_table.num_embeddings)
    config = {
        "model_type": kind,
        "architectures": [architecture],
        "is_encoder_decoder": True,
        "vocab_size": sizes[0],
        "d_model": section.dimension,
        "activation_function": section.activation,
        "scale_embedding": section.scaled_embeddings,
        "max_position_embeddings": LONGEST,
        "tie_word_embeddings": section.tied_embeddings != "none",
        "dropout": section.dropout.residual,
        "attention_dropout": section.dropout.attention,
        **_ids(),
    }
    for side, layers in (("encoder", section.encoder_layers), ("decoder", section.decoder_layers)):
        config |= {f"{side}_layers": layers, f"{side}_attention_heads": section.heads}
        config[f"{side}_ffn_dim"] = section.feed_forward
    if kind == "marian":
        config["decoder_vocab_size"] = sizes[1]
        config["share_encoder_decoder_embeddings"] = section.tied_embeddings == "all"
    return config


def _generation(generation: GenerationSection) -> dict[str, Any]:
    """Our way to stop is stricter than any of transformers'; the nearest is its usual one."""
    stop = {"settled": False, "beam": False, "first": True, "never": "never"}[generation.stop]
    return {
        "num_beams": generation.beam,
        "length_penalty": generation.length_penalty,
        "max_length": generation.longest or LONGEST,
        "early_stopping": stop,
        "bad_words_ids": [[number] for number in (PAD, BOS, *generation.forbidden)],
        "renormalize_logits": generation.renormalize,
        **_ids(),
    }


# Weights


def _tensors(model: Transformer, section: ModelSection) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    source, target = model.source_table.weight, model.target_table.weight
    if section.tied_embeddings == "all":
        tensors["model.shared.weight"] = target
    else:
        tensors |= {"model.encoder.embed_tokens.weight": source, "model.decoder.embed_tokens.weight": target}
    if model.output_table is not None:
        tensors["lm_head.weight"] = model.output_table
    tensors["final_logits_bias"] = model.output_bias[None]
    if section.positions != "marian":
        for side in ("encoder", "decoder"):
            tensors[f"model.{side}.embed_positions.weight"] = sinusoids(LONGEST, model.dimension, section.positions)
    for number, encoder in enumerate(model.encoder):
        tensors |= _encoder_layer(encoder, f"model.encoder.layers.{number}.")
    for number, decoder in enumerate(model.decoder):
        tensors |= _decoder_layer(decoder, f"model.decoder.layers.{number}.")
    if section.norm == "pre":
        tensors |= _named(model.encoder_norm, "model.encoder.layer_norm")
        tensors |= _named(model.decoder_norm, "model.decoder.layer_norm")
    return {name: tensor.detach().float().cpu().clone().contiguous() for name, tensor in tensors.items()}


def _encoder_layer(layer: EncoderLayer | DecoderLayer, prefix: str) -> dict[str, Tensor]:
    return {
        **_linear(layer.attention.input, *(f"{prefix}self_attn.{part}_proj" for part in "qkv")),
        **_linear(layer.attention.output, f"{prefix}self_attn.out_proj"),
        **_named(layer.around_attention.norm, f"{prefix}self_attn_layer_norm"),
        **_linear(layer.feed_forward.input, f"{prefix}fc1"),
        **_linear(layer.feed_forward.output, f"{prefix}fc2"),
        **_named(layer.around_feed_forward.norm, f"{prefix}final_layer_norm"),
    }


def _decoder_layer(layer: DecoderLayer, prefix: str) -> dict[str, Tensor]:
    source = layer.source_attention
    return {
        **_encoder_layer(layer, prefix),
        **_linear(source.query, f"{prefix}encoder_attn.q_proj"),
        **_linear(source.memory, *(f"{prefix}encoder_attn.{part}_proj" for part in "kv")),
        **_linear(source.output, f"{prefix}encoder_attn.out_proj"),
        **_named(layer.around_source_attention.norm, f"{prefix}encoder_attn_layer_norm"),
    }


def _linear(linear: nn.Linear, *names: str) -> dict[str, Tensor]:
    """One matrix of ours is several below each other there; a bias that ours does not have is zero."""
    bias = torch.zeros(linear.weight.shape[0]) if linear.bias is None else linear.bias
    weights, biases = linear.weight.chunk(len(names)), bias.chunk(len(names))
    return {
        key: tensor
        for name, weight, part in zip(names, weights, biases, strict=True)
        for key, tensor in ((f"{name}.weight", weight), (f"{name}.bias", part))
    }


def _named(module: nn.Module, name: str) -> dict[str, Tensor]:
    return {f"{name}.{key}": tensor for key, tensor in module.named_parameters()}
