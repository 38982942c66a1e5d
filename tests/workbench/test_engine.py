"""The engine's promises: together what waits together, turns for long work, the same output in any company."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from tests.patience import PATIENCE
from weitblick.documents.document import Document, Sentence
from weitblick.translation.document_job import DocumentJob
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import TranslatedDocument
from weitblick.translation.translator import Translator
from weitblick.workbench.engine import Engine
from weitblick.workbench.errors import Closed

OPTIONS = TranslationOptions(beam=1)
TALK = [
    "The report is ready.",
    "It is long.",
    "",
    "I thank the rapporteur for her work.",
    "The committee has read it.",
    "It was adopted.",
    "That is all.",
]


PIPELINE = SimpleNamespace(source_language="en", target_language="de", split_long=lambda sentence: [sentence])
MODEL = SimpleNamespace(frozen=None)


class Slow:
    """A translator that waits to be let go, and notes which documents it was given together."""

    def __init__(self) -> None:
        self.windows: list[list[str]] = []
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)
        self.pipeline, self.model = PIPELINE, MODEL

    def translate_window(
        self, documents: Sequence[Document], options: TranslationOptions, **_: Any
    ) -> list[TranslatedDocument]:
        self.windows.append([document.id for document in documents])
        self.begun.release()
        assert self.go.acquire(timeout=PATIENCE)
        if any("bad" in document.id for document in documents):
            raise ValueError("bad")
        return [TranslatedDocument(document, ((),) * len(document.sentences)) for document in documents]


def document(identity: str, *sentences: str) -> Document:
    return Document(identity, tuple(map(Sentence, sentences or ("One.",))))


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def engine(slow: Slow) -> Iterator[Engine]:
    engine = Engine(slow)  # type: ignore[arg-type]
    yield engine
    for _ in range(50):
        slow.go.release()
    engine.close()


def test_first_comes_alone_and_what_waits_meanwhile_goes_together(slow: Slow, engine: Engine) -> None:
    works = [engine.translate([document("a")], OPTIONS)]
    assert slow.begun.acquire(timeout=PATIENCE)  # nobody else was there, and it did not wait for company
    works += [engine.translate([document(name)], OPTIONS) for name in "bcd"]
    slow.go.release()
    slow.go.release()
    assert [work.result.result(PATIENCE)[0].document.id for work in works] == list("abcd")
    assert slow.windows == [["a"], ["b", "c", "d"]]


def test_who_was_answered_may_join_those_who_wait(slow: Slow, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else clients would fall into halves that wait for each other."""
    monkeypatch.setattr("weitblick.workbench.engine.REGROUPING", 1e6)
    first = engine.translate([document("a")], OPTIONS)
    assert slow.begun.acquire(timeout=PATIENCE)
    works = [engine.translate([document(name)], OPTIONS) for name in "bc"]
    slow.go.release()
    first.result.result(PATIENCE)
    works.append(engine.translate([document("d")], OPTIONS))
    slow.go.release()
    for work in works:
        work.result.result(PATIENCE)
    assert slow.windows == [["a"], ["b", "c", "d"]]


