"""Hugging Face `generate` with a Marian model. See `serving`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from marian_model import EOS, marian
from serving import serve
from torch.nn.utils.rnn import pad_sequence


def make(task: dict[str, Any]) -> tuple[Callable[..., int], dict[str, Any]]:
    torch.set_num_threads(task["threads"])
    model, words = marian(task["size"]), task["words"]
    padding = model.config.pad_token_id

    @torch.inference_mode()
    def run(beam: int) -> int:
        rows = [torch.tensor([*sentence, EOS]) for sentence in task["sentences"]]
        source = pad_sequence(rows, batch_first=True, padding_value=padding)
        found = model.generate(
            input_ids=source,
            attention_mask=(source != padding).long(),
            num_beams=beam,
            do_sample=False,
            min_new_tokens=words,
            max_new_tokens=words,
        )
        return len(found) * (found.shape[1] - 1)  # the start is not produced

    count = sum(p.numel() for p in model.parameters())
    return run, {"version": transformers.__version__, "parameters": count}


if __name__ == "__main__":
    serve(make)
