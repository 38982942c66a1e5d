"""An imported model of OPUS-MT's size and vocabulary, next to transformers and CTranslate2 on the same folder.

    python benchmarks/imported_decoding.py [--vocabulary 60000] [--beams 1 4] [--rounds 3] [--json FILE]

Random weights, made with transformers and taken over by `weitblick import`. No sentence ends before its limit,
so all contestants produce the same number of words. Contestants take turns; ratios are medians of quotients of
neighbouring runs. All run in this process, with as many threads each. Ours uses compiled kernels where they have been
built; the shortlist (opt-in) is of random words, as many as a learned one has.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import ctranslate2
import numpy as np
import sentencepiece
import torch
from tools.ours import begin, clock_of
from tools.turns import option_parser, ratio, report, take_turns
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from weitblick.checkpoints.export_ctranslate2 import export_ctranslate2
from weitblick.checkpoints.folder import LoadedModel, load_model
from weitblick.checkpoints.import_marian import TextOptions, import_marian
from weitblick.fast.kernels import kernels
from weitblick.fast.quantized import quantize_linears
from weitblick.fast.shortlist import COMMON, EACH, Shortlist
from weitblick.model.context import Sources
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import BOS, EOS, PAD, UNK
from weitblick.translation.beam import SearchOptions, beam_search

END, UNKNOWN = 0, 1
SPECIAL = sorted([PAD, BOS, EOS, UNK])
BASE = "transformers"
Run = Callable[[], float]


def main() -> None:
    options = parse_options()
    started = begin(options)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        theirs = write_marian(folder / "opus-mt-xx-yy", options)
        import_marian(folder / "opus-mt-xx-yy", TextOptions("xx", "yy")).save(folder / "ours")
        loaded = load_model(folder / "ours")
        for quantization in ("float32", "int8"):
            export_ctranslate2(loaded, folder / quantization, quantization)
        rows = [row for beam in options.beams for row in measure(theirs, loaded, folder, beam, options)]
    compiled = "with" if kernels() is not None else "without"
    report(f"Decoding with an imported model, {compiled} kernels", rows, started, options.json)


def write_marian(folder: Path, options: argparse.Namespace) -> MarianMTModel:
    """A folder as OPUS-MT's, whose words mean nothing."""
    folder.mkdir()
    for side in ("source", "target"):
        with (folder / f"{side}.spm").open("wb") as out:
            letters = iter(["a b c d e f g h i j k l m n o p q r s t u v w x y z"])
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=letters, model_writer=out, vocab_size=40, hard_vocab_limit=False, minloglevel=2
            )
    words = ["</s>", "<unk>", *(f"▁w{number}" for number in range(options.vocabulary - 3)), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    pad = len(words) - 1
    ids = {"pad_token_id": pad, "eos_token_id": END, "decoder_start_token_id": pad, "forced_eos_token_id": END}
    sizes = {"d_model": options.dimension, "max_position_embeddings": 512, "vocab_size": len(words)}
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_layers": options.layers, f"{side}_ffn_dim": 4 * options.dimension}
        sizes[f"{side}_attention_heads"] = 8
    torch.manual_seed(options.seed)
    model = MarianMTModel(MarianConfig(**sizes, **ids, activation_function="swish", scale_embedding=True)).eval()
    model.final_logits_bias[0, END] = -1e4
    model.generation_config = GenerationConfig(
        num_beams=4, max_length=options.words + 2, bad_words_ids=[[pad]], **ids
    )  # start and end count there
    model.save_pretrained(folder)
    return model


def measure(
    theirs: MarianMTModel, loaded: LoadedModel, folder: Path, beam: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    chance = torch.Generator().manual_seed(options.seed)
    shape = (options.sentences, options.words)
    drawn = torch.randint(UNKNOWN + 1, options.vocabulary - 1, shape, generator=chance)  # ids there, words anywhere
    sources = [row[: 1 + number % options.words].tolist() for number, row in enumerate(drawn)]
    quantized, shortlist = quantize_linears(loaded.model), random_shortlist(loaded)
    runs: dict[str, Run] = {
        BASE: transformers_run(theirs, sources, beam, options),
        "CTranslate2, float32": ctranslate2_run(folder / "float32", sources, beam, options),
        "CTranslate2, int8": ctranslate2_run(folder / "int8", sources, beam, options),
        "Weitblick, float32": our_run(loaded.model, loaded, sources, beam, options),
        "Weitblick, float32, shortlist": our_run(loaded.model, loaded, sources, beam, options, shortlist),
        "Weitblick, int8": our_run(quantized, loaded, sources, beam, options),
        "Weitblick, int8, shortlist": our_run(quantized, loaded, sources, beam, options, shortlist),
    }
    figures = take_turns(runs, options.rounds, label=f"beam {beam}:")
    return [
        {
            "beam": beam,
            "system": name,
            "words_per_second": median(figures[name]),
            "over_transformers": ratio(figures, name, BASE),
            "over_CTranslate2_of_its_kind": ratio(figures, name, f"CTranslate2, {name.split(', ')[1]}")
            if ", " in name
            else None,
        }
        for name in runs
    ]


def speed(produce: Callable[[], int], options: argparse.Namespace) -> Run:
    clock, expected = clock_of(options), options.sentences * options.words

    def run() -> float:
        start = clock()
        produced = produce()
        assert produced == expected, f"{produced} words, not {expected}"
        return produced / (clock() - start)

    return run


def transformers_run(model: MarianMTModel, sources: list[list[int]], beam: int, options: argparse.Namespace) -> Run:
    pad = model.config.pad_token_id
    inputs = pad_sequence([torch.tensor([*s, END]) for s in sources], batch_first=True, padding_value=pad)

    @torch.inference_mode()
    def produce() -> int:
        found = model.generate(input_ids=inputs, attention_mask=(inputs != pad).long(), num_beams=beam)
        return len(found) * (found.shape[1] - 2)

    return speed(produce, options)


def ctranslate2_run(folder: Path, sources: list[list[int]], beam: int, options: argparse.Namespace) -> Run:
    translator = ctranslate2.Translator(str(folder), intra_threads=options.threads, inter_threads=1)
    pieces = [[f"▁w{number - 2}" for number in source] for source in sources]

    def produce() -> int:
        found = translator.translate_batch(pieces, beam_size=beam, max_decoding_length=options.words)
        return sum(len(one.hypotheses[0]) for one in found)

    return speed(produce, options)


def random_shortlist(loaded: LoadedModel) -> Shortlist:
    """Of as many words as a learned one has: how fast it is does not depend on which they are."""
    vocabulary = len(loaded.pipeline.target_vocabulary)
    random = np.random.default_rng(1)
    table = random.integers(len(SPECIAL), vocabulary, (len(loaded.pipeline.source_vocabulary), EACH))
    common = np.union1d(SPECIAL, random.integers(len(SPECIAL), vocabulary, COMMON))
    return Shortlist(common, table, loaded.pipeline.fingerprint())


def our_run(
    model: DocumentModel,
    loaded: LoadedModel,
    sources: list[list[int]],
    beam: int,
    options: argparse.Namespace,
    shortlist: Shortlist | None = None,
) -> Run:
    vocabulary = loaded.pipeline.source_vocabulary
    ids = [[vocabulary.id(f"▁w{number - 2}") for number in source] for source in sources]
    ours = Sources(ids, list(range(len(ids))), [0] * len(ids))

    @torch.no_grad()
    def produce() -> int:
        packed = ours.pack(range(len(ids)))
        states = model.sentence.encode(packed.tokens, packed.layout)
        never = model.sentence.generation.forbidden
        allowed = None if shortlist is None else shortlist.allow(ids, model.sentence, never)
        found = beam_search(model, states, packed.layout, None, SearchOptions(beam), allowed)
        return sum(len(hypotheses[0].ids) for hypotheses in found)

    return speed(produce, options)


def parse_options() -> argparse.Namespace:
    parser = option_parser(__doc__, rounds=3)
    parser.add_argument("--vocabulary", type=int, default=60_000)
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6, help="of encoder and decoder each")
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 4], help="1 is greedy")
    parser.add_argument("--sentences", type=int, default=16, help="translated together, by all")
    parser.add_argument("--words", type=int, default=25, help="of each translation, and of the longest source")
    return parser.parse_args()


if __name__ == "__main__":
    main()
