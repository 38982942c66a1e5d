"""CTranslate2 with a converted Marian model, float32 or int8. See `serving`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import ctranslate2
from ctranslate2.converters.transformers import MarianMTLoader
from marian_model import marian
from serving import serve


def make(task: dict[str, Any]) -> tuple[Callable[..., int], dict[str, Any]]:
    model, words = marian(task["size"]), task["words"]
    count = sum(p.numel() for p in model.parameters())
    loader = MarianMTLoader()
    spec = loader.get_model_spec(model)  # drops the last id, the padding
    tokens = ["</s>", "<unk>", *(f"w{number}" for number in range(2, task["size"]["vocabulary"] - 1))]
    loader.set_vocabulary(spec, tokens)
    spec.config.eos_token = spec.config.decoder_start_token = "</s>"
    spec.config.unk_token = "<unk>"
    with tempfile.TemporaryDirectory() as folder:
        spec.validate()
        spec.optimize()
        spec.save(folder)
        translator = ctranslate2.Translator(
            folder, compute_type=task["precision"], inter_threads=1, intra_threads=task["threads"]
        )
    sentences = [[*(tokens[number] for number in sentence), "</s>"] for sentence in task["sentences"]]

    def run(beam: int) -> int:
        found = translator.translate_batch(
            sentences, beam_size=beam, min_decoding_length=words, max_decoding_length=words, max_batch_size=0
        )
        return sum(len(result.hypotheses[0]) for result in found)

    return run, {"version": ctranslate2.__version__, "parameters": count}


if __name__ == "__main__":
    serve(make)
