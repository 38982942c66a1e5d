"""A small Marian model, made with transformers alone: what `weitblick import` is tried on where no pretrained model can
be had.

    weitblick data discourse corpora/small
    python benchmarks/small_marian.py corpora/small opus-mt-en-de
    weitblick import opus-mt-en-de -o models/en-de
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import sentencepiece
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder with train.en and train.de")
    parser.add_argument("output", type=Path)
    parser.add_argument("--languages", nargs=2, default=("en", "de"))
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--pieces", type=int, default=500)
    parser.add_argument("--tokens", type=int, default=2000, help="target pieces of a batch")
    parser.add_argument("--rate", type=float, default=2e-3)
    options = parser.parse_args()
    sides = [
        list((options.corpus / f"train.{language}").read_text(encoding="utf-8").splitlines())
        for language in options.languages
    ]
    pairs = [(source, target) for source, target in zip(*sides, strict=True) if source and target]
    train_marian(pairs, options.output, options)


def train_marian(pairs: list[tuple[str, str]], output: Path, options: argparse.Namespace) -> None:
    torch.manual_seed(1)
    tokenizer = learn_tokenizer(pairs, output, options.pieces, tuple(options.languages))
    model = new_model(tokenizer, options.dimension, options.layers)
    optimiser = torch.optim.Adam(model.parameters(), lr=options.rate, betas=(0.9, 0.98))
    encoded = encode(tokenizer, pairs)
    warmup = max(1, options.updates // 4)
    model.train()
    for update, (source, target) in enumerate(
        batches(encoded, options.tokens, options.updates, tokenizer.pad_token_id), 1
    ):
        share = min(update / warmup, (options.updates - update + 1) / (options.updates - warmup + 1))
        optimiser.param_groups[0]["lr"] = options.rate * share
        mask = source != tokenizer.pad_token_id
        loss = model(input_ids=source, attention_mask=mask, labels=target).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if update % 50 == 0:
            print(f"update {update}: loss {loss.item():.3f}", flush=True)
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)


def learn_tokenizer(
    pairs: list[tuple[str, str]], folder: Path, pieces: int, languages: tuple[str, str]
) -> MarianTokenizer:
    """A SentencePiece model for each side and a vocabulary for both, ordered as OPUS-MT orders it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokens: dict[str, None] = {"</s>": None, "<unk>": None}
    for place, side in enumerate(("source", "target")):
        with (folder / f"{side}.spm").open("wb") as out:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(pair[place] for pair in pairs),
                model_writer=out,
                vocab_size=pieces,
                hard_vocab_limit=False,
                minloglevel=2,
            )
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        tokens |= {processor.id_to_piece(number): None for number in range(3, processor.get_piece_size())}
    vocabulary = {token: number for number, token in enumerate([*tokens, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    files = (str(folder / name) for name in ("source.spm", "target.spm", "vocab.json"))
    return MarianTokenizer(*files, source_lang=languages[0], target_lang=languages[1])


def new_model(tokenizer: MarianTokenizer, dimension: int, layers: int) -> MarianMTModel:
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    ids |= {"decoder_start_token_id": tokenizer.pad_token_id, "forced_eos_token_id": tokenizer.eos_token_id}
    config = MarianConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=dimension,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_ffn_dim=4 * dimension,
        decoder_ffn_dim=4 * dimension,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        activation_function="swish",
        scale_embedding=True,
        init_std=dimension**-0.5,
        max_position_embeddings=256,
        **ids,
    )
    model = MarianMTModel(config)
    model.generation_config = GenerationConfig(
        num_beams=4, max_length=128, bad_words_ids=[[tokenizer.pad_token_id]], renormalize_logits=True, **ids
    )
    return model


Encoded = list[tuple[torch.Tensor, torch.Tensor]]


def encode(tokenizer: MarianTokenizer, pairs: list[tuple[str, str]]) -> Encoded:
    sources, targets = zip(*pairs, strict=True)
    found = tokenizer(list(sources), text_target=list(targets))
    return [(torch.tensor(s), torch.tensor(t)) for s, t in zip(found["input_ids"], found["labels"], strict=True)]


def batches(encoded: Encoded, tokens: int, count: int, pad: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Pairs of like length, in an order that depends on nothing but the number of the epoch."""
    made = 0
    for epoch in range(count):
        order = list(range(len(encoded)))
        random.Random(epoch).shuffle(order)
        order.sort(key=lambda number: len(encoded[number][1]))
        groups: list[list[int]] = [[]]
        for number in order:
            if len(groups[-1]) * len(encoded[number][1]) > tokens:
                groups.append([])
            groups[-1].append(number)
        random.Random(epoch).shuffle(groups)
        for group in groups:
            yield padded([encoded[n][0] for n in group], pad), padded([encoded[n][1] for n in group], -100)
            made += 1
            if made == count:
                return


def padded(rows: list[torch.Tensor], value: int) -> torch.Tensor:
    return pad_sequence(rows, batch_first=True, padding_value=value)


if __name__ == "__main__":
    main()
