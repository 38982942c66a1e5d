"""Words and their stems: two texts speak of the same thing where their stems are the same."""

from __future__ import annotations

import re
from functools import cache, lru_cache

import snowballstemmer

WORD = re.compile(r"\w+(?:[-'’.]\w+)*|[^\w\s]")
MOST_STEMS = 50_000
SHORTEST_STEM = 4
"""Letters of a word that are left of it, in languages without a stemmer."""

SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch",
    "no": "norwegian", "nb": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip

_NEGATIONS = {
    "en": "no not never none neither nor cannot without nobody nothing nowhere n't",
    "de": "nicht nichts nie niemals niemand nirgends kein keine keinen keinem keiner keines weder",
    "fr": "ne n pas jamais rien aucun aucune personne ni sans",
    "es": "no nunca nada nadie ningún ninguno ninguna ni sin",
    "it": "non mai niente nulla nessuno nessuna né senza",
    "nl": "niet nooit niets niemand geen noch zonder",
    "pt": "não nunca nada ninguém nenhum nenhuma nem sem",
}
NEGATIONS = {language: frozenset(words.split()) for language, words in _NEGATIONS.items()}
"""Words that turn a sentence into its contrary."""


def base_language(language: str) -> str:
    """The language of a code without its region: de of de-AT."""
    return re.split(r"[-_]", language.lower())[0]


class Stems:
    """The stems of the words of a language: by Snowball where it has one, else by leaving out two letters."""

    def __init__(self, language: str) -> None:
        code = base_language(language)
        name = SNOWBALL.get(code)
        known = name is not None and name in snowballstemmer.algorithms()
        self._stem = lru_cache(MOST_STEMS)(snowballstemmer.stemmer(name).stemWord if known else _shortened)
        self.negations = NEGATIONS.get(code, frozenset[str]())

    def of(self, word: str) -> str:
        """The stem of a word, in small letters."""
        return str(self._stem(word.lower().replace("’", "'")))

    def in_text(self, text: str) -> frozenset[str]:
        """The stems of all words of a text, without marks of punctuation."""
        return frozenset(self.of(word) for word in WORD.findall(text) if word[0].isalnum())

    def negates(self, word: str) -> bool:
        """Whether a word negates."""
        word = word.lower().replace("’", "'")
        return word in self.negations or (word.endswith("n't") and "n't" in self.negations)


@cache
def stems_of(language: str) -> Stems:
    """The stems of a language, made once."""
    return Stems(language)


def _shortened(word: str) -> str:
    return word if len(word) <= SHORTEST_STEM else word[: max(SHORTEST_STEM, len(word) - 2)]
