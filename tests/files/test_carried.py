"""Whatever text comes in: what is carried is in a machine's draft exactly once, on every path."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from file_translators import amnesia, each, reverse
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weitblick.documents.document import Document, Sentence
from weitblick.files.masked_document import MaskedDocument, align_by_places, mask_pair, translate_corpus
from weitblick.text.base import Side, TextPipeline, Vocabulary
from weitblick.text.carried import Alphabet, carried_spans, corpus_spans, sentence_spans, unreadable_spans
from weitblick.translation.results import TranslatedDocument, Translation
from weitblick.workbench.placeholders import RowMask
from weitblick.workbench.texts import Texts

LINE = "Visit https://example.com/a?b=1&c=2 and say {name} to %s at 14:30."


class AsciiPipeline(TextPipeline):
    """Reads ASCII and ä; everything else is unknown to it."""

    kind = "ascii"

    def __init__(self) -> None:
        vocabulary = Vocabulary([*map(chr, range(32, 127)), "ä"])
        super().__init__(("en", "de"), (vocabulary, vocabulary), 100)

    def encode(self, sentences: Sequence[str], side: Side) -> list[list[int]]:
        return [[self.source_vocabulary.id(letter) for letter in sentence] for sentence in sentences]

    def decode(self, *_: object) -> list[str]:
        raise NotImplementedError

    def words(self, *_: object) -> list[tuple[int, int, str]]:
        raise NotImplementedError

    def _files(self) -> dict[str, bytes]:
        return {}

    @classmethod
    def _restore(cls, *_: object) -> TextPipeline:
        raise NotImplementedError


ALPHABET = Alphabet(AsciiPipeline())
MACHINES: dict[str, Callable[[Document], Document]] = {
    "copies": each(str),
    "reverses": each(reverse),
    "forgets": amnesia,
    "stutters": each(lambda source: f"{source} {source}"),
    "spaces": each(lambda source: re.sub(r"([A-Z])(\d)", r"\1 \2", source)),
}
PARTS = st.sampled_from(
    [
        "😀", "👨‍👩‍👧", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "1️⃣", "H₂O", "x⁵", "∑", "π", "→", "ℝ", "Łódź", "{name}", "%s", "$1,200", "14:30",
        "https://example.com/a?b=1&c=2", "me@example.org", "/usr/local/bin", "`a b`", "snake_case", "word", "Good day.",
        "HELLO THERE", "K1", "⟦1⟧", "\U000f0001", "привет", "日本", "\x01", "&", "—", "“", "[a]", ".", "?", "!", " ",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.one_of(PARTS, st.text(max_size=5)), max_size=8).map(" ".join),
    st.lists(PARTS, max_size=5).map("".join),
    st.text(max_size=30),
).map(lambda text: text.encode("utf-8", "replace").decode())


def carried(text: str) -> Counter[str]:
    return Counter(text[start:end] for start, end in sentence_spans(text, ALPHABET))


def draft(text: str, machine: Callable[[Document], Document]) -> str:
    masked = MaskedDocument.of_sentences(Document("1", (Sentence(text),)), "en", ALPHABET)
    translated = masked.retried(machine(masked.masked()), machine)
    return masked.unmasked(translated)[0].targets[0] or ""


@pytest.mark.parametrize("machine", MACHINES)
@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
@example(text="😀Łódźhttps://example.com/a?b=1&c=2\U000f0001")
def test_a_sentence_holds_each_carried_thing_once(machine: str, text: str) -> None:
    found, spans = draft(text, MACHINES[machine]), carried(text)
    for thing, count in spans.items():
        within = sum(other.count(thing) * often for other, often in spans.items() if other != thing)
        if text.count(thing) == count + within:  # else it also stands in what is text
            assert found.count(thing) == count + within, (thing, found)


@pytest.mark.parametrize("machine", MACHINES)
@settings(max_examples=100, deadline=None)
@given(lines=st.lists(TEXTS, min_size=1, max_size=3))
def test_a_plain_text_of_a_request_holds_each_carried_thing_once(machine: str, lines: list[str]) -> None:
    text = "\n".join(lines)
    texts = Texts([text], "en", alphabet=ALPHABET)
    targets = [[one.target or "" for one in MACHINES[machine](document).sentences] for document in texts.documents()]
    (found,) = texts.join(targets, align_by_places, MACHINES[machine])
    early = Counter(part[s:e] for part in text.splitlines() for s, e in carried_spans(part))
    emoji = Counter(text[s:e] for s, e in unreadable_spans(text) if text[s:e].isprintable())
    for spans in (early, emoji):
        for thing, count in spans.items():
            if len(thing) > 3:
                assert found.count(thing) >= count, (thing, found)


@pytest.mark.parametrize("text", ["AA\u0370⁴", "Write to AA\u0370⁴ привет now", "Write H₂π here"])
def test_a_symbol_with_letters_of_another_script_is_one_thing(text: str) -> None:
    texts = Texts([text], "en", alphabet=ALPHABET)
    targets = [[one.target or "" for one in amnesia(document).sentences] for document in texts.documents()]
    (found,) = texts.join(targets, align_by_places, amnesia)
    for start, end in sentence_spans(text, ALPHABET):
        assert found.count(text[start:end]) == 1, found


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_a_line_of_a_corpus_holds_what_the_model_cannot_read(text: str) -> None:
    document = Document("1", (Sentence(text),))

    def translations(documents: Sequence[Document]) -> Iterator[TranslatedDocument]:
        for one in map(MACHINES["reverses"], documents):
            yield TranslatedDocument(one, tuple((Translation(target or "", -1.0, 1),) for target in one.targets))

    (found,) = translate_corpus([document], ALPHABET, translations, align_by_places, MACHINES["reverses"])
    target = found.document.targets[0] or ""
    assert found.translations[0][0].text == target
    assert found.document.sources == [text]
    for start, end in corpus_spans(text, ALPHABET):
        assert text[start:end] in target


def test_a_corpus_goes_to_the_model_as_it_stands() -> None:
    document = Document("1", (Sentence(LINE), Sentence("“Quoted” — [aside] & more"), Sentence("I like it 😀.")))
    read = MaskedDocument.of_corpus(document, Alphabet(AsciiPipeline())).masked().sources
    assert read[0] == LINE
    assert read[2] == "I like it K1."


def test_the_line_of_the_finding_comes_back_with_everything_in_it() -> None:
    for machine in MACHINES.values():
        found = draft(LINE, machine)
        for thing in ("https://example.com/a?b=1&c=2", "{name}", "%s", "14:30"):
            assert found.count(thing) == 1, found


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("I like this house 😀.", "I like this house K1."),
        ("Great😀 news", "Great K1 news"),
        ("Water is H₂O.", "Water is K1."),
        ("He lives in Łódź.", "He lives in K1."),
        ("Run `make all` now", "Run K1 now"),
        ("It’s fine…", "It's fine..."),
        ("Co\xadoperate", "Cooperate"),
        ("Käse", "Käse"),
    ],
)
def test_what_a_model_reads(text: str, read: str) -> None:
    assert mask_pair(text, "", "en", ALPHABET).source == read


def test_a_symbol_that_clings_to_a_word_clings_to_its_translation() -> None:
    assert draft("Great😀 news", each(lambda source: source.replace("Great", "Tolle").replace("news", "Neues"))) == (
        "Tolle😀 Neues"
    )


def test_rows_of_the_workbench_do_not_depend_on_what_the_model_can_spell() -> None:
    texts = ["Dvořák wrote it. It is 😀. Great!", "Great😀 Fun."]
    with_model, without = (Texts(texts, "en", alphabet=alphabet) for alphabet in (ALPHABET, None))
    assert [[s.source for s in file.document.sentences] for file in with_model._files] == [
        [s.source for s in file.document.sentences] for file in without._files
    ]


def test_rows_without_a_file_are_masked() -> None:
    mask = RowMask(None, ["See {name} 😀."], "en", ALPHABET)
    assert mask.source(0) == "See K1."
    assert mask.unmask({0: "Siehe K1."}, align_by_places, lambda lost: lost) == {0: "Siehe {name} 😀."}


def test_an_approved_translation_stays_as_it_is() -> None:
    texts = Texts(["See {name} — now.\nGo on."], "en", alphabet=ALPHABET)
    (document,) = texts.documents({"See {name} — now.": "Jetzt — {name} „ansehen“."})
    assert document.sentences[0].status == "locked"
    targets = [sentence.target or "Weiter." for sentence in document.sentences]
    assert texts.join([targets], align_by_places, lambda lost: lost) == ["Jetzt — {name} „ansehen“.\nWeiter."]


def test_symbols_of_the_vocabulary_are_the_names_if_the_model_has_learned_them() -> None:
    from weitblick.text.base import NUMBERS, SPANS

    pipeline = AsciiPipeline()
    pipeline.source_vocabulary = pipeline.target_vocabulary = Vocabulary([*map(chr, range(32, 127)), *SPANS, *NUMBERS])
    alphabet = Alphabet(pipeline)
    masked = MaskedDocument.of_sentences(Document("1", (Sentence("{count} files in /tmp/a/b"),)), "en", alphabet)
    assert masked.masked().sources == ["⟦#1⟧ files in ⟦1⟧"]
    answer = Document("1", (replace(masked.document.sentences[0], target="⟦#1⟧ Dateien in ⟦1⟧ ⟦3⟧"),))
    assert masked.unmasked(answer)[0].targets == ["{count} Dateien in /tmp/a/b"]


def test_sentences_that_lost_something_are_translated_again_each_on_its_own() -> None:
    """They may stand pages apart: none of them is context of another."""
    texts = ("Write to me@example.org.", "Good day.", "See https://example.com/a?b=1 now.")
    masked = MaskedDocument.of_sentences(Document("1", tuple(map(Sentence, texts))), "en", ALPHABET)
    seen: list[list[str]] = []

    def machine(document: Document) -> Document:
        seen.append(document.sources)
        return replace(document, sentences=tuple(replace(one, target=one.source) for one in document.sentences))

    lost = {0: "An.", 1: "Guten Tag.", 2: "Sieh nach."}
    found = masked.retry(lost, machine)
    assert [len(sources) for sources in seen] == [1, 1]
    assert found[1] == "Guten Tag."
    whole, _ = masked.unmask(found)
    assert "me@example.org" in whole[0]
    assert "https://example.com/a?b=1" in whole[2]
