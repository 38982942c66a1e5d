"""Documents of real sentences about a noun, each followed by a sentence whose pronoun stands for it.

Real text decides few pronouns by context, and not often enough for a small model to notice. Here every document does,
with the nouns and sentences of the corpus itself.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.resources import files

import yaml

from weitblick.common.errors import UserError
from weitblick.documents.contrast import ContrastItem
from weitblick.documents.discourse.german import GENDERS, POSSESSIVE, PRONOUN, Case, Gender, Noun, english_nouns
from weitblick.documents.document import Document, Sentence

LENGTHS = range(4, 12)
SUBJECT_LENGTHS = range(6, 22)
FILLER_LENGTHS = range(3, 9)
OTHERWISE = 0.4
"""How often something is said of no noun."""
PRONOUNS = re.compile(r"\b(?:it|its|itself|he|she)\b", re.IGNORECASE)

_SAID = yaml.safe_load(files(__package__).joinpath("antecedents.yaml").read_text("utf-8"))
STATEMENTS, NO_ANTECEDENT = _SAID["statements"], _SAID["no_antecedent"]


def antecedent_documents(
    documents: Sequence[Document], nouns: dict[str, Noun], count: int, seed: int
) -> Iterator[tuple[Document, list[ContrastItem]]]:
    """So many documents of two or three nouns each, all genders alike, and their pronouns as contrastive items; seldom
    something else is said between noun and pronoun, and sometimes an *it* that stands for none."""
    about, fillers = _sentences(documents, nouns)
    missing = [gender for gender in GENDERS if not about[gender]]
    if missing:
        raise UserError(
            f"no short sentence with a noun that German translates by one of gender {', '.join(missing)}",
            remedy="give a larger corpus: nouns are learned from 15 sentences each",
        )
    rng = random.Random(f"antecedents {seed}")
    for number in range(1, count + 1):
        sentences: list[Sentence] = []
        tested: list[tuple[int, int | None, str, Gender]] = []
        for _ in range(rng.choice((2, 3))):
            gender = rng.choice(GENDERS)
            antecedent = len(sentences)
            sentences.append(rng.choice(about[gender]))
            if fillers:
                sentences += rng.choices(fillers, k=rng.choices((0, 1, 2), (6, 2, 1))[0])
            for source, target in rng.sample(STATEMENTS, rng.choice((1, 1, 2))):
                tested.append((len(sentences), len(sentences) - antecedent, target, gender))
                sentences.append(Sentence(source, _fill(target, gender)))
            if rng.random() < OTHERWISE:
                source, target = rng.choice(NO_ANTECEDENT)
                tested.append((len(sentences), None, target, "n"))
                sentences.append(Sentence(source, target))
        document = Document(f"antecedents-{number:05d}", tuple(sentences))
        yield document, [_item(document, *place) for place in tested]


def _item(document: Document, index: int, distance: int | None, statement: str, gender: Gender) -> ContrastItem:
    targets = tuple(target or "" for target in document.targets)
    reference = targets[index]
    others = (_other(statement, other) for other in GENDERS if other != gender)
    return ContrastItem(
        id=f"{document.id}.{index}",
        source=tuple(document.sources),
        target=targets,
        sentence=index,
        reference=reference,
        contrastive=tuple(dict.fromkeys(text for text in others if text != reference)),  # sein is both er's and es'
        distance=distance,
        phenomenon=f"pronoun-{_form(statement)}",
        direction="past",
        pronoun=PRONOUN["nominative"][gender],
        unseen_antecedent=False,
    )


def _form(statement: str) -> str:
    forms = {"{n}": "nominative", "{N}": "nominative", "{a}": "accusative", "{p}": "possessive", "{P}": "possessive"}
    return next((form for place, form in forms.items() if place in statement), "no-antecedent")


def _fill(statement: str, gender: Gender) -> str:
    nominative, accusative = PRONOUN["nominative"][gender], PRONOUN["accusative"][gender]
    possessive = f"{POSSESSIVE[gender]}e"
    return statement.format(
        N=nominative.capitalize(), n=nominative, a=accusative, P=possessive.capitalize(), p=possessive
    )


def _other(statement: str, gender: Gender) -> str:
    """The statement with another gender's pronoun; of one that has a fixed es, that takes its place."""
    if _form(statement) != "no-antecedent":
        return _fill(statement, gender)
    case: Case = "nominative" if statement.startswith("Es ") else "accusative"
    form = PRONOUN[case][gender]
    return re.sub(r"\b(?:Es|es)\b", form.capitalize() if case == "nominative" else form, statement, count=1)


def _sentences(
    documents: Sequence[Document], nouns: dict[str, Noun]
) -> tuple[dict[Gender, list[Sentence]], list[Sentence]]:
    """Sentences about one of the nouns, by its gender, and short ones about none. A short sentence has no other noun;
    in a longer one there may be any, and the noun is its subject and opens it."""
    about: defaultdict[Gender, list[Sentence]] = defaultdict(list)
    fillers: list[Sentence] = []
    for document in documents:
        for sentence in document.sentences:
            words = len(sentence.source.split())
            if PRONOUNS.search(sentence.source) or not sentence.target:
                continue
            known = sorted(english_nouns(sentence.source) & nouns.keys())
            if not known and words in FILLER_LENGTHS:
                fillers.append(Sentence(sentence.source, sentence.target))
            elif len(known) == 1 and words in LENGTHS:
                noun = nouns[known[0]]
                if re.search(rf"\b{noun.german}\b", sentence.target):
                    about[noun.gender].append(Sentence(sentence.source, sentence.target))
            elif len(known) > 1 and words in SUBJECT_LENGTHS:
                subject = _subject(sentence, nouns)
                if subject is not None:
                    about[subject.gender].append(Sentence(sentence.source, sentence.target))
    return about, fillers


OPENING = re.compile(
    r"(?:The|This|Our) (?:[a-z]+ )?([a-z]{3,}) (?:is|was|has|will|must|should|can|could|would|does|did)\b"
)


def _subject(sentence: Sentence, nouns: dict[str, Noun]) -> Noun | None:
    """The noun that opens both sides."""
    found = OPENING.match(sentence.source)
    noun = nouns.get(found.group(1)) if found else None
    if noun is None:
        return None
    german = rf"(?:Der|Die|Das|Dieser|Diese|Dieses|Unsere?) (?:[a-zäöüß]+ )?{noun.german}\b"
    return noun if re.match(german, sentence.target or "") else None
