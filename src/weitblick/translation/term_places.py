"""Where a term belongs in a translation, and every way to say it there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from weitblick.memory.articles import (
    LONGEST_ARTICLE,
    alternatives,
    cases,
    ending_fits,
    fits,
    is_article,
    is_plural_article,
    is_singular,
    kind_of_noun,
    other_endings,
)
from weitblick.memory.stems import WORD, base_language, stems_of
from weitblick.memory.word_forms import word_forms
from weitblick.translation.alignment import Alignment

MOST_ADJECTIVES = 2
"""Words between an article and a term that may be adjectives of it."""
DROPPED = 0.2
"""Share of the nearest word below which the translation has left a term out: it is put beside that word."""
SHARED, SHARED_OF_BEST = 0.25, 0.4
"""Share, and part of the greatest share, from which on a source word stands behind a word."""
PERHAPS_SHARED = 0.1
"""Share from which on a source word may stand behind a part of a word."""
SHORTEST_PART = 3
"""Letters of a part of a compound."""
_PARTICLES = """ab an auf aus bei durch ein fort gegen heim her hin hinter in los mit nach nieder ober über um un unter
ur ver vor weg weiter wider wieder zer zu zurück zusammen zwischen"""
PARTICLES = frozenset(_PARTICLES.split())
"""With which German words begin that are no compounds of two nouns: Ausschuss, Vorschlag."""


Part = Literal["first", "last"]
"""Of a compound."""


@dataclass(frozen=True)
class TermPlace:
    """The characters [start, end) of a translation that a term takes the place of; article: where the one before it
    begins, if there is one; adjectives: the words between them; shared: it stands for other source words as well; part:
    of a compound that does so, perhaps, the part that stands for the term."""

    text: str
    start: int
    end: int
    article: int | None = None
    adjectives: tuple[str, ...] = ()
    shared: bool = False
    part: Part | None = None

    @property
    def begin(self) -> int:
        """Where it begins, with its article and adjectives."""
        before = len(" ".join((*self.adjectives, ""))) if self.adjectives else 0
        return self.start - before if self.article is None else self.article

    @property
    def words(self) -> str:
        """What stands there now."""
        return self.text[self.start : self.end]

    @classmethod
    def of(cls, text: str, start: int, end: int, alignment: Alignment, language: str) -> TermPlace | None:
        """The place of the characters [start, end) of a source."""
        span = alignment.target_span(start, end)
        if span is None:
            return None
        words, (first, last) = alignment.target, span
        spelled = [text[begin:stop] for begin, stop in words]
        stems = stems_of(language)
        while last - first > 1 and (is_article(spelled[first], language) or stems.links(spelled[first])):
            first += 1
        while last - first > 1 and (not spelled[last - 1][0].isalnum() or stems.links(spelled[last - 1])):
            last -= 1
        chosen = [begin < end and start < stop for begin, stop in alignment.source]
        if float(alignment.weights[first:last][:, chosen].sum(1).max()) < DROPPED or not spelled[first][0].isalnum():
            return cls(text, words[first][0], words[first][0])
        before = first
        while before and first - before < MOST_ADJECTIVES and other_endings(spelled[before - 1], language):
            if is_article(spelled[before - 1], language):
                break
            before -= 1
        adjectives = tuple(spelled[before:first])
        shared, part = False, None
        if last - first == 1 and spelled[first][0].isupper():
            shared, part = _shared(alignment, first, chosen)
        for size in range(LONGEST_ARTICLE, 0, -1):
            begin = before - size
            if begin >= 0 and is_article(" ".join(spelled[begin:before]), language):
                return cls(text, words[first][0], words[last - 1][1], words[begin][0], adjectives, shared, part)
        return cls(text, words[first][0], words[last - 1][1], None, adjectives, shared, part)


def _shared(alignment: Alignment, word: int, chosen: Sequence[bool]) -> tuple[bool, Part | None]:
    """Whether a word of the translation stands for other source words than the chosen ones, too; and which part of it
    stands for the chosen ones then. German has the head of a compound last, as English has in *audit committee*, and
    not in *committee on audits*, where other words stand in between."""
    shares = alignment.weights[word].tolist()
    own = [n for n, is_own in enumerate(chosen) if is_own]

    def is_neighbour(other: int) -> bool:
        between = range(other + 1, own[0]) if other < own[0] else range(own[-1] + 1, other)
        return all(shares[n] >= PERHAPS_SHARED for n in between)

    others = [n for n, share in enumerate(shares) if not chosen[n] and share >= PERHAPS_SHARED]
    if not others:
        return False, None
    likely = [n for n in others if is_neighbour(n)] or others
    other = max(likely, key=lambda n: shares[n])
    part: Part = "last" if (other < own[0]) == is_neighbour(other) else "first"
    share = max(shares[n] for n in others)
    return share >= max(SHARED, SHARED_OF_BEST * max(shares)), part


@dataclass(frozen=True)
class Candidate:
    """A translation with a term in it, in parts: up to the article, article and adjectives, the term, the rest; end:
    where in the translation of before the rest begins; open: the word of the term may go on; penalty: nats by which its
    number or article speaks against it; same_kind: a noun of the gender and number of the one before, with which the
    rest agrees already; in_singular: its form may be both numbers, and its article makes it a singular."""

    before: str
    article: str
    adjectives: tuple[str, ...]
    form: str
    rest: str
    end: int
    open: bool = False
    penalty: float = 0.0
    same_kind: bool = False
    in_singular: bool = False

    @property
    def said(self) -> str:
        """Article, adjectives and term."""
        return " ".join((*([self.article] if self.article else []), *self.adjectives, self.form))

    @property
    def beginning(self) -> str:
        """Up to the end of the term."""
        return self.before + self.said

    @property
    def text(self) -> str:
        """All of it."""
        return self.beginning + self.rest

    def until(self, words: int) -> str:
        """The beginning and a few words of the rest."""
        found = list(islice(WORD.finditer(self.rest), words))
        return self.beginning + (self.rest[: found[-1].end()] if found else "")


def with_all(text: str, chosen: Iterable[Candidate]) -> str:
    """A text with what each of the candidates says, each in its place."""
    for one in sorted(chosen, key=lambda one: -len(one.before)):
        gap = " " if one.end == len(one.before) and text[one.end :] else ""
        text = f"{text[: len(one.before)]}{one.said}{gap}{text[one.end :]}"
    return text


def candidates(place: TermPlace, forms: Sequence[str], is_kept: bool, language: str) -> list[Candidate]:
    """Every form with every article of the kind of the one before it."""
    begin = place.start - len(" ".join((*place.adjectives, "")) if place.adjectives else "")
    begin = place.start if place.text[begin : place.start].split() != list(place.adjectives) else begin
    adjectives = place.adjectives if begin < place.start else ()
    article = "" if place.article is None else place.text[place.article : begin].strip()
    before = place.text[: begin if place.article is None else place.article]
    rest = place.text[place.end :] if place.end > place.start else f" {place.text[place.end :]}"
    articles = dict.fromkeys((article, *alternatives(article, language))) if article else {"": None}
    starts = not before.strip() and not article and not adjectives
    compounds = [] if is_kept or place.part is None else _compounds(place.words, place.part, forms, language)
    ways = [(form, False) for form in compounds]
    if not compounds or not place.shared:
        ways += [(form, place.shared and not is_kept) for form in forms]
    pairs = [(one, form, may_go_on) for one in articles for form, may_go_on in ways]
    fitting = pairs if is_kept else [pair for pair in pairs if _agree(pair[0], pair[1], language)]
    known = word_forms(language)
    kind = kind_of_noun(known.articles(place.words.split()[-1])) if place.words.strip() else None
    own_cases = _cases(article, place.words, language)
    found = []
    for one, form, may_go_on in fitting or pairs:
        same_kind = is_kept or (kind is not None and kind == kind_of_noun(known.articles(form)))
        said = _capital(form) if starts and not is_kept else form
        penalty = 0.0 if one == article else OTHER_ARTICLE if same_kind else OTHER_UNKNOWN if kind is None else 0.0
        if one and not is_kept and not own_cases & (_cases(one, form, language) or own_cases):
            penalty += OTHER_CASE
        alone = not is_kept and _in_singular(one, form, own_cases, language)
        found.append(Candidate(before, one, adjectives, said, rest, place.end, may_go_on, penalty, same_kind, alone))
    return found


OTHER_ARTICLE, OTHER_UNKNOWN = 2.0, 1.0
"""Nats against another article where the new noun takes the one that stands there, as the noun of before did, and where
nobody knows what noun that was."""
OTHER_CASE = 4.0
"""Nats against an article that cannot be of the case of the one that stands there."""
NO_SINGULAR, NO_PLURAL, NEVER = 6.0, 6.0, 20.0
"""Nats against a plural where the source has a singular, the other way round, and where the article is a singular."""


def is_plural(said: str, term: str) -> bool | None:
    """Whether words of an English source are the plural of a term; None if the term is a plural itself."""
    ours, theirs = said.lower().split()[-1:], term.lower().split()[-1:]
    if not ours or not theirs or theirs[0].endswith("s"):
        return None
    return ours != theirs and ours[0].endswith("s")


def with_number(offered: Sequence[Candidate], lemma: str, plural: bool | None, language: str) -> list[Candidate]:
    """Candidates of which those have a penalty whose number is not that of the source."""
    known = word_forms(language)
    found = []
    for one in offered:
        own = known.is_plural(one.form, lemma)
        if own is None and is_plural_article(one.article, known.articles(one.form)):
            own = True
        if own is None and one.in_singular:
            own = False
        other = 0.0 if own is None or own == plural or plural is None else NO_PLURAL if plural else NO_SINGULAR
        other += NEVER if own and one.article and is_singular(one.article) else 0.0
        found.append(replace(one, penalty=one.penalty + other))
    return found


def agrees(text: str, start: int, said: str, language: str) -> bool:
    """Whether the article before the words `said`, which begin at `start`, goes with them, if there is one."""
    words = text[:start].split()
    for size in range(MOST_ADJECTIVES + 1):
        if size < len(words) and is_article(words[-1 - size], language):
            return _agree(words[-1 - size], said, language)
        if size < len(words) and not other_endings(words[-1 - size], language):
            break
    return True


def _agree(article: str, form: str, language: str) -> bool:
    """Whether an article may stand before a form, and before the adjectives with which that begins, as far as known."""
    known = word_forms(language).articles(form) if article else None
    if known is None:
        return True
    adjectives = [word for word in form.split()[:-1] if other_endings(word, language)]
    return fits(article, known) and all(ending_fits(article, word, known) for word in adjectives)


def _in_singular(article: str, form: str, place_cases: frozenset[str], language: str) -> bool:
    """Whether an article makes a singular of a form that may be both numbers, as Bohrer: der does where no genitive can
    stand, and den unless the form may be a dative of the plural."""
    articles = word_forms(language).articles(form) if article else None
    if articles is None or not {"die", "dem"} <= articles or is_plural_article(article, articles):
        return False
    word = article.lower().split()[-1]
    if word.endswith("en"):
        return not form.endswith("n")
    return not word.endswith("er") or (bool(place_cases) and "genitive" not in place_cases)


def _cases(article: str, words: str, language: str) -> frozenset[str]:
    """The cases of an article before some words; nothing where that is not known."""
    if not article or base_language(language) != "de":
        return frozenset()
    return cases(article, word_forms(language).articles(words.split()[-1]) if words.split() else None)


def _capital(word: str) -> str:
    return word[0].upper() + word[1:]


def _small(word: str) -> str:
    return word[0].lower() + word[1:]


def _compounds(word: str, part: Part, forms: Sequence[str], language: str) -> list[str]:
    """A compound of a translation with one of its parts replaced, in German: Kabeljauquote becomes Dorschquote by
    Dorsch for its first part, and Kabeljaukontingent by Kontingent for its last. A word that is none has no parts."""
    if not language.startswith("de") or not word.isalpha() or word[0].islower():
        return []
    parts = _parts(word, language)
    if part == "last":
        return [first + _small(form) for first, _ in parts[:1] for form in forms if form.isalpha()]
    return [f"{forms[0]}{link}{last}" for _, last in parts for link in _links(forms[0]) if forms[0].isalpha()]


def _links(noun: str) -> tuple[str, ...]:
    """What may stand between a German noun and the next one of a compound: Stellenanfrage, Prüfungsausschuss."""
    if noun.endswith(("heit", "ion", "keit", "ling", "schaft", "tum", "tät", "ung")):
        return ("s",)
    return ("n",) if noun.endswith("e") else ("", "s")


def _parts(word: str, language: str) -> list[tuple[str, str]]:
    """Where a German word may be two nouns, the longest last part first: where both are known, or else the last one."""
    known = word_forms(language)
    cuts = range(SHORTEST_PART, len(word) - SHORTEST_PART)
    pairs = [(word[:cut], word[cut:]) for cut in cuts if word[:cut].lower() not in PARTICLES]
    pairs = [(first, last) for first, last in pairs if known.knows(_capital(last)) and last not in PARTICLES]
    both = [pair for pair in pairs if any(map(known.knows, (pair[0], pair[0].removesuffix("s"), f"{pair[0]}e")))]
    return both or pairs


def with_other_endings(given: Sequence[Candidate], language: str) -> list[Candidate]:
    """Candidates with each ending that their adjectives may have, all adjectives of one alike."""
    found = []
    for one in given:
        endings = [other_endings(word, language) for word in one.adjectives]
        for number in range(max(map(len, endings), default=0)):
            words = tuple(
                own[number] if own else word for own, word in zip(endings, one.adjectives, strict=True)
            )  # fmt: skip
            own = word_forms(language).articles(one.form)
            if not one.article or all(ending_fits(one.article, word, own) for word in words):
                found.append(replace(one, adjectives=words))
    return found


LENGTHS = 0.75, 1.3
"""Words of a translation whose rest was searched anew, in those of the one with the words of before."""
TELLING = 5
"""Letters of a word that is not said twice for nothing."""


def is_like(text: str, replaced: str) -> bool:
    """Whether a translation is about as long as the one in which only a term was replaced, and repeats no more."""
    words, others = text.split(), replaced.split()
    if not LENGTHS[0] * len(others) - 1 <= len(words) <= LENGTHS[1] * len(others) + 1:
        return False
    return _repeated(words) <= _repeated(others)


def _repeated(words: Sequence[str]) -> int:
    telling = [word.strip(".,;:!?").lower()[:TELLING] for word in words if len(word) >= TELLING]
    return len(telling) - len(set(telling))
