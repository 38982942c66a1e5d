"""Moses normalisation, tokenisation, truecasing, and BPE: what sacremoses and subword-nmt give, several times faster.

Most words of a sentence are letters and digits only, and neither they nor their neighbours can change one another, for
no Moses rule looks across a space at anything but: is this the start or the end of the sentence, and does the next word
begin in lower case or with a digit? So sacremoses is asked only about the runs of other words, each in a context that
answers these questions, and each only once.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise

from sacremoses import MosesDetokenizer, MosesDetruecaser, MosesPunctNormalizer, MosesTokenizer, MosesTruecaser
from subword_nmt import apply_bpe

from weitblick.text.base import clean

LARGEST_CACHE = 1_000_000

# Words that stand for any word of letters and digits before a run, or after it by how that begins.
_BEFORE = "A"
_LOWER, _DIGIT, _OTHER = "a", "1", "A"
_NOT_INERT = ""
_MARKER = "MULTI"  # sacremoses writes DOTMULTI for dots while it works, and would take a user's for its own

# Without one of these no rule of the punctuation normaliser can match.
_TO_NORMALISE = re.compile("[()%:;`\"„“”–—´‘‚’…«»\u00a0\r]|''|  ")


class MosesTokens:
    """Tokens are not escaped (`&apos;`): that protects the syntax of Moses' decoder, and would only lengthen words."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._normaliser = MosesPunctNormalizer(language)
        self._tokeniser = MosesTokenizer(language)
        self._detokeniser = MosesDetokenizer(language)
        self._detruecaser = MosesDetruecaser()
        self._lower = frozenset(MosesTokenizer.IsLower)
        self._characters: dict[str, bool] = {}
        self._beginnings: dict[str, str] = {}
        self._runs: dict[str, list[str] | None] = {}

    def tokenize(self, sentence: str) -> list[str]:
        sentence = clean(sentence)
        tokens: list[str] = []
        run: list[str] = []
        beginnings = self._beginnings
        for word in sentence.split():
            beginning = beginnings.get(word)
            if beginning is None:
                beginning = self._beginning(word)
            if beginning == _NOT_INERT:
                run.append(word)
                continue
            if run:
                found = self._run(run, _BEFORE if tokens else "", beginning)
                if found is None:
                    return self._ask(sentence)
                tokens += found
                run = []
            tokens.append(word)
        if run:
            found = self._run(run, _BEFORE if tokens else "", "")
            if found is None:
                return self._ask(sentence)
            tokens += found
        return tokens

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Tokens as text on one line, first letters of sentences in upper case."""
        cased = self._detruecaser.detruecase(" ".join(tokens))
        try:
            text = self._detokeniser.detokenize(cased, unescape=False)
        except TypeError:  # sacremoses fails on a rare Czech construction (-li after a contraction)
            text = MosesDetokenizer("en").detokenize(cased, unescape=False)
        return clean(text)

    def _ask(self, text: str) -> list[str]:
        if _TO_NORMALISE.search(text):
            text = self._normaliser.normalize(text)
        return self._tokeniser.tokenize(text, escape=False)

    def _beginning(self, word: str) -> str:
        """The stand-in for `word` after a run, or nothing if Moses may not leave the word alone."""
        beginning = _NOT_INERT
        if _MARKER not in word and all(map(self._is_inert, word)):
            beginning = self._stand_in(word[0])
        if len(self._beginnings) >= LARGEST_CACHE:
            self._beginnings.clear()
        self._beginnings[word] = beginning
        return beginning

    def _is_inert(self, character: str) -> bool:
        """Whether a letter or digit stays as it is inside a word. sacremoses' Unicode is older than Python's."""
        known = self._characters.get(character)
        if known is None:
            word = f"A{character}A"
            known = character.isalnum() and self._ask(f"A {word} A") == ["A", word, "A"]
            self._characters[character] = known
        return known

    def _stand_in(self, character: str) -> str:
        if character in "0123456789":
            return _DIGIT
        return _LOWER if character in self._lower else _OTHER

    def _run(self, words: Sequence[str], before: str, after: str) -> list[str] | None:
        """Tokens of consecutive words in their context; None in case they should ever swallow that."""
        # The context is inert and the words of a run are not, so the text alone tells both.
        text = " ".join([before, *words, after]).strip()
        if text in self._runs:
            return self._runs[text]
        tokens: list[str] | None = self._ask(text)
        if before:
            tokens = tokens[1:] if tokens and tokens[0] == before else None
        if after and tokens is not None:
            tokens = tokens[:-1] if tokens and tokens[-1] == after else None
        if len(self._runs) >= LARGEST_CACHE:
            self._runs.clear()
        self._runs[text] = tokens
        return tokens


@lru_cache(maxsize=8)
def moses_tokens(language: str) -> MosesTokens:
    """The tokeniser of a language, whose caches serve learning and encoding alike."""
    return MosesTokens(language)


# Moses truecasing: the most frequent casing of each word, learned where the position does not force one.
#
# The same rules as sacremoses' `MosesTruecaser` (with `use_known`, as the Perl script does: a casing that was seen
# inside sentences is kept there), over tokens and counts instead of text, so that a corpus is read only once.

SENTENCE_END = frozenset({".", ":", "?", "!"})
# After these a sentence still has to start.
DELAYED_START = frozenset({"(", "[", '"', "'"})

_LETTER = re.compile(f"[{MosesTruecaser.Lowercase_Letter}{MosesTruecaser.Uppercase_Letter}]")


@cache
def _has_letter(token: str) -> bool:
    return _LETTER.search(token) is not None


def starts(tokens: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each token, and whether a sentence starts with it."""
    first = True
    for token in tokens:
        yield token, first
        if token in SENTENCE_END:
            first = True
        elif token not in DELAYED_START:
            first = False


