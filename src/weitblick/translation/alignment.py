"""Which words of a translation come from which words of its source: the attention of one teacher-forced pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch

from weitblick.model.batch import pack_source, pack_target
from weitblick.model.sentence_model import SentenceModel
from weitblick.text.base import Side, TextPipeline

WORD = re.compile(r"\w+(?:[-'’.]\w+)*|[^\w\s]")
PIECE_MARKS = "▁@"  # how pipelines write "a space before" and "goes on": no part of the text
LOOK_AHEAD = 40  # characters in which a piece is searched that is not where it should be
PART_PIECES = 4096  # source and target pieces of a pass
PRIOR, PRIOR_WIDTH = 0.05, 0.15  # a word that attends to nothing in particular stands where it would in the source
BELONGING = 0.5  # share of a word's attention from which on it belongs to a span

Span = tuple[int, int]


def word_spans(text: str) -> tuple[Span, ...]:
    """[start, end) of every word and every mark of punctuation."""
    return tuple(found.span() for found in WORD.finditer(text))


@dataclass(frozen=True)
class Alignment:
    """source, target: [start, end) of the words in their texts; weights [target words, source words]: how much of a
    target word comes from each source word, rows summing to 1."""

    source: tuple[Span, ...]
    target: tuple[Span, ...]
    weights: np.ndarray

    def target_span(self, start: int, end: int) -> Span | None:
        """The words [first, last) of the target that say what the characters [start, end) of the source say."""
        chosen = [start < stop and begin < end for begin, stop in self.source]
        if not any(chosen) or not self.target:
            return None
        share = self.weights[:, chosen].sum(1)
        first, last = _best_run(share - BELONGING)
        if first < last:
            return first, last
        best = int(share.argmax())
        return best, best + 1


def _best_run(values: np.ndarray) -> Span:
    """The run with the largest sum; the first of them, the empty one if none is positive."""
    best, first, last, total, start = 0.0, 0, 0, 0.0, 0
    for place, value in enumerate(values.tolist()):
        if total <= 0:
            total, start = 0.0, place
        total += value
        if total > best:
            best, first, last = total, start, place + 1
    return first, last


def sharpen(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> np.ndarray:
    """Attention that rests on full stops and commas says nothing about a word: only like is compared with like, equal
    numbers and names are each other's translation, and what is left undecided follows the diagonal."""
    if not source or not target:
        return np.zeros((len(target), len(source)))
    like = _spoken(target)[:, None] == _spoken(source)[None]
    sharp = np.where(like, weights, 0.0) + PRIOR * _diagonal(len(source), len(target))
    places: dict[str, list[int]] = {}
    for place, word in enumerate(source):
        places.setdefault(word, []).append(place)
    for row, word in enumerate(target):
        columns = places.get(word, [])
        if len(columns) == 1:
            sharp[row, columns] += 1.0
        elif columns:
            sharp[row, columns] += weights[row, columns] + _diagonal(len(source), len(target))[row, columns]
    total = sharp.sum(1, keepdims=True)
    return sharp / np.where(total > 0, total, 1.0)


def _spoken(words: Sequence[str]) -> np.ndarray:
    return np.array([any(map(str.isalnum, word)) for word in words])


def _diagonal(sources: int, targets: int) -> np.ndarray:
    """[targets, sources] rows of a bell around the place that a word would have in the source."""
    rows = (np.arange(targets) + 0.5)[:, None] / max(1, targets)
    columns = (np.arange(sources) + 0.5)[None] / max(1, sources)
    bell = np.exp(-(((rows - columns) / PRIOR_WIDTH) ** 2)) + 1e-6
    return bell / bell.sum(1, keepdims=True)


def align_by_place(source: str, target: str) -> Alignment:
    """Without a model: equal words, and else the diagonal."""
    spans = word_spans(source), word_spans(target)
    words = [[text[a:b] for a, b in found] for text, found in zip((source, target), spans, strict=True)]
    weights = sharpen(np.zeros((len(spans[1]), len(spans[0]))), *words)
    return Alignment(*spans, weights)


