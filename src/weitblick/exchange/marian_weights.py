"""The weights of a Marian model in our modules, after a look at whether they fit its configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from weitblick.errors import UserError
from weitblick.exchange.marian_folder import CONFIG, MarianFolder, Tensors
from weitblick.exchange.marian_words import Rows
from weitblick.sentence.layers import sinusoids
from weitblick.sentence.sentence_model import SentenceModel
from weitblick.sentence.transformer import DecoderLayer, EncoderLayer, Transformer

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
    """Most folders leave Marian's own positions out. What they store instead is used, if it is known here."""
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
def fill(model: Transformer, folder: MarianFolder, source_rows: Rows, rows: Rows) -> None:
    tensors = folder.tensors
    for side, norm in (("encoder", model.encoder_norm), ("decoder", model.decoder_norm)):
        if isinstance(norm, nn.LayerNorm):
            _Layer(tensors, f"model.{side}.", model.dimension).norm(norm, "layer_norm")
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
    given.linear(layer.source_attention.query, "encoder_attn.q_proj")
    given.linear(layer.source_attention.memory, "encoder_attn.k_proj", "encoder_attn.v_proj")
    given.linear(layer.source_attention.output, "encoder_attn.out_proj")
    given.norm(layer.around_source_attention.norm, "encoder_attn_layer_norm")
