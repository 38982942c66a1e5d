"""The shipped model's pointer taken over by other models, and one fitted on each: what approved translations are worth.

    python benchmarks/pointer_transfer.py SOURCE REFERENCE --model NAME=FOLDER [...] [--fit SOURCE REFERENCE]

For each model, nats a token gained on the documents when the references of the sentences before are approved (`past`),
and when those of another text are (`random`), with the mean share: with the pointer of its own folder, if it has one;
with the shipped one's share as it is; brought to how alike the model's states are (what `weitblick import` does); and,
with --fit, fitted on these documents, which the model should not have been trained on. SOURCE and REFERENCE hold
documents, a sentence a line and an empty line between documents; a model that translates the other way reads them so.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from weitblick.checkpoints.folder import LoadedModel, load_model
from weitblick.common.recipe import MemorySection, MemoryStageSection
from weitblick.memory.pointer import MemoryPointer
from weitblick.memory.training import MemoryTraining
from weitblick.memory.training_examples import Kind, SimulatedTranslator, Steps, runs_in_order
from weitblick.memory.transfer import transferred_pointer
from weitblick.translation.borrowed_pointer import shipped_pointer

KINDS: tuple[Kind, ...] = ("past", "random")
Files = Sequence[Path]


class Corpus:
    """Documents of a pair of files, at most so many sentences of each, as ids."""

    def __init__(self, loaded: LoadedModel, files: Files, most: int) -> None:
        pipeline = loaded.pipeline
        if not files[0].name.endswith(f".{pipeline.source_language}"):
            files = files[::-1]
        sides = [[d.split("\n")[:most] for d in f.read_text("utf-8").strip("\n").split("\n\n")] for f in files]
        self.pairs: list[tuple[list[int], list[int]]] = []
        sizes = [0]
        for sources, targets in zip(*sides, strict=True):
            encoded = zip(pipeline.encode_source(sources), pipeline.encode_target(targets), strict=True)
            longest = pipeline.longest_sentence
            kept = [(source[:longest], target[:longest]) for source, target in encoded if source and target]
            self.pairs += kept
            sizes.append(len(kept))
        self.documents = np.cumsum(sizes)

    def __len__(self) -> int:
        return len(self.documents) - 1

    def document(self, index: int) -> range:
        return range(int(self.documents[index]), int(self.documents[index + 1]))

    def sentence(self, side: str, index: int) -> np.ndarray:
        return np.asarray(self.pairs[index][0 if side == "source" else 1])


@torch.no_grad()
def steps_of(loaded: LoadedModel, pointer: MemoryPointer, corpus: Corpus) -> dict[Kind, Steps]:
    runs = runs_in_order(corpus, len(corpus))
    simulated = SimulatedTranslator(
        loaded.model.sentence, loaded.pipeline, pointer, MemoryStageSection(), corpus, runs
    )  # fmt: skip
    found: dict[Kind, Steps] = {}
    for kind in KINDS:
        chance = random.Random(1)
        every = [simulated.steps(pointer, document, kind, chance) for document in range(len(simulated))]
        found[kind] = Steps.of_all([steps for steps in every if steps is not None])
    return found


def fitted(loaded: LoadedModel, steps: dict[Kind, Steps]) -> nn.Module:
    torch.manual_seed(1)
    section = MemorySection(kind="pointer")
    training = MemoryTraining(loaded.model.sentence, loaded.pipeline, section, MemoryStageSection())
    pointer = MemoryPointer(section, loaded.model.sentence.dimension)
    for _ in training._fit_share(pointer, Steps.of_all(list(steps.values()))):
        pass
    return pointer.share


@torch.no_grad()
def say(name: str, label: str, share: nn.Module, steps: dict[Kind, Steps]) -> None:
    figures = []
    for kind, own in steps.items():
        gain, shares = own.gain(share(own.features))
        figures.append(f"{kind} {float(gain.mean()):+.4f} (share {float(shares.mean()):.3f})")
    print(f"{name:12} {label:22} {'   '.join(figures)}", flush=True)


def measure(name: str, loaded: LoadedModel, options: argparse.Namespace) -> None:
    trained = shipped_pointer()
    assert trained is not None
    corpus = Corpus(loaded, options.files, options.sentences)
    pointer = transferred_pointer(loaded.model.sentence, loaded.pipeline, trained)
    steps = steps_of(loaded, pointer, corpus)
    said = float(torch.cat([own.own for own in steps.values()]).mean())
    print(f"{name:12} nats a token without memory {said:.2f}, {len(steps['past'].own)} tokens", flush=True)
    if loaded.model.pointer is not None:
        say(name, "its own", loaded.model.pointer.share, steps_of(loaded, loaded.model.pointer, corpus))
    say(name, "taken over as it is", trained.pointer.share, steps)
    say(name, "taken over by import", pointer.share, steps)
    if options.fit:
        fit = steps_of(loaded, pointer, Corpus(loaded, options.fit, options.sentences))
        say(name, "fitted", fitted(loaded, fit), steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs=2, type=Path, metavar="FILE", help="source and reference")
    parser.add_argument("--model", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--fit", nargs=2, type=Path, metavar="FILE")
    parser.add_argument("--sentences", type=int, default=25, help="of each document at most")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for given in options.model:
        name, _, folder = given.partition("=")
        loaded = load_model(folder)
        loaded.model.eval()
        measure(name, loaded, options)


if __name__ == "__main__":
    main()
