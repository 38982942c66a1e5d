"""Context attention in NumPy, slow, from the equations of SYSTEM.md section 3, one query and head at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return e / e.sum()


def sparsemax(z: np.ndarray) -> np.ndarray:
    ordered = np.sort(z)[::-1]
    size = max(k for k in range(1, len(z) + 1) if 1 + k * ordered[k - 1] > ordered[:k].sum())
    return np.maximum(z - (ordered[:size].sum() - 1) / size, 0)


def entmax15(z: np.ndarray) -> np.ndarray:
    """sum(max(z / 2 - tau, 0)^2) = 1, with tau by bisection."""
    z = z / 2
    low, high = z.max() - 1, z.max()
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if (np.maximum(z - tau, 0) ** 2).sum() > 1 else (low, tau)
    return np.maximum(z - low, 0) ** 2


ATTENTION = {"soft": softmax, "sparse": sparsemax, "entmax15": entmax15}


@dataclass
class Sentence:
    document: int
    position: int
    keys: np.ndarray  # [words + 1, d]: the last one is no word
    values: np.ndarray


@dataclass
class Read:
    output: np.ndarray  # [d] before the output projection
    sentence_weights: list[dict[int, float]] = field(default_factory=list)  # per head: position -> weight
    word_weights: list[dict[int, np.ndarray]] = field(default_factory=list)  # per head: position -> weights


def visible(sentences: list[Sentence], document: int, position: int, direction: str) -> list[Sentence]:
    return [
        s
        for s in sentences
        if s.document == document
        and len(s.keys) > 1
        and (s.position < position if direction == "online" else s.position != position)
    ]


def read(
    kind: str,
    query: np.ndarray,
    context: list[Sentence],
    matrices: dict[str, np.ndarray],
    heads: int,
    sentence_attention: str,
    word_attention: str,
) -> Read:
    """One query [d] over visible sentences; matrices [d, d] as x @ M.T: query, key, value, or the hierarchical five."""
    d = len(query)
    width = d // heads
    result = Read(np.zeros(d))
    if not context:
        return result
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)

        def project(name: str, x: np.ndarray, part: slice = part) -> np.ndarray:
            return x @ matrices[name][part].T

        def scores(query_name: str, key_name: str, keys: np.ndarray, project=project) -> np.ndarray:
            return project(key_name, keys) @ project(query_name, query) / np.sqrt(width)

        words = [s.keys[:-1] for s in context]
        values = [s.values[:-1] for s in context]
        means = np.stack([w.mean(0) for w in words])
        if kind == "sentence":
            alpha = ATTENTION[sentence_attention](scores("query", "key", means))
            result.output[part] = alpha @ project("value", np.stack([v.mean(0) for v in values]))
            inside = []
        elif kind == "word":
            weights = ATTENTION[word_attention](scores("query", "key", np.concatenate(words)))
            result.output[part] = weights @ project("value", np.concatenate(values))
            inside = np.split(weights, np.cumsum([len(w) for w in words])[:-1])
            alpha = np.array([w.sum() for w in inside])
        else:
            alpha = ATTENTION[sentence_attention](scores("sentence_query", "sentence_key", means))
            inside = [ATTENTION[word_attention](scores("word_query", "word_key", w)) for w in words]
            result.output[part] = sum(
                a * w @ project("value", v) for a, w, v in zip(alpha, inside, values, strict=True)
            )
        positions = [s.position for s in context]
        result.sentence_weights.append(dict(zip(positions, alpha, strict=True)))
        result.word_weights.append(dict(zip(positions, inside, strict=False)))
    return result
