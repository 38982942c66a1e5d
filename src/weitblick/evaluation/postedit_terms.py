"""Corrections and glossaries in a simulated post-editing: as columns, and what users ask of both.

A correction is what a reference says in place of a word of the draft of `none`, for the same source words. `terms`
applies those of the sentences before where the refused word is said again; `glossary` applies, to each document, the
nouns and names of its references that its drafts do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypedDict

from weitblick.evaluation.postedit_measures import ContentWords
from weitblick.memory.corrections import Correction, changes, source_words
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

Behind = list[list[dict[str, set[str]]]]
"""By document and sentence: of each content word of the reference the stems of the source's content words behind it."""


def words_behind(translator: Translator, references: Pairs) -> Behind:
    """Which source words stand behind the words of the references, by alignment."""
    ours, theirs = (
        ContentWords(language)
        for language in (translator.pipeline.source_language, translator.pipeline.target_language)
    )
    stems = stems_of(translator.pipeline.source_language)
    found: Behind = []
    for pairs, alignments in zip(references, _aligned(translator, references, None), strict=True):
        rows: list[dict[str, set[str]]] = []
        for (source, target), alignment in zip(pairs, alignments, strict=True):
            row: dict[str, set[str]] = {}
            for place, (start, end) in enumerate(alignment.target):
                if theirs.counts(word := target[start:end]) and word[0].isalpha():
                    words = (source[slice(*alignment.source[number])] for number in source_words(alignment, place))
                    row.setdefault(word, set()).update(stems.of(one) for one in words if ours.counts(one))
            rows.append(row)
        found.append(rows)
    return found


class FollowingFigures(TypedDict):
    """Corrected source words that come again, where the reference has the corrected word and `none` has not (cases),
    and in how many of these a system has it, by lemma (right); the same of the row just below the correction. spilled:
    content words of a system, neither of `none` nor of the reference, that an earlier reference has for source words
    that the sentence does not have; moved: sentences that differ from `none` without a source word behind a word that
    was corrected before."""

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
    behind: Behind,
    none: Texts,
    translated: Texts,
    languages: tuple[str, str],
) -> FollowingFigures:
    """terms: the corrections of every sentence."""
    found: FollowingFigures = {
        "right": 0, "cases": 0, "right_below": 0, "cases_below": 0,
        "spilled": 0, "words": 0, "moved": 0, "sentences": 0,
    }  # fmt: skip
    content, stems = ContentWords(languages[1]), stems_of(languages[0])
    for document, own in enumerate(terms):
        known: list[tuple[int, Term]] = []
        linked: dict[str, set[str]] = {}  # of each word of the references so far, the stems that stood behind it
        corrected: set[str] = set()  # the stems behind those words that drafts did not have
        for number, (source, reference) in enumerate(references[document]):
            draft, text = none[document][number], translated[document][number]
            _count_followed(found, known, number, (source, reference, draft, text), languages)
            present, said = stems.in_text(source), content(draft)
            new = (word for word in content(text) - content(reference) if word.lower() not in draft.lower())
            found["spilled"] += sum(bool(linked.get(word)) and not linked[word] & present for word in new)
            found["words"] += len(content(text))
            found["moved"] += text != draft and not corrected & present
            found["sentences"] += 1
            known += [(number, term) for term in own[number]]
            for word, sources in behind[document][number].items():
                linked.setdefault(word, set()).update(sources)
                corrected |= sources if word not in said else set()
    return found


def _count_followed(
    found: FollowingFigures,
    known: Sequence[tuple[int, Term]],
    number: int,
    texts: tuple[str, str, str, str],
    languages: tuple[str, str],
) -> None:
    """texts: source, reference, draft and translation of a sentence; known: the corrections of those before it."""
    source, reference, draft, text = texts
    index = Terms([term for _, term in known], *languages)
    latest = {term: sentence for sentence, term in known}
    for term in {term for one in index.occurrences(source) for term in one.terms}:
        if not term.is_said(reference, languages[1]) or term.is_said(draft, languages[1]):
            continue
        now = term.is_said(text, languages[1])
        found["cases"] += 1
        found["right"] += now
        if latest[term] == number - 1:
            found["cases_below"] += 1
            found["right_below"] += now
