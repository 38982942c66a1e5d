"""Real sentences in which English says *it* and German must say er, sie or es, with the sentences before them.

What *it* stands for is not marked anywhere: a pair of sentences is taken where there is one *it* to translate and one
pronoun that can be its translation. Where *it* opens both sentences nothing else needs to be asked.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from weitblick.documents.contrast import ContrastItem
from weitblick.documents.discourse.german import GENDERS, PRONOUN, Case, Gender, Noun, english_nouns
from weitblick.documents.document import Document
from weitblick.documents.splits import share_of

IT = re.compile(r"\b(?:it|its|itself)\b", re.IGNORECASE)
OPENING_IT = re.compile(r"It\b")
# Sources with these may have another pronoun in their translation: theirs, or the polite Sie.
OTHERS = re.compile(
    r"\b(?:he|she|him|her|his|hers|they|them|their|theirs|you|your|yours|these|those|ones|who|whom"
    r"|himself|herself|themselves)\b",
    re.IGNORECASE,
)
PRONOUNS = re.compile(r"^\W*(Er|Sie|Es)\b|\b(er|sie|es|ihn|ihm|ihr)\b")
GENDER: dict[str, Gender] = {"er": "m", "ihn": "m", "sie": "f", "es": "n"}

# "It is clear that", "it was a pleasure to", "it seems": *it* stands for a clause or for nothing, and German says es
# whatever was said before.
_BE = r"(?:'s| is| was| remains| seems| (?:has|had) been| (?:will|would|may|might|must|should|could|can|cannot) be)"
EXPLETIVE = re.compile(
    rf"\bit{_BE},?(?: [\w-]+,?){{1,6}}? (?:that|to|for|if|when|whether|how|why|what|who|which)\b"
    r"|\bit (?:seems|appears|follows|goes without|makes (?:no )?sense|takes|turns out|happens|depends|matters"
    r"|is (?:not )?(?:time|about|up to|high time|a (?:question|matter|shame|pity|pleasure)))\b",
    re.IGNORECASE,
)
GERMAN_EXPLETIVE = re.compile(
    r"\bes (?:gibt|gab|geht|ging|handelt|handelte|bedarf|heißt|hieß|scheint|stimmt|kommt|kam|bleibt|obliegt|fehlt"
    r"|besteht|bestehen|liegt|reicht|genügt|gilt|galt)\b",
    re.IGNORECASE,
)
# Behind a subject stands what is said of it; *it* elsewhere is an object.
SUBJECT = re.compile(
    r"\bit(?:'s|'ll|'d)?,? (?:(?:\w+ly|also|not|never|just|still|now|too|only|therefore|however|thus|then|even)\b,? )*"
    r"(?:is|was|has|had|does|did|do|will|would|can|cannot|could|should|must|may|might|shall|needs?|be|been|\w+(?:s|ed))\b",
    re.IGNORECASE,
)
LONGEST = 60  # words of a sentence
NEAR = 3  # sentences back in which the noun of a tested pronoun must stand


@dataclass(frozen=True, slots=True)
class PronounSite:
    """A pronoun in a document: the sentence, where its word starts in the target, and what is known about it.

    opening    *it* and the pronoun open their sentences
    expletive  *it* probably stands for no noun
    """

    document: Document
    sentence: int
    start: int
    word: str
    gender: Gender
    case: Case
    opening: bool
    expletive: bool

    def variant(self, gender: Gender) -> str:
        """The target with the pronoun of another gender."""
        target = self.document.sentences[self.sentence].target or ""
        form = PRONOUN[self.case][gender]
        form = form.capitalize() if self.word[0].isupper() else form
        return target[: self.start] + form + target[self.start + len(self.word) :]


def excerpt(document: Document, sentence: int, before: int) -> Document:
    """A sentence of a document with so many before it, as a document."""
    sentences = document.sentences[max(0, sentence - before) : sentence + 1]
    return replace(document, id=f"{document.id}.{sentence + 1}", sentences=sentences)


def item_of_last(document: Document, contrastive: Iterable[str], **known: Any) -> ContrastItem:
    """The last sentence of a document as an item of a suite, and what else is known of it."""
    return ContrastItem(
        id=document.id,
        source=tuple(document.sources),
        target=tuple(document.targets),
        sentence=len(document.sentences) - 1,
        reference=document.targets[-1] or "",
        contrastive=tuple(contrastive),
        direction="past",
        **known,
    )


def find_pronouns(document: Document) -> Iterator[PronounSite]:
    """The sites of a document that have something before them."""
    for index, sentence in enumerate(document.sentences[1:], 1):
        source, target = sentence.source, sentence.target or ""
        found = list(PRONOUNS.finditer(target))
        opening = bool(OPENING_IT.match(source) and found and found[0].group(1))
        one = IT.findall(source.lower()) == ["it"] and len(found) == 1 and not OTHERS.search(source)
        if (not opening and not one) or max(len(source.split()), len(target.split())) > LONGEST:
            continue
        which = 1 if found[0].group(1) else 2
        word = found[0].group(which)
        if word.lower() not in GENDER or (word == "Sie" and not opening):
            continue
        subject = word.lower() == "er" or (word != "ihn" and bool(SUBJECT.search(source)))
        yield PronounSite(
            document,
            index,
            found[0].start(which),
            word,
            GENDER[word.lower()],
            "nominative" if subject else "accusative",
            opening,
            bool(EXPLETIVE.search(source) or GERMAN_EXPLETIVE.search(target)),
        )


def noun_distance(site: PronounSite, nouns: Mapping[str, Noun]) -> int | None:
    """How many sentences back the nearest noun of the pronoun's gender stands, as far as nouns are known."""
    for distance in range(1, min(NEAR, site.sentence) + 1):
        sentence = site.document.sentences[site.sentence - distance]
        for noun in english_nouns(sentence.source) & nouns.keys():
            known = nouns[noun]
            if known.gender == site.gender and re.search(rf"\b{known.german}\b", sentence.target or ""):
                return distance
    return None


