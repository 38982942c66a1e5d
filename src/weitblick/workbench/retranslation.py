"""Which drafts change after something has been approved, why, and in which words.

A draft is translated again if the model would no longer say one of its words: because an approved word is offered for
it now, or because the sentence reads one as context that was confirmed otherwise (`drafts_to_retranslate`). Where a
draft says a word that a correction has refused for the same source words, the draft with the word that was wanted can
be offered, with its reason (`offered_corrections`); by itself it is not applied.

A search that begins again for the sake of one word comes out with other words at other places, too: a comma, a synonym,
a turn of phrase that is no better than the one before. People would have to read all of it. So the old draft stays, but
for the changes that have the same reasons (`NewlyApproved.merge`):

- a word that the approved translation has, for a word that the approved source has;
- a pronoun in place of another one, where context decides between them and what is approved is context;
- what stands beside one of these (articles, endings), or has changed places with it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

import torch
from torch import Tensor

from weitblick.memory.corrections import Correction, terms_of_corrections
from weitblick.memory.terms import Term, Terms
from weitblick.model.document_model import DocumentModel
from weitblick.translation.alignment import Alignment, word_spans
from weitblick.translation.document_job import DocumentJob, Finished
from weitblick.translation.term_search import MOST_LOST, TermSearch
from weitblick.translation.verification import changed_by_context
from weitblick.workbench.consistency import Vocabulary

RAISED, WITHIN = 0.5, 3.0
"""Nats by which approved translations must raise a word, and by which it may then still be behind the draft's, for the
draft to be searched again: with a beam, what is behind at one step may be before at the end."""
FIRST_LOOKED_AT, MOST_LOOKED_AT = 4, 32
"""Drafts that are looked at together: a few at first, so that the first result comes soon, each time twice as many."""
BESIDE = 2
"""Words between two changes that belong together: an adjective, say, between a new article and a new noun."""
FROM = 0.2
"""Share of a word that must come from a source word: of a compound several have one."""

Reason = Literal["approved word", "context"]


@dataclass(frozen=True)
class NewPair:
    """A pair that was approved after the drafts of a document were made. Where it is a sentence of that document,
    `index` says which, and `before` what stood there. A `term` is kept by search in drafts that have its source
    words."""

    source: str
    target: str
    index: int | None = None
    before: str = ""
    term: Term | None = None


@dataclass(frozen=True)
class Retranslation:
    """A sentence whose draft is translated again, for this reason; None: it stays as it is."""

    sentence: int
    reason: Reason | None


def retranslation_steps(job: DocumentJob, approved: NewlyApproved) -> Iterator[Finished]:
    """The steps of a job on drafts: those that have a reason are translated again, the others come out with no
    translation."""
    yield job.nothing_to_translate()
    if not job.chosen:
        return
    yield from job.prepare()
    with_new_terms: set[int] = set()
    for found in drafts_with_new_terms(job, approved.terms):
        with_new_terms.update(found)
        yield found
    for part in drafts_to_retranslate(job, approved):
        left = [one for one in part if one.sentence not in with_new_terms]
        yield {one.sentence: () for one in left if one.reason is None}
        yield from job.search([one.sentence for one in left if one.reason is not None])


def drafts_with_new_terms(job: DocumentJob, terms: Sequence[Term]) -> Iterator[Finished]:
    """Part by part, drafts that did not say a new term of the project and do now; the terms of each translation tell
    the reason."""
    if not terms:
        return
    pipeline = job.translator.pipeline
    search = TermSearch(Terms(terms, pipeline.source_language, pipeline.target_language), pipeline)
    having = [index for index in job.chosen if any(search.occurrences(job.units[n]) for n in job.units_of([index]))]
    for begin in range(0, len(having), MOST_LOOKED_AT):
        yield job.with_terms(search, having[begin : begin + MOST_LOOKED_AT])


@dataclass(frozen=True)
class OfferedCorrection:
    """A draft with the word that a person wanted in place of one that was refused for the same source words; reason:
    for people, which term it is and where it comes from."""

    sentence: int
    text: str
    reason: str


def corrections_in(pairs: Sequence[NewPair]) -> list[Correction]:
    """What approved pairs have changed in what stood there before."""
    return [
        Correction(pair.source, pair.before, pair.target, "" if pair.index is None else f"row {pair.index + 1}")
        for pair in pairs
        if pair.before
    ]


def offered_corrections(job: DocumentJob, approved: NewlyApproved) -> list[OfferedCorrection]:
    """What corrections would change in the drafts of a prepared job: in those that say a word which was refused for the
    same source words, and that are not much less probable with the word that was wanted."""
    corrections, pipeline = corrections_in(approved.pairs), job.translator.pipeline
    languages = (pipeline.source_language, pipeline.target_language)
    terms = terms_of_corrections(corrections, job.translator.align, languages) if corrections else []
    if not terms:
        return []
    found = job.with_terms(TermSearch(Terms(terms, *languages), pipeline, MOST_LOST), job.chosen)
    offered = []
    for index, (best, *_) in found.items():
        reasons = dict.fromkeys(use.term.reason for use in best.terms if use.changed)
        offered.append(OfferedCorrection(index, best.text, "; ".join(reasons)))
    return offered


def drafts_to_retranslate(job: DocumentJob, approved: NewlyApproved) -> Iterator[list[Retranslation]]:
    """Part by part, all drafts of a prepared job with the reason to translate each again.

    Drafts that can have an approved word for a reason, as they share words with what is approved, come first; the ones
    that say an approved word for sure at the head of each part. Those that read what is approved as context follow in
    one part with all that stay as they are.
    """
    sharing = approved.sharing_words(job)
    staying = [index for index in job.chosen if index not in set(sharing)]
    begin, size = 0, FIRST_LOOKED_AT
    while begin < len(sharing):
        part = sharing[begin : begin + size]
        begin, size = begin + size, min(2 * size, MOST_LOOKED_AT)
        job.point_for(part)
        changing = _offered_approved_words(job, part, approved)
        staying += [index for index in part if index not in changing]
        yield [Retranslation(index, "approved word") for index in changing]
    reading = yield from _reading_otherwise(job, approved)
    again = [index for index in staying if not reading.isdisjoint(job.units_of([index]))]
    job.point_for(again)
    yield [Retranslation(index, "context" if index in again else None) for index in staying]


def _offered_approved_words(job: DocumentJob, part: Sequence[int], approved: NewlyApproved) -> list[int]:
    """Those of the sentences whose drafts may say an approved word instead of one of their own: first the shortest of
    those that are sure to, then the surest."""
    if job.passes.pointer is None:
        return []
    words = approved.word_ids(job)
    leads = dict(zip(job.units_of(part), _leads(job, job.units_of(part), words), strict=True))
    most = {index: max(leads[number] for number in job.units_of([index])) for index in part}
    found = sorted((index for index in part if most[index] > -WITHIN), key=lambda index: -most[index])
    sure = [index for index in found if most[index] > 0]
    if sure:
        first = min(sure, key=lambda index: sum(len(job.units[number].source) for number in job.units_of([index])))
        found.remove(first)
        found.insert(0, first)
    return found


@torch.no_grad()
def _leads(job: DocumentJob, numbers: Sequence[int], wanted: Tensor | None) -> list[float]:
    """Of units, by how many nats one of the wanted words (all without) that the pointer raises comes before a word of
    the draft, at most (below zero: behind it); infinite without a draft. One pass over all words, no search."""
    passes = job.passes
    drafted = [number for number in numbers if job.units[number].given]
    leads = dict.fromkeys(numbers, math.inf)
    if not drafted:
        return list(leads.values())
    drafts = [unit.given or [] for unit in job.units]
    source, target = passes.sources.pack(drafted), passes.sources.pack_targets(drafted, drafts)
    states = passes.encoder_states.index_select(0, passes.sources.rows(drafted))
    context = passes.with_pointer(passes.context)
    read, _ = passes.model.encode(source, context, states=states)
    words = passes.model.decode(target, read, source.layout, context, only_where_decided=True).words
    labels = target.next_tokens()
    parts = []
    for rows in words.softmax.chunks():
        table, own, label = words.table(rows), words.own_table(rows), labels[rows][:, None]
        ids = torch.arange(table.shape[1], device=label.device) if wanted is None else wanted
        mixed = table[:, ids]
        raised = (mixed > own[:, ids] + RAISED) & (ids != label)
        parts.append(mixed.masked_fill(~raised, -math.inf).amax(-1) - table.gather(1, label)[:, 0])
    steps = torch.cat(parts).split(target.layout.host_lengths)
    return list((leads | {number: float(own.max()) for number, own in zip(drafted, steps, strict=True)}).values())


def _reading_otherwise(job: DocumentJob, approved: NewlyApproved) -> Generator[list[Retranslation], None, set[int]]:
    """Units whose drafts context would change now that some sentences are not what they were before. Where context is
    read everywhere nearly every draft changes a little, and all are searched again."""
    before, passes = approved.before(job), job.passes
    if not before or not passes.model.reads_translations or not passes.options.context:
        return set()
    if passes.model.choice_words is None:
        return set(range(len(job.units)))
    targets = [unit.given or [] for unit in job.units]
    earlier = [before.get(number, target) for number, target in enumerate(targets)]
    for _ in passes.translations.compute(earlier):
        yield []
    then = passes.translations.context(earlier)
    found: set[int] = set()
    for part in changed_by_context(passes.model, passes.sources, passes.encoder_states, targets, then, passes.context):
        found.update(part)
        yield []
    return found


@dataclass(frozen=True)
class NewlyApproved:
    """Pairs approved since the drafts of a document were made (none: too many to tell one by one), the words of both
    languages, and the pronouns between which context decides. `anywhere`: the model reads context for every word."""

    pairs: Sequence[NewPair]
    source: Vocabulary
    target: Vocabulary
    pronouns: frozenset[str] = field(default_factory=frozenset)
    anywhere: bool = False

    @classmethod
    def of(
        cls, pairs: Sequence[NewPair], model: DocumentModel, source: Vocabulary, target: Vocabulary
    ) -> NewlyApproved:
        pronouns = frozenset(model.section.decided_words) if model.choice_words is not None else frozenset[str]()
        return cls(pairs, source, target, pronouns, model.reads_translations and model.choice_words is None)

    @property
    def changes_some_words(self) -> bool:
        """Whether only some words of a draft can have a reason to change; else a new search stands as it is."""
        return bool(self.pairs) and not self.anywhere

    @property
    def terms(self) -> list[Term]:
        """Those pairs that are terms."""
        return [pair.term for pair in self.pairs if pair.term is not None]

    def sharing_words(self, job: DocumentJob) -> list[int]:
        """The drafts that have a telling word of the approved sources, those that share most first; all where that
        cannot be told."""
        if not self.pairs or not self.source.knows_function_words:
            return job.chosen
        drafts = {index: job.document.sentences[index].source for index in job.order}
        sharing = by_shared_words([pair.source for pair in self.pairs], drafts, self.pairs[-1].index, self.source)
        chosen = set(job.chosen)
        return [index for index in sharing if index in chosen]

    def words(self) -> list[str]:
        """The words of each approved translation that can be a reason: the telling ones, if it has any."""
        texts = [pair.target for pair in self.pairs]
        return texts if self.anywhere else [" ".join(self.target.spoken(text)) or text for text in texts]

    def word_ids(self, job: DocumentJob) -> Tensor | None:
        """Their ids; None: any word can be a reason."""
        if not self.pairs:
            return None
        ids = {word for words in job.translator.pipeline.encode_target(self.words()) for word in words}
        return torch.tensor(sorted(ids), device=job.passes.sources.device)

    def before(self, job: DocumentJob) -> dict[int, list[int]]:
        """Of the units of approved sentences, the ids of what stood there before."""
        texts = {pair.index: pair.before for pair in reversed(self.pairs) if pair.index is not None}
        pipeline = job.translator.pipeline
        ids = dict(zip(texts, pipeline.encode_target(list(texts.values())), strict=True))
        return {
            number: ids.pop(unit.sentence)[: pipeline.longest_sentence]
            for number, unit in enumerate(job.units)
            if unit.sentence in ids
        }

    def merge(self, source: str, before: str, after: str, alignment: Alignment) -> str:
        """The draft `before` with those changes of the new translation `after` that have a reason. alignment: of source
        and `after`."""
        draft, said = _Text(before, self.target), _Text(after, self.target)
        changes = _changes(draft.words, said.words)
        fetched = self._fetched(source, said, alignment)
        chosen = {change for change in changes if self._has_reason(change, draft, said, fetched)}
        if not chosen:
            return before
        chosen |= {change for change in changes if any(_between(change, other) <= BESIDE for other in chosen)}
        while more := [c for c in changes if c not in chosen and _moved(c, chosen, draft, said)]:
            chosen.update(more)
        return _spliced(draft, said, changes, chosen)

    def _fetched(self, source: str, said: _Text, alignment: Alignment) -> set[int]:
        """Words that stand in an approved translation, for a source word that stands in its source."""
        if alignment.target != said.spans:
            return set()
        stems = [self.source.of(source[start:end]) for start, end in alignment.source]
        found: set[int] = set()
        for pair in self.pairs:
            ours, theirs = self.source.terms(pair.source), self.target.terms(pair.target)
            columns = [place for place, stem in enumerate(stems) if stem in ours]
            if columns:
                shares = alignment.weights[:, columns].max(1)
                found |= {n for n, stem in enumerate(said.stems) if stem in theirs and shares[n] >= FROM}
        return found

    def _has_reason(self, change: Change, draft: _Text, said: _Text, fetched: set[int]) -> bool:
        old, new = range(change.first, change.last), range(change.begin, change.end)
        if any(n in fetched and said.stems[n] not in {draft.stems[m] for m in old} for n in new):
            return True
        is_read = any(pair.index is not None for pair in self.pairs)
        one = len(old) == len(new) == 1
        return one and is_read and {draft.words[old[0]], said.words[new[0]]} <= self.pronouns


def by_shared_words(
    sources: Sequence[str], drafts: Mapping[int, str], position: int | None, vocabulary: Vocabulary
) -> list[int]:
    """The drafts, of which the sources are given, that have a telling word of some other sources: those that share most
    of them first, the rarer the word the more, of equal ones the nearest to a position."""
    words = {index: vocabulary.terms(source) for index, source in drafts.items()}
    spread = Counter(word for own in words.values() for word in own)
    wanted = {word for source in sources for word in vocabulary.terms(source)}

    def rank(index: int) -> tuple[float, int]:
        shared = sum(1 / spread[word] for word in wanted & words[index])
        return -shared, abs(index - position) if position is not None else index

    return sorted((index for index, own in words.items() if wanted & own), key=rank)


# Which changes of a new translation have a reason.


@dataclass(frozen=True)
class Change:
    """Words [first, last) of a draft became the words [begin, end) of what is said now."""

    first: int
    last: int
    begin: int
    end: int


class _Text:
    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self.text, self.spans = text, word_spans(text)
        self.words = [text[start:end] for start, end in self.spans]
        self.stems = [vocabulary.of(word) if vocabulary.can_be_term(word) else "" for word in self.words]

    def piece(self, first: int, last: int) -> str:
        """Some words, and the white space before each."""
        start = self.spans[first - 1][1] if first else 0
        return self.text[start : self.spans[last - 1][1]] if first < last else ""

    def telling(self, first: int, last: int) -> set[str]:
        return {stem for stem in self.stems[first:last] if stem}


def _changes(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [Change(*places) for kind, *places in matcher.get_opcodes() if kind != "equal"]


def _between(one: Change, other: Change) -> int:
    """How many words stand between two changes."""
    return max(one.first - other.last, other.first - one.last)


def _moved(change: Change, chosen: set[Change], draft: _Text, said: _Text) -> bool:
    """Whether a telling word went from here to a chosen change, or from there to here: alone it would be said twice,
    or not at all."""
    lost, gained = draft.telling(change.first, change.last), said.telling(change.begin, change.end)
    for other in chosen:
        if lost & said.telling(other.begin, other.end) or gained & draft.telling(other.first, other.last):
            return True
    return False


def _spliced(draft: _Text, said: _Text, changes: Sequence[Change], chosen: set[Change]) -> str:
    parts, place = [], 0
    for change in changes:
        parts.append(draft.piece(place, change.first))
        taken = change in chosen
        parts.append(said.piece(change.begin, change.end) if taken else draft.piece(change.first, change.last))
        place = change.last
    parts.append(draft.piece(place, len(draft.words)))
    return "".join(parts).strip()
