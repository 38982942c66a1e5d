"""All inflected forms of a word or of a term of several words, by language.

A list of forms comes with the package (`forms/`; `forms_building` makes it); of words that it does not have, simplemma
is asked. A compound is inflected as its last part is: *Dorschquoten* as *Quoten*. A word that nobody knows has the form
that was given, and in German a genitive.
"""

from __future__ import annotations

import lzma
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import resources
from itertools import islice, product

from weitblick.memory.articles import is_article, other_endings
from weitblick.memory.stems import base_language

SHORTEST_HEAD = 4
"""Letters of the last part of a compound."""
SHORTEST_PART = 4
"""Letters of each part of a compound of two words."""
SAME_ENDINGS, FEWEST_ALIKE = (6, 5), 3
"""Letters with which nouns end alike that are of one kind, and how many of them must be known."""
MASCULINE = frozenset({"der", "dem", "den"})
_SUFFIXES = {
    "anz ei enz heit ie ik ion keit schaft tät ung ur e": frozenset({"die", "der"}),
    "ismus ling or": MASCULINE,
    "er": MASCULINE | {"die"},  # the plural is the same
    "chen lein ment tum um": frozenset({"das", "dem"}),
}
GENDERS = {suffix: articles for suffixes, articles in _SUFFIXES.items() for suffix in suffixes.split()}
"""The articles of German nouns by their suffixes, most of which have one gender."""
FEW_ARTICLES, MOST_SELDOM = 3, 10
"""A noun with fewer definite articles may have been seen seldom; most nouns were: nouns that were seen often count
alone if they are one in so many."""
MOST_KEPT = 50_000
"""Forms whose articles are kept."""
MOST_FORMS = 40
"""Of a term: every one is tried."""
FORM = re.compile(r"(\d+)(.*)")
_LINKING = {
    "de": "an auf aus bei durch für gegen in im mit nach ohne über um und unter von vom vor zu zum zur zwischen",
    "fr": "à au aux avec dans de des du en et par pour sans sur",
    "es": "a al con de del en para por sin sobre y",
    "it": "a con da del della dei di e in per senza su",
}
LINKING = {language: frozenset(words.split()) for language, words in _LINKING.items()}
"""Words behind which nothing of a term is inflected: Vertrag *über* die Arbeitsweise."""


