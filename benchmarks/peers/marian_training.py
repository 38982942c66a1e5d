"""A Hugging Face Marian model, trained as its Trainer does it: fused AdamW, clipped gradients. See `serving`.

Special ids are ours, so that the batches are the same: padding 0, start 1, end 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from marian_model import marian_of
from serving import serve
from torch.nn.utils.rnn import pad_sequence

PAD, BOS, EOS = 0, 1, 2


def padded(sentences: list[list[int]], before: list[int], behind: list[int]) -> torch.Tensor:
    return pad_sequence([torch.tensor(before + s + behind) for s in sentences], batch_first=True, padding_value=PAD)


def make(task: dict[str, Any]) -> tuple[Callable[..., int], dict[str, Any]]:
    torch.set_num_threads(task["threads"])
    rates = {"dropout": task["dropout"], "attention_dropout": task["dropout"], "activation_dropout": 0.0}
    special = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}
    model = marian_of(task["size"], **rates, **special, use_cache=False).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0, fused=True)
    half = torch.autocast("cpu", torch.bfloat16, enabled=task["precision"] == "bfloat16")

    def run() -> int:
        tokens = 0
        for sources, targets in task["batches"]:
            source = padded(sources, [], [EOS])
            decoder, labels = padded(targets, [BOS], []), padded(targets, [], [EOS])
            mask, target_mask = source != PAD, labels != PAD
            with half:
                logits = model(
                    input_ids=source,
                    attention_mask=mask,
                    decoder_input_ids=decoder,
                    decoder_attention_mask=target_mask,
                ).logits
                loss = F.cross_entropy(
                    logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, label_smoothing=task["label_smoothing"]
                )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), task["clip"])
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            loss.item()
            tokens += int(target_mask.sum())
        return tokens

    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return run, {"version": transformers.__version__, "torch": torch.__version__, "parameters": count}


if __name__ == "__main__":
    serve(make)