def test_who_comes_alone_never_waits(slow: Slow, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weitblick.workbench.engine.REGROUPING", 1e6)
    for name in "abc":
        slow.go.release()
        engine.translate([document(name)], OPTIONS).result.result(PATIENCE)
    assert slow.windows == [["a"], ["b"], ["c"]]


def test_other_options_go_apart_and_windows_have_a_limit(slow: Slow, engine: Engine) -> None:
    engine.translate([document("a")], OPTIONS)
    assert slow.begun.acquire(timeout=PATIENCE)
    large = "x" * 4 * 600
    rest = [
        engine.translate([document("b", large)], OPTIONS),
        engine.translate([document("c", large)], OPTIONS),
        engine.translate([document("d")], TranslationOptions(beam=2)),
    ]
    for _ in range(4):
        slow.go.release()
    for work in rest:
        work.result.result(PATIENCE)
    assert slow.windows == [["a"], ["b"], ["c"], ["d"]]


def test_one_bad_request_does_not_hurt_the_others(slow: Slow, engine: Engine) -> None:
    engine.translate([document("a")], OPTIONS)
    assert slow.begun.acquire(timeout=PATIENCE)
    good, bad = (engine.translate([document(name)], OPTIONS) for name in ("good", "bad"))
    for _ in range(4):
        slow.go.release()
    assert good.result.result(PATIENCE)[0].document.id == "good"
    with pytest.raises(ValueError, match="bad"):
        bad.result.result(PATIENCE)


def test_no_request_is_lost_between_two_windows() -> None:
    """Clients that each send one request after the other, to an engine that is done with each at once."""
    quick = SimpleNamespace(
        translate_window=lambda documents, options: [TranslatedDocument(one, ((),)) for one in documents],
        pipeline=PIPELINE,
        model=MODEL,
    )
    engine = Engine(quick)  # type: ignore[arg-type]
    answered = []

    def client() -> None:
        answered.extend(engine.translate([document("a")], OPTIONS).result.result(PATIENCE) for _ in range(500))

    clients = [threading.Thread(target=client, daemon=True) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for one in clients:
            one.start()
        for one in clients:
            one.join(PATIENCE)
    finally:
        sys.setswitchinterval(interval)
    assert len(answered) == 8 * 500
    engine.close()


def test_free_memory_goes_back_from_time_to_time(slow: Slow, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    given = threading.Semaphore(0)
    monkeypatch.setattr("weitblick.workbench.engine.release_free_memory", given.release)
    slow.go.release(2)
    engine.translate([document("a")], OPTIONS).result.result(PATIENCE)
    assert not given.acquire(blocking=False)
    monkeypatch.setattr("weitblick.workbench.engine.GIVE_BACK_SECONDS", 0.0)
    engine.translate([document("b")], OPTIONS).result.result(PATIENCE)
    assert given.acquire(timeout=PATIENCE)


def test_unwanted_work_is_not_done(slow: Slow, engine: Engine) -> None:
    engine.translate([document("a")], OPTIONS)
    assert slow.begun.acquire(timeout=PATIENCE)
    unwanted = engine.translate([document("b")], OPTIONS)
    unwanted.cancel()
    last = engine.translate([document("c")], OPTIONS)
    for _ in range(3):
        slow.go.release()
    last.result.result(PATIENCE)
    assert slow.windows == [["a"], ["c"]]
    with pytest.raises(CancelledError):
        unwanted.result.result(PATIENCE)


def test_long_work_takes_turns_and_can_be_left(slow: Slow, engine: Engine) -> None:
    """A request that comes while long work goes on is answered after the present step; work that is cancelled ends."""
    steps, pause = [], threading.Semaphore(0)

    def long() -> Iterator[None]:
        for number in range(1000):
            assert pause.acquire(timeout=PATIENCE)
            steps.append(number)
            yield

    work = engine.run(long())  # type: ignore[arg-type]
    pause.release()
    answer = engine.translate([document("short")], OPTIONS)
    slow.go.release()
    pause.release(3)
    answer.result.result(PATIENCE)
    assert len(steps) <= 4
    work.cancel()
    pause.release(3)
    engine.call(lambda: None).result.result(PATIENCE)
    done = len(steps)
    pause.release(100)
    engine.call(lambda: None).result.result(PATIENCE)
    assert len(steps) == done


def test_closing_answers_everybody(slow: Slow) -> None:
    engine = Engine(slow)  # type: ignore[arg-type]
    engine.translate([document("a")], OPTIONS)
    assert slow.begun.acquire(timeout=PATIENCE)
    waiting = engine.translate([document("b")], OPTIONS)
    slow.go.release()
    closing = threading.Thread(target=engine.close)
    closing.start()
    slow.go.release()
    closing.join(PATIENCE)
    with suppress(Closed):
        assert waiting.result.result(PATIENCE)
    with pytest.raises(Closed):
        engine.translate([document("c")], OPTIONS)


@pytest.mark.parametrize("order", [None, [5, 1, 0, 3]])
def test_a_job_says_what_the_translator_says(translator: Translator, order: list[int] | None) -> None:
    """Sentence by sentence, in any order, and each chosen one exactly once."""
    whole = document("1", *TALK)
    expected = next(translator.translations([whole], beam=2, n_best=2)).translations
    found = {}
    for finished in DocumentJob(translator, whole, TranslationOptions(beam=2, n_best=2), order).steps():
        assert not found.keys() & finished.keys()
        found |= finished
    assert found.keys() == set(range(len(TALK)) if order is None else order)
    for index, translations in found.items():
        assert [t.text for t in translations] == [t.text for t in expected[index]]


def test_sentences_without_context_need_one_pass(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second would find the same; where a sentence is in parts, is a draft or has company there are two."""
    long = "The committee has read the report of the rapporteur, " * 20
    texts = [*filter(None, TALK), "He gave it to her because she wanted it, did she not?"]
    single = [document(str(number), text) for number, text in enumerate(texts)]
    drafted = Document("d", (Sentence("It is long.", "Er ist lang.", "draft"),))
    options = TranslationOptions(n_best=2)
    expected = [next(translator.translations([one], n_best=2)) for one in single]
    asked: list[int] = []
    translate = Translator.translate_window

    def noting(self: Translator, documents: Sequence[Document], options: TranslationOptions) -> Any:
        asked.append(options.passes)
        return translate(self, documents, options)

    monkeypatch.setattr(Translator, "translate_window", noting)
    engine = Engine(translator)
    try:
        found = [engine.translate([one], options).result.result(PATIENCE)[0] for one in single]
        for one, whole in zip(found, expected, strict=True):
            for translation, same in zip(one.translations[0], whole.translations[0], strict=True):
                assert (translation.text, translation.length) == (same.text, same.length)
                assert translation.log_probability == pytest.approx(same.log_probability, abs=1e-4)
        assert set(asked) == {1}
        asked.clear()
        for one in (document("l", long), drafted, document("2", *TALK[:2])):
            engine.translate([one], TranslationOptions(beam=1)).result.result(PATIENCE)
        assert asked == [2, 2, 2]
    finally:
        engine.close()


def test_the_same_output_in_any_company(translator: Translator) -> None:
    """Alone, in a window with others, and as a long request in steps."""
    engine = Engine(translator)
    try:
        talk = document("1", *TALK)
        alone = engine.translate([talk], OPTIONS).result.result(PATIENCE)
        others = [document(str(n), f"The directive number {n} is good.", "It is new.") for n in range(5)]
        works = [engine.translate([one], OPTIONS) for one in (*others, talk)]
        together = works[-1].result.result(PATIENCE)
        assert [one.document.targets for one in together] == [one.document.targets for one in alone]
        long = document("2", *TALK * 20)
        stepwise = engine.translate([long], OPTIONS).result.result(PATIENCE)
        assert stepwise[0].document.targets == translator.translate(long, beam=1).targets
    finally:
        engine.close()
