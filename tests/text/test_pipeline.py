"""What holds for every pipeline, whatever its kind and vocabularies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_corpus import SOURCES, TARGETS, learn

from weitblick.common.errors import UserError
from weitblick.common.recipe import TextSection
from weitblick.documents.document import Document, Sentence
from weitblick.text.base import BOS, EOS, PAD, UNK, TextPipeline, load_pipeline
from weitblick.text.pipeline import learn_pipeline

KINDS = ["sentencepiece", "moses"]
LONG = " ".join(SOURCES[:6] * 3)

many = settings(max_examples=150, deadline=None)


def test_special_ids_are_the_same_everywhere(pipeline: TextPipeline) -> None:
    for vocabulary in (pipeline.source_vocabulary, pipeline.target_vocabulary):
        assert [vocabulary.token(number) for number in (PAD, BOS, EOS, UNK)] == ["<pad>", "<s>", "</s>", "<unk>"]
        assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)


def test_vocabularies_are_one_object_only_when_joint(pipeline: TextPipeline) -> None:
    assert pipeline.joint_vocabulary == (pipeline.source_vocabulary == pipeline.target_vocabulary)
    assert pipeline.joint_vocabulary == (pipeline.source_vocabulary is pipeline.target_vocabulary)


@pytest.mark.parametrize("typed", ["<s>", "</s>", "<pad>", "<unk>", "a </s> b", "<0x41>", "</w>", "x@@ y", "@-@"])
def test_special_tokens_typed_by_a_user_are_plain_text(pipeline: TextPipeline, typed: str) -> None:
    for side in (pipeline.encode_source, pipeline.encode_target):
        ids = side([typed])[0]
        assert not {PAD, BOS, EOS} & set(ids)
    written = pipeline.decode_target(pipeline.encode_target([typed]), [typed])[0]
    assert "".join(written.split()).lower() == "".join(typed.split()).lower()


@many
@given(text=st.text(max_size=80))
def test_no_text_crashes_or_gives_special_ids_or_line_ends(pipeline: TextPipeline, text: str) -> None:
    for encode, vocabulary in (
        (pipeline.encode_source, pipeline.source_vocabulary),
        (pipeline.encode_target, pipeline.target_vocabulary),
    ):
        ids = encode([text])[0]
        assert not {PAD, BOS, EOS} & set(ids)
        assert all(0 <= number < len(vocabulary) for number in ids)
    (written,) = pipeline.decode_target(pipeline.encode_target([text]), [text])
    assert len(written.splitlines()) <= 1
    assert written == " ".join(written.split())


def test_lone_surrogates_and_control_characters_are_survived(pipeline: TextPipeline) -> None:
    ids = pipeline.encode_target(["the\x00house\ud800 \x1b[0m", "", "   \t \n"])
    assert ids[1] == ids[2] == []
    assert pipeline.decode_target(ids)[1:] == ["", ""]


def test_white_space_is_normalised(pipeline: TextPipeline) -> None:
    plain, odd = pipeline.encode_source(["the old house", "  the\told\u00a0\u2003house \r\n"])
    assert plain == odd


def test_special_ids_are_dropped_on_output(pipeline: TextPipeline) -> None:
    (ids,) = pipeline.encode_target([TARGETS[0]])
    assert pipeline.decode_target([[BOS, *ids, EOS, PAD, PAD]]) == pipeline.decode_target([ids])


@many
@given(ids=st.lists(st.integers(0, 250), max_size=30))
def test_whatever_a_model_puts_out_is_decoded(pipeline: TextPipeline, ids: list[int]) -> None:
    size = len(pipeline.target_vocabulary)
    (written,) = pipeline.decode_target([[number % size for number in ids]], ["some 中 source"])
    assert written == " ".join(written.split())


def test_words_cover_all_pieces_in_order(pipeline: TextPipeline) -> None:
    for side, sentences in (("source", SOURCES), ("target", TARGETS)):
        for ids in pipeline.encode(sentences, side):  # type: ignore[arg-type]
            words = pipeline.words([*ids, EOS], side)  # type: ignore[arg-type]
            assert [start for start, _, _ in words] == [0, *(end for _, end, _ in words[:-1])]
            assert words[-1] == (len(ids), len(ids) + 1, "</s>")
            assert len(pipeline.pieces(ids, side)) == len(ids)  # type: ignore[arg-type]


def test_nothing_has_no_words(pipeline: TextPipeline) -> None:
    for side in ("source", "target"):
        assert pipeline.encode(["\x00"], side) == [[]]
        assert pipeline.words([], side) == []
        assert pipeline.continuing([], side) == []


def test_words_have_the_surface_of_the_text(pipeline: TextPipeline) -> None:
    (ids,) = pipeline.encode_source(["they met near the old river"])
    assert [surface for _, _, surface in pipeline.words(ids, "source")] == [
        "they",
        "met",
        "near",
        "the",
        "old",
        "river",
    ]


# Length


def test_long_sentences_are_split_so_that_each_part_fits(pipeline: TextPipeline) -> None:
    parts = pipeline.split_long(LONG)
    assert " ".join(parts) == LONG
    assert len(parts) > 1
    assert all(len(ids) <= pipeline.longest_sentence for ids in pipeline.encode_source(parts))


@many
@given(text=st.text(alphabet="ab,.; 中é", max_size=400))
def test_any_text_is_split_so_that_each_part_fits(pipeline: TextPipeline, text: str) -> None:
    parts = pipeline.split_long(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(len(ids) <= pipeline.longest_sentence for ids in pipeline.encode_source(parts))


def test_short_sentences_are_not_touched(pipeline: TextPipeline) -> None:
    assert pipeline.split_long("A  short one.") == ["A  short one."]


def test_splitting_prefers_the_end_of_a_sentence() -> None:
    pipeline = learn("sentencepiece", True, longest_sentence=30)
    first, second = (
        "The old house is near the old bank and it is old.",
        "The old house is near the river, and it is old.",
    )
    assert pipeline.split_long(f"{first} {second}") == [first, second]


def test_a_word_of_data_is_hard_split_in_reasonable_time(pipeline: TextPipeline) -> None:
    parts = pipeline.split_long("x1" * 5_000)
    assert "".join(parts) == "x1" * 5_000
    assert all(len(ids) <= pipeline.longest_sentence for ids in pipeline.encode_source(parts))


# Learning


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize(
    "corpus", [(["a"], ["b"]), (["the cat"], ["die Katze"]), (["…", ""], ["中"]), (["<s>"], ["▁"])]
)
def test_tiny_corpora(kind: str, joint: bool, corpus: tuple[list[str], list[str]]) -> None:
    section = TextSection(kind=kind, merges=30_000, joint_vocabulary=joint)  # type: ignore[arg-type]
    pipeline = learn_pipeline(corpus, section)
    text = pipeline.decode_target(pipeline.encode_target(corpus[1]))
    assert [line.lower() for line in text] == [line.lower() for line in corpus[1]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("corpus", [([], []), (["", "  "], ["a", "b"]), (["a"], [])])
def test_nothing_to_learn_from_is_a_user_error(kind: str, corpus: tuple[list[str], list[str]]) -> None:
    with pytest.raises(UserError, match=r"no (source|target) text"):
        learn_pipeline(corpus, TextSection(kind=kind))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_documents_give_the_same_pipeline_as_their_sides(kind: str) -> None:
    def documents() -> Iterator[Document]:
        pairs = [Sentence(source, target) for source, target in zip(SOURCES, TARGETS, strict=True)]
        yield Document("1", tuple(pairs[:5]))
        yield Document("2", (*pairs[5:], Sentence("", None)))

    section = TextSection(kind=kind, merges=400)  # type: ignore[arg-type]
    assert (
        learn_pipeline(documents(), section).fingerprint() == learn_pipeline((SOURCES, TARGETS), section).fingerprint()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_learning_is_deterministic(kind: str) -> None:
    assert learn(kind, False).fingerprint() == learn(kind, False).fingerprint()
    assert learn(kind, False).fingerprint() != learn(kind, True).fingerprint()


@pytest.mark.parametrize("kind", KINDS)
def test_other_languages(kind: str) -> None:
    sources, targets = ["Où est l'école ? Je l'ai vue.", "L'eau est là."], ["Где школа? Я её видел.", "Вода там."]
    section = TextSection(kind=kind, merges=300, source_language="fr", target_language="ru")  # type: ignore[arg-type]
    pipeline = learn_pipeline((sources, targets), section)
    assert (pipeline.source_language, pipeline.target_language) == ("fr", "ru")
    assert pipeline.decode_target(pipeline.encode_target(targets)) == targets
    assert not any(UNK in ids for ids in pipeline.encode_source(sources))


# Files


def test_a_saved_pipeline_is_the_same_when_loaded(pipeline: TextPipeline, tmp_path: Path) -> None:
    pipeline.save(tmp_path)
    loaded = load_pipeline(tmp_path)
    assert loaded.fingerprint() == pipeline.fingerprint()
    assert loaded.joint_vocabulary == pipeline.joint_vocabulary
    assert loaded.longest_sentence == pipeline.longest_sentence
    assert loaded.encode_source(SOURCES) == pipeline.encode_source(SOURCES)
    ids = pipeline.encode_target(TARGETS)
    assert loaded.encode_target(TARGETS) == ids
    assert loaded.decode_target(ids) == pipeline.decode_target(ids)


def test_every_missing_or_damaged_file_is_named(pipeline: TextPipeline, tmp_path: Path) -> None:
    pipeline.save(tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) >= 3
    for file in files:
        content = file.read_bytes()
        file.unlink()
        with pytest.raises(UserError, match=file.name):
            load_pipeline(tmp_path)
        for damaged in (content[: len(content) // 2], b"", b"\xff\x00" + content):
            file.write_bytes(damaged)
            with pytest.raises(UserError, match=file.name):
                load_pipeline(tmp_path)
        file.write_bytes(content)
    assert load_pipeline(tmp_path).fingerprint() == pipeline.fingerprint()


@pytest.mark.parametrize("change", [{"format_version": 99}, {"kind": "other"}, {"vocabularies": None}, {"files": 3}])
def test_a_pipeline_file_that_makes_no_sense_is_refused(moses: TextPipeline, tmp_path: Path, change: dict) -> None:
    moses.save(tmp_path)
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=r"pipeline\.json"):
        load_pipeline(tmp_path)