@dataclass
class TokenCounts:
    """All of a tokenised text that truecasing and BPE are learned from.

    `first` and `inner` count tokens by whether they start a sentence; `cased` those that show their own casing.
    """

    first: Counter[str] = field(default_factory=Counter)
    inner: Counter[str] = field(default_factory=Counter)
    cased: Counter[str] = field(default_factory=Counter)

    def add(self, tokens: Iterable[str]) -> None:
        tokens = list(tokens)
        for token, first in starts(tokens):
            (self.first if first else self.inner)[token] += 1
        self.cased.update(_tokens_with_own_casing(tokens))

    def update(self, other: TokenCounts) -> None:
        self.first.update(other.first)
        self.inner.update(other.inner)
        self.cased.update(other.cased)


def _tokens_with_own_casing(tokens: Iterable[str]) -> Iterator[str]:
    first = True
    for token in tokens:
        if token in DELAYED_START:
            continue
        if token in SENTENCE_END and not first:
            first = True
            continue
        if not first and _has_letter(token):
            yield token
        first = False


class Truecaser:
    """`best` is the preferred casing of a lower-cased word, `known` holds the other casings seen."""

    def __init__(self, best: Iterable[str], known: Iterable[str]) -> None:
        self.best = {token.lower(): token for token in best}
        self.known = frozenset(known)

    @classmethod
    def learn(cls, cased: Mapping[str, int]) -> Truecaser:
        casings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for token, count in cased.items():
            casings[token.lower()][token] = count
        ranked = [counts.most_common() for counts in casings.values()]
        best = [casing[0][0] for casing in ranked]
        return cls(best, (token for casing in ranked for token, _ in casing[1:]))

    def truecase(self, token: str, first: bool) -> str:
        if not first and token in self.known:
            return token
        return self.best.get(token.lower(), token)

    def truecased(self, counts: TokenCounts) -> Counter[str]:
        """The counts of the words of a text after truecasing."""
        words: Counter[str] = Counter()
        for first, tokens in ((True, counts.first), (False, counts.inner)):
            for token, count in tokens.items():
                words[self.truecase(token, first)] += count
        return words


# Byte-pair encoding as subword-nmt does it: the same merges and the same segmentation, learned several times faster.
#
# A heap finds the most frequent pair where subword-nmt searches all of them. Ties go, as there, to the pair that sorts
# last.

SEPARATOR = "@@"  # marks a piece that does not end its word
END_OF_WORD = "</w>"
LEAST_FREQUENCY = 2
LONGEST_WORD = 200  # longer words (of data, not of language) are spelled: merging them takes quadratic time
VERSION_LINE = "#version: 0.2"

Pair = tuple[str, str]


