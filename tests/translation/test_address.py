"""One form of address throughout a document: what is asked for, what the rest of a document has, what was confirmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from weitblick.common.errors import UserError
from weitblick.common.recipe import TextSection
from weitblick.text.base import FORMAL, INFORMAL, TextPipeline
from weitblick.text.pipeline import learn_pipeline
from weitblick.text.units import Unit
from weitblick.translation.address import Address, symbols_of
from weitblick.translation.beam import Hypothesis
from weitblick.translation.options import Formality, TranslationOptions

YOU = [("You can go.", "Sie können gehen.", "Du kannst gehen."), ("Are you tired?", "Sind Sie müde?", "Bist du müde?")]
PLAIN = ("It is raining.", "Es regnet.", "Es regnet.")
TEXTS = [text for pair in (*YOU, PLAIN) for text in pair]


@pytest.fixture(scope="module")
def pipeline() -> TextPipeline:
    symbols, words = [FORMAL, INFORMAL], ["Sie", "du", "Du"]
    section = TextSection(kind="sentencepiece", merges=320, joint_vocabulary=True, symbols=symbols, words=words)
    return learn_pipeline((TEXTS * 3, TEXTS * 3), section)


class Passes:
    """Passes over documents whose translations are known: (document, source, translation, confirmed)."""

    def __init__(
        self, pipeline: TextPipeline, sentences: Sequence[tuple[int, str, str, bool]], stubborn: bool = False
    ) -> None:
        """stubborn: a search says what it said before, unless words of that are forbidden."""
        self.pipeline, self.stubborn = pipeline, stubborn
        self.units = [
            Unit(document, position, position, source, *pipeline.encode_source([source]), locked=confirmed)
            for position, (document, source, _, confirmed) in enumerate(sentences)
        ]
        self._targets = pipeline.encode_target([target for _, _, target, _ in sentences])
        self.asked: list[list[int]] = []

    @property
    def found(self) -> dict[int, list[Hypothesis]]:
        return {n: [self.hypothesis(self._targets[n])] for n, unit in enumerate(self.units) if not unit.locked}

    @staticmethod
    def hypothesis(ids: list[int]) -> Hypothesis:
        return Hypothesis(list(ids), -1.0, -1.0, [])

    def targets(self) -> list[list[int]]:
        return self._targets

    def search_variants(
        self, numbers: Sequence[int], sources: Sequence[list[int]], forbidden: tuple[int, ...] = ()
    ) -> list[list[Hypothesis]]:
        """What was asked for comes second: a search prefers what it said before."""
        self.asked += sources
        symbols = symbols_of(self.pipeline)
        assert symbols is not None
        found = []
        for number, source in zip(numbers, sources, strict=True):
            _, formal, informal = next(entry for entry in YOU if entry[0] == self.units[number].text)
            wanted = formal if source[0] == symbols["formal"] else informal
            hypotheses = [self._targets[number], *self.pipeline.encode_target([wanted])]
            hypotheses = hypotheses[:1] if self.stubborn and not forbidden else hypotheses
            found.append([self.hypothesis(ids) for ids in hypotheses if not set(ids) & set(forbidden)])
        return found


def followed(
    pipeline: TextPipeline,
    formality: Formality,
    sentences: Sequence[tuple[int, str, str, bool]],
    stubborn: bool = False,
) -> Mapping[int, str]:
    address = Address.of(pipeline, formality)
    assert address is not None
    passes = Passes(pipeline, sentences, stubborn)
    found = address.follow(passes, passes.found)
    return dict(zip(found, pipeline.decode_target([own[0].ids for own in found.values()]), strict=True))


def rows(*forms: str, document: int = 0) -> list[tuple[int, str, str, bool]]:
    """Sentences that say you, translated in these forms: f, i, or F and I if a person has confirmed them."""
    return [
        (document, YOU[n % 2][0], YOU[n % 2][1 if form in "fF" else 2], form.isupper()) for n, form in enumerate(forms)
    ]


def test_the_minority_of_a_document_follows_the_rest(pipeline: TextPipeline) -> None:
    assert followed(pipeline, "auto", rows("f", "i", "i")) == {0: "Du kannst gehen."}
    assert followed(pipeline, "auto", rows("f", "i", "f")) == {1: "Sind Sie müde?"}
    assert followed(pipeline, "auto", rows("i", "f")) == {0: "Sie können gehen."}  # of equals the formal one


def test_a_search_that_will_not_follow_is_forbidden_the_other_words(pipeline: TextPipeline) -> None:
    assert followed(pipeline, "auto", rows("f", "i", "i"), stubborn=True) == {0: "Du kannst gehen."}
    assert followed(pipeline, "formal", rows("f", "i"), stubborn=True) == {1: "Sind Sie müde?"}


def test_a_word_that_may_be_no_address_is_not_forbidden(pipeline: TextPipeline) -> None:
    """*Sie* is *they* as well."""
    both = (0, "You can go if they are tired.", "Sie können gehen, wenn Sie müde sind.", False)
    address = Address.of(pipeline, "auto")
    assert address is not None
    assert (
        address._must_forbid(Passes(pipeline, [both]).units[0], "informal", Passes(pipeline, [both]).found[0][0])
        is False
    )


def test_what_is_consistent_stays(pipeline: TextPipeline) -> None:
    assert followed(pipeline, "auto", [*rows("i", "i"), (0, PLAIN[0], PLAIN[1], False)]) == {}
    assert followed(pipeline, "auto", [*rows("i", "i"), *rows("f", "f", document=1)]) == {}


def test_what_was_confirmed_decides(pipeline: TextPipeline) -> None:
    assert followed(pipeline, "auto", rows("I", "f", "f")) == {1: "Bist du müde?", 2: "Du kannst gehen."}


def test_a_form_that_is_asked_for_holds_for_all(pipeline: TextPipeline) -> None:
    assert followed(pipeline, "formal", rows("i", "i", "f")) == {0: "Sie können gehen.", 1: "Sind Sie müde?"}
    assert followed(pipeline, "informal", rows("I", "f")) == {1: "Bist du müde?"}


def test_every_sentence_is_asked_for_it_and_none_without(pipeline: TextPipeline) -> None:
    symbols = symbols_of(pipeline)
    unit = Passes(pipeline, rows("f")).units[0]
    for formality, before in (("formal", [symbols["formal"]]), ("informal", [symbols["informal"]]), ("auto", [])):
        address = Address.of(pipeline, formality)
        assert address is not None
        assert address.source(unit) == [*before, *unit.source]


def test_a_document_is_settled_once(pipeline: TextPipeline) -> None:
    """A server translates a document group by group: what was said at first holds for what comes later."""
    address = Address.of(pipeline, "auto")
    assert address is not None
    passes = Passes(pipeline, rows("i", "i", "f", "f", "f"))
    first = {number: passes.found[number] for number in (0, 1)}
    settled = address.follow(passes, first)
    assert sorted(settled) == [0, 1]  # all drafts count, also of sentences that come later
    assert address.follow(passes, {number: passes.found[number] for number in (2, 3, 4)}) == {}


def test_a_model_without_forms(pipeline: TextPipeline) -> None:
    plain = learn_pipeline((TEXTS * 3, TEXTS * 3), TextSection(kind="sentencepiece", merges=110))
    assert Address.of(plain, "auto") is None
    with pytest.raises(UserError, match="knows no forms of address"):
        Address.of(plain, "formal")


def test_no_other_wish_is_possible() -> None:
    with pytest.raises(UserError, match=r"formality 'more' is none; use auto, formal, informal"):
        TranslationOptions(formality="more")  # type: ignore[arg-type]