@torch.inference_mode()
def align(model: SentenceModel, pipeline: TextPipeline, pairs: Sequence[tuple[str, str]]) -> list[Alignment]:
    """The alignment of each (source, target), by the sentence model, some thousand pieces at a time."""
    sources = pipeline.encode_source([source for source, _ in pairs])
    targets = pipeline.encode_target([target for _, target in pairs])
    found: list[Alignment | None] = [None] * len(pairs)
    device = next(model.parameters()).device
    for part in _parts(sources, targets, pipeline.longest_sentence):
        numbers = list(range(len(part)))
        source = pack_source([sources[i] for i in part], [0] * len(part), numbers).to(device)
        target = pack_target([targets[i] for i in part], [0] * len(part), numbers)[0].to(device)
        encoded = model.encode(source.tokens, source.layout)
        weights = model.source_weights(target.tokens, target.layout, encoded, source.layout).float().cpu().numpy()
        for place, i in enumerate(part):
            own = weights[place, : len(targets[i]), : len(sources[i])]
            found[i] = align_words(pipeline, pairs[i], sources[i], targets[i], own)
    return [align_by_place(*pair) if one is None else one for pair, one in zip(pairs, found, strict=True)]


def _parts(sources: list[list[int]], targets: list[list[int]], longest: int) -> Iterator[list[int]]:
    """Pairs of like length together. Those longer than what the model was trained on, or empty, are left out."""
    lengths = [len(source) + len(target) for source, target in zip(sources, targets, strict=True)]
    within = [i for i in range(len(lengths)) if sources[i] and targets[i] and lengths[i] <= 3 * longest]
    part: list[int] = []
    for i in sorted(within, key=lengths.__getitem__):
        if part and lengths[i] * (len(part) + 1) > PART_PIECES:
            yield part
            part = []
        part.append(i)
    if part:
        yield part


def align_words(
    pipeline: TextPipeline, pair: tuple[str, str], source: list[int], target: list[int], weights: np.ndarray
) -> Alignment:
    """Attention of pieces [Wt, Ws] to that of words: pieces of a source word add up, those of a target word average."""
    spans = word_spans(pair[0]), word_spans(pair[1])
    columns = _membership(piece_spans(pipeline, source, "source", pair[0]), spans[0], len(pair[0]))
    rows = _membership(piece_spans(pipeline, target, "target", pair[1]), spans[1], len(pair[1]))
    counts = rows.sum(1, keepdims=True)
    of_words = (rows / np.where(counts > 0, counts, 1.0)) @ weights @ columns.T
    words = [[text[a:b] for a, b in found] for text, found in zip(pair, spans, strict=True)]
    return Alignment(*spans, sharpen(of_words, *words))


def _membership(pieces: list[Span], words: tuple[Span, ...], length: int) -> np.ndarray:
    """[words, pieces] the share of each piece's characters that lies in each word."""
    of_character = [-1] * (length + 1)  # lists: for texts as short as sentences arrays cost more than they save
    for number, (start, end) in enumerate(words):
        of_character[start:end] = [number] * (end - start)
    shares = np.zeros((len(words), len(pieces)))
    for number, (start, end) in enumerate(pieces):
        owners = [owner for owner in of_character[start:end] if owner >= 0]
        for owner in set(owners):
            shares[owner, number] = owners.count(owner) / len(owners)
    return shares


def piece_spans(pipeline: TextPipeline, ids: Sequence[int], side: Side, text: str) -> list[Span]:
    """Where each piece stands in the text that was encoded. A pipeline may have changed case, quotes or spacing; what
    cannot be found (a byte of a character, say) shares what lies between its neighbours."""
    folded = text.casefold() if len(text.casefold()) == len(text) else text
    found: list[Span | None] = []
    position = 0
    for piece in pipeline.pieces(ids, side):
        surface = piece.strip(PIECE_MARKS)
        surface = surface.casefold() if folded is not text else surface
        start = folded.find(surface, position, position + len(surface) + LOOK_AHEAD) if surface else -1
        found.append(None if start < 0 else (start, start + len(surface)))
        position = position if start < 0 else start + len(surface)
    ends = list(accumulate((0 if span is None else span[1] for span in found), max, initial=0))
    starts = [len(text)]
    for span in reversed(found):
        starts.append(starts[-1] if span is None else span[0])
    starts.reverse()
    return [(ends[i], starts[i + 1]) if span is None else span for i, span in enumerate(found)]