class WordForms:
    """The forms of the words of one language."""

    def __init__(self, language: str) -> None:
        self.language = base_language(language)
        self._listed, self._lemmas = _listed(self.language)
        self._of_term: dict[str, tuple[str, ...]] = {}
        self._articles_of: dict[str, frozenset[str] | None] = {}

    def of(self, term: str) -> tuple[str, ...]:
        """All forms of a term, the given one first."""
        if term not in self._of_term:
            words = term.split()
            found = [" ".join(words), *(self._of_words(words) if words else ())]
            self._of_term[term] = tuple(islice(dict.fromkeys(found), MOST_FORMS))
        return self._of_term[term]

    def lemma(self, word: str) -> str:
        """The basic form of a word, of a compound by its last part; the word itself if nobody knows."""
        if word in self._lemmas:
            return self._lemmas[word]
        for start in range(2, len(word) - SHORTEST_HEAD + 1) if self.language == "de" and word[:1].isupper() else ():
            tail = word[start].upper() + word[start + 1 :]
            if tail in self._lemmas:
                return word[:start] + _like(self._lemmas[tail], word[start].isupper())
        return word

    def knows(self, word: str) -> bool:
        """Whether a word, as it is spelled, is a lemma or a form of the list."""
        return word in self._listed

    def is_noun(self, word: str) -> bool:
        """Whether a word with a capital letter is of the list, or a compound of two that are."""
        parts = ((word[:cut], word[cut:].capitalize()) for cut in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1))
        return self.knows(word) or any(
            self.knows(last) and (self.knows(first) or self.knows(first.removesuffix("s"))) for first, last in parts
        )

    def articles(self, form: str) -> frozenset[str] | None:
        """The definite articles that stand before a form of a noun, in German; None if that is not known. Those of a
        compound are those of its last part."""
        if form not in self._articles_of:
            if len(self._articles_of) >= MOST_KEPT:
                self._articles_of.clear()
            self._articles_of[form] = self._find_articles(form) if self.language == "de" else None
        return self._articles_of[form]

    def _find_articles(self, form: str) -> frozenset[str] | None:
        known = _articles(self.language)
        linking = LINKING[self.language]
        words = form.split()
        head = words[next((n for n, word in enumerate(words) if n and word in linking), len(words)) - 1]
        found = _of_head(head, known) or _of_genitive(head, known)
        if head[:1].isupper() and (found is None or (len(found) < FEW_ARTICLES and "das" not in found)):
            found = _of_ending(head, self.language) | (found or frozenset()) or None
        if found is None and self._is_old_dative(head):
            return frozenset({"dem"})
        if found is None and head[:1].isupper() and self.lemma(head) == head:
            found = _of_suffix(head)
        if found is None and head.endswith("n") and head[:-1] in self._listed:
            return frozenset({"den"})  # Dorschen, where there is Dorsche
        return found

    def _is_old_dative(self, form: str) -> bool:
        """Whether a form is a dative as Vertrage, where the plural is Verträge."""
        base, own = form[:-1], self.articles(form[:-1]) if form.endswith("e") and form[:1].isupper() else None
        if own is None or "dem" not in own:
            return False
        return any("die" in (self.articles(other) or ()) for other in self.of(base) if other not in (form, base))

    def is_plural(self, form: str, lemma: str) -> bool | None:
        """Whether a form of a German noun is a plural and nothing else (True), or a singular (False); None: it may be
        both, or nobody knows."""
        own, other = self.articles(form), [self.articles(one) for one in self.of(lemma) if one != form]
        if own is None:
            return None
        if own & {"das", "dem", "des"}:
            return None if "die" in own else False
        if form == lemma:
            return False if any(one is not None and "die" in one for one in other) else None
        return True if own & {"die", "den"} else None

    def inflects(self, term: str) -> bool:
        """Whether forms of the last word of a term are known, so that nothing else is one."""
        words = term.split()
        return len(words) > 1 or (len(words) == 1 and bool(self._listed.get(term) or self._of_compound(term)))

    def _of_words(self, words: list[str]) -> list[str]:
        """Of a term of several words its last one before a preposition is inflected, and what stands before that has
        each ending of an adjective."""
        linking = LINKING.get(self.language, frozenset[str]())
        breaks = (n for n, w in enumerate(words) if n and (w in linking or is_article(w, self.language)))
        head = next(breaks, len(words)) - 1
        before = [other_endings(word[0].lower() + word[1:], self.language) for word in words[:head]]
        capital = [word[0].isupper() for word in words[:head]]
        endings = range(max((len(own) for own in before), default=1) or 1)
        found = []
        for ending, form in product(endings, self._of_word(words[head])):
            adjectives = [
                _like(own[ending], is_capital) if own else word
                for word, own, is_capital in zip(words[:head], before, capital, strict=True)
            ]
            found.append(" ".join((*adjectives, form, *words[head + 1 :])))
        return found

    def _of_word(self, word: str) -> list[str]:
        found = self._listed.get(word) or self._of_compound(word) or _inflected_alike(word, self.language)
        found = found or _from_simplemma(word, self.language)
        if not found and self.language == "de" and word[:1].isupper() and not word.isupper() and word.isalpha():
            found = [] if word[-1] in "sßxz" else [f"{word}s"]
        return [word, *found]

    def _of_compound(self, word: str) -> list[str]:
        if self.language not in ("de", "nl", "sv", "da", "no", "nb"):
            return []
        for start in range(2, len(word) - SHORTEST_HEAD + 1):
            tail = word[start:]
            head = tail[0].upper() + tail[1:] if word[0].isupper() and self.language == "de" else tail
            forms = self._listed.get(head)
            if forms:
                return [word[:start] + _like(form, tail[0].isupper()) for form in forms]
        return []


