"""The paper's text pipeline: Moses normalisation, tokenisation and truecasing, then joint BPE."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import chain, islice, pairwise, zip_longest
from pathlib import Path
from typing import Any, TypeVar

from weitblick.common.errors import UserError
from weitblick.common.files import check_format_version, read_json, read_lines
from weitblick.common.threads import cores
from weitblick.text.base import CHUNK, EOS, UNK, Settings, Side, TextPipeline, Vocabulary
from weitblick.text.moses_text import (
    DELAYED_START,
    LARGEST_CACHE,
    SENTENCE_END,
    SEPARATOR,
    VERSION_LINE,
    MosesTokens,
    Pair,
    Segmenter,
    TokenCounts,
    Truecaser,
    join,
    learn_merges,
    moses_tokens,
)

Task = TypeVar("Task")
Result = TypeVar("Result")

_TASKS_AHEAD = 3  # per process


def ordered_map(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    workers: int,
    initializer: Callable[..., None],
    initial_arguments: tuple[Any, ...],
) -> Iterator[Result]:
    """`map(function, tasks)` in `workers` fresh processes (no fork: threads and their locks are not copied)."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer, initial_arguments) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(function, task))
                if len(waiting) >= _TASKS_AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


FORMAT_VERSION = 1
MERGES_FILE = "bpe.codes"  # in subword-nmt's format
TRUECASER_FILES = {"source": "source.truecaser.json", "target": "target.truecaser.json"}
PARALLEL_FROM = 40_000  # sentences; fewer are done before other processes have started

RARE_FROM = 100_000  # pieces; in smaller texts a character seen once is like any other


class MosesPipeline(TextPipeline):
    """One set of merges for both languages; a tokeniser, a truecaser and (unless joint) a vocabulary for each.

    A character that the training text does not have (or hardly) becomes UNK. Each UNK of a translation is replaced by
    the next unknown piece of its source.
    """

    kind = "moses"

    def __init__(
        self,
        languages: tuple[str, str],
        vocabularies: tuple[Vocabulary, Vocabulary],
        longest_sentence: int,
        truecasers: tuple[Truecaser, Truecaser],
        merges: Sequence[Pair],
    ) -> None:
        super().__init__(languages, vocabularies, longest_sentence)
        self._truecasers = truecasers
        self._merges = tuple(merges)
        self._sides: dict[str, _Encoder] = {
            side: _Encoder(moses_tokens(language), truecaser, Segmenter(merges, vocabulary), vocabulary)
            for side, language, truecaser, vocabulary in zip(
                ("source", "target"), languages, truecasers, vocabularies, strict=True
            )
        }

    @classmethod
    def learn(
        cls, counts: tuple[TokenCounts, TokenCounts], languages: tuple[str, str], merges: int, joint: bool, longest: int
    ) -> MosesPipeline:
        """Learn from the counted tokens of both sides (see `count_tokens`)."""
        source_caser, target_caser = (Truecaser.learn(side.cased) for side in counts)
        words = source_caser.truecased(counts[0]), target_caser.truecased(counts[1])
        learned = learn_merges(words[0] + words[1], merges)
        sides = [words[0] + words[1]] if joint else list(words)
        vocabularies = [_vocabulary(side, Segmenter(learned)) for side in sides]
        return cls(languages, (vocabularies[0], vocabularies[-1]), longest, (source_caser, target_caser), learned)

    def encode(self, sentences: Sequence[str], side: Side) -> list[list[int]]:
        encoder = self._sides[side]
        return [encoder.encode(sentence) for sentence in sentences]

    def decode(self, ids: Sequence[Sequence[int]], side: Side, sources: Sequence[str] | None = None) -> list[str]:
        given = [""] * len(ids) if sources is None else sources
        tokens = self._sides[side].tokens
        return [
            tokens.detokenize(join(self._output_pieces(sentence, side, source)))
            for sentence, source in zip(ids, given, strict=True)
        ]

    def _output_pieces(self, ids: Sequence[int], side: Side, source: str) -> list[str]:
        """The pieces that `ids` write, unknown ones copied from the source in order while there are some."""
        vocabulary = self.vocabulary(side)
        unknown = iter(self._sides["source"].unknown_pieces(source, vocabulary) if UNK in ids else ())
        pieces: list[str] = []
        for number, following in zip_longest(ids, ids[1:], fillvalue=EOS):
            if number > UNK:
                pieces.append(vocabulary.token(number))
            elif number == UNK and (found := next(unknown, None)):
                piece, next_piece = found
                # Inside a word only if the word goes on as it does in the source.
                goes_on = following == UNK or vocabulary.token(following) == next_piece
                pieces.append(piece if goes_on else piece.removesuffix(SEPARATOR))
        return pieces

    def words(self, ids: Sequence[int], side: Side) -> list[tuple[int, int, str]]:
        words: list[tuple[int, int, str]] = []
        start, surface = 0, ""
        for position, (number, piece) in enumerate(zip(ids, self.pieces(ids, side), strict=True)):
            if number <= UNK and surface:
                words.append((start, position, surface))
                start, surface = position, ""
            surface += piece.removesuffix(SEPARATOR)
            if not piece.endswith(SEPARATOR):
                words.append((start, position + 1, surface))
                start, surface = position + 1, ""
        if surface:
            words.append((start, len(ids), surface))
        return words

    # Files

    def _files(self) -> dict[str, bytes]:
        lines = [VERSION_LINE, *(f"{first} {second}" for first, second in self._merges)]
        files = {MERGES_FILE: "".join(f"{line}\n" for line in lines).encode()}
        for name, truecaser in zip(TRUECASER_FILES.values(), self._truecasers, strict=True):
            value = {
                "format_version": FORMAT_VERSION,
                "best": list(truecaser.best.values()),
                "known": sorted(truecaser.known),
            }
            files[name] = json.dumps(value, ensure_ascii=False, indent=0).encode()
        return files

    @classmethod
    def _restore(cls, folder: Path, settings: Settings) -> MosesPipeline:
        source, target = (_read_truecaser(folder / name) for name in TRUECASER_FILES.values())
        return cls(*settings, (source, target), _read_merges(folder / MERGES_FILE))


