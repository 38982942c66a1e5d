"""Pronouns by rule and in translations: what contrast alone does not show.

A rule that looks at articles and at nothing else is the mark that a model has to reach. And a pronoun that is more
probable than its variants need not be the one that a translation has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from weitblick.documents.contrast import ContrastItem
from weitblick.documents.document import Document, Sentence
from weitblick.evaluation.contrast import Verdict
from weitblick.translation.translator import Translator

ARTICLE = re.compile(
    r"\b((?i:der|den|einen|dieser|diesen|die|eine|diese|unsere|keine|das|dieses)) (?:[\w-]+ )?[A-ZÄÖÜ]"
)
PRONOUN_OF = {
    **dict.fromkeys(("der", "den", "einen", "dieser", "diesen"), "er"),
    **dict.fromkeys(("die", "eine", "diese", "unsere", "keine"), "sie"),
    **dict.fromkeys(("das", "dieses"), "es"),
}
SAID = re.compile(r"\b(er|sie|es|ihn)\b", re.IGNORECASE)
OPENING_DAS = re.compile(r"\W*(?i:das|dies) (?![A-ZÄÖÜ])")  # "Das ist", not "Das Parlament"
SAME_AS = {"er": "er", "ihn": "er", "sie": "sie", "es": "es"}

HumanOrOwn = Literal["human", "own"]


def by_article(item: ContrastItem, which: Literal["first", "last"]) -> str | None:
    """The pronoun of the first or last article in the target sentence before the tested one; None without any."""
    if not item.sentence or item.target is None:
        return None
    articles = ARTICLE.findall(item.target[item.sentence - 1] or "")
    return PRONOUN_OF[articles[0 if which == "first" else -1].lower()] if articles else None


def has_pronouns(items: Sequence[ContrastItem]) -> bool:
    """Whether rules about er, sie and es make sense here."""
    return all(item.pronoun in PRONOUN_OF.values() and item.target is not None for item in items)


def judge_pronouns(items: Sequence[ContrastItem], said: Sequence[str | None]) -> list[Verdict]:
    """Items decided by a word alone; where there is none, nothing is decided."""
    return [
        Verdict(item, float(word == item.pronoun), 0.0 if word is None else float(word != item.pronoun))
        for item, word in zip(items, said, strict=True)
    ]


def judge_by_articles(items: Sequence[ContrastItem]) -> dict[str, list[Verdict]]:
    """The rules as rows of a table: what looking at articles alone decides."""
    return {
        "first article": judge_pronouns(items, [by_article(item, "first") for item in items]),
        "last article": judge_pronouns(items, [by_article(item, "last") for item in items]),
    }


def generate_pronouns(
    translator: Translator,
    items: Sequence[ContrastItem],
    *,
    past: HumanOrOwn = "human",
    context: bool = True,
    progress: Callable[[int], None] | None = None,
) -> list[Verdict]:
    """The pronouns of the tested sentences' translations. `past`: the sentences before are translated by a human, or by
    the model itself."""
    documents = [_document(number, item, past) for number, item in enumerate(items)]
    translator.borrows = False  # what is judged is the model as it is
    said: list[str | None] = []
    for item, translated in zip(items, translator.translate_documents(documents, context=context), strict=True):
        said.append(pronoun_of(translated.targets[item.sentence] or ""))
        if progress is not None:
            progress(1)
    return judge_pronouns(items, said)


def pronoun_of(translation: str) -> str | None:
    """er, sie or es by the first pronoun of a translation; None if it opens with another (das, dies) or has none."""
    found = None if OPENING_DAS.match(translation) else SAID.search(translation)
    return SAME_AS.get(found.group(1).lower()) if found else None


def _document(number: int, item: ContrastItem, past: HumanOrOwn) -> Document:
    sentences = []
    for index, source in enumerate(item.source[: item.sentence + 1]):
        target = item.target[index] if past == "human" and item.target and index < item.sentence else None
        sentences.append(Sentence(source, target, "locked" if target else None))
    return Document(str(number), tuple(sentences))
