"""Varies the pairs of a corpus by chance, so that they look as text looks, and mixes corpora into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from random import Random

from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.document import Document, Sentence
from weitblick.training import augment_looks as look
from weitblick.training import augment_spans as numbers
from weitblick.training.augment_looks import rename, with_form_of_address
from weitblick.training.augment_spans import add_spans, mask_spans
from weitblick.training.augment_words import Lexicon, learn_lexicon, other_codes, stays_english, tagged

Both = tuple[str, str]
SHORT_WORDS = 12  # of a sentence that may be a heading


@dataclass(frozen=True)
class VariationRates:
    """The share of pairs that each kind is tried on; where it does not apply, the pair stays as it is."""

    rename: float = 0.6
    renumber: float = 0.15
    codes: float = 0.3
    mask: float = 0.2
    tags: float = 0.06
    add_spans: float = 0.02
    address: float = 0.35
    no_full_stop: float = 0.04
    capitals: float = 0.02
    title: float = 0.03
    careless: float = 0.03
    numbering: float = 0.04
    quotes: float = 0.02
    signs: float = 0.15
    emoji: float = 0.015
    written_numbers: float = 0.015
    stays_english: float = 0.005


@dataclass(frozen=True)
class Variation:
    """How pairs are varied: the rates, and the words that tags may be put around."""

    rates: VariationRates = field(default_factory=VariationRates)
    lexicon: Lexicon = field(default_factory=dict)

    def added(self, random: Random) -> list[Both]:
        """Pairs that are made up behind a pair of the corpus, now and then."""
        pairs = [numbers.written(random)] if random.random() < self.rates.written_numbers else []
        return pairs + ([stays_english(random)] if random.random() < self.rates.stays_english else [])

    def vary(self, source: str, target: str, random: Random) -> Both:
        return vary(source, target, random, self.rates, self.lexicon)


def vary(source: str, target: str, random: Random, rates: VariationRates, lexicon: Lexicon) -> Both:
    """The pair after a few changes by chance. Names and numbers come first: what is masked later may be made up."""
    pair = source, look.tidy_target(target)

    def chance(rate: float, change: Callable[[str, str], Both | None]) -> None:
        nonlocal pair
        if random.random() < rate:
            pair = change(*pair) or pair

    chance(rates.rename, lambda s, t: rename(s, t, random))
    chance(rates.renumber, lambda s, t: numbers.renumber(s, t, random))
    chance(rates.signs, lambda s, t: (look.other_signs(s, random), t))
    chance(rates.codes, lambda s, t: other_codes(s, t, random))
    chance(rates.tags, lambda s, t: tagged(s, t, lexicon, random))
    if "⟦" not in pair[0]:
        chance(rates.mask, lambda s, t: mask_spans(s, t, random))
    if pair[0].count(" ") < SHORT_WORDS:
        kind = random.random()
        for rate, change in (
            (rates.no_full_stop, look.without_full_stop),
            (rates.capitals, look.in_capitals),
            (rates.title, look.in_title_case),
            (rates.careless, lambda s, t: look.carelessly_typed(s, t, random)),
            (rates.quotes, lambda s, t: look.quoted(s, t, random)),
        ):
            if 0 <= kind < rate:
                pair = change(*pair) or pair
            kind -= rate
    chance(rates.numbering, lambda s, t: look.numbered(s, t, random))
    chance(rates.emoji, lambda s, t: look.with_emoji(s, t, random))
    if "⟦" not in pair[0]:
        chance(rates.add_spans, lambda s, t: add_spans(s, t, random))
    chance(rates.address, with_form_of_address)
    return pair


# A mix of corpora: each so many times over, every copy varied anew.

LEXICON_PAIRS = 60_000
"""Pairs of each corpus from which its words' translations are learned."""

Corpora = Mapping[str, tuple[Sequence[str | Path], float]]
"""By name the files of a corpus and how many times it is read."""


def lexicon_of(corpora: Corpora) -> Lexicon:
    """Words that translate each other, from the beginning of every corpus."""
    return learn_lexicon(
        (sentence.source, sentence.target)
        for paths, _ in corpora.values()
        for sentence in islice((s for document in read_documents(paths) for s in document.sentences), LEXICON_PAIRS)
        if sentence.target is not None
    )


def mixed(corpora: Corpora, seed: int, variation: Variation | None) -> Iterator[Document]:
    """The documents of all corpora; 2.5 times is two copies and half of the sentences again. Nothing is varied if
    there is no variation."""
    for name, (paths, times) in corpora.items():
        for copy in range(-int(-times // 1)):
            random = Random(f"{seed} {name} {copy}")
            share = min(1.0, times - copy)
            for document in read_documents(paths):
                sentences = tuple(_sentences(document.sentences, share, random, variation))
                if sentences:
                    yield replace(document, id=f"{name}-{copy}-{document.id}", sentences=sentences)


def _sentences(
    sentences: Sequence[Sentence], share: float, random: Random, variation: Variation | None
) -> Iterator[Sentence]:
    for sentence in sentences:
        if share < 1 and random.random() >= share:
            continue
        if variation is None or sentence.target is None:
            yield sentence
            continue
        yield Sentence(*variation.vary(sentence.source, sentence.target, random))
        for pair in variation.added(random):
            yield Sentence(*pair)
