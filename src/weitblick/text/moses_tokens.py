"""Moses normalisation and tokenisation of one language: what sacremoses gives, several times faster.

Most words of a sentence are letters and digits only, and neither they nor their neighbours can change one another, for
no Moses rule looks across a space at anything but: is this the start or the end of the sentence, and does the next word
begin in lower case or with a digit? So sacremoses is asked only about the runs of other words, each in a context that
answers these questions, and each only once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from sacremoses import MosesDetokenizer, MosesDetruecaser, MosesPunctNormalizer, MosesTokenizer

from weitblick.text.cleaning import clean

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
