"""SentencePiece gives back exactly what it was given."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from text_corpus import SOURCES, TARGETS, learn

from weitblick.text.base import UNK, TextPipeline

characters = st.characters(exclude_categories=["Cc", "Cs"])


@settings(max_examples=400, deadline=None)
@given(text=st.text(characters, max_size=60))
def test_any_text_comes_back_exactly(sentencepiece: TextPipeline, text: str) -> None:
    expected = " ".join(text.split())
    for side in ("source", "target"):
        ids = sentencepiece.encode([text], side)  # type: ignore[arg-type]
        assert UNK not in ids[0]
        assert sentencepiece.decode(ids, side) == [expected]  # type: ignore[arg-type]


def test_what_normalisation_would_have_changed(sentencepiece: TextPipeline) -> None:
    text = "① ﬁne… ＡＢＣ ▁ ▁▁a▁ \u2585 e\u0301 a\u200bb \ufeff 𝔘 ½ “x” 🏳️‍🌈"
    assert sentencepiece.decode_target(sentencepiece.encode_target([text])) == [text]


def test_vocabulary_size_is_what_was_asked_for() -> None:
    assert len(learn("sentencepiece", True, merges=340).source_vocabulary) == 340


def test_too_few_pieces_become_as_few_as_possible() -> None:
    pipeline = learn("sentencepiece", True, merges=5)
    assert 260 < len(pipeline.source_vocabulary) < 340
    assert pipeline.decode_target(pipeline.encode_target(TARGETS)) == TARGETS


def test_separate_vocabularies_hold_what_their_side_uses() -> None:
    joint, separate = learn("sentencepiece", True), learn("sentencepiece", False)
    everything = set(joint.source_vocabulary.tokens)
    assert set(separate.source_vocabulary.tokens) | set(separate.target_vocabulary.tokens) <= everything
    for side, own, other in (("source", SOURCES, TARGETS), ("target", TARGETS, SOURCES)):
        alike = [separate.pieces(ids, side) for ids in separate.encode(own, side)]  # type: ignore[arg-type]
        assert alike == [joint.pieces(ids, side) for ids in joint.encode(own, side)]  # type: ignore[arg-type]
        foreign = separate.encode(other, side)  # type: ignore[arg-type]
        assert separate.decode(foreign, side) == other  # type: ignore[arg-type]
