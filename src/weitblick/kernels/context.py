"""Context attention of a step of decoding as a function of tensors; see context.c."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import byref

import numpy as np
import torch
from torch import Tensor

from weitblick.batches.layout import Layout
from weitblick.kernels.library import Kernels

KINDS = {"soft": 0, "sparse": 1}
"""How weights are normalised, as context.c counts them; a model with another kind is read without kernels."""

_POINTER, _LONG, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_SIZES = ("heads", "size", "sentence_size", "word_size", "online", "sentence_kind", "word_kind")
_TABLES = ("first", "position", "row", "start", "words")
_ROWS = ("sentence_keys", "word_keys", "word_values")


class _Sentences(ctypes.Structure):
    _fields_ = [*((name, _LONG) for name in _SIZES), *((name, _POINTER) for name in (*_TABLES, *_ROWS))]


class ContextReader:
    """Projected sentences of some documents, for queries that come a step at a time."""

    def __init__(
        self,
        kernels: Kernels,
        layout: Layout,
        rows: Mapping[str, Tensor],
        heads: int,
        width: int,
        online: bool,
        kinds: tuple[str, str],
    ) -> None:
        """rows: `word_keys`, `word_values` and, where attention is hierarchical, `sentence_keys` of `layout`; kinds: of
        weights over sentences and over words."""
        self.call = kernels.call.read_context
        self.call.argtypes = [_POINTER, _LONG, *[_POINTER] * 6, _INT]
        self.call.restype = None
        self.kept = [rows[name].contiguous() if name in rows else None for name in _ROWS]
        tables = self._tables(layout)
        self.arrays = [np.ascontiguousarray(table, dtype=np.int64) for table in tables]
        sizes = [0 if part is None else part.shape[1] // heads for part in self.kept[:2]]
        self.width = heads * width
        self.sentences = _Sentences(
            heads,
            width,
            *sizes,
            online,
            *(KINDS[kind] for kind in kinds),
            *(array.ctypes.data for array in self.arrays),
            *(None if part is None else part.data_ptr() for part in self.kept),
        )
        self.asked: tuple[Layout, np.ndarray, np.ndarray] | None = None  # the last readers, which come again

    def _tables(self, layout: Layout) -> tuple[np.ndarray, ...]:
        words = layout.lengths.numpy() - 1
        kept = np.flatnonzero(words > 0)
        documents, positions, words = layout.documents.numpy()[kept], layout.positions.numpy()[kept], words[kept]
        order = np.lexsort((positions, documents))
        self.documents, first = np.unique(documents[order], return_index=True)
        starts = np.cumsum(words) - words
        return np.append(first, len(order)), positions[order], order, starts[order], words[order]

    def __call__(self, sentence_queries: Tensor | None, word_queries: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Queries [N, ...] of the sentences of `layout`, one each -> what they read [N, H * d_k], and the mean number
        of sentences with weight [N]."""
        documents, positions = self._readers(layout)
        word_queries = word_queries.contiguous()
        sentence_queries = None if sentence_queries is None else sentence_queries.contiguous()
        out, support = word_queries.new_empty(len(word_queries), self.width), word_queries.new_empty(len(word_queries))
        self.call(
            byref(self.sentences),
            len(word_queries),
            documents.ctypes.data,
            positions.ctypes.data,
            None if sentence_queries is None else sentence_queries.data_ptr(),
            word_queries.data_ptr(),
            out.data_ptr(),
            support.data_ptr(),
            torch.get_num_threads(),
        )
        return out, support

    def _readers(self, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
        """[N] document of each reader as the tables count them, or -1, and its position."""
        if self.asked is None or self.asked[0] is not layout:
            wanted = layout.documents.numpy()
            place = np.searchsorted(self.documents, wanted).clip(max=max(0, len(self.documents) - 1))
            known = self.documents[place] == wanted if len(self.documents) else np.zeros(len(wanted), dtype=bool)
            positions = np.ascontiguousarray(layout.positions.numpy(), dtype=np.int64)
            self.asked = layout, np.where(known, place, -1).astype(np.int64), positions
        return self.asked[1:]
