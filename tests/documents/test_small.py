"""The small preset: nothing but the antecedent's sentence can decide its pronouns, and that always does."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from weitblick.documents.contrast import ContrastItem
from weitblick.documents.discourse.generator import DiscourseCorpus, generate
from weitblick.documents.discourse.german import GENDERS, PRONOUN
from weitblick.documents.discourse.lexicon import small_words

PRONOUNS = set(PRONOUN["nominative"].values())
NOUN_BY_ENGLISH = {noun.english: (kind, noun) for kind, nouns in small_words().nouns.items() for noun in nouns}


@pytest.fixture(scope="module")
def corpus() -> DiscourseCorpus:
    return generate("small", 1500, 3)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def candidates(item: ContrastItem) -> list[tuple[int, str, str]]:
    """Sentence, class and gender of every noun that the document's source sentences mention."""
    return [
        (index, *((kind := NOUN_BY_ENGLISH[word])[0], kind[1].gender))
        for index, source in enumerate(item.source)
        for word in words(source)
        if word in NOUN_BY_ENGLISH
    ]


def predicate_class(source: str) -> str:
    return next(kind for kind, all in small_words().predicates.items() for said in all if f"t {said.english}" in source)


def test_lexicon_is_balanced() -> None:
    assert sum(map(len, small_words().nouns.values())) == 36
    assert sum(map(len, small_words().predicates.values())) == 16
    for nouns in small_words().nouns.values():
        assert Counter(noun.gender for noun in nouns) == dict.fromkeys(GENDERS, 3)
    assert len(NOUN_BY_ENGLISH) == 36


def test_exactly_one_candidate_fits_and_it_stands_at_the_stated_distance(corpus: DiscourseCorpus) -> None:
    for item in corpus.contrast:
        nouns = candidates(item)
        assert len(nouns) >= 3
        fitting = [noun for noun in nouns if noun[1] == predicate_class(item.source[item.sentence])]
        assert len(fitting) == 1
        index, _, gender = fitting[0]
        assert item.direction == "past"
        assert item.sentence - index == item.distance
        assert PRONOUN["nominative"][gender] == item.pronoun  # type: ignore[index]


def test_candidates_differ_in_gender(corpus: DiscourseCorpus) -> None:
    assert all(len({gender for _, _, gender in candidates(item)}) > 1 for item in corpus.contrast)


def test_the_sentence_alone_does_not_tell(corpus: DiscourseCorpus) -> None:
    """The best guess learned from the training sentences, by their whole text or by any one of their words."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for document in corpus.train:
        for sentence in document.sentences:
            target = [word for word in words((sentence.target or "").lower()) if word in PRONOUNS]
            if "it" in words(sentence.source.lower()):
                for feature in {sentence.source, *words(sentence.source.lower())}:
                    seen[feature].update(target)
    items = [item for item in corpus.contrast if item.distance]
    for features in (lambda source: [source], lambda source: words(source.lower())):
        right = 0
        for item in items:
            total: Counter[str] = Counter()
            for feature in features(item.source[item.sentence]):
                counts = seen[feature]
                total.update({word: round(1000 * count / counts.total()) for word, count in counts.items()})
            right += bool(total) and total.most_common(1)[0][0] == item.pronoun
        assert right / len(items) == pytest.approx(1 / 3, abs=0.06)


def test_predicates_come_with_every_gender_equally_often(corpus: DiscourseCorpus) -> None:
    for said in (said for all in small_words().predicates.values() for said in all):
        counts: Counter[str] = Counter()
        for document in corpus.train:
            for sentence in document.sentences:
                if f"t {said.english}" in sentence.source:
                    counts.update(word for word in words((sentence.target or "").lower()) if word in PRONOUNS)
        assert set(counts) == PRONOUNS
        assert max(counts.values()) - min(counts.values()) <= 2


def test_suite_is_balanced(corpus: DiscourseCorpus) -> None:
    cells = Counter((item.distance_group, item.pronoun) for item in corpus.contrast)
    assert len(cells) == 5 * 3
    assert len(set(cells.values())) == 1
    assert len(corpus.contrast) >= 500


def test_small_enough_to_learn_fast(corpus: DiscourseCorpus) -> None:
    for side in ("source", "target"):
        assert len({word for d in corpus.train for s in d.sentences for word in words(getattr(s, side))}) <= 200
    lengths = [len(document.sentences) for document in corpus.train]
    assert 6 <= sum(lengths) / len(lengths) <= 9
    assert all("it" in words(" ".join(document.sources).lower()) for document in corpus.train)
