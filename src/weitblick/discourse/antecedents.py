"""Documents of real sentences about a noun, each followed by a sentence whose pronoun stands for it.

Real text decides few pronouns by context, and not often enough for a small model to notice. Here every document does,
with the nouns and sentences of the corpus itself.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from weitblick.discourse.german import GENDERS, POSSESSIVE, PRONOUN, Case, Gender, Noun
from weitblick.discourse.nouns import english_nouns
from weitblick.documents.contrast import ContrastItem
from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError

LENGTHS = range(4, 12)
SUBJECT_LENGTHS = range(6, 22)
FILLER_LENGTHS = range(3, 9)
OTHERWISE = 0.4
"""How often something is said of no noun."""
PRONOUNS = re.compile(r"\b(?:it|its|itself|he|she)\b", re.IGNORECASE)

# {n}: nominative, {N}: the same at the start of the sentence, {a}: accusative, {p} and {P}: possessive before a plural
STATEMENTS = (
    ("It is very important.", "{N} ist sehr wichtig."),
    ("It is not enough.", "{N} reicht nicht aus."),
    ("But it is not enough.", "Aber {n} reicht nicht aus."),
    ("It was adopted yesterday.", "{N} wurde gestern angenommen."),
    ("I hope that it will be adopted.", "Ich hoffe, dass {n} angenommen wird."),
    ("I know it well.", "Ich kenne {a} gut."),
    ("We must support it.", "Wir müssen {a} unterstützen."),
    ("We need it.", "Wir brauchen {a}."),
    ("It must be improved.", "{N} muss verbessert werden."),
    ("When will it be ready?", "Wann wird {n} fertig sein?"),
    ("Where is it?", "Wo ist {n}?"),
    ("It is new.", "{N} ist neu."),
    ("It is too weak.", "{N} ist zu schwach."),
    ("It has many weaknesses.", "{N} hat viele Schwächen."),
    ("It came too late.", "{N} kam zu spät."),
    ("It does not exist.", "{N} existiert nicht."),
    ("I have never seen it.", "Ich habe {a} nie gesehen."),
    ("I do not believe that it is good.", "Ich glaube nicht, dass {n} gut ist."),
    ("It deserves our support.", "{N} verdient unsere Unterstützung."),
    ("It will not be easy.", "{N} wird nicht einfach sein."),
    ("Who has it?", "Wer hat {a}?"),
    ("You can see it.", "Sie können {a} sehen."),
    ("I like it.", "Ich mag {a}."),
    ("Is it necessary?", "Ist {n} notwendig?"),
    ("It works.", "{N} funktioniert."),
    ("It does not work.", "{N} funktioniert nicht."),
    ("It is in danger.", "{N} ist in Gefahr."),
    ("It is there.", "{N} ist da."),
    ("Nobody wants it.", "Niemand will {a}."),
    ("It was here.", "{N} war hier."),
    ("It has changed.", "{N} hat sich verändert."),
    ("It should be strengthened.", "{N} sollte gestärkt werden."),
    ("We have lost it.", "Wir haben {a} verloren."),
    ("They have it.", "Sie haben {a}."),
    ("It began in 2004.", "{N} begann 2004."),
    ("It is also expensive.", "{N} ist auch teuer."),
    ("It is the best that we have.", "{N} ist das Beste, was wir haben."),
    ("How long will it last?", "Wie lange wird {n} dauern?"),
    ("I want to keep it.", "Ich will {a} behalten."),
    ("It contains many good points.", "{N} enthält viele gute Punkte."),
    ("Today it is stronger than before.", "Heute ist {n} stärker als früher."),
    ("If it fails, we all lose.", "Wenn {n} scheitert, verlieren wir alle."),
    ("We all know why it was rejected.", "Wir alle wissen, warum {n} abgelehnt wurde."),
    ("Some of us reject it.", "Einige von uns lehnen {a} ab."),
    ("I would like to thank all who made it possible.", "Ich danke allen, die {a} möglich gemacht haben."),
    ("Its aims are clear.", "{P} Ziele sind klar."),
    ("Its effects are not known.", "{P} Auswirkungen sind nicht bekannt."),
    ("We all know its weaknesses.", "Wir alle kennen {p} Schwächen."),
    ("What are its costs?", "Was sind {p} Kosten?"),
)
# *It* that stands for no noun, or is one with a noun behind it: es, whatever was said before.
NO_ANTECEDENT = (
    ("It was a difficult decision.", "Es war eine schwierige Entscheidung."),
    ("It was the right choice.", "Es war die richtige Wahl."),
    ("It was our only chance.", "Es war unsere einzige Chance."),
    ("It was a long day.", "Es war ein langer Tag."),
    ("It is a good sign.", "Es ist ein gutes Zeichen."),
    ("It is a serious matter.", "Es ist eine ernste Angelegenheit."),
    ("It is a question of trust.", "Es ist eine Frage des Vertrauens."),
    ("It is not the first time.", "Es ist nicht das erste Mal."),
    ("It is clear that we must act.", "Es ist klar, dass wir handeln müssen."),
    ("It is true that much remains to be done.", "Es stimmt, dass noch viel zu tun ist."),
    ("It is important to say this.", "Es ist wichtig, dies zu sagen."),
    ("It would be wrong to wait.", "Es wäre falsch zu warten."),
    ("It is time to vote.", "Es ist Zeit, abzustimmen."),
    ("It seems that nobody knows.", "Es scheint, dass niemand Bescheid weiß."),
    ("It is not about money.", "Es geht nicht um Geld."),
    ("It took ten years.", "Es hat zehn Jahre gedauert."),
    ("I find it hard to understand this.", "Ich finde es schwer, das zu verstehen."),
    ("It is late.", "Es ist spät."),
)


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
