"""What the words of one sentence attend to, quantised and packed into one small buffer.

A *row* is one query word and one head. Its *entries* are the context sentences that it attends to, in decreasing
probability mass, each with the weights of its words *before rescaling* by that mass (so they sum to one; none where
the model attends to sentences only). Only what can be seen is kept: word weights as 1/255 of the entry's greatest,
masses as 1/65535, and of a row that attends to very many sentences the heaviest, the mass of the others as `rest`.

The buffer, little-endian, R rows in query-major order, E entries in all, N word weights in all:

    uint32  counts[R] attended[R] sentences[E] widths[E]     entries of a row; sentences with any mass at all
    uint16  rest[R] masses[E] peaks[E]
    uint8   levels[N]                                        weight = peak * level / 255
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

FINEST = 65535
LEVELS = 255
EFFORT = 4
"""Of compression, 1 to 9: at 9 it takes as long as translating the document, for 2% less."""


@dataclass(frozen=True, slots=True)
class AttendedSentence:
    """One context sentence: its index, its probability mass, and the weights of its words [W] before rescaling."""

    sentence: int
    mass: float
    words: np.ndarray


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """What one query word attends to with one head, or on average: sentences in decreasing mass.

    `attended` counts all sentences with any mass (a mean over heads for an average), `rest` is the mass of those that
    are not listed.
    """

    entries: tuple[AttendedSentence, ...]
    attended: float
    rest: float = 0.0


@dataclass(frozen=True)
class Attention:
    """All rows of one sentence: `queries` words times `heads`."""

    queries: int
    heads: int
    data: bytes

    @classmethod
    def of(cls, queries: int, heads: int, rows: Iterable[AttentionRow]) -> Attention:
        """From rows in query-major order: every head of the first word, then of the second, ..."""
        rows = list(rows)
        entries = [
            entry for row in rows for entry in sorted(row.entries, key=lambda entry: (-entry.mass, entry.sentence))
        ]
        return cls.pack(
            (queries, heads),
            counts=np.array([len(row.entries) for row in rows]),
            attended=np.rint([row.attended for row in rows]),
            rest=np.array([row.rest for row in rows]),
            sentences=np.array([entry.sentence for entry in entries]),
            masses=np.array([entry.mass for entry in entries]),
            widths=np.array([len(entry.words) for entry in entries], dtype=np.int64),
            weights=np.concatenate([*(entry.words for entry in entries), np.zeros(0)]),
        )

    @classmethod
    def pack(
        cls,
        shape: tuple[int, int],
        *,
        counts: np.ndarray,
        attended: np.ndarray,
        rest: np.ndarray,
        sentences: np.ndarray,
        masses: np.ndarray,
        widths: np.ndarray,
        weights: np.ndarray,
    ) -> Attention:
        """From arrays as the module describes them, with weights [N] as shares."""
        if len(counts) != shape[0] * shape[1]:
            raise ValueError(f"{len(counts)} rows for {shape[0]} words and {shape[1]} heads")
        peaks = np.zeros(len(widths), "<u2")
        wide = widths > 0  # those with words; `reduceat` knows no others
        if wide.any():
            peaks[wide] = _quantise(np.maximum.reduceat(weights, (np.cumsum(widths) - widths)[wide]))
        scale = (LEVELS * FINEST / np.maximum(peaks, 1)).astype(weights.dtype)
        levels = np.rint(weights * np.repeat(scale, widths)).clip(0, LEVELS)
        parts = [
            counts.astype("<u4"),
            attended.astype("<u4"),
            sentences.astype("<u4"),
            widths.astype("<u4"),
            _quantise(rest),
            _quantise(masses),
            peaks,
            levels.astype("u1"),
        ]
        return cls(*shape, b"".join(part.tobytes() for part in parts))

    @classmethod
    def from_text(cls, queries: int, heads: int, text: str) -> Attention:
        """The inverse of `to_text`; ValueError if the text is damaged."""
        try:
            attention = cls(queries, heads, zlib.decompress(base64.b64decode(text, validate=True)))
            attention._arrays  # noqa: B018  (reads the buffer, so that damage is found here)
        except (binascii.Error, zlib.error) as error:
            raise ValueError(f"attention is damaged ({error})") from None
        return attention

    def to_text(self) -> str:
        return base64.b64encode(zlib.compress(self.data, EFFORT)).decode("ascii")

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        position = 0

        def take(count: int, kind: str) -> np.ndarray:
            nonlocal position
            array = np.frombuffer(self.data, dtype=kind, count=count, offset=position)
            position += array.nbytes
            return array

        rows = self.queries * self.heads
        counts, attended = take(rows, "<u4"), take(rows, "<u4")
        entries = int(counts.sum())
        sentences, widths = take(entries, "<u4"), take(entries, "<u4")
        rest, masses, peaks = take(rows, "<u2"), take(entries, "<u2"), take(entries, "<u2")
        levels = take(int(widths.sum()), "u1")
        if position != len(self.data):
            raise ValueError(f"attention has {len(self.data) - position} bytes too many")
        return {
            "attended": attended,
            "sentences": sentences,
            "rest": rest,
            "masses": masses,
            "peaks": peaks,
            "levels": levels,
            "first": np.concatenate([[0], counts.cumsum()]).astype(np.int64),
            "first_level": np.concatenate([[0], widths.cumsum()]).astype(np.int64),
        }

    @property
    def attended(self) -> np.ndarray:
        """[queries, heads] how many sentences have any mass at all."""
        return self._arrays["attended"].reshape(self.queries, self.heads)

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of all entries [E]: their rows (query * heads + head), sentences and masses."""
        arrays = self._arrays
        rows = np.repeat(np.arange(self.queries * self.heads), np.diff(arrays["first"]))
        return rows, arrays["sentences"], arrays["masses"] / FINEST

    def row(self, query: int, head: int) -> AttentionRow:
        if not (0 <= query < self.queries and 0 <= head < self.heads):
            raise IndexError(f"no row for word {query}, head {head}")
        arrays, index = self._arrays, query * self.heads + head
        entries = []
        for entry in range(arrays["first"][index], arrays["first"][index + 1]):
            levels = arrays["levels"][arrays["first_level"][entry] : arrays["first_level"][entry + 1]]
            peak = float(arrays["peaks"][entry]) / FINEST
            mass = float(arrays["masses"][entry]) / FINEST
            entries.append(AttendedSentence(int(arrays["sentences"][entry]), mass, levels * (peak / LEVELS)))
        return AttentionRow(tuple(entries), float(arrays["attended"][index]), float(arrays["rest"][index]) / FINEST)

    def average(self, query: int, heads: Sequence[int] | None = None) -> AttentionRow:
        """Over the given heads, or all: masses are averaged, and word weights by the mass that each head gives."""
        rows = [self.row(query, head) for head in (range(self.heads) if heads is None else heads)]
        masses: dict[int, float] = {}
        words: dict[int, np.ndarray] = {}
        for entry in (entry for row in rows for entry in row.entries):
            masses[entry.sentence] = masses.get(entry.sentence, 0.0) + entry.mass
            words[entry.sentence] = words.get(entry.sentence, 0.0) + entry.mass * entry.words
        entries = [
            AttendedSentence(sentence, mass / len(rows), words[sentence] / mass if mass else words[sentence])
            for sentence, mass in masses.items()
        ]
        entries.sort(key=lambda entry: (-entry.mass, entry.sentence))
        count = max(len(rows), 1)
        return AttentionRow(
            tuple(entries), sum(row.attended for row in rows) / count, sum(row.rest for row in rows) / count
        )


def _quantise(shares: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(shares * FINEST), 0, FINEST).astype("<u2")


def visible(entries: Sequence[AttendedSentence], most: int = 24, least: float = 0.002) -> AttentionRow:
    """A row that lists at most the `most` heaviest sentences and none lighter than `least`; the others are `rest`.

    The heaviest one is always listed. `attended` counts every entry with mass above zero.
    """
    ranked = sorted((entry for entry in entries if entry.mass > 0), key=lambda entry: (-entry.mass, entry.sentence))
    kept = [entry for place, entry in enumerate(ranked[:most]) if place == 0 or entry.mass >= least]
    return AttentionRow(tuple(kept), len(ranked), max(0.0, sum(entry.mass for entry in ranked[len(kept) :])))
