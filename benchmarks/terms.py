"""Whether terms are followed, in which form, and what they cost: glossaries drawn from references.

Terms are nouns and names of the references, linked to one to three neighbouring source words by alignment, in their
basic forms, whose lemma the draft does not have, at most two a sentence.

    python benchmarks/terms.py --source dev.en --target dev.de --sentences 300
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer
from simplemma import lemmatize

from weitblick.documents.document import Document, Sentence
from weitblick.evaluation.metrics import build_metric
from weitblick.evaluation.postedit_terms import few_source_words
from weitblick.memory.terms import Occurrence, Term, Terms
from weitblick.memory.word_forms import word_forms
from weitblick.text.units import Unit, split_documents
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import join_documents
from weitblick.translation.term_search import TermSearch
from weitblick.translation.translator import Translator

MOST_TERMS = 2
"""Of a sentence."""


@dataclass(frozen=True)
class Wanted:
    """A term of a sentence, and the very word that the reference has for it."""

    term: Term
    form: str


class TermsOfSentences(TermSearch):
    """Every sentence has terms of its own."""

    def __init__(self, translator: Translator, terms: list[list[Wanted]]) -> None:
        super().__init__(Terms(()), translator.pipeline)
        pipeline = translator.pipeline
        languages = pipeline.source_language, pipeline.target_language
        self.of_sentences = [Terms([one.term for one in own], *languages) for own in terms]

    def occurrences(self, unit: Unit) -> list[Occurrence]:
        return self.of_sentences[unit.document].occurrences(unit.text)


def in_basic_form(words: str) -> str:
    """English words as a glossary has them: the last one in the singular."""
    *others, last = words.split()
    return " ".join((*others, lemmatize(last, "en") if last.islower() and last.endswith("s") else last))


def wrong_terms(translator: Translator, pairs: list[tuple[str, str]], drafts: list[str]) -> list[list[Wanted]]:
    """Of every sentence the nouns and names of its reference that its draft does not have."""
    language = translator.pipeline.target_language
    forms = word_forms(language)
    found = []
    for (source, target), draft, alignment in zip(pairs, drafts, translator.align(pairs), strict=True):
        own: dict[str, Wanted] = {}
        for place, (start, end) in enumerate(alignment.target):
            word, behind = target[start:end], few_source_words(alignment, place)
            if not (place and word[:1].isupper() and word[1:].islower() and behind):
                continue
            words = source[alignment.source[behind[0]][0] : alignment.source[behind[-1]][1]]
            term = Term(in_basic_form(words), forms.lemma(word), "reference")
            if len(own) < MOST_TERMS and not term.is_said(draft, language):
                own.setdefault(words.lower(), Wanted(term, word))
        found.append(list(own.values()))
    return found


def translated(
    translator: Translator, sources: list[str], options: TranslationOptions, terms: TermSearch | None
) -> tuple[list[str], float]:
    """The translations of sentences, each a document of its own, and the seconds of processor time."""
    documents = [Document(str(n), (Sentence(source),)) for n, source in enumerate(sources)]
    units = split_documents(documents, translator.pipeline, translator.warn)
    begun = time.process_time()
    found = translate_units(translator.model, units, options, term_search=terms)
    seconds = time.process_time() - begun
    joined = join_documents(documents, units, found, translator.pipeline)
    return [one.document.sentences[0].target or "" for one in joined], seconds


def main(
    source: Annotated[Path, typer.Option(help="Source sentences, one a line.")],
    target: Annotated[Path, typer.Option(help="Their references.")],
    model: Annotated[Path | None, typer.Option(help="A model folder; the shipped one if absent.")] = None,
    sentences: Annotated[int, typer.Option(help="How many sentences are drawn.")] = 300,
    seed: Annotated[int, typer.Option()] = 1,
    rounds: Annotated[int, typer.Option(help="Timed runs; the quickest counts.")] = 2,
    show: Annotated[Path | None, typer.Option(help="A file for what was translated, to be read.")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    torch.set_num_threads(1)
    lines = zip(source.read_text().split("\n"), target.read_text().split("\n"), strict=False)
    pairs = [(ours, theirs) for ours, theirs in lines if ours.strip() and theirs.strip() and len(ours.split()) <= 60]
    pairs = random.Random(seed).sample(pairs, min(sentences, len(pairs)))
    translator = Translator.load(model)
    options, sources = TranslationOptions(), [ours for ours, _ in pairs]
    drafts, _ = translated(translator, sources, options, None)
    wanted = wrong_terms(translator, pairs, drafts)
    search = TermsOfSentences(translator, wanted)
    nothing = TermsOfSentences(translator, [[] for _ in pairs])
    with_terms, _ = translated(translator, sources, options, search)
    runs = {"without": None, "no term met": nothing, "terms": search}
    seconds = {
        name: min(translated(translator, sources, options, own)[1] for _ in range(rounds)) for name, own in runs.items()
    }
    language = translator.pipeline.target_language
    counted = [(one, with_terms[n]) for n, own in enumerate(wanted) for one in own]
    followed = sum(one.term.is_said(text, language) for one, text in counted)
    very_form = sum(one.form in text for one, text in counted)
    concerned = [n for n, own in enumerate(wanted) if own]
    bleu = build_metric("sacrebleu", language)

    def score(texts: list[str]) -> float:
        counts = bleu.statistics([texts[n] for n in concerned], [pairs[n][1] for n in concerned])
        return float(bleu.score(counts.sum(axis=0)))

    figures = {
        "sentences": len(pairs),
        "with terms": len(concerned),
        "terms": len(counted),
        "followed": followed / len(counted),
        "reference form": very_form / len(counted),
        "BLEU before": score(drafts),
        "BLEU after": score(with_terms),
        "untouched": sum(a == b for n, (a, b) in enumerate(zip(drafts, with_terms, strict=True)) if not wanted[n]),
        **{f"seconds, {name}": value for name, value in seconds.items()},
        "speed": seconds["without"] / seconds["terms"],
    }
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        print("\n".join(f"{name:20} {value:.3f}" for name, value in figures.items()))
    if show is not None:
        blocks = []
        for n in concerned:
            said = [(one, one.term.is_said(with_terms[n], language)) for one in wanted[n]]
            marks = [
                f"# {one.term.source} = {one.term.target} ({one.form}){'' if is_said else ' MISSED'}"
                for one, is_said in said
            ]
            blocks.append("\n".join((*marks, *pairs[n], drafts[n], with_terms[n])))
        show.write_text("\n\n".join(blocks) + "\n")


if __name__ == "__main__":
    typer.run(main)
