"""Articles and what goes with them: which words a noun may change before it, by language.

Each row is a kind: words that take each other's place when the noun behind them has another gender, number or case.
"""

from __future__ import annotations

from functools import cache

from weitblick.memory.stems import base_language

_GERMAN_STEMS = ["dies", "jen", "jed", "jeglich", "manch", "solch", "welch", "all", "beid"]
_GERMAN_OWNERS = ["ein", "kein", "mein", "dein", "sein", "ihr", "unser", "euer"]

KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "de": (
        ("der", "die", "das", "des", "dem", "den"),
        *(tuple(stem + ending for ending in ("er", "e", "es", "em", "en")) for stem in _GERMAN_STEMS),
        *(tuple(stem + ending for ending in ("", "e", "er", "es", "em", "en")) for stem in _GERMAN_OWNERS),
        ("im", "in der", "in den", "in dem"),
        ("ins", "in die", "in den", "in das"),
        ("zum", "zur", "zu den"),
        ("vom", "von der", "von den"),
        ("am", "an der", "an den"),
        ("beim", "bei der", "bei den"),
    ),
    "en": (("a", "an"), ("this", "these"), ("that", "those")),
    "fr": (
        ("le", "la", "l'", "les"),
        ("un", "une", "des"),
        ("du", "de la", "de l'", "des"),
        ("au", "à la", "à l'", "aux"),
        ("ce", "cet", "cette", "ces"),
        *((f"{one}on", f"{one}a", f"{one}es") for one in "mts"),
    ),
    "es": (
        ("el", "la", "los", "las"),
        ("un", "una", "unos", "unas"),
        ("del", "de la", "de los", "de las"),
        ("al", "a la", "a los", "a las"),
        ("este", "esta", "estos", "estas"),
    ),
    "it": (
        ("il", "lo", "la", "l'", "i", "gli", "le"),
        ("un", "uno", "una", "un'"),
        ("del", "dello", "della", "dell'", "dei", "degli", "delle"),
        ("al", "allo", "alla", "all'", "ai", "agli", "alle"),
        ("nel", "nello", "nella", "nell'", "nei", "negli", "nelle"),
    ),
    "nl": (("de", "het"), ("dit", "deze"), ("dat", "die"), ("ons", "onze")),
    "pt": (
        ("o", "a", "os", "as"),
        ("um", "uma", "uns", "umas"),
        ("do", "da", "dos", "das"),
        ("no", "na", "nos", "nas"),
        ("ao", "à", "aos", "às"),
    ),
}

ADJECTIVE_ENDINGS = {"de": ("e", "en", "er", "es", "em")}
"""Endings that take each other's place in an adjective before a noun."""

LONGEST_ARTICLE = 2
"""Words of an article with its preposition."""


@cache
def _kinds_of(language: str) -> dict[str, tuple[str, ...]]:
    """Every article with all of its kind; of two kinds that share one, both."""
    found: dict[str, tuple[str, ...]] = {}
    for kind in KINDS.get(base_language(language), ()):
        for one in kind:
            found[one] = tuple(dict.fromkeys((*found.get(one, ()), *kind)))
    return found


def is_article(word: str, language: str) -> bool:
    """Whether a word is an article or something like it."""
    return bool(word) and word.lower() in _kinds_of(language)


def alternatives(article: str, language: str) -> tuple[str, ...]:
    """All articles of the kind of one, itself among them, with its capital letter; nothing if it is none."""
    kind = _kinds_of(language).get(article.lower(), ())
    return tuple(one[0].upper() + one[1:] for one in kind) if article[:1].isupper() else kind


def other_endings(word: str, language: str) -> tuple[str, ...]:
    """An adjective with each ending that one may have before a noun, itself among them; nothing if it has none."""
    endings = ADJECTIVE_ENDINGS.get(base_language(language), ())
    own = max(
        (ending for ending in endings if word.endswith(ending) and len(word) > len(ending) + 2), key=len, default=""
    )
    stem = word[: len(word) - len(own)]
    return tuple(stem + ending for ending in endings) if own and word[0].islower() else ()


_DEFINITE = {
    "er": ("der",), "e": ("die",), "es": ("das", "des"), "em": ("dem",), "en": ("den",),
    "der": ("der",), "die": ("die",), "das": ("das",), "des": ("des",), "dem": ("dem",), "den": ("den",),
    "im": ("dem",), "zum": ("dem",), "vom": ("dem",), "am": ("dem",), "beim": ("dem",), "ins": ("das",),
    "zur": ("der",),
}  # fmt: skip


