"""Corrections and glossaries in a simulated post-editing: as columns, and what users ask of both.

A correction is what a reference says in place of a word of the draft of `none`, for the same source words. `terms`
applies those of the sentences before where the refused word is said again; `glossary` applies, to each document, the
nouns and names of its references that its drafts do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypedDict

from weitblick.evaluation.postedit_measures import ContentWords, Links
from weitblick.memory.corrections import Correction, changes
from weitblick.memory.stems import stems_of
from weitblick.memory.terms import Occurrence, Term, Terms
from weitblick.memory.word_forms import word_forms
from weitblick.text.units import Unit, split_documents
from weitblick.translation.alignment import Alignment
from weitblick.translation.beam import Hypothesis
from weitblick.translation.driver import Passes
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import join_documents
from weitblick.translation.term_search import MOST_LOST, TermSearch
from weitblick.translation.translator import Translator, as_document

LINKED, LINKED_TOGETHER = 0.3, 0.55
"""Share of each source word behind a noun of the references, and of all of them."""
MOST_WORDS = 3

Texts = Sequence[Sequence[str]]
Pairs = Sequence[Sequence[tuple[str, str]]]
TermsOfSentences = list[list[list[Term]]]
"""By document and sentence."""


def corrections(translator: Translator, references: Pairs, drafts: Texts) -> TermsOfSentences:
    """What the reference of every sentence has changed in its draft."""
    languages = (translator.pipeline.source_language, translator.pipeline.target_language)
    before, after = _aligned(translator, references, drafts), _aligned(translator, references, None)
    return [
        [
            changes(Correction(source, draft, target, f"sentence {number}"), old, new, languages)
            for number, ((source, target), draft, old, new) in enumerate(zip(*columns, strict=True), 1)
        ]
        for columns in zip(references, drafts, before, after, strict=True)
    ]


def _aligned(translator: Translator, references: Pairs, texts: Texts | None) -> list[list[Alignment]]:
    flat = [
        (source, target if texts is None else texts[document][number])
        for document, pairs in enumerate(references)
        for number, (source, target) in enumerate(pairs)
    ]
    found = iter(translator.align(flat))
    return [[next(found) for _ in pairs] for pairs in references]


def glossaries(translator: Translator, references: Pairs, drafts: Texts) -> TermsOfSentences:
    """Of every document one glossary, for all of its sentences: nouns and names of the references, linked to a few
    neighbouring source words, that the drafts do not say; what the references themselves vary is left out."""
    forms = word_forms(translator.pipeline.target_language)
    found: TermsOfSentences = []
    for document, alignments in enumerate(_aligned(translator, references, None)):
        own: dict[str, Term | None] = {}
        for number, ((source, target), alignment) in enumerate(zip(references[document], alignments, strict=True)):
            for place, (start, end) in enumerate(alignment.target):
                word, behind = target[start:end], few_source_words(alignment, place)
                if not (place and word[:1].isupper() and word[1:].islower() and behind):
                    continue
                words = source[alignment.source[behind[0]][0] : alignment.source[behind[-1]][1]]
                term = Term(words, forms.lemma(word), f"sentence {number + 1}")
                if words.lower() in own and (own[words.lower()] or term).target != term.target:
                    own[words.lower()] = None
                elif words.lower() not in own and not term.is_said(drafts[document][number], forms.language):
                    own[words.lower()] = term
        terms = [term for term in own.values() if term is not None]
        found.append([terms] * len(references[document]))
    return found


def few_source_words(alignment: Alignment, place: int) -> list[int]:
    """Neighbouring source words that stand behind a word of a translation; none where that is unclear."""
    shares = alignment.weights[place]
    chosen = [number for number, share in enumerate(shares.tolist()) if share >= LINKED]
    together = len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1 and len(chosen) <= MOST_WORDS
    return chosen if together and float(shares[chosen].sum()) >= LINKED_TOGETHER else []


def before_each(terms: TermsOfSentences) -> TermsOfSentences:
    """Of every sentence the corrections of the sentences before it in its document, the latest first, of those that
    refuse the same for the same source words the latest alone."""
    found: TermsOfSentences = []
    for document in terms:
        known: dict[tuple[str, str], Term] = {}
        rows = []
        for own in document:
            rows.append(list(reversed(known.values())))
            for term in own:
                key = term.source.lower(), term.refused
                known.pop(key, None)
                known[key] = term
        found.append(rows)
    return found


class _OwnTerms(TermSearch):
    """Every sentence has terms of its own; corrections are applied as the workbench applies them."""

    def __init__(self, translator: Translator, terms: Sequence[Sequence[Term]]) -> None:
        pipeline = translator.pipeline
        self.languages = (pipeline.source_language, pipeline.target_language)
        super().__init__(Terms((), *self.languages), pipeline, MOST_LOST)
        self.of_sentences = terms

    def occurrences(self, unit: Unit) -> list[Occurrence]:
        own = self.of_sentences[unit.sentence]
        return Terms(own, *self.languages).occurrences(unit.text) if own else []


def follow(
    translator: Translator,
    references: Pairs,
    drafts: Texts,
    terms: TermsOfSentences,
    options: TranslationOptions,
    progress: Callable[[int], None] = lambda count: None,
) -> list[list[str]]:
    """Drafts in which each sentence follows its own terms; nothing else changes in them."""
    found = []
    for pairs, texts, own in zip(references, drafts, terms, strict=True):
        document = as_document([source for source, _ in pairs])
        units = split_documents([document], translator.pipeline, lambda message: None)
        whole = [unit.sentence for unit in units]
        ids = translator.pipeline.encode_target([texts[unit.sentence] for unit in units])
        hypotheses = [
            [Hypothesis(words, 0.0, 0.0, [])] if words and whole.count(unit.sentence) == 1 else []
            for unit, words in zip(units, ids, strict=True)
        ]
        search = _OwnTerms(translator, own)
        passes = Passes(translator.model, units, replace(options, context=False), term_search=search)
        followed = passes.follow_terms(hypotheses)
        (joined,) = join_documents([document], units, followed, translator.pipeline)
        changed = {
            unit.sentence
            for unit, hypothesis in zip(units, followed, strict=True)
            if hypothesis and any(use.changed for use in hypothesis[0].terms)
        }
        after = [sentence.target or "" for sentence in joined.document.sentences]
        found.append([after[n] if n in changed else text for n, text in enumerate(texts)])
        progress(len(pairs))
    return found


# What users ask: do corrections follow, also in the row below, and does nothing else change?


@dataclass
class Following:
    """Corrected source words that come again, where the reference has the corrected word and `none` has not, and in how
    many of these a system has it, by lemma; the same of the row just below the correction. spilled: words of a system,
    not of `none`, that an earlier reference has, for source words that the sentence does not have; moved: sentences
    that differ from `none` without a corrected source word in them."""

    right: int = 0
    cases: int = 0
    right_below: int = 0
    cases_below: int = 0
    spilled: int = 0
    words: int = 0
    moved: int = 0
    sentences: int = 0


class FollowingFigures(TypedDict):
    """Counts of `Following`."""

    right: int
    cases: int
    right_below: int
    cases_below: int
    spilled: int
    words: int
    moved: int
    sentences: int


def following(
    terms: TermsOfSentences,
    references: Pairs,
    links: Sequence[Sequence[Links]],
    none: Texts,
    translated: Texts,
    languages: tuple[str, str],
) -> FollowingFigures:
    """terms: the corrections of every sentence; links: between the words of sources and references."""
    found = Following()
    content, stems = ContentWords(languages[1]), stems_of(languages[0])
    for document, own in enumerate(terms):
        known: list[tuple[int, Term]] = []
        linked: dict[str, set[str]] = {}  # of each word of the references so far, the stems that stood behind it
        for number, (source, reference) in enumerate(references[document]):
            draft, text = none[document][number], translated[document][number]
            index = Terms([term for _, term in known], *languages)
            latest = {term: sentence for sentence, term in known}
            here = {term for one in index.occurrences(source) for term in one.terms}
            for term in here:
                if term.is_said(reference, languages[1]) and not term.is_said(draft, languages[1]):
                    now = term.is_said(text, languages[1])
                    found.cases, found.right = found.cases + 1, found.right + now
                    if latest[term] == number - 1:
                        found.cases_below, found.right_below = found.cases_below + 1, found.right_below + now
            present = stems.in_text(source)
            new = content(text) - content(draft)
            found.spilled += sum(word in linked and not linked[word] & present for word in new)
            found.words += len(content(text))
            found.moved += text != draft and not here
            found.sentences += 1
            known += [(number, term) for term in own[number]]
            for ours, theirs in links[document][number]:
                linked.setdefault(theirs, set()).add(stems.of(ours))
    return FollowingFigures(**asdict(found))  # type: ignore[typeddict-item]