class _Encoder:
    """Sentences of one side to ids. Each word type is truecased, segmented and looked up once."""

    def __init__(self, tokens: MosesTokens, truecaser: Truecaser, segmenter: Segmenter, vocabulary: Vocabulary) -> None:
        self.tokens = tokens
        self._truecaser, self._segmenter, self._vocabulary = truecaser, segmenter, vocabulary
        self._first: dict[str, list[int]] = {}
        self._inner: dict[str, list[int]] = {}

    def encode(self, sentence: str) -> list[int]:
        ids: list[int] = []
        first = True
        for token in self.tokens.tokenize(sentence):
            found = (self._first if first else self._inner).get(token)
            ids += self._look_up(token, first) if found is None else found
            if first:
                first = token in DELAYED_START or token in SENTENCE_END
            else:
                first = token in SENTENCE_END
        return ids

    def _look_up(self, token: str, first: bool) -> list[int]:
        known = self._first if first else self._inner
        if len(known) >= LARGEST_CACHE:
            known.clear()
        ids = [self._vocabulary.id(piece) for piece in self._segment(token, first)]
        known[token] = ids
        return ids

    def _segment(self, token: str, first: bool) -> list[str]:
        return self._segmenter.segment(self._truecaser.truecase(token, first))

    def unknown_pieces(self, sentence: str, output: Vocabulary) -> list[tuple[str, str]]:
        """The pieces of a sentence that are unknown or cannot be written in the output, each with its next piece."""
        pieces = [piece for token in self.tokens.tokenize(sentence) for piece in self._segment(token, False)]

        def is_unknown(piece: str) -> bool:
            if piece not in self._vocabulary:
                return True
            return any(character not in output for character in piece.removesuffix(SEPARATOR))

        return [(piece, following) for piece, following in pairwise([*pieces, ""]) if is_unknown(piece)]


def _vocabulary(words: Counter[str], segmenter: Segmenter) -> Vocabulary:
    """The pieces of the words, most frequent first, and every character, so that new words can be spelled.

    In a text of some size a character seen once is left out: it teaches nothing, but as UNK in training it teaches a
    model to put out UNK, which is then copied from the source.
    """
    pieces = segmenter.count_pieces(words)
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    least = 2 if pieces.total() >= RARE_FROM else 1
    for character, count in characters.items():
        for piece in (character, character + SEPARATOR):
            if count < least:
                pieces.pop(piece, None)
            else:
                pieces[piece] += 0
    return Vocabulary(sorted(pieces, key=lambda piece: (-pieces[piece], piece)))


def count_tokens(
    text: Iterable[tuple[Side, list[str]]], languages: tuple[str, str], workers: int | None = None
) -> tuple[TokenCounts, TokenCounts]:
    """Tokenise and count a text, given as chunks of sentences of either side."""
    counts = {"source": TokenCounts(), "target": TokenCounts()}
    workers = workers or cores()
    iterator = iter(text)
    first = list(islice(iterator, PARALLEL_FROM // CHUNK)) if workers > 1 else []
    everything = chain(first, iterator)
    results: Iterable[tuple[Side, TokenCounts]]
    if len(first) < PARALLEL_FROM // CHUNK:
        _become_counter(*languages)
        results = map(_count_chunk, everything)
    else:
        results = ordered_map(_count_chunk, everything, workers, _become_counter, languages)
    for side, found in results:
        counts[side].update(found)
    return counts["source"], counts["target"]


# What the processes of a pool hold and do

_tokens: dict[str, MosesTokens] = {}


def _become_counter(source_language: str, target_language: str) -> None:
    _tokens.update(source=moses_tokens(source_language), target=moses_tokens(target_language))


def _count_chunk(task: tuple[Side, list[str]]) -> tuple[Side, TokenCounts]:
    side, sentences = task
    counts = TokenCounts()
    for sentence in sentences:
        counts.add(_tokens[side].tokenize(sentence))
    return side, counts


def _read_truecaser(path: Path) -> Truecaser:
    value = read_json(path)
    check_format_version(value, FORMAT_VERSION, path)
    best, known = value.get("best"), value.get("known")
    for tokens in (best, known):
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise UserError("has no casings", where=path, remedy="restore the file from the run that wrote it")
    return Truecaser(best, known)


def _read_merges(path: Path) -> list[Pair]:
    merges: list[Pair] = []
    for number, line in enumerate(read_lines(path), 1):
        if number == 1 and line == VERSION_LINE:
            continue
        halves = line.split(" ")
        if number == 1 or len(halves) != 2:
            expected = VERSION_LINE if number == 1 else "two symbols with a space between"
            raise UserError(f"{line!r} in place of {expected}", where=path, line=number, remedy="restore the file")
        merges.append((halves[0], halves[1]))
    return merges
