"""The weights of CTranslate2's Transformers under the names of transformers, and what kind of Transformer they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from weitblick.checkpoints.ctranslate2_binary import Variables
from weitblick.checkpoints.marian_weights import SILENT
from weitblick.common.errors import UserError
from weitblick.model.layers import sinusoids

LONGEST = 512  # words of a sentence: positions are sinusoids, without a bound
KNOWN = "TransformerSpec"
HEADS_BEFORE = {"TransformerBase": 8, "TransformerBig": 16}  # what older files call it, and their heads
ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu"}
OTHER_ACTIVATIONS = {1: "gelu by tanh", 4: "gelu by sigmoid", 5: "tanh", 6: "sigmoid"}
HALF_PRECISION = 1e-2  # how far a sinusoid may be off that was stored in 16 bits

# Parts of names that tell other kinds of Transformers, and what they are.
OTHER_KINDS = {
    "relative_position": "relative positions",
    "relative_attention": "relative positions",
    "rotary": "rotary positions",
    "layernorm_embedding": "a norm behind its embeddings",
    "linear_0_noact": "gated feed-forward layers",
    "project_": "embeddings of another width",
    "scale_outputs": "scaled outputs",
    "num_heads_kv": "heads that share keys",
    "embeddings_1": "several source features",
}
SETTINGS = ("alignment_layer", "alignment_heads", "embeddings_merge", "alibi_use_positive_positions", "scale_alibi")
"""Numbers that do not matter to what is computed here."""


@dataclass(frozen=True)
class Layers:
    """Variables under the names of transformers, with the dimensions of states in the order that our positions need."""

    variables: Variables
    d: int
    order: np.ndarray | None

    def all(self) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for side in ("encoder", "decoder"):
            name = f"{side}/embeddings"
            found[f"model.{side}.embed_tokens.weight"] = self._reads(
                self.variables.take(f"{name}_0/weight", f"{name}/weight")
            )
            for number in range(self.count(side)):
                found |= self._layer(f"{side}/layer_{number}", f"model.{side}.layers.{number}", side == "decoder")
            if f"{side}/layer_norm/gamma" in self.variables:
                found |= self._norm(f"{side}/layer_norm", f"model.{side}.layer_norm")
        found["lm_head.weight"] = self._reads(self.variables.take("decoder/projection/weight"))
        bias = self._bias("decoder/projection", len(found["lm_head.weight"]))
        return found | {"final_logits_bias": np.maximum(bias, SILENT)[None]}

    def count(self, side: str) -> int:
        count = 0
        while f"{side}/layer_{count}/ffn/linear_0/weight" in self.variables:
            count += 1
        if not count:
            raise UserError(f"has no layers of a Transformer under {side!r}", where=self.variables.path)
        return count

    def _layer(self, theirs: str, ours: str, decoder: bool) -> dict[str, np.ndarray]:
        found = self._split(f"{theirs}/self_attention/linear_0", f"{ours}.self_attn", "qkv")
        found |= self._writing(f"{theirs}/self_attention/linear_1", f"{ours}.self_attn.out_proj")
        found |= self._norm(f"{theirs}/self_attention/layer_norm", f"{ours}.self_attn_layer_norm")
        if decoder:
            found |= self._split(f"{theirs}/attention/linear_0", f"{ours}.encoder_attn", "q")
            found |= self._split(f"{theirs}/attention/linear_1", f"{ours}.encoder_attn", "kv")
            found |= self._writing(f"{theirs}/attention/linear_2", f"{ours}.encoder_attn.out_proj")
            found |= self._norm(f"{theirs}/attention/layer_norm", f"{ours}.encoder_attn_layer_norm")
        weight = self._reads(self.variables.take(f"{theirs}/ffn/linear_0/weight"))
        found |= {f"{ours}.fc1.weight": weight, f"{ours}.fc1.bias": self._bias(f"{theirs}/ffn/linear_0", len(weight))}
        found |= self._writing(f"{theirs}/ffn/linear_1", f"{ours}.fc2")
        return found | self._norm(f"{theirs}/ffn/layer_norm", f"{ours}.final_layer_norm")

    def _split(self, theirs: str, ours: str, parts: str) -> dict[str, np.ndarray]:
        """Projections that are one matrix there, one below the other."""
        weight = self._reads(self.variables.take(f"{theirs}/weight"))
        if len(weight) != len(parts) * self.d:
            raise UserError(
                f"{theirs}/weight has {len(weight)} rows, {len(parts) * self.d} are expected: heads that share keys "
                "are not known here",
                where=self.variables.path,
            )
        bias = self._bias(theirs, len(weight))
        found: dict[str, np.ndarray] = {}
        for number, part in enumerate(parts):
            rows = slice(number * self.d, (number + 1) * self.d)
            found |= {f"{ours}.{part}_proj.weight": weight[rows], f"{ours}.{part}_proj.bias": bias[rows]}
        return found

    def _writing(self, theirs: str, ours: str) -> dict[str, np.ndarray]:
        """A projection whose result is added to the states."""
        weight = self.variables.take(f"{theirs}/weight")
        bias = self._bias(theirs, len(weight))
        if self.order is not None and len(weight) == self.d:
            weight, bias = weight[self.order], bias[self.order]
        return {f"{ours}.weight": weight, f"{ours}.bias": bias}

    def _reads(self, weight: np.ndarray) -> np.ndarray:
        """[n, d] that is multiplied with states, or added to them."""
        if weight.ndim != 2 or weight.shape[1] != self.d:
            raise UserError(f"a matrix of shape {weight.shape} reads states of {self.d}", where=self.variables.path)
        return weight if self.order is None else weight[:, self.order]

    def _bias(self, theirs: str, count: int) -> np.ndarray:
        name = f"{theirs}/bias"
        bias = self.variables.take(name) if name in self.variables else np.zeros(count, np.float32)
        if bias.shape != (count,):
            raise UserError(f"{name} has shape {bias.shape}, not {(count,)}", where=self.variables.path)
        return bias

    def _norm(self, theirs: str, ours: str) -> dict[str, np.ndarray]:
        if f"{theirs}/gamma" in self.variables and f"{theirs}/beta" not in self.variables:
            raise UserError("has norms by the root mean square, which no model here has", where=self.variables.path)
        found = {}
        for part, name in (("gamma", "weight"), ("beta", "bias")):
            values = self.variables.take(f"{theirs}/{part}")
            if values.shape != (self.d,):
                raise UserError(f"{theirs}/{part} has shape {values.shape}, not {(self.d,)}", where=self.variables.path)
            found[f"{ours}.{name}"] = values if self.order is None else values[self.order]
        return found


# What kind of Transformer it is


def heads_of(variables: Variables) -> tuple[int, int]:
    """Of encoder and decoder; a model of another kind is refused."""
    if variables.name != KNOWN and variables.name not in HEADS_BEFORE:
        raise UserError(
            f"is of the kind {variables.name or '(without a name)'}; read here: {KNOWN}, with encoder and decoder",
            where=variables.path,
            remedy="name another model",
        )
    found = (variables.number(f"{side}/num_heads", "num_heads") for side in ("encoder", "decoder"))
    source, target = (HEADS_BEFORE.get(variables.name, 8) if number is None else int(number) for number in found)
    return source, target


def activation_of(variables: Variables) -> str:
    kinds = {int(variables.number(f"{side}/activation", "activation") or 0) for side in ("encoder", "decoder")}
    kind = kinds.pop()
    if kinds or kind not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS.values())
        what = OTHER_ACTIVATIONS.get(kind, f"number {kind}")
        raise UserError(f"has the activation {what}; known here: {known}, the same on both sides", where=variables.path)
    return ACTIVATIONS[kind]


def place_of_norms(variables: Variables, tensors: dict[str, np.ndarray]) -> str:
    values = {variables.number(f"{side}/pre_norm", "pre_norm") != 0 for side in ("encoder", "decoder")}
    final = {f"model.{side}.layer_norm.weight" in tensors for side in ("encoder", "decoder")}
    if len(values) > 1 or values != final:
        raise UserError("has norms before its layers without one above them, or on one side", where=variables.path)
    return "pre" if values.pop() else "post"


def embeddings_are_scaled(variables: Variables, d: int) -> bool:
    """Whether embeddings are multiplied with the root of their width: a flag, or the factor itself."""
    kinds = set()
    for side in ("encoder", "decoder"):
        names = [f"{side}/scale_embeddings", *(f"{side}/embeddings{n}/multiply_by_sqrt_depth" for n in ("", "_0"))]
        value = variables.number(*names)
        name = next((name for name in names if name in variables), None)
        if name is not None and variables.stored[name].dtype == np.int8:
            kinds.add(bool(value))
        elif value is None or abs(value - d**0.5) < 1e-3:
            kinds.add(True)
        elif value == 1:
            kinds.add(False)
        else:
            raise UserError(f"multiplies embeddings with {value:g}; known here: 1 and {d**0.5:g}", where=variables.path)
    if len(kinds) > 1:
        raise UserError("multiplies embeddings of one side alone", where=variables.path)
    return kinds.pop()


def positions_of(variables: Variables, d: int) -> tuple[Literal["marian", "tensor2tensor"], np.ndarray | None]:
    """Which sinusoids; and, where sines and cosines take turns (OpenNMT-py), the order that puts all sines first."""
    if d % 2:
        raise UserError(f"states of an odd width ({d}) have no sinusoids", where=variables.path)
    names = [f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")]
    if not all(name in variables for name in names):
        raise UserError(
            "stores no positions: CTranslate2 then counts them from 1 (OpenNMT-tf), or they are relative; neither is "
            "known here",
            where=variables.path,
        )
    found, other = (variables.take(name) for name in names)
    turns = np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])
    kinds: tuple[Literal["marian", "tensor2tensor"], ...] = ("marian", "tensor2tensor")
    if found.ndim == 2 and found.shape[1] == d and other.shape[1:] == (d,):
        both = [table[:LONGEST] for table in (found, other)]
        for kind in kinds:
            wanted = sinusoids(max(map(len, both)), d, kind).numpy()
            for order in (None, turns):
                given = [table if order is None else table[:, order] for table in both]
                if all(np.abs(table - wanted[: len(table)]).max() < HALF_PRECISION for table in given):
                    return kind, order
    raise UserError("has positions that are no sinusoids from 0 on: no such model is known here", where=variables.path)


def refuse_others(variables: Variables) -> None:
    """Whatever is left would be computed there, and not here."""
    for side in ("encoder/", "decoder/", ""):
        for name in SETTINGS:
            variables.left.discard(f"{side}{name}")
        for name in ("alibi", "multi_query_attention"):
            if f"{side}{name}" in variables and variables.number(f"{side}{name}"):
                raise UserError(f"has {name}, which no model here has", where=variables.path)
    for name in sorted(variables.left):
        what = next((kind for part, kind in OTHER_KINDS.items() if part in name), None)
        reason = f"has {what} ({name})" if what else f"has {name!r}"
        raise UserError(f"{reason}, which no model here has", where=variables.path, remedy="name another model")
