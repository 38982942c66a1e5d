"""How sure a model is of a document, and whether that is less than usual: a sign that it was made for other texts.

The figure of a document is the mean log-probability of the words that the model itself says for it, sentence by
sentence. What is usual is measured on documents that the model is made for (`benchmarks/domains.py`) and stored with
the model, for its very weights: without that, or with other weights, nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from weitblick.common.files import check_format_version, read_json, sha256, write_json
from weitblick.translation.translator import Translator, as_document

FILE = "confidence.json"
WEIGHTS = "model.safetensors"
FORMAT_VERSION = 1
SAMPLE = 16
"""Sentences by which a document is judged."""
FEWEST = 5
"""Sentences of a document that can be judged at all."""


def mean_log_probability(translator: Translator, sources: Sequence[str]) -> float | None:
    """Of the words of a document's greedy translation, each sentence alone; None if it has too few sentences."""
    chosen = judged_sentences(sources)
    scored = scored_words(translator, chosen) if len(chosen) >= FEWEST else []
    words = sum(length for _, length in scored)
    return math.fsum(log_probability for log_probability, _ in scored) / words if words else None


def judged_sentences(sources: Sequence[str]) -> list[str]:
    """The sentences by which a document is judged, evenly spread."""
    wordy = [source for source in sources if any(letter.isalpha() for letter in source)]
    return wordy[:: max(1, len(wordy) // SAMPLE)][:SAMPLE]


def scored_words(translator: Translator, sources: Sequence[str]) -> list[tuple[float, int]]:
    """Of the greedy translation of each sentence, alone: its log-probability and how many words that is of."""
    (found,) = translator.translations([as_document(sources)], beam=1, context=False)
    return [(own[0].log_probability, own[0].length) for own in found.translations if own]


def calibrate(usual: Sequence[float], share: float) -> float:
    """The figure below which this share of usual documents lies."""
    return sorted(usual)[int(share * len(usual))]


def write_calibration(folder: Path, unsure_below: float, documents: int) -> None:
    """Stores with a model the figure below which it is unsure of a document."""
    found = {
        "format_version": FORMAT_VERSION,
        "unsure_below": round(unsure_below, 4),
        "documents": documents,
        "weights": sha256(folder / WEIGHTS),
    }
    write_json(folder / FILE, found)


def read_calibration(folder: Path | None) -> float | None:
    """The figure below which the model in a folder is unsure; None if nobody has measured it for these weights."""
    if folder is None or not (folder / FILE).exists() or not (folder / WEIGHTS).exists():
        return None
    found = read_json(folder / FILE)
    check_format_version(found, FORMAT_VERSION, folder / FILE)
    if found.get("weights") != sha256(folder / WEIGHTS):
        return None
    return float(found["unsure_below"])
