"""Weitblick's beam search over its Transformer, float32 or with 8-bit linear layers. See `serving`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from ours_model import ours
from serving import serve

from weitblick import __version__
from weitblick.fast.quantized import quantize_linears
from weitblick.model.batch import pack_source
from weitblick.text.base import EOS
from weitblick.translation.beam import SearchOptions, beam_search

NEVER = -1e9


def make(task: dict[str, Any]) -> tuple[Callable[..., int], dict[str, Any]]:
    torch.set_num_threads(task["threads"])
    words = task["words"]
    model = ours(task["size"]).eval()
    with torch.no_grad():
        model.sentence.output_bias[EOS] = NEVER  # no sentence ends before its limit
    count = sum(p.numel() for p in model.parameters())
    if task["precision"] == "int8":
        model = quantize_linears(model)

    @torch.inference_mode()
    def run(beam: int) -> int:
        # The last step, at the limit, ends the sentence: `words` steps in all.
        options = SearchOptions(beam=beam, length_factor=0.0, length_slack=words - 1)
        source = pack_source(task["sentences"])
        memory, _ = model.encode(source, None)
        found = beam_search(model, memory, source.layout, None, options)
        return sum(len(best[0].ids) + 1 for best in found)

    return run, {"version": __version__, "parameters": count}


if __name__ == "__main__":
    serve(make)
