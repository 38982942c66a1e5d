"""Random models of OpenNMT-py, converted by CTranslate2's own converter, and packages of Argos Translate of them."""

from __future__ import annotations

import json
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from ctranslate2.converters import OpenNMTPyConverter
from marian_models import SENTENCES, learn_sentencepiece
from torch import Tensor

D, HIDDEN, LAYERS, HEADS = 16, 24, 2, 2
SPECIAL = ["<unk>", "<blank>", "<s>", "</s>"]


def opennmt_folder(
    folder: Path, *, quantization: str | None = None, shared: bool = True, biases: bool = True, **options: Any
) -> Path:
    """folder/model: what CTranslate2 reads; folder/sentencepiece.model: of both sides. Sentences end, words differ."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = learn_sentencepiece([*SENTENCES["source"], *SENTENCES["target"]], 120, folder / "sentencepiece.model")
    source = [*SPECIAL, *pieces]
    target = source if shared else [*SPECIAL, *reversed(pieces)]
    values = {
        "encoder_type": "transformer", "decoder_type": "transformer", "enc_layers": LAYERS, "dec_layers": LAYERS,
        "heads": HEADS, "position_encoding": True, "max_relative_positions": 0, "pos_ffn_activation_fn": "relu",
    } | options  # fmt: skip
    weights, generator = random_weights(len(source), shared, biases, bool(values["position_encoding"]))
    checkpoint = {
        "vocab": {"src": source, "tgt": target},
        "opt": Namespace(**values),
        "model": weights,
        "generator": generator,
    }
    torch.save(checkpoint, folder / "checkpoint.pt")
    converter = OpenNMTPyConverter(str(folder / "checkpoint.pt"), unsafe_deserialization=True)
    converter.convert(str(folder / "model"), quantization=quantization, force=True)
    (folder / "checkpoint.pt").unlink()
    (folder / "metadata.json").write_text(json.dumps(METADATA))
    return folder


METADATA = {
    "package_version": "1.0", "argos_version": "1.0", "from_code": "en", "from_name": "English", "to_code": "de",
    "to_name": "German",
}  # fmt: skip


def random_weights(
    size: int, shared: bool, biases: bool, positions: bool
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    random = torch.Generator().manual_seed(4)
    found: dict[str, Tensor] = {}

    def add(name: str, *shape: int, around: float = 0.0, spread: float = 0.4) -> None:
        found[name] = around + spread * torch.randn(*shape, generator=random)

    def linear(name: str, rows: int, columns: int, biased: bool = True) -> None:
        add(f"{name}.weight", rows, columns)
        if biased:
            add(f"{name}.bias", rows)

    def norm(name: str) -> None:
        add(f"{name}.weight", D, around=1.0)
        add(f"{name}.bias", D)

    for side, layers in (("encoder", "transformer"), ("decoder", "transformer_layers")):
        add(f"{side}.embeddings.make_embedding.emb_luts.0.weight", size, D)
        if positions:
            found[f"{side}.embeddings.make_embedding.pe.pe"] = turning_positions(5000)[:, None]
        norm(f"{side}.layer_norm")
        for number in range(LAYERS):
            layer = f"{side}.{layers}.{number}"
            for attention in ("self_attn", "context_attn")[: 1 + (side == "decoder")]:
                for part in ("linear_query", "linear_keys", "linear_values", "final_linear"):
                    linear(f"{layer}.{attention}.{part}", D, D, biases)
                if not positions and attention == "self_attn":
                    add(f"{layer}.{attention}.relative_positions_embeddings.weight", 5, D // HEADS)
            for name in ("layer_norm_1", "layer_norm_2") if side == "decoder" else ("layer_norm",):
                norm(f"{layer}.{name}")
            linear(f"{layer}.feed_forward.w_1", HIDDEN, D)
            linear(f"{layer}.feed_forward.w_2", D, HIDDEN)
            norm(f"{layer}.feed_forward.layer_norm")
    tables = [f"{side}.embeddings.make_embedding.emb_luts.0.weight" for side in ("encoder", "decoder")]
    if shared:
        found[tables[1]] = found[tables[0]]
    bias = torch.randn(size, generator=random)
    bias[1:3] = -1e4  # no trained model says <blank> or <s>
    bias[3] += 2.0
    return found, {"weight": found[tables[1]], "bias": bias}


def turning_positions(count: int) -> Tensor:
    """As OpenNMT-py has them: sines and cosines take turns."""
    angles = torch.arange(count)[:, None] * torch.exp(torch.arange(0, D, 2) * -(torch.tensor(10000.0).log() / D))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def argos_package(path: Path, folder: Path, root: str = "translate-en_de-1_0/", **metadata: Any) -> Path:
    """The zip that Argos Translate installs, with what it has for splitting sentences."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr(f"{root}metadata.json", json.dumps(METADATA | metadata))
        package.writestr(f"{root}stanza/en/tokenize/ewt.pt", b"not read")
        package.write(folder / "sentencepiece.model", f"{root}sentencepiece.model")
        for file in sorted((folder / "model").iterdir()):
            package.write(file, f"{root}model/{file.name}")
    return path
