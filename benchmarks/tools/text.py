"""Made-up text whose lengths are those of Europarl: same seed, same text."""

from __future__ import annotations

import numpy as np

FIRST_WORD = 4  # behind our special ids
MEAN, SHAPE = 28.0, 3.5  # subwords of a sentence: mean and spread of Europarl's development set
RATIO_SPREAD = 0.18  # of the logarithm of target over source length
LONGEST = 120

Sentences = list[list[int]]


def lengths(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Source and target lengths [count], correlated as those of translations are."""
    random = np.random.default_rng(seed)
    source = random.gamma(SHAPE, MEAN / SHAPE, count)
    target = source * np.exp(random.normal(0.0, RATIO_SPREAD, count))
    return tuple(np.clip(np.rint(x), 1, LONGEST).astype(int) for x in (source, target))  # type: ignore[return-value]


def words(sizes: np.ndarray, vocabulary: int, seed: int) -> Sentences:
    """Random ids; common words common (Zipf), so that embedding rows are touched as in text."""
    random = np.random.default_rng([seed, vocabulary])
    ranks = np.exp(random.random(int(sizes.sum())) * np.log(vocabulary - FIRST_WORD)).astype(int) - 1
    return [part.tolist() for part in np.split(ranks + FIRST_WORD, np.cumsum(sizes)[:-1])]


class Lengths:
    """As much of a corpus as `sentence_plans` and `document_plans` look at."""

    def __init__(self, source: np.ndarray, target: np.ndarray, documents: np.ndarray | None = None) -> None:
        self._lengths = {"source": source, "target": target}
        self.documents = np.arange(len(source) + 1) if documents is None else documents

    def __len__(self) -> int:
        return len(self.documents) - 1

    def lengths(self, side: str) -> np.ndarray:
        return self._lengths[side]


def sentence_batches(count: int, batch_tokens: int, vocabulary: int, seed: int) -> list[tuple[Sentences, Sentences]]:
    """The first `count` batches that our own planner makes of such sentences."""
    from weitblick.training.batching import sentence_plans

    source, target = lengths(60 * batch_tokens // int(MEAN), seed)
    plans = sentence_plans(Lengths(source, target), batch_tokens, seed, 0)[:count]  # type: ignore[arg-type]
    sources, targets = words(source, vocabulary, seed), words(target, vocabulary, seed + 1)
    return [([sources[i] for i in p.sentences], [targets[i] for i in p.sentences]) for p in plans]
