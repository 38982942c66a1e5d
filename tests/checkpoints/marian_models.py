"""Marian models made with transformers itself: random ones of every configuration, and a small one that is trained."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import sentencepiece
import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

SENTENCES = {
    "source": [
        "The committee met on Monday, and the report was read.",
        "Mr. Smith did not agree: he said that the figures are wrong.",
        "It costs 12 % more than before!",
        "Where is the house? It is near the old bank.",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    ],
    "target": [
        "Der Ausschuss trat am Montag zusammen, und der Bericht wurde verlesen.",
        "Herr Smith war nicht einverstanden: er sagte, dass die Zahlen falsch sind.",
        "Es kostet 12 % mehr als vorher!",
        "Wo ist das Haus? Es ist in der Nähe der alten Bank.",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z ä ö ü ß",
    ],
}
TEXTS = [
    "The committee met on Monday.",
    "“Where” is  the\told house – near the bank…?",
    "Mr. Smith's figures are ½ wrong & 12 % more, ﬁne!",
    "日本 is not known here; neither is €.",
    "it",
    "A c o m m i t t e e of a b c, and the report of the house was read by Mr. Smith on Monday, the figures are wrong.",
]


def learn_sentencepiece(sentences: list[str], size: int, path: Path) -> list[str]:
    """Trains a model and gives its ordinary pieces."""
    with path.open("wb") as out:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences), model_writer=out, vocab_size=size, hard_vocab_limit=False, minloglevel=2
        )
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]


def write_text(
    folder: Path,
    sentences: dict[str, list[str]] = SENTENCES,
    size: int = 90,
    separate: bool = False,
    codes: tuple[str, ...] = (),
    **tokenizer: Any,
) -> MarianTokenizer:
    """SentencePiece models and vocabularies, whose ids are shuffled: </s> first and <pad> last, as OPUS-MT has them."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = {side: learn_sentencepiece(text, size, folder / f"{side}.spm") for side, text in sentences.items()}
    for name, sides in (
        (("vocab", ("source",)), ("target_vocab", ("target",))) if separate else (("vocab", ("source", "target")),)
    ):
        tokens = sorted({piece for side in sides for piece in pieces[side]})
        random.Random(1).shuffle(tokens)
        tokens = ["</s>", "<unk>", *tokens, *(codes if name == "vocab" else ())]
        tokens.insert(2 if separate else len(tokens), "<pad>")  # transformers has one number for both
        (folder / f"{name}.json").write_text(json.dumps({token: n for n, token in enumerate(tokens)}))
    if separate:
        tokenizer |= {"separate_vocabs": True, "target_vocab_file": str(folder / "target_vocab.json")}
    return MarianTokenizer(
        str(folder / "source.spm"),
        str(folder / "target.spm"),
        str(folder / "vocab.json"),
        source_lang="en",
        target_lang="de",
        **tokenizer,
    )


def random_model(
    folder: Path, *, separate: bool = False, codes: tuple[str, ...] = (), generation: dict[str, Any] | None = None,
    tokenizer: dict[str, Any] | None = None, seed: int = 3, **config: Any,
) -> tuple[MarianMTModel, MarianTokenizer]:  # fmt: skip
    """A model folder with random weights that say something: sentences end, and words differ."""
    words = write_text(folder, separate=separate, codes=codes, **(tokenizer or {}))
    source = json.loads((folder / "vocab.json").read_text())
    target = json.loads((folder / "target_vocab.json").read_text()) if separate else source
    pad = target["<pad>"]
    values = {
        "vocab_size": len(source), "decoder_vocab_size": len(target), "pad_token_id": pad, "eos_token_id": 0,
        "decoder_start_token_id": pad, "forced_eos_token_id": 0, "share_encoder_decoder_embeddings": not separate,
        "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "activation_function": "swish",
        "scale_embedding": True, "max_position_embeddings": 128, "init_std": 0.4,
    } | config  # fmt: skip
    torch.manual_seed(seed)
    model = MarianMTModel(MarianConfig(**values)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter += 0.3 * torch.randn_like(parameter)
        model.final_logits_bias = torch.randn_like(model.final_logits_bias)
        model.final_logits_bias[0, 0] += 2.0  # sentences end
    settings = {
        "num_beams": 4, "max_length": 20, "bad_words_ids": [[pad]], "pad_token_id": pad, "eos_token_id": 0,
        "decoder_start_token_id": pad, "forced_eos_token_id": 0,
    } | (generation or {})  # fmt: skip
    model.generation_config = GenerationConfig(**settings)
    save(folder, model, words)
    return model, words


def save(folder: Path, model: MarianMTModel, tokenizer: MarianTokenizer) -> None:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def generate(model: MarianMTModel, tokenizer: MarianTokenizer, texts: list[str], **wishes: Any) -> list[str]:
    """One by one: no padding, whatever it may change."""
    found = []
    with torch.no_grad():
        for text in texts:
            ids = model.generate(**tokenizer([text], return_tensors="pt"), **wishes)
            found += tokenizer.batch_decode(ids, skip_special_tokens=True)
    return found