ARTICLES = ("der", "die", "das", "des", "dem", "den")


def _definite(article: str) -> frozenset[str]:
    """The definite articles in whose place a German article can stand: dieses in that of das and des."""
    word = article.lower().split()[-1]
    ending = next((ending for ending in ("em", "en", "er", "es", "e") if word.endswith(ending)), "")
    return frozenset(_DEFINITE.get(word) or _DEFINITE.get(ending, ARTICLES))


def fits(article: str, articles: frozenset[str]) -> bool:
    """Whether a German article goes with a noun before which these definite articles may stand."""
    if article.lower() in _GERMAN_OWNERS:  # ein, kein, mein: of masculine nouns as der, of neuter ones as das
        return "das" in articles or {"der", "dem"} <= articles
    return bool(articles & _definite(article))


def cases(article: str, articles: frozenset[str] | None) -> frozenset[str]:
    """The cases in which a German article can stand before a noun with these definite articles (None: any noun): den
    Mann is accusative, den Frauen dative. Nothing where the article tells none."""
    masculine = articles is None or ("dem" in articles and "das" not in articles)
    both = articles is None or "die" in articles  # feminine or plural
    feminine = articles is None or (both and "dem" not in articles)
    if article.lower() in _GERMAN_OWNERS:
        return frozenset({"nominative"} if articles is not None and masculine else {"nominative", "accusative"})
    known = _definite(article) if articles is None else _definite(article) & articles
    found: set[str] = set()
    for one in known if len(known) < len(ARTICLES) else ():
        found |= {"die": {"nominative", "accusative"}, "das": {"nominative", "accusative"}}.get(one, set())
        found |= {"dem": {"dative"}, "des": {"genitive"}}.get(one, set())
        if one == "den":
            found |= {case for case, may_be in (("accusative", masculine), ("dative", both)) if may_be}
        if one == "der":
            every = ("nominative", masculine), ("dative", feminine), ("genitive", both)
            found |= {case for case, may_be in every if may_be}
    return frozenset(found)


def is_singular(article: str) -> bool:
    """Whether a German article stands before singulars alone: ein and jeder."""
    word = article.lower().split()[-1]
    return word.startswith(("jed", "ein"))


def ending_fits(article: str, adjective: str, articles: frozenset[str] | None) -> bool:
    """Whether the ending of a German adjective goes with an article and with a noun before which these definite
    articles stand, as far as that is known: der neue, dem neuen; ein neuer or neues, einen neuen."""
    word = article.lower().split()[-1]
    if word in _GERMAN_OWNERS:
        if articles is None or not articles & {"das", "dem"}:
            return adjective.endswith(("er", "es"))
        return adjective.endswith("es" if "das" in articles else "er")
    if word.endswith(("em", "en", "es")) or word in ("im", "zum", "vom", "am", "beim", "zur", "des", "dem", "den"):
        return adjective.endswith("en") or (word.endswith("es") and adjective.endswith("e"))
    weak = articles is not None and "dem" not in articles and "das" not in articles  # feminine or plural
    is_plural = "den" in (articles or ()) and not is_singular(article)
    if weak and (word.endswith("er") or is_plural):  # der neuen Frau, die neuen Frauen
        return adjective.endswith("en")
    return adjective.endswith(("e", "en"))


def is_plural_article(article: str, articles: frozenset[str] | None) -> bool:
    """Whether a German article before a form that may be both numbers (der Lizenznehmer, die Lizenznehmer; des Tests,
    der Tests) makes it a plural. articles: the definite ones that may stand before the form."""
    if articles is None or not article:
        return False
    word = article.lower().split()[-1]
    if {"des", "die"} <= articles and "dem" not in articles:
        return not word.endswith("es")
    if not {"dem", "die"} <= articles:
        return False
    return word == "die" or (word not in _DEFINITE and word not in _GERMAN_OWNERS and word.endswith("e"))


def kind_of_noun(articles: frozenset[str] | None) -> str | None:
    """Nouns of one kind take the same articles: neuter, masculine, or feminine and plural; None: nobody knows."""
    if articles is None:
        return None
    if "das" in articles:
        return "neuter"
    if "dem" in articles:
        return "masculine"
    return "feminine or plural" if "die" in articles else None
