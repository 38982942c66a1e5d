"""The weights of another model as a start for one with another vocabulary, and maybe more layers.

What a piece means is known from the pieces that the other model spells it with; a layer that is new starts as one that
changes nothing. A training that starts so needs a fraction of the text of one from scratch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from weitblick.checkpoints.folder import LoadedModel
from weitblick.common.errors import UserError
from weitblick.text.base import SPECIAL_TOKENS, Side, TextPipeline, Vocabulary

REMEDY = "start from a pre-norm model of the same dimensions, or from scratch"
_LAYER = re.compile(r"(encoder|decoder)\.(\d+)\.(.+)")
_LAST_PRODUCTS = ("attention.output.weight", "source_attention.output.weight", "feed_forward.output.weight")
_LAST_BIASES = ("attention.output.bias", "source_attention.output.bias", "feed_forward.output.bias")


def start_from(model: nn.Module, pipeline: TextPipeline, other: LoadedModel) -> None:
    """Fills a new sentence model in place with the weights of another one.

    Layers are taken over by their number; surplus ones of `model` are made to pass their input through, which only
    layers with the norm in front (`norm: pre`) can."""
    old = dict(other.model.sentence.named_parameters(remove_duplicate=False))
    grown = False
    with torch.no_grad():
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if name.endswith("table.weight") or name == "output_bias":
                _fill_vocabulary(name, parameter, old, pipeline, other.pipeline)
            elif name in old:
                _copy(name, parameter, old[name])
            elif (found := _LAYER.fullmatch(name)) is not None:
                grown = True
                if found[3] in _LAST_PRODUCTS + _LAST_BIASES:
                    parameter.zero_()
            else:
                raise UserError(f"weight {name!r} is unknown to the model to start from", remedy=REMEDY)
    if grown and other.model_section.norm != "pre":
        raise UserError("start: only a pre-norm model can be given more layers", remedy=REMEDY)


def _copy(name: str, parameter: Tensor, value: Tensor) -> None:
    if parameter.shape != value.shape:
        message = f"weight {name!r} has shape {tuple(value.shape)} there, {tuple(parameter.shape)} here"
        raise UserError(f"start: {message}", remedy=REMEDY)
    parameter.copy_(value)


def _fill_vocabulary(
    name: str, parameter: Tensor, old: Mapping[str, Tensor], pipeline: TextPipeline, other: TextPipeline
) -> None:
    """Rows of an embedding or an output bias: of a piece that both know, the same; of a new piece the mean of those
    that spell it; of a piece that cannot be spelled (a symbol), as they are."""
    value = old.get(name)
    if value is None:
        raise UserError(f"start: the model to start from has no {name!r}", remedy="take the same model.tied_embeddings")
    if parameter.shape[1:] != value.shape[1:]:
        _copy(name, parameter, value)
    side: Side = "source" if name.startswith("source") else "target"
    for number, spelling in enumerate(spellings(pipeline, other, side)):
        if spelling:
            parameter[number] = value[torch.tensor(spelling)].mean(0)


def spellings(pipeline: TextPipeline, other: TextPipeline, side: Side) -> list[list[int]]:
    """For each id of a vocabulary the fewest ids that spell the same text in another one; none if it cannot be."""
    vocabulary, known = pipeline.vocabulary(side), other.vocabulary(side)
    pieces = [vocabulary.token(number) for number in range(len(SPECIAL_TOKENS), len(vocabulary))]
    return [[number] for number in range(len(SPECIAL_TOKENS))] + [_spell(piece, known) for piece in pieces]


def _spell(piece: str, known: Vocabulary) -> list[int]:
    best: list[list[int] | None] = [[]]  # the spelling of each beginning of the piece
    for end in range(1, len(piece) + 1):
        ways = [
            [*begun, known.id(piece[start:end])]
            for start, begun in enumerate(best)
            if begun is not None and piece[start:end] in known
        ]
        best.append(min(ways, key=len, default=None))
    return best[-1] or []
