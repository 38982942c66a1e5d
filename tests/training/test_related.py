"""Documents of a corpus in no order that belong together."""

import random
from pathlib import Path

import pytest

from weitblick.memory.training_examples import LENGTHS, related_runs
from weitblick.training.store import CorpusStore, StoreWriter

TOPICS, OF_EACH, SIZE = 25, 12, 6
Shuffled = tuple[CorpusStore, list[int]]


@pytest.fixture
def shuffled(tmp_path: Path) -> Shuffled:
    """Documents on some topics in random order, every seventh too short to have a past; what each is about."""
    chance = random.Random(3)
    topics = [topic for topic in range(TOPICS) for _ in range(OF_EACH)]
    chance.shuffle(topics)
    with StoreWriter(tmp_path / "store", 2000) as writer:
        for number, topic in enumerate(topics):
            sentences = [_sentence(chance, topic) for _ in range(3 if number % 7 == 6 else 9)]
            writer.add(str(number), sentences, sentences)
    return CorpusStore(tmp_path / "store"), topics


def _sentence(chance: random.Random, topic: int) -> list[int]:
    """Expressions of its topic among words that everybody uses."""
    own = [100 + 40 * topic + chance.randrange(12) for _ in range(4)]
    return [word for first in own for word in (first, first + 15, *(chance.randrange(10, 90) for _ in range(2)))]


def test_a_run_is_of_one_topic(shuffled: Shuffled) -> None:
    store, topics = shuffled
    runs = related_runs(store, 10, SIZE, seed=1)
    assert len(runs) == 10
    assert all(len({topics[document] for document in run}) == 1 for run in runs)


def test_no_document_comes_twice_and_none_without_a_past(shuffled: Shuffled) -> None:
    store, _ = shuffled
    chosen = [document for run in related_runs(store, 100, SIZE, seed=1) for document in run]
    assert len(chosen) == len(set(chosen)) > 0
    assert all(len(store.document(document)) in LENGTHS for document in chosen)


def test_the_seed_decides(shuffled: Shuffled) -> None:
    store, _ = shuffled
    assert related_runs(store, 3, SIZE, seed=1) == related_runs(store, 3, SIZE, seed=1)
    assert related_runs(store, 3, SIZE, seed=1) != related_runs(store, 3, SIZE, seed=2)


def test_documents_that_share_nothing_make_no_run(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store", 20_000) as writer:
        for number in range(20):
            words = [list(range(100 + 500 * number + 20 * n, 110 + 500 * number + 20 * n)) for n in range(9)]
            writer.add(str(number), words, words)
    assert related_runs(CorpusStore(tmp_path / "store"), 2, SIZE, seed=1) == []
