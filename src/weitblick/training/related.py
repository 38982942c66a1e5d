"""Documents that belong together, in a corpus whose documents stand in no order: those that share rare expressions."""

from __future__ import annotations

import random

import numpy as np
from scipy.sparse import csr_matrix, diags

from weitblick.batches.store import CorpusStore

LENGTHS = range(8, 46)
"""Sentences of a document that has a past to learn from, and is no book."""
MOST_DOCUMENTS = 60_000
COLUMNS = 1 << 20
FEWEST, COMMON = 3, 0.05
"""Two pieces that follow each other tell of a topic if so many documents have them, and no larger share of all."""
ALIKE = 0.06
"""Cosine that the documents of a run have at least, by their median, with the one that it was made for."""


def related_runs(store: CorpusStore, count: int, size: int, seed: int) -> list[list[int]]:
    """At most `count` runs of `size` documents each, no document twice: one at random and those most like it, in random
    order. One that has no others like it gets no run."""
    sizes = np.diff(np.asarray(store.documents))
    usable = np.flatnonzero((sizes >= LENGTHS.start) & (sizes < LENGTHS.stop))
    usable = usable[:: max(1, len(usable) // MOST_DOCUMENTS)]
    vectors = _vectors(store, usable)
    chance = random.Random(seed)
    free = np.ones(len(usable), dtype=bool)
    runs: list[list[int]] = []
    for start in chance.sample(range(len(usable)), len(usable)):
        if len(runs) == count or free.sum() < size:
            break
        if not free[start]:
            continue
        alike = np.where(free, (vectors @ vectors[start].T).toarray()[:, 0], -1.0)
        nearest = np.argsort(-alike, kind="stable")[:size]
        if alike[nearest[size // 2]] < ALIKE:
            continue
        free[nearest] = False
        runs.append(chance.sample(usable[nearest].tolist(), size))
    return runs


def _vectors(store: CorpusStore, documents: np.ndarray) -> csr_matrix:
    """[documents, COLUMNS] of length one: how often an expression occurs, weighed by how few documents have it."""
    rows, columns, counts = [], [], []
    for row, document in enumerate(documents.tolist()):
        sentences = store.document(document)
        ids = np.concatenate([store.sentence("source", index) for index in sentences]).astype(np.int64)
        found, times = np.unique((ids[:-1] * 40_503 + ids[1:]) % COLUMNS, return_counts=True)
        rows.append(np.full(len(found), row))
        columns.append(found)
        counts.append(times)
    column = np.concatenate(columns)
    having = np.bincount(column, minlength=COLUMNS)
    kept = (having >= FEWEST) & (having <= max(FEWEST, COMMON * len(documents)))
    told = kept[column]
    weights = (1 + np.log(np.concatenate(counts)[told])) * np.log(len(documents) / having[column[told]])
    places = np.concatenate(rows)[told], column[told]
    table = csr_matrix((weights.astype(np.float32), places), (len(documents), COLUMNS))
    lengths = np.sqrt(np.asarray(table.multiply(table).sum(1)))[:, 0]
    return (diags(1 / np.maximum(lengths, 1e-9)) @ table).tocsr()
