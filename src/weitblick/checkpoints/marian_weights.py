"""The weights of a Marian model in our modules, and its generation settings as ours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from weitblick.checkpoints.marian_folder import CONFIG, GENERATION, MarianFolder, Rows, Tensors
from weitblick.common.errors import UserError, parse_value
from weitblick.common.recipe import GenerationSection
from weitblick.model.layers import sinusoids
from weitblick.model.sentence_model import SentenceModel
from weitblick.model.ssru import RecurrentLayer, RecurrentTransformer
from weitblick.model.transformer import DecoderLayer, EncoderLayer, Transformer
from weitblick.text.base import BOS, EOS, PAD

# Settings that would change translations and that no beam search here has, with what leaves them out.
UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "do_sample": (False, None),
    "min_length": (0, None),
    "min_new_tokens": (0, None),
    "no_repeat_ngram_size": (0, None),
    "encoder_no_repeat_ngram_size": (0, None),
    "repetition_penalty": (1.0, None),
    "encoder_repetition_penalty": (1.0, None),
    "exponential_decay_length_penalty": (None,),
    "num_beam_groups": (1, None),
    "penalty_alpha": (0, None),
    "guidance_scale": (1, None),
    "forced_bos_token_id": (None,),
    "force_words_ids": (None,),
    "constraints": (None,),
    "sequence_bias": (None,),
    "suppress_tokens": (None,),
    "begin_suppress_tokens": (None,),
    "stop_strings": (None,),
    "watermarking_config": (None,),
}


def generation_section(folder: MarianFolder, rows: Rows) -> GenerationSection:
    """From generation_config.json; older folders say it in config.json."""
    settings, where = folder.generation, folder.path / GENERATION
    if settings is None:
        settings, where = folder.config, folder.path / CONFIG
        if "num_beams" not in settings and "max_length" not in settings:
            settings = {**settings, "num_beams": GenerationSection().beam}
    for key, harmless in UNSUPPORTED.items():
        if settings.get(key) not in harmless:
            raise UserError(f"{key} is {settings[key]!r}, which is not known here", where=where, remedy="take it out")
    forced = settings.get("forced_eos_token_id")
    if forced not in (None, folder.token("eos_token_id"), [folder.token("eos_token_id")]):
        raise UserError(f"forced_eos_token_id {forced!r} is not the end of a sentence", where=where)
    longest = _longest(settings, where)
    early = settings.get("early_stopping") or False
    values = {
        "beam": settings.get("num_beams") or 1,
        "length_penalty": 1.0 if settings.get("length_penalty") is None else settings["length_penalty"],
        # A translation that nothing forces to end is cut there: one word more, and an end that costs nothing.
        "longest": longest if longest is None or forced is not None else longest + 1,
        "stop": {False: "beam", True: "first"}.get(early, early),
        "free_end": forced is not None or longest is not None,
        "forbidden": _forbidden(settings.get("bad_words_ids") or [], rows, where),
        "renormalize": bool(settings.get("renormalize_logits")),
    }
    return parse_value(GenerationSection, values, where)


def _longest(settings: dict[str, Any], where: Path) -> int | None:
    """Words of a translation, its start and end included."""
    key = "max_length" if settings.get("max_new_tokens") is None else "max_new_tokens"
    value = settings.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 2:
        raise UserError(f"{key} is {value!r}, not a number of words from 2", where=where)
    return value + (key == "max_new_tokens")


def _forbidden(bad_words: list[list[int]], rows: Rows, where: Path) -> list[int]:
    ids = {origin: number for number, origin in enumerate(rows.origins) if origin is not None}
    found = set()
    for word in bad_words:
        if not isinstance(word, list) or len(word) != 1 or word[0] not in ids:
            raise UserError(f"bad_words_ids has {word!r}, which is not one word", where=where, remedy="take it out")
        found.add(ids[word[0]])
    return sorted(found - {PAD, BOS, EOS})  # never produced here in any case; and the end cannot be forbidden there


# The weights of a Marian model in our modules, after a look at whether they fit its configuration.

SILENT = -200.0
"""The output bias of a row that stands for no word of the original: its probability is zero in 32 bits, its share
in label smoothing small."""

EMBEDDINGS = ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
SHARED = "model.shared.weight"
LAYER = re.compile(r"model\.(encoder|decoder)\.layers\.(\d+)\.")
HALF_PRECISION = 2e-3  # how far a sinusoid may be off that was stored in 16 bits


def check_sizes(folder: MarianFolder) -> None:
    """What the configuration promises is there and no more, before anything of that size is made."""
    tensors, d = folder.tensors, folder.number("d_model")
    for side, size in zip(("encoder", "decoder"), folder.sizes, strict=True):
        names = (f"model.{side}.embed_tokens.weight", SHARED, *(f"{name}.weight" for name in EMBEDDINGS))
        tensors.take((size, d), *names)
        stored = {int(found[2]) for name in tensors.tensors if (found := LAYER.match(name)) and found[1] == side}
        layers = folder.number(f"{side}_layers")
        if stored != set(range(len(stored))) or len(stored) != layers:
            raise UserError(
                f"{side}_layers is {layers}, the weights have {len(stored)}",
                where=folder.path / CONFIG,
                remedy="weights and configuration do not belong together",
            )
        tensors.take((folder.number(f"{side}_ffn_dim"), d), f"model.{side}.layers.0.fc1.weight")


def stored_positions(folder: MarianFolder) -> Literal["marian", "tensor2tensor"]:
    """Most folders of transformers leave out the positions that it has for Marian models, which are not quite Marian's.
    What they store instead is used, if it is known here."""
    if folder.positions is not None:
        return folder.positions
    kinds: set[Literal["marian", "tensor2tensor"]] = set()
    for side in ("encoder", "decoder"):
        name, d = f"model.{side}.embed_positions.weight", folder.number("d_model")
        if name not in folder.tensors:
            kinds.add("marian")
            continue
        count = folder.number("max_position_embeddings", 512)
        table = folder.tensors.take((count, d), name)
        distance = {kind: float((table - sinusoids(count, d, kind)).abs().max()) for kind in KINDS}
        nearest = min(KINDS, key=lambda kind: distance[kind])
        if distance[nearest] > HALF_PRECISION:
            raise UserError(f"{name} are no sinusoids that are known here", where=folder.tensors.path)
        kinds.add(nearest)
    if len(kinds) > 1:
        raise UserError("encoder and decoder have different positions", where=folder.tensors.path)
    return kinds.pop()


KINDS: tuple[Literal["marian", "tensor2tensor"], ...] = ("marian", "tensor2tensor")


@torch.no_grad()
def fill(model: Transformer | RecurrentTransformer, folder: MarianFolder, source_rows: Rows, rows: Rows) -> None:
    tensors = folder.tensors
    for side, norm in (("encoder", model.encoder_norm), ("decoder", model.decoder_norm)):
        if isinstance(norm, nn.LayerNorm):
            _Layer(tensors, f"model.{side}.", model.dimension).norm(norm, "layer_norm")
    _fill_tables(model, folder, tensors, source_rows, rows)
    for number, encoder in enumerate(model.encoder):
        _fill_encoder_layer(encoder, _Layer(tensors, f"model.encoder.layers.{number}.", model.dimension))
    for number, decoder in enumerate(model.decoder):
        layer = _Layer(tensors, f"model.decoder.layers.{number}.", model.dimension)
        if isinstance(decoder, RecurrentLayer):
            _fill_recurrent_layer(decoder, layer)
        elif isinstance(decoder, DecoderLayer):
            _fill_decoder_layer(decoder, layer)


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
            if module.bias is not None:
                module.bias[place].copy_(self.tensors.take((rows,), f"{self.prefix}{name}.bias"))

    def norm(self, module: nn.LayerNorm, name: str) -> None:
        module.weight.copy_(self.tensors.take((self.d,), f"{self.prefix}{name}.weight"))
        module.bias.copy_(self.tensors.take((self.d,), f"{self.prefix}{name}.bias"))


def _fill_encoder_layer(layer: EncoderLayer | DecoderLayer, given: _Layer) -> None:
    given.linear(layer.attention.input, *(f"self_attn.{part}_proj" for part in "qkv"))
    given.linear(layer.attention.output, "self_attn.out_proj")
    given.norm(layer.around_attention.norm, "self_attn_layer_norm")
    given.linear(layer.feed_forward.input, "fc1")
    given.linear(layer.feed_forward.output, "fc2")
    given.norm(layer.around_feed_forward.norm, "final_layer_norm")


def _fill_decoder_layer(layer: DecoderLayer, given: _Layer) -> None:
    _fill_encoder_layer(layer, given)
    _fill_source_attention(layer, given)


def _fill_recurrent_layer(layer: RecurrentLayer, given: _Layer) -> None:
    given.linear(layer.unit.value, "rnn.value")
    given.linear(layer.unit.forget, "rnn.forget")
    given.norm(layer.around_unit.norm, "rnn_layer_norm")
    _fill_source_attention(layer, given)
    given.linear(layer.feed_forward.input, "fc1")
    given.linear(layer.feed_forward.output, "fc2")
    given.norm(layer.around_feed_forward.norm, "final_layer_norm")


def _fill_source_attention(layer: DecoderLayer | RecurrentLayer, given: _Layer) -> None:
    given.linear(layer.source_attention.query, "encoder_attn.q_proj")
    given.linear(layer.source_attention.memory, "encoder_attn.k_proj", "encoder_attn.v_proj")
    given.linear(layer.source_attention.output, "encoder_attn.out_proj")
    given.norm(layer.around_source_attention.norm, "encoder_attn_layer_norm")
