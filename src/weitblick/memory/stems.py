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


_LINKING = {
    "en": """a about above across after again against all also although always am among an and another any are as at
    be because been before being below between both but by can could did do does doing done down during each either
    else even ever every few for from further get got had has have having he hence her here hers herself him himself his
    how however i if in indeed into is it its itself just like made make many may me might mine more most much must my
    myself need no nor not now of off often on once one only onto or other others ought our ours ourselves out over own
    per perhaps quite rather s same shall she should since so some such than that the their theirs them themselves then
    there therefore these they this those though through thus to together too toward towards under until up upon us very
    was we well were what when where whether which while who whom whose why will with within without would yet you your
    yours yourself""",
    "de": """aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis bist da
    dabei dadurch dafür daher damit dann daran darauf daraus darin darüber das dass davon dazu dein dem den denen denn
    der deren des dessen deshalb die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem einen
    einer eines er es etwas für gegen haben habe hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren
    ihrer im in indem ins ist ja jede jedem jeden jeder jedes jedoch kann können könnte man mehr mein mit muss müssen
    nach nicht noch nun nur ob oder ohne sehr sein seine seinem seinen seiner sich sie sind so sollte sollten sowie über
    um und uns unser unsere unter vom von vor war waren warum was weil welche welcher wenn wer werde werden wie wieder
    wir wird wo worden wurde wurden während zu zum zur zwischen""",
}
LINKING_WORDS = {language: frozenset(words.split()) for language, words in _LINKING.items()}
"""Words that say little without others: articles, pronouns, prepositions, conjunctions, auxiliaries."""
LONGEST_LINKING = 3
"""Letters of such words in languages without a list of them."""


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
        self._linking = LINKING_WORDS.get(code)

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

    def links(self, word: str) -> bool:
        """Whether a word says little without others, as an article or a preposition."""
        if self._linking is None:
            return len(word) <= LONGEST_LINKING and not word[:1].isupper()
        return word.lower().replace("’", "'").partition("'")[0] in self._linking


@cache
def stems_of(language: str) -> Stems:
    """The stems of a language, made once."""
    return Stems(language)


def _shortened(word: str) -> str:
    return word if len(word) <= SHORTEST_STEM else word[: max(SHORTEST_STEM, len(word) - 2)]