def _of_head(word: str, known: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
    """The articles of a noun; of a rare one, those of the last part of a compound as well."""
    own = known.get(word)
    if own is not None and len(own) > 1:
        return own
    tails = (word[start].upper() + word[start + 1 :] for start in range(2, len(word) - SHORTEST_HEAD + 1))
    of_tail = next((known[tail] for tail in tails if tail in known and word[:1].isupper()), None)
    return own if of_tail is None else of_tail | (own or frozenset())


def _of_genitive(word: str, known: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
    """des, of a word with the s of a masculine or neuter noun."""
    for ending in ("es", "s"):
        stem = word.removesuffix(ending)
        own = (_of_head(stem, known) or _of_suffix(stem)) if word.endswith(ending) else None
        if own is not None and ("das" in own or {"der", "dem"} <= own):
            return frozenset({"des"})
    return None


@cache
def _of_ending(word: str, language: str) -> frozenset[str]:
    """The articles of German nouns that end as a word does, as Arbeitnehmer and Teilnehmer do as Lizenznehmer: of those
    that were often seen, if there are enough of them."""
    for size in SAME_ENDINGS:
        others = _by_ending(language).get(word[-size:], []) if len(word) >= size + SHORTEST_PART else []
        often = [own for own in others if len(own) >= FEW_ARTICLES]
        chosen = often if len(often) * MOST_SELDOM >= len(others) else others
        counts = Counter(one for own in chosen for one in own)
        if len(others) >= FEWEST_ALIKE:
            return frozenset(one for one, count in counts.items() if 2 * count >= len(chosen))
    return frozenset()


def _of_suffix(word: str) -> frozenset[str] | None:
    """The articles of a German noun in its basic form that nobody knows, by the gender that its suffix has."""
    chosen = max((suffix for suffix in GENDERS if word.endswith(suffix)), key=len, default="")
    return None if not chosen or (chosen == "e" and word.startswith("Ge")) else GENDERS[chosen]


@cache
def _by_ending(language: str) -> dict[str, list[frozenset[str]]]:
    """The articles of all nouns that end with some letters."""
    found: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for noun, articles in _articles(language).items():
        for size in SAME_ENDINGS:
            if len(noun) > size:
                found[noun[-size:]].append(articles)
    return dict(found)


@cache
def _inflected_alike(word: str, language: str) -> list[str]:
    """The forms of a noun that is in no list, by those of the nouns of the list that end alike."""
    if language != "de" or not word[:1].isupper() or not word.isalpha():
        return []
    for size in SAME_ENDINGS:
        others = _lemmas_by_ending(language).get(word[-size:], []) if len(word) > size else []
        if len(others) >= FEWEST_ALIKE:
            forms = Counter(form for other in others for form in other)
            return [word[: len(word) - size] + form for form, count in forms.items() if 2 * count >= len(others)]
    return []


@cache
def _lemmas_by_ending(language: str) -> dict[str, list[list[str]]]:
    """The last letters of the forms of all lemmas that end with some letters, from these letters on."""
    forms, lemmas = _listed(language)
    found: defaultdict[str, list[list[str]]] = defaultdict(list)
    for lemma in {lemma for lemma in lemmas.values() if lemma[:1].isupper()}:
        for size in SAME_ENDINGS:
            start = len(lemma) - size
            if start > 0:
                alike = [form[start:] for form in forms[lemma] if form[:start] == lemma[:start] and form != lemma]
                found[lemma[start:]].append(alike)
    return dict(found)


@cache
def word_forms(language: str) -> WordForms:
    """The forms of a language, read once."""
    return WordForms(language)


def _like(word: str, is_capital: bool) -> str:
    return (word[0].upper() if is_capital else word[0].lower()) + word[1:]


@cache
def _listed(language: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The other forms of every lemma of the list and of every form, and the lemma of each."""
    path = resources.files("weitblick.memory") / "forms" / f"{language}.txt.xz"
    if not path.is_file():
        return {}, {}
    found: dict[str, list[str]] = {}
    lemmas: dict[str, str] = {}
    others: defaultdict[str, list[str]] = defaultdict(list)
    for line in lzma.decompress(path.read_bytes()).decode().split("\n"):
        lemma, *codes = line.split("\t")
        forms = [_decoded(lemma, code) for code in codes]
        found[lemma] = forms
        lemmas[lemma] = lemma
        for form in forms:
            others[form] = [lemma, *forms]
            lemmas.setdefault(form, lemma)
    return {**others, **found}, lemmas | {lemma: lemma for lemma in found}


@cache
def _articles(language: str) -> dict[str, frozenset[str]]:
    path = resources.files("weitblick.memory") / "forms" / f"{language}.articles.txt.xz"
    if not path.is_file():
        return {}
    found: dict[str, frozenset[str]] = {}
    for line in lzma.decompress(path.read_bytes()).decode().split("\n"):
        articles, nouns = line.split("\t")
        found.update(dict.fromkeys(nouns.split(" "), frozenset(articles.split())))
    return found | {noun: own | MASCULINE for noun, own in found.items() if _is_agent(noun, own, found)}


def _is_agent(noun: str, own: frozenset[str], known: Mapping[str, frozenset[str]]) -> bool:
    """Whether a noun is one like Teilnehmer, of which texts speak in the plural, so that it looks like a feminine one:
    these have no genitive with an s."""
    return noun.endswith("er") and own <= {"der", "die"} and "des" in known.get(f"{noun}s", ())


def _decoded(lemma: str, code: str) -> str:
    matched = FORM.fullmatch(code)
    assert matched is not None
    return lemma[: len(lemma) - int(matched[1])] + matched[2]


@cache
def _from_simplemma(word: str, language: str) -> list[str]:
    """The forms that simplemma's list has for a lemma; nothing for a language that it does not know."""
    return _inverted(language).get(word, [])


@cache
def _inverted(language: str) -> dict[str, list[str]]:
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES, DefaultDictionaryFactory

    if language not in SUPPORTED_LANGUAGES:
        return {}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for form, lemma in DefaultDictionaryFactory().get_dictionary(language).items():
        if form != lemma:
            found[lemma].append(form)
    return dict(found)