def contrast_item(site: PronounSite, before: int, nouns: Mapping[str, Noun]) -> ContrastItem:
    others = (gender for gender in GENDERS if gender != site.gender)
    place = "opening" if site.opening else "subject" if site.case == "nominative" else "object"
    return item_of_last(
        excerpt(site.document, site.sentence, before),
        (site.variant(gender) for gender in others),
        distance=noun_distance(site, nouns),
        phenomenon=f"{place}, no noun" if site.expletive else place,
        pronoun=PRONOUN["nominative"][site.gender],
    )


def balanced(items: Iterable[ContrastItem], seed: int, pronouns: int = len(GENDERS)) -> list[ContrastItem]:
    """Equally many items of each pronoun, of which there are so many, chosen by the seed, in their order."""
    groups: dict[str | None, list[tuple[bytes, int, ContrastItem]]] = {}
    for number, item in enumerate(items):
        order = hashlib.sha256(f"{seed} {item.id} {item.reference}".encode()).digest()
        groups.setdefault(item.pronoun, []).append((order, number, item))
    size = min(map(len, groups.values())) if len(groups) == pronouns else 0
    chosen = [entry for group in groups.values() for entry in sorted(group)[:size]]
    return [item for _, _, item in sorted(chosen, key=lambda entry: entry[1])]


@dataclass(frozen=True)
class PronounCorpus:
    """documents: one for each pronoun to train on, whose sentence is the last, of which there are `counts`; suite: of
    documents held out, opening pronouns with a noun near, balanced; suite_es: of these documents, es without one."""

    documents: list[Document]
    counts: dict[str, int]
    suite: list[ContrastItem]
    suite_es: list[ContrastItem]


def mine_pronouns(
    documents: Iterable[Document],
    nouns: Mapping[str, Noun],
    *,
    before: int,
    inside: float,
    es: float,
    expletive: float,
    held_out: float,
    whole: int,
    seed: int,
) -> PronounCorpus:
    """All er and sie that open a sentence, and the share `inside` of the others, whose noun is often in their own
    sentence; `es` times as many es, of which `expletive` is the share without a noun, where there are enough; `nouns`
    tell which pronouns of the documents held out have one. Each with `before` sentences before it, `whole` of them with
    all that there are: what stands further back must be seen, too."""
    draw = random.Random(f"pronouns {seed}")
    kept: list[PronounSite] = []
    of_noun: list[PronounSite] = []
    of_none: list[PronounSite] = []
    tested: list[ContrastItem] = []
    tested_es: list[ContrastItem] = []
    for document in documents:
        judged = share_of(document) < held_out
        for site in find_pronouns(document):
            if judged and site.opening and not site.expletive and noun_distance(site, nouns) is not None:
                tested.append(contrast_item(site, before, nouns))
            elif judged and site.opening and site.expletive and site.gender == "n":
                tested_es.append(contrast_item(site, before, nouns))
            elif not judged and (site.opening or draw.random() < inside):
                (kept if site.gender != "n" else of_none if site.expletive else of_noun).append(site)
    wanted = round(es * len(kept))
    without = min(round(expletive * wanted), len(of_none))
    sites = [*kept, *draw.sample(of_none, without), *draw.sample(of_noun, min(wanted - without, len(of_noun)))]
    counts = Counter(PRONOUN["nominative"][site.gender] for site in sites)
    draw.shuffle(sites)
    chosen = [
        excerpt(site.document, site.sentence, site.sentence if number < whole else before)
        for number, site in enumerate(sites)
    ]
    draw.shuffle(chosen)
    return PronounCorpus(
        chosen,
        {pronoun: counts[pronoun] for pronoun in PRONOUN["nominative"].values()},
        balanced(tested, seed),
        tested_es,
    )
