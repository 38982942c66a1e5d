"""Real sentences whose translation has a word that only the sentences before can tell, found by a file of sets.

A file says for each kind of decision what the source sentence has, and sets of target words: `decisions.de.yaml`, for
English to German, is an example. Another language is another file.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from weitblick.common.errors import UserError, explain
from weitblick.documents.contrast import ContrastItem
from weitblick.documents.document import Document
from weitblick.documents.mining.pronouns import LONGEST, balanced, excerpt, item_of_last
from weitblick.documents.splits import share_of

WORD = re.compile(r"\w+")
UNDECIDED = "undecided"


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
    return text


Pattern = Annotated[str, AfterValidator(_is_pattern)]


class DecisionKind(BaseModel):
    """What makes a decision, as its file says it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: Pattern
    lacks: Pattern | None = None
    undecided: Pattern | None = None
    tested: Pattern | None = None
    sets: list[Annotated[list[str], Field(min_length=2)]] = Field(min_length=1)


@dataclass(frozen=True)
class DecisionSite:
    """A word of a sentence of a document, at `start` of its target: the one in the column `choice` of its set; decided:
    the sentences before can tell it, and not the sentence itself whatever they are."""

    document: Document
    sentence: int
    start: int
    words: tuple[str, ...]
    choice: int
    decided: bool
    tested: bool

    def variants(self) -> tuple[str, ...]:
        """The target with each other word of the set."""
        target, end = self.document.sentences[self.sentence].target or "", self.start + len(self.words[self.choice])
        others = (word for number, word in enumerate(self.words) if number != self.choice)
        return tuple(target[: self.start] + word + target[end:] for word in others)


class DecisionFinder:
    """Finds the sites of one kind of decision in a document."""

    def __init__(self, name: str, kind: DecisionKind) -> None:
        def compiled(text: str | None) -> re.Pattern[str] | None:
            return None if text is None else re.compile(text, re.IGNORECASE)

        self.name = name
        self.source = re.compile(kind.source, re.IGNORECASE)
        self.lacks, self.undecided, self.tested = (compiled(x) for x in (kind.lacks, kind.undecided, kind.tested))
        self.sets = {word: (tuple(words), choice) for words in kind.sets for choice, word in enumerate(words)}
        self.columns = max(map(len, kind.sets))

    def sites(self, document: Document) -> Iterator[DecisionSite]:
        """Sentences behind others with one such word on each side."""
        for index, sentence in enumerate(document.sentences[1:], 1):
            source, target = sentence.source, sentence.target or ""
            decided = len(self.source.findall(source)) == 1 and not (self.lacks and self.lacks.search(source))
            undecided = not decided and self.undecided is not None and len(self.undecided.findall(source)) == 1
            if not decided and (not undecided or self.source.search(source)):
                continue
            found = [word for word in WORD.finditer(target) if word[0] in self.sets]
            if len(found) != 1 or max(len(source.split()), len(target.split())) > LONGEST:
                continue
            words, choice = self.sets[found[0][0]]
            tested = decided and self.tested is not None and bool(self.tested.search(source))
            yield DecisionSite(document, index, found[0].start(), words, choice, decided, tested)


@dataclass(frozen=True)
class DecisionCorpus:
    """documents: one for each decision to train on, whose sentence is the last; counts: of each kind and column; suite:
    of documents held out, each column of a kind alike."""

    documents: list[Document]
    counts: dict[str, dict[str, int]]
    suite: list[ContrastItem]


def read_decision_kinds(path: str | None = None) -> dict[str, DecisionKind]:
    """Those of a file; of the one that comes with us if none is named."""
    where = Path(path) if path is not None else files(__package__).joinpath("decisions.de.yaml")
    try:
        kinds = yaml.safe_load(where.read_text("utf-8"))
        if not isinstance(kinds, dict):
            raise UserError("names no kinds of decisions", where=str(where), remedy="see docs/models.md")
        return TypeAdapter(dict[str, DecisionKind]).validate_python(kinds)
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise UserError(f"cannot be read: {error}", where=str(where), remedy="name a YAML file of decisions") from None
    except ValidationError as error:
        raise explain(error, str(where), remedy="see docs/models.md") from None


def mine_decisions(
    documents: Iterable[Document],
    kinds: Mapping[str, DecisionKind],
    *,
    before: int,
    most: int,
    undecided: float,
    held_out: float,
    whole: int,
    seed: int,
) -> DecisionCorpus:
    """Equally many sites of each column of a kind, `most` of each and those first that nothing in their sentence can
    tell, and `undecided` times as many that are not decided, where there are enough; each with `before` sentences
    before it, `whole` of them with all that there are."""
    finders = [DecisionFinder(name, kind) for name, kind in kinds.items()]
    draw = random.Random(f"decisions {seed}")
    sites: dict[tuple[str, int | str], list[DecisionSite]] = {}
    tested: dict[str, list[ContrastItem]] = {finder.name: [] for finder in finders}
    for document in documents:
        judged = share_of(document) < held_out
        for finder in finders:
            for site in finder.sites(document):
                if not judged:
                    sites.setdefault((finder.name, site.choice if site.decided else UNDECIDED), []).append(site)
                elif site.tested:
                    tested[finder.name].append(_item(finder.name, site, before))
    chosen, counts = _chosen(finders, sites, most, undecided, draw)
    made = [
        excerpt(site.document, site.sentence, site.sentence if number < whole else before)
        for number, site in enumerate(chosen)
    ]
    draw.shuffle(made)
    suite = [item for finder in finders for item in balanced(tested[finder.name], seed, finder.columns)]
    return DecisionCorpus(made, counts, suite)


def _chosen(
    finders: Iterable[DecisionFinder],
    sites: Mapping[tuple[str, int | str], list[DecisionSite]],
    most: int,
    undecided: float,
    draw: random.Random,
) -> tuple[list[DecisionSite], dict[str, dict[str, int]]]:
    chosen: list[DecisionSite] = []
    counts = {}
    for finder in finders:
        columns = [found for (name, choice), found in sites.items() if name == finder.name and choice != UNDECIDED]
        fewest = min(map(len, columns)) if len(columns) == finder.columns else 0
        drawn = [draw.sample(found, len(found)) for found in columns]
        best_first = [sorted(found, key=lambda site: not site.tested) for found in drawn]
        kept = [site for found in best_first for site in found[: min(fewest, most)]]
        others = sites.get((finder.name, UNDECIDED), [])
        kept_others = draw.sample(others, min(round(undecided * len(kept)), len(others)))
        said = Counter(site.words[site.choice] for site in kept)
        counts[finder.name] = {**dict(sorted(said.items())), UNDECIDED: len(kept_others)}
        chosen += [*kept, *kept_others]
    draw.shuffle(chosen)
    return chosen, counts


def _item(name: str, site: DecisionSite, before: int) -> ContrastItem:
    document = excerpt(site.document, site.sentence, before)
    return item_of_last(document, site.variants(), phenomenon=name, pronoun=f"{name} {site.choice + 1}")
