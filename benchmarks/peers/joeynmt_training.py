"""JoeyNMT's Transformer, loss and optimiser, in the order of its training step. See `serving`.

Joey drops values inside feed-forward layers too, which the others do not: that dropout is taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.builders import build_optimizer
from joeynmt.model import build_model
from joeynmt.transformer_layers import PositionwiseFeedForward
from serving import serve
from torch import nn
from torch.nn.utils.rnn import pad_sequence

UNK, PAD, BOS, EOS = 0, 1, 2, 3


class Ids:
    """As much of a vocabulary as a model asks for."""

    pad_index, bos_index, eos_index, unk_index, sep_index = PAD, BOS, EOS, UNK, None
    specials: tuple[str, ...] = ()
    lang_tags: tuple[str, ...] = ()

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def make(task: dict[str, Any]) -> tuple[Callable[..., int], dict[str, Any]]:
    torch.set_num_threads(task["threads"])
    torch.manual_seed(1)
    model = joey(task["size"], task["dropout"])
    model.loss_function = ("crossentropy", task["label_smoothing"])
    optimiser = build_optimizer({"optimizer": "adam", "learning_rate": 1e-4}, model.parameters())
    device = torch.device("cpu")
    half = torch.autocast("cpu", torch.bfloat16, enabled=task["precision"] == "bfloat16")

    def padded(sentences: list[list[int]], before: list[int]) -> torch.Tensor:
        return pad_sequence([torch.tensor([*before, *s, EOS]) for s in sentences], batch_first=True, padding_value=PAD)

    def run() -> int:
        tokens = 0
        for sources, targets in task["batches"]:
            size = torch.tensor([len(s) + 1 for s in sources])
            numbers = torch.arange(len(sources))
            batch = Batch(padded(sources, []), size, None, padded(targets, [BOS]), None, numbers, device, PAD, EOS)
            batch.sort_by_src_length()
            with half:
                batch_loss, _, _, correct = model(return_type="loss", **vars(batch))
            loss = batch.normalize(batch_loss, normalization="tokens", n_gpu=0, n_accumulation=1)
            loss.backward()
            loss.item(), correct.item()
            nn.utils.clip_grad_norm_(model.parameters(), task["clip"])
            optimiser.step()
            optimiser.zero_grad()
            tokens += int(batch.ntokens)
        return tokens

    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return run, {"version": version("joeynmt"), "torch": torch.__version__, "parameters": count}


def joey(size: dict[str, int], dropout: float) -> nn.Module:
    half = {
        "type": "transformer",
        "num_layers": size["layers"],
        "num_heads": size["heads"],
        "embeddings": {"embedding_dim": size["dimension"], "scale": True, "dropout": dropout},
        "hidden_size": size["dimension"],
        "ff_size": size["feed_forward"],
        "dropout": dropout,
        "layer_norm": "post",
    }
    config = {"tied_embeddings": True, "tied_softmax": True, "encoder": dict(half), "decoder": dict(half)}
    vocabulary = Ids(size["vocabulary"])
    model = build_model(config, vocabulary, vocabulary).train()
    for part in model.modules():
        if isinstance(part, PositionwiseFeedForward):
            part.pwff_layer[2] = nn.Identity()
    return model


if __name__ == "__main__":
    serve(make)
