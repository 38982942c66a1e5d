"""The Marian model of random weights that Hugging Face and CTranslate2 decode with: end 0, padding and start last."""

from __future__ import annotations

from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

EOS = 0


def marian(size: dict[str, Any]) -> MarianMTModel:
    last = size["vocabulary"] - 1
    special = {"pad_token_id": last, "eos_token_id": EOS, "forced_eos_token_id": None, "decoder_start_token_id": last}
    return marian_of(size, **special).eval()


def marian_of(size: dict[str, Any], **more: Any) -> MarianMTModel:
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=size["vocabulary"],
        d_model=size["dimension"],
        encoder_ffn_dim=size["feed_forward"],
        decoder_ffn_dim=size["feed_forward"],
        encoder_layers=size["layers"],
        decoder_layers=size["layers"],
        encoder_attention_heads=size["heads"],
        decoder_attention_heads=size["heads"],
        activation_function="relu",
        max_position_embeddings=256,
        scale_embedding=True,
        **more,
    )
    return MarianMTModel(config)
