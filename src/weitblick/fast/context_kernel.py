"""Context attention of a step of decoding as a function of tensors; see context.c and context_words.c."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from ctypes import byref
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from weitblick.fast.kernels import Kernels, address, raise_if_out_of_memory
from weitblick.model.batch import Layout

KINDS = {"soft": 0, "sparse": 1}
"""How weights are normalised, as context.c counts them; a model with another kind is read without kernels."""
GROUP = 8
"""Queries of a document that read it together where their scores are kept, which need room."""

_POINTER, _LONG, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_SIZES = ("heads", "size", "sentence_size", "word_size", "online", "sentence_kind", "word_kind")
_TABLES = ("first", "position", "words")
_ROWS = ("sentence_keys", "word_keys", "word_values")
_BYTES = 4  # of a number


class _Sentences(ctypes.Structure):
    _fields_ = [*((name, _LONG) for name in _SIZES), *((name, _POINTER) for name in (*_TABLES, *_ROWS))]


@dataclass(frozen=True)
class _Readers:
    """Queries in groups of the same document, in the order of their positions: group [G + 1] where each begins in rows
    [N], document [G], or -1, as the tables count it; position [N] of each query."""

    group: np.ndarray
    rows: np.ndarray
    document: np.ndarray
    position: np.ndarray


class ContextReader:
    """Projected sentences of some documents, for queries that come a step at a time."""

    def __init__(
        self,
        kernels: Kernels,
        parts: Sequence[tuple[Layout, Mapping[str, Tensor]]],
        heads: int,
        width: int,
        online: bool,
        kinds: tuple[str, str],
    ) -> None:
        """parts: sentences, and `word_keys`, `word_values` and, where attention is hierarchical, `sentence_keys` of
        these; kinds: of weights over sentences and over words."""
        self.call = kernels.call.read_context
        self.call.argtypes = [_POINTER, _LONG, *[_POINTER] * 8, _INT]
        self.call.restype = _INT
        self.heads, self.width = heads, heads * width
        self._kept: list[Tensor] = []  # whose addresses are in the tables
        columns = [self._columns(layout, rows) for layout, rows in parts]
        documents, position, words, *places = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.lexsort((position, documents))
        self.documents, first = np.unique(documents[order], return_index=True)
        tables = [np.append(first, len(order)), *(table[order] for table in (position, words, *places))]
        self._tables = [np.ascontiguousarray(table, dtype=np.int64) for table in tables]
        rows = parts[0][1]
        self.sentences = _Sentences(
            heads,
            width,
            *(rows[name].shape[1] // heads if name in rows else 0 for name in _ROWS[:2]),
            online,
            *(KINDS[kind] for kind in kinds),
            *(table.ctypes.data for table in self._tables),
        )
        # By softmax over all words any number of queries goes through a document together.
        self.group = GROUP if "sentence_keys" in rows or kinds[1] != "soft" else sys.maxsize
        self._asked: tuple[Layout, _Readers] | None = None  # the last readers, which come again

    def _columns(self, layout: Layout, rows: Mapping[str, Tensor]) -> tuple[np.ndarray, ...]:
        """Of the sentences with words of a part: document, position, words, and addresses of their rows."""
        words = layout.lengths.numpy() - 1
        kept = np.flatnonzero(words > 0)
        words = words[kept]
        number = {"sentence": np.arange(len(kept)), "word": np.cumsum(words) - words}
        places = []
        for name in _ROWS:
            if name not in rows:
                places.append(np.zeros(len(kept), dtype=np.int64))
                continue
            own = rows[name].contiguous()
            address(own)  # checks that these are numbers as the kernel reads them
            self._kept.append(own)
            places.append(own.data_ptr() + number[name.split("_")[0]] * (own.shape[1] * _BYTES))
        return layout.documents.numpy()[kept], layout.positions.numpy()[kept], words, *places

    def __call__(self, sentence_queries: Tensor | None, word_queries: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Queries [N, ...] of the sentences of `layout`, one each -> what they read [N, H * d_k], and the mean number
        of sentences with weight [N]."""
        readers = self._readers(layout)
        word_queries = word_queries.contiguous()
        sentence_queries = None if sentence_queries is None else sentence_queries.contiguous()
        count = len(word_queries)
        out, support = word_queries.new_empty(count, self.width), word_queries.new_empty(count, self.heads)
        failed = self.call(
            byref(self.sentences),
            len(readers.document),
            readers.group.ctypes.data,
            readers.rows.ctypes.data,
            readers.document.ctypes.data,
            readers.position.ctypes.data,
            address(sentence_queries, shape=(count, self.heads * self.sentences.sentence_size)),
            address(word_queries, shape=(count, self.heads * self.sentences.word_size)),
            address(out),
            address(support),
            torch.get_num_threads(),
        )
        raise_if_out_of_memory(failed)
        return out, support.mean(1)

    def _readers(self, layout: Layout) -> _Readers:
        if self._asked is None or self._asked[0] is not layout:
            wanted = layout.documents.numpy()
            rows = np.lexsort((layout.positions.numpy(), wanted))
            _, begins, counts = np.unique(wanted[rows], return_index=True, return_counts=True)
            step = min(self.group, max(1, len(rows)))
            starts = [np.arange(begin, begin + count, step) for begin, count in zip(begins, counts, strict=True)]
            group = np.concatenate([*starts, [len(rows)]]).astype(np.int64)
            of_group = wanted[rows[group[:-1]]]
            place = np.searchsorted(self.documents, of_group).clip(max=max(0, len(self.documents) - 1))
            known = self.documents[place] == of_group if len(self.documents) else np.zeros(len(of_group), dtype=bool)
            position = np.ascontiguousarray(layout.positions.numpy(), dtype=np.int64)
            document = np.where(known, place, -1).astype(np.int64)
            self._asked = layout, _Readers(group, rows.astype(np.int64), document, position)
        return self._asked[1]
