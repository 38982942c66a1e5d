"""Lexical shortlists: of each source word the target words that may translate it, learned from a corpus.

With one, the output layer scores a few hundred words instead of the vocabulary. A sentence chooses among the words of
its own list, whatever else is in the batch. What is not in it cannot be said: a shortlist is asked for, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from weitblick.common.errors import UserError
from weitblick.common.files import atomic_path, check_regular_file
from weitblick.model.batch import IdLists
from weitblick.model.modifiers import Allowed
from weitblick.model.sentence_model import SentenceModel
from weitblick.text.base import BOS, EOS, PAD, UNK, TextPipeline

if TYPE_CHECKING:
    from scipy import sparse

FORMAT_VERSION = 1
COMMON = 200
"""Target words that every sentence may use: the most frequent ones."""
EACH = 40
"""Target words of a source word."""
SENTENCES_AT_A_TIME = 20_000
ABSENT = -1


@dataclass(frozen=True)
class Shortlist:
    """common [c]: target ids that are always there; table [source vocabulary, n]: those of each source id, the closest
    first, ABSENT where there are fewer; fingerprint: of the text pipeline whose ids they are."""

    common: np.ndarray
    table: np.ndarray
    fingerprint: str

    @classmethod
    def learn(
        cls, pairs: Iterable[tuple[str, str]], pipeline: TextPipeline, *, common: int = COMMON, each: int = EACH
    ) -> Shortlist:
        """From sentence pairs: words go together that stand in the same pairs more often than their frequencies say,
        by the cosine of where they stand."""
        from scipy import sparse

        sizes = len(pipeline.source_vocabulary), len(pipeline.target_vocabulary)
        together = sparse.csr_matrix(sizes, dtype=np.float32)
        counts = [np.zeros(size, dtype=np.float32) for size in sizes]
        for part in _parts(pairs):
            sources, targets = ([pair[side] for pair in part] for side in (0, 1))
            source = _occurrences(pipeline.encode_source(sources), sizes[0])
            target = _occurrences(pipeline.encode_target(targets), sizes[1])
            together += source.T @ target
            for count, found in zip(counts, (source, target), strict=True):
                count += np.asarray(found.sum(0)).ravel()
        if not together.nnz:
            raise UserError("no sentence pairs to learn a shortlist from", remedy="name SOURCE TARGET")
        frequent = np.argsort(-counts[1], kind="stable")[:common]
        always = np.union1d([PAD, BOS, EOS, UNK], frequent)
        return cls(always, _closest(together, (counts[0], counts[1]), each), pipeline.fingerprint())

    def save(self, path: str | Path) -> None:
        with atomic_path(path) as temporary:
            temporary.write_bytes(self.content())

    def content(self) -> bytes:
        """What is in its file."""
        tensors = {"common": self.common.astype(np.int32), "table": self.table.astype(np.int32)}
        return save(tensors, {"format_version": str(FORMAT_VERSION), "fingerprint": self.fingerprint})

    @classmethod
    def load(cls, path: str | Path, pipeline: TextPipeline) -> Shortlist:
        remedy = "make it with `weitblick data shortlist` and this model"
        check_regular_file(Path(path), remedy)
        try:
            with safe_open(path, framework="numpy") as file:
                facts = file.metadata() or {}
                common, table = (file.get_tensor(name).astype(np.int64) for name in ("common", "table"))
        except (SafetensorError, OSError, ValueError) as error:
            raise UserError(f"is no shortlist ({error})", where=path, remedy=remedy) from None
        if facts.get("format_version") != str(FORMAT_VERSION):
            raise UserError("is no shortlist of this version", where=path, remedy=remedy)
        if facts.get("fingerprint") != pipeline.fingerprint():
            raise UserError("is a shortlist of another vocabulary", where=path, remedy=remedy)
        sizes = len(pipeline.source_vocabulary), len(pipeline.target_vocabulary)
        ids = np.concatenate([common.ravel(), table.ravel()])
        if table.ndim != 2 or len(table) != sizes[0] or ids.min() < ABSENT or ids.max() >= sizes[1]:
            raise UserError("names words that the model does not have", where=path, remedy=remedy)
        return cls(common, table, facts["fingerprint"])

    def words(self, source: Sequence[int] | np.ndarray) -> np.ndarray:
        """Target ids that a sentence may use, sorted."""
        found = np.union1d(self.common, self.table[np.asarray(source, dtype=np.int64)].ravel())
        return found[found != ABSENT]

    def allow(self, sources: IdLists, model: SentenceModel, never: Sequence[int] = ()) -> Allowed:
        """What sentences may use, for one batch; never: ids that none may."""
        own = [self.words(source) for source in sources]
        union = np.unique(np.concatenate(own))
        hidden = np.stack([~np.isin(union, words, assume_unique=True) for words in own], 1)  # [U, S]
        hidden |= np.isin(union, list(never))[:, None]
        weight, bias = model.output()
        ids = torch.from_numpy(union).to(weight.device)
        mask = torch.zeros(hidden.shape, device=weight.device)
        mask.masked_fill_(torch.from_numpy(hidden).to(weight.device), -torch.inf)
        return Allowed(ids, weight.index_select(0, ids), bias.index_select(0, ids), mask)


def _parts(pairs: Iterable[tuple[str, str]]) -> Iterable[list[tuple[str, str]]]:
    part: list[tuple[str, str]] = []
    for pair in pairs:
        part.append(pair)
        if len(part) == SENTENCES_AT_A_TIME:
            yield part
            part = []
    if part:
        yield part


def _occurrences(sentences: IdLists, size: int) -> sparse.csr_matrix:
    """[S, size] 1 where a sentence has a word."""
    from scipy import sparse

    distinct = [np.unique(np.asarray(sentence, dtype=np.int64)) for sentence in sentences]
    starts = np.cumsum([0, *map(len, distinct)])
    columns = np.concatenate([*distinct, np.zeros(0, dtype=np.int64)])
    return sparse.csr_matrix((np.ones(len(columns), dtype=np.float32), columns, starts), (len(sentences), size))


def _closest(together: sparse.csr_matrix, counts: tuple[np.ndarray, np.ndarray], count: int) -> np.ndarray:
    """[source vocabulary, count] the target words of each source word with the highest cosines."""
    source, target = counts
    table = np.full((together.shape[0], count), ABSENT)
    for word in range(together.shape[0]):
        row = slice(together.indptr[word], together.indptr[word + 1])
        ids = together.indices[row]
        cosine = together.data[row] / np.sqrt(source[word] * target[ids])
        best = ids[np.lexsort((ids, -cosine))[:count]]
        table[word, : len(best)] = best
    return table
