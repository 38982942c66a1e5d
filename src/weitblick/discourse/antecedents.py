"""Documents of real sentences about a noun, each followed by a sentence whose pronoun stands for it.

Real text decides few pronouns by context, and not often enough for a small model to notice. Here every document does,
with the nouns and sentences of the corpus itself.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from weitblick.discourse.german import GENDERS, PRONOUN, Gender, Noun
from weitblick.discourse.nouns import english_nouns
from weitblick.documents.contrast import ContrastItem
from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError

LENGTHS = range(4, 12)
FILLER_LENGTHS = range(3, 9)
PRONOUNS = re.compile(r"\b(?:it|its|itself|he|she)\b", re.IGNORECASE)

# {n}: nominative, {N}: the same at the start of the sentence, {a}: accusative
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
)


def antecedent_documents(
    documents: Sequence[Document], nouns: dict[str, Noun], count: int, seed: int
) -> Iterator[tuple[Document, list[ContrastItem]]]:
    """So many documents of two or three nouns each, all genders alike, and their pronouns as contrastive items; seldom
    something else is said between noun and pronoun."""
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
        tested: list[tuple[int, int, str, Gender]] = []
        for _ in range(rng.choice((2, 3))):
            gender = rng.choice(GENDERS)
            antecedent = len(sentences)
            sentences.append(rng.choice(about[gender]))
            if fillers:
                sentences += rng.choices(fillers, k=rng.choices((0, 1, 2), (6, 2, 1))[0])
            for source, target in rng.sample(STATEMENTS, rng.choice((1, 1, 2))):
                tested.append((len(sentences), len(sentences) - antecedent, target, gender))
                sentences.append(Sentence(source, _fill(target, gender)))
        document = Document(f"antecedents-{number:05d}", tuple(sentences))
        yield document, [_item(document, *place) for place in tested]


def _item(document: Document, index: int, distance: int, statement: str, gender: Gender) -> ContrastItem:
    targets = tuple(target or "" for target in document.targets)
    return ContrastItem(
        id=f"{document.id}.{index}",
        source=tuple(document.sources),
        target=targets,
        sentence=index,
        reference=targets[index],
        contrastive=tuple(_fill(statement, other) for other in GENDERS if other != gender),
        distance=distance,
        phenomenon="pronoun-accusative" if "{a}" in statement else "pronoun-nominative",
        direction="past",
        pronoun=PRONOUN["nominative"][gender],
        unseen_antecedent=False,
    )


def _fill(statement: str, gender: Gender) -> str:
    nominative, accusative = PRONOUN["nominative"][gender], PRONOUN["accusative"][gender]
    return statement.format(N=nominative.capitalize(), n=nominative, a=accusative)


def _sentences(
    documents: Sequence[Document], nouns: dict[str, Noun]
) -> tuple[dict[Gender, list[Sentence]], list[Sentence]]:
    """Short sentences about one of the nouns, by its gender, and shorter ones about none."""
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
    return about, fillers