def learn_merges(words: Mapping[str, int], merges: int) -> list[Pair]:
    """At most `merges` pairs of symbols, in the order in which they are merged."""
    statistics = _PairStatistics(words)
    learned: list[Pair] = []
    while len(learned) < merges and (pair := statistics.pop_most_frequent()):
        learned.append(pair)
        statistics.merge(pair)
    return learned


class _PairStatistics:
    """The words as symbols, how often symbols are neighbours, and in which words."""

    def __init__(self, words: Mapping[str, int]) -> None:
        words = {word: count for word, count in words.items() if len(word) <= LONGEST_WORD}
        self.words: list[list[str]] = [[*word[:-1], word[-1] + END_OF_WORD] for word in words]
        self.counts = list(words.values())
        self.frequency: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, set[int]] = defaultdict(set)
        self._sort_keys: dict[str, str] = {}
        for place, (symbols, count) in enumerate(zip(self.words, self.counts, strict=True)):
            for pair in pairwise(symbols):
                self.frequency[pair] += count
                self.places[pair].add(place)
        self.heap = [self._entry(pair) for pair in self.frequency]
        heapq.heapify(self.heap)

    def _entry(self, pair: Pair) -> tuple[int, str, str, Pair]:
        return -self.frequency[pair], self._sort_key(pair[0]), self._sort_key(pair[1]), pair

    def _sort_key(self, symbol: str) -> str:
        """A string that sorts first where the symbol sorts last."""
        key = self._sort_keys.get(symbol)
        if key is None:
            key = "".join(chr(0x10FFFF - ord(character)) for character in symbol) + "\U0010ffff"
            self._sort_keys[symbol] = key
        return key

    def pop_most_frequent(self) -> Pair | None:
        while self.heap:
            entry = heapq.heappop(self.heap)
            pair = entry[-1]
            frequency = self.frequency[pair]
            if frequency < LEAST_FREQUENCY:
                continue
            if frequency == -entry[0]:
                return pair
            # Entries are added when a frequency rises; one that fell in the meantime takes its place here.
            heapq.heappush(self.heap, self._entry(pair))
        return None

    def merge(self, pair: Pair) -> None:
        changes: Counter[Pair] = Counter()
        for place in self.places.pop(pair):
            old, count = self.words[place], self.counts[place]
            new = _merged(old, pair)
            if len(new) == len(old):
                continue
            self.words[place] = new
            for neighbours in pairwise(old):
                changes[neighbours] -= count
            for neighbours in pairwise(new):
                changes[neighbours] += count
                self.places[neighbours].add(place)
        for changed, change in changes.items():
            if change:
                self.frequency[changed] += change
            if change > 0:
                heapq.heappush(self.heap, self._entry(changed))
        self.frequency.pop(pair, None)


def _merged(symbols: list[str], pair: Pair) -> list[str]:
    first, second = pair
    merged: list[str] = []
    position = 0
    last = len(symbols) - 1
    while position <= last:
        symbol = symbols[position]
        if symbol == first and position < last and symbols[position + 1] == second:
            merged.append(first + second)
            position += 2
        else:
            merged.append(symbol)
            position += 1
    return merged


class Segmenter:
    """Splits words into pieces, those inside a word marked with `@@`. Pieces outside `vocabulary` are split again."""

    def __init__(self, merges: Sequence[Pair], vocabulary: Container[str] | None = None) -> None:
        ranked = list(enumerate(merges))
        self._ranks = {pair: rank for rank, pair in reversed(ranked)}
        self._halves = {pair[0] + pair[1]: pair for pair in self._ranks}
        self._vocabulary = vocabulary

    def segment(self, word: str) -> list[str]:
        if len(word) > LONGEST_WORD:
            pieces: Sequence[str] = word
        else:
            pieces = apply_bpe.encode(
                word, self._ranks, self._halves, self._vocabulary, SEPARATOR, version=(0, 2), cache={}
            )
        return [piece + SEPARATOR for piece in pieces[:-1]] + [pieces[-1]]

    def count_pieces(self, words: Mapping[str, int]) -> Counter[str]:
        pieces: Counter[str] = Counter()
        for word, count in words.items():
            for piece in self.segment(word):
                pieces[piece] += count
        return pieces


def join(pieces: Iterable[str]) -> list[str]:
    """The words of which these are the pieces; a last word may be cut short."""
    text = " ".join(pieces).replace(f"{SEPARATOR} ", "")
    return text.removesuffix(SEPARATOR).split()
