"""The Moses pipeline agrees with sacremoses and subword-nmt, and is undone on output."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer, MosesTokenizer, MosesTruecaser
from subword_nmt import apply_bpe, learn_bpe
from text_corpus import SOURCES, TARGETS

from weitblick.text import moses_pipeline
from weitblick.text.base import UNK, TextPipeline, clean
from weitblick.text.moses_text import MosesTokens, Segmenter, TokenCounts, Truecaser, join, learn_merges, starts

ORDINARY = [
    "The committee's report wasn't read on Monday, was it?",
    "He said that the figures (from 2004) are wrong.",
    "It costs 1,250.50 euros per year!",
    "We must act now; they will not wait...",
    "It is a well-known house & the old bank.",
]

LANGUAGES = ["en", "de", "fr", "it", "cs", "fi", "zh", "xx"]

# Words that make Moses' rules fire, next to plain ones.
FRAGMENTS = r"""
a A The house 12 3,5 1.250,50 U.S. Mr. No. Nr. z.B. etc. e.g. no. art. naïve é ß ½ ① 中文 。 ，x DOTMULTI _ @-@ a@@
... .. . , ; : ? ! ( ) [ ] " ' '' ` `` % & | < > / - – — “ ” „ ‚ ‘ ’ … « » ´ .' ." .", ",
don't dogs' 'tis l'eau d' it's 1990's ,5 5, a,b a,1 x. x.' 20:een #hash $5 5$ 10% (a) (a), x) (x ¿qué? well-known
"""
fragments = st.sampled_from(FRAGMENTS.split())
spaced = st.lists(fragments, max_size=12).map(" ".join)
glued = st.lists(fragments, max_size=6).map("".join)
anything = st.text(max_size=40)
texts = st.one_of(spaced, st.lists(st.one_of(fragments, glued), max_size=10).map(" ".join), anything)

many = settings(max_examples=400, deadline=None)


def sacremoses_tokens(language: str, text: str) -> list[str]:
    normal = MosesPunctNormalizer(language).normalize(clean(text))
    return MosesTokenizer(language).tokenize(normal, escape=False)


_tokens = {language: MosesTokens(language) for language in LANGUAGES}


@many
@given(text=texts, language=st.sampled_from(LANGUAGES))
def test_tokens_are_those_of_sacremoses(text: str, language: str) -> None:
    assert _tokens[language].tokenize(text) == sacremoses_tokens(language, text)


# sacremoses splits factors at a bare `|`, which its own tokeniser would have escaped; ours are never escaped.
unfactored = spaced.map(lambda text: text.replace("|", "a"))


@settings(max_examples=100, deadline=None)
@given(training=st.lists(unfactored, min_size=1, max_size=8), text=unfactored)
def test_truecasing_is_that_of_sacremoses(training: list[str], text: str) -> None:
    sentences = [_tokens["en"].tokenize(sentence) for sentence in training]
    theirs = MosesTruecaser()
    model = theirs.train(sentences)
    counts = TokenCounts()
    for sentence in sentences:
        counts.add(sentence)
    ours = Truecaser.learn(counts.cased)
    assert ours.best == model["best"]
    assert ours.known == set(model["known"])
    tokens = _tokens["en"].tokenize(text)
    truecased = [ours.truecase(token, first) for token, first in starts(tokens)]
    assert truecased == theirs.truecase(" ".join(tokens), use_known=True)
    expected = Counter(token for sentence in sentences for token in theirs.truecase(" ".join(sentence), use_known=True))
    assert ours.truecased(counts) == expected


words = st.dictionaries(st.text("abcß", min_size=1, max_size=9), st.integers(1, 40), min_size=1, max_size=40)


def subword_nmt_codes(counts: dict[str, int], merges: int) -> io.StringIO:
    codes = io.StringIO()
    learn_bpe.learn_bpe(io.StringIO("".join(f"{w} {c}\n" for w, c in counts.items())), codes, merges, is_dict=True)
    return codes


@settings(max_examples=60, deadline=None)
@given(counts=words, new=st.lists(st.text("abcß", min_size=1, max_size=12), max_size=10))
def test_merges_and_segmentation_are_those_of_subword_nmt(counts: dict[str, int], new: list[str]) -> None:
    if all(len(word) == 1 for word in counts):
        return  # subword-nmt itself fails where there is no pair
    codes = subword_nmt_codes(counts, 50)
    expected = [tuple(line.split(" ")) for line in codes.getvalue().splitlines()[1:]]
    merges = learn_merges(counts, 50)
    assert merges == expected
    if not merges:
        return
    vocabulary = set(Segmenter(merges).count_pieces(counts)) - {"ab", "ab@@"}
    for known in (None, vocabulary):
        theirs, ours = apply_bpe.BPE(codes, vocab=known), Segmenter(merges, known)
        for word in [*counts, *new]:
            assert ours.segment(word) == theirs.segment_tokens([word])


def test_merges_of_real_words_are_those_of_subword_nmt() -> None:
    counts = dict(Counter(word for sentence in SOURCES + TARGETS for word in sentence.split()))
    expected = [tuple(line.split(" ")) for line in subword_nmt_codes(counts, 300).getvalue().splitlines()[1:]]
    assert learn_merges(counts, 300) == expected


def test_pieces_join_to_words_even_if_the_last_is_cut_short() -> None:
    assert join(["a@@", "b", "c", "d@@"]) == ["ab", "c", "d"]


@pytest.mark.parametrize("sentence", ORDINARY)
def test_ordinary_sentences_come_back(moses: TextPipeline, sentence: str) -> None:
    assert moses.decode(moses.encode([sentence], "source"), "source", [sentence]) == [sentence]


AS_MOSES_WRITES = {"einverstanden: er": "einverstanden: Er", "12 %": "12%"}


def test_training_sentences_come_back_in_the_target_language(moses: TextPipeline) -> None:
    ids = moses.encode_target(TARGETS)
    assert not any(UNK in sentence for sentence in ids)
    for sentence, written in zip(TARGETS, moses.decode_target(ids), strict=True):
        for ours, theirs in AS_MOSES_WRITES.items():
            sentence = sentence.replace(ours, theirs)
        assert written == sentence


def test_output_starts_with_a_capital(moses: TextPipeline) -> None:
    assert moses.decode_target(moses.encode_target(["das alte Haus."])) == ["Das alte Haus."]
    assert moses.encode_target(["das alte Haus."]) == moses.encode_target(["Das alte Haus."])


def test_unknown_characters_are_copied_from_the_source(moses: TextPipeline) -> None:
    ids = moses.encode_target(["Das Haus 中文 ist 日."])
    assert ids[0].count(UNK) == 3
    assert moses.decode_target(ids, ["The house 漢字 is 火."]) == ["Das Haus 漢字 ist 火."]
    assert moses.decode_target(ids, ["The house 漢字 is old."]) == ["Das Haus 漢字 ist."]
    assert moses.decode_target(ids) == ["Das Haus ist."]


def test_a_copied_piece_does_not_swallow_the_next_word(moses: TextPipeline) -> None:
    ids = moses.encode_target(["Das Haus 中 ist alt."])
    assert ids[0].count(UNK) == 1
    assert moses.decode_target(ids, ["The house 漢字 is old."]) == ["Das Haus 漢 ist alt."]


def test_a_copied_piece_stays_inside_its_word(moses: TextPipeline) -> None:
    ids = moses.encode_target(["Milošev ist da."])
    assert ids[0].count(UNK) == 1
    assert moses.decode_target(ids, ["Milošev is there."]) == ["Milošev ist da."]


def test_new_words_of_known_characters_are_spelled(moses: TextPipeline) -> None:
    for encode, word in ((moses.encode_source, "wartimeb"), (moses.encode_target, "Fahrwasserufer")):
        assert UNK not in encode([word])[0]


def test_characters_seen_once_are_unknown_in_a_large_text() -> None:
    words = Counter({"the": moses_pipeline.RARE_FROM, "q": 1, "xylo": 2})
    vocabulary = moses_pipeline._vocabulary(words, Segmenter([("t", "h"), ("th", "e</w>")]))
    assert "q" not in vocabulary
    assert {"the", "x@@", "x", "t"} <= set(vocabulary.tokens)
    assert "q" in moses_pipeline._vocabulary(Counter({"the": 5, "q": 1}), Segmenter([]))


def test_counts_of_several_processes_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = [("source", SOURCES[:9]), ("target", TARGETS[:9]), ("source", SOURCES[9:]), ("target", TARGETS[9:])]
    alone = moses_pipeline.count_tokens(text, ("en", "de"), workers=1)  # type: ignore[arg-type]
    monkeypatch.setattr(moses_pipeline, "PARALLEL_FROM", 2 * moses_pipeline.CHUNK)
    together = moses_pipeline.count_tokens(iter(text), ("en", "de"), workers=2)  # type: ignore[arg-type]
    assert together == alone
    assert [list(side.cased) for side in together] == [list(side.cased) for side in alone]  # ties go to the first seen
