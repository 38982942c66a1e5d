from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tiny_models import BASELINES, OURS, SOURCES, TARGETS, VARIANTS, name, tiny_pipeline, tiny_translation_model

from weitblick.common.errors import UserError
from weitblick.documents.document import Document, Sentence
from weitblick.fast.shortlist import Shortlist
from weitblick.model import context as model_sources
from weitblick.text.units import Unit
from weitblick.translation import translator as translators
from weitblick.translation.driver import translate_units
from weitblick.translation.options import OPTIONS, TranslationKeywords, TranslationOptions
from weitblick.translation.results import Translation
from weitblick.translation.translator import TranslationWarning, Translator, windows

DECODER = {"kind": "hierarchical", "integration": "decoder"}
ENCODER = {"kind": "hierarchical", "integration": "encoder"}
SENTENCES = [
    "The report was read.",
    "Mr. Smith is wrong.",
    "It costs more!",
    "Where is the house?",
    "It is near.",
    "He met Mr. Smith.",
]


def translator(variant: dict[str, str], end: float = 2.5, **options) -> Translator:
    options = {"end": end, **options}
    return Translator(tiny_translation_model(variant, **options), tiny_pipeline())


QUICK: dict[str, Any] = {"beam": 2, "length_penalty": 0.0}  # random models go on for long where length is rewarded
H_ATTENTION = [variant for variant in OURS if variant["kind"] == "hierarchical"]
ONLINE = [v for v in [*H_ATTENTION, *BASELINES] if v["direction"] == "online"]
READS_TARGETS = [v for v in ONLINE if v["integration"] == "decoder" and v["kind"] != "zhang"]
CHOSEN = [VARIANTS[0], *H_ATTENTION, *BASELINES, OURS[2], OURS[12]]


def document(sentences: list[str], id: str = "1") -> Document:
    return Document(id, tuple(Sentence(sentence) for sentence in sentences))


def test_it_reads_like_the_readme() -> None:
    ours = translator(ENCODER)
    result = ours.translate(["Where is the house?", "It is near the bank."])
    assert [type(target) for target in result.targets] == [str, str]
    assert result.sources == ["Where is the house?", "It is near the bank."]
    assert ours.translate("Where is the house?\nIt is near the bank.") == result
    assert ours.translate(document(result.sources)) == result


READS_SOURCES = [VARIANTS[0], *(v for v in ONLINE if v["integration"] == "encoder")]


@pytest.mark.parametrize("variant", READS_SOURCES, ids=name)
def test_stretches_that_see_all_before_them_change_nothing(
    variant: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Document("1", (*document(SENTENCES).sentences, Sentence("It is near.", "Nah.", "locked"), Sentence(" ")))
    ours = Translator(translator(variant).model, tiny_pipeline(), warn=(said := []).append)
    (whole,) = ours.translations([given], **QUICK)
    monkeypatch.setattr(translators, "STRETCH_WORDS", 8)
    (parts,) = ours.translations([given], **QUICK)
    assert parts.document == whole.document
    assert [len(found) for found in parts.translations] == [len(found) for found in whole.translations]
    assert any("stretches, each with 30 sentences" in message for message in said)


@pytest.mark.parametrize("variant", [v for v in CHOSEN if v["kind"] != "none"], ids=name)
def test_a_stretch_reads_its_neighbours_and_nothing_else(
    variant: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = translator(variant)
    monkeypatch.setattr(translators, "STRETCH_WORDS", 8)
    monkeypatch.setattr(translators, "CONTEXT_SENTENCES", 1)
    read: list[list[str]] = []
    whole = ours._translate_whole

    def watched(documents: list[Document], options: TranslationOptions) -> Any:
        read.extend(one.sources for one in documents)
        return whole(documents, options)

    monkeypatch.setattr(ours, "_translate_whole", watched)
    with pytest.warns(TranslationWarning, match="stretches"):
        (found,) = ours.translations([document(SENTENCES)], **QUICK)
    assert len(found.translations) == len(SENTENCES)
    assert all(found.document.targets)
    ahead = variant["direction"] == "offline"
    assert read[0] == SENTENCES[: 2 + ahead]
    assert read[1][0] == SENTENCES[1]
    assert max(map(len, read)) <= 5


@pytest.mark.parametrize("variant", CHOSEN, ids=name)
def test_a_document_alone_or_in_a_batch(variant: dict[str, str]) -> None:
    """Same tokens, log-probabilities within 1e-4, whatever is translated together."""
    ours = translator(variant)
    documents = [document(SENTENCES[:3], "a"), document(SENTENCES[4:5], "b"), document(SENTENCES[::-1], "c")]
    together = list(ours.translations(documents, **QUICK))
    little = list(ours.translations(documents, batch_tokens=60, **QUICK))
    for one, other, again in zip(documents, together, little, strict=True):
        (alone,) = ours.translations([one], **QUICK)
        assert alone.document == other.document == again.document
        for mine, theirs in zip(alone.translations, other.translations, strict=True):
            assert mine[0].log_probability == pytest.approx(theirs[0].log_probability, abs=1e-4)


@pytest.mark.parametrize("variant", CHOSEN[1:], ids=name)
def test_context_is_read_and_can_be_left_out(variant: dict[str, str]) -> None:
    ours = translator(variant)
    (with_context,) = ours.translations([document(SENTENCES)], **QUICK)
    (without,) = ours.translations([document(SENTENCES)], context=False, **QUICK)
    alone = [next(ours.translations([document([sentence])], context=False, **QUICK)) for sentence in SENTENCES]
    assert without.document.targets == [one.document.targets[0] for one in alone]
    differ = [
        abs(a[0].log_probability - b[0].log_probability) > 1e-3
        for a, b in zip(with_context.translations, without.translations, strict=True)
    ]
    assert any(differ)
    if variant["direction"] == "online":  # the first sentence has nothing to read
        assert not differ[0]
        assert with_context.document.targets[0] == without.document.targets[0]


@pytest.mark.parametrize("variant", ONLINE, ids=name)
def test_online_models_never_see_the_future(variant: dict[str, str]) -> None:
    ours = translator(variant)
    futures = (["It costs 12 % more.", "Where is it?"], ["He read the report."])
    (one,), (other,) = (ours.translations([document(SENTENCES[:3] + future)], **QUICK) for future in futures)
    assert one.document.targets[:3] == other.document.targets[:3]
    for a, b in zip(one.translations[:3], other.translations[:3], strict=True):
        assert a[0].log_probability == pytest.approx(b[0].log_probability, abs=1e-4)


def test_offline_models_do_see_it() -> None:
    ours = translator(ENCODER)
    futures = ("It costs 12 % more than before!", "Where is the old house? Near the bank.")
    one, other = (next(ours.translations([document([*SENTENCES[:3], future])], **QUICK)) for future in futures)
    assert one.translations[0] != other.translations[0]


@pytest.mark.parametrize("variant", [VARIANTS[0], ENCODER, DECODER], ids=name)
def test_empty_sentences_stay_and_others_never_become_empty(variant: dict[str, str]) -> None:
    ours = translator(variant, end=9.0)  # the model would rather say nothing at all
    sentences = ["", "Where is it?", "  ", "!", "\u200b", "", "日本"]
    result = ours.translate(sentences, **QUICK)
    assert len(result.sentences) == len(sentences)
    for sentence in result.sentences:
        assert sentence.target is not None
        assert bool(sentence.target.strip()) == bool(sentence.source.strip())
    assert ours.translate([]).sentences == ()
    assert ours.translate(["", " "]).targets == ["", ""]


def test_empty_sentences_are_no_context() -> None:
    ours = translator(ENCODER)
    plain = ours.translate(SENTENCES[:3]).targets
    spaced = ours.translate(["", SENTENCES[0], "", SENTENCES[1], SENTENCES[2], ""]).targets
    assert [target for target in spaced if target] == plain


@pytest.mark.parametrize("variant", [VARIANTS[0], ENCODER, DECODER], ids=name)
def test_an_over_long_sentence_is_translated_in_parts(variant: dict[str, str]) -> None:
    ours = translator(variant)
    long = " ".join(SOURCES[:2])
    assert len(ours.pipeline.encode_source([long])[0]) > ours.pipeline.longest_sentence
    with pytest.warns(TranslationWarning, match=r"sentence 2 of document 1 .* parts"):
        (result,) = ours.translations([document([SENTENCES[0], long, SENTENCES[1]])], n_best=2, **QUICK)
    assert len(result.document.sentences) == 3
    parts = ours.pipeline.split_long(long)
    assert len(parts) > 1
    apart = next(ours.translations([document([SENTENCES[0], *parts, SENTENCES[1]])], **QUICK))
    targets = [target or "" for target in apart.document.targets]
    assert result.document.targets == [targets[0], " ".join(targets[1:-1]), targets[-1]]
    assert result.translations[1][0].length == sum(t[0].length for t in apart.translations[1:-1])
    assert 0 < result.translations[1][0].confidence < 1


def test_long_documents_go_through_the_model_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither encoder nor search ever holds more than a bounded number of tokens; the result is the same."""
    monkeypatch.setattr(model_sources, "PART_TOKENS", 100)
    for variant in (ENCODER, DECODER):
        ours = translator(variant)
        seen: list[int] = []
        encode, start, decode = ours.model.sentence.encode, ours.model.sentence.start, ours.model.sentence.decode

        def counted(function, place):  # type: ignore[no-untyped-def]
            def call(*arguments):  # type: ignore[no-untyped-def]
                seen.append(len(arguments[place]))  # noqa: B023
                return function(*arguments)

            return call

        monkeypatch.setattr(ours.model.sentence, "encode", counted(encode, 0))
        monkeypatch.setattr(ours.model.sentence, "decode", counted(decode, 0))
        monkeypatch.setattr(ours.model.sentence, "start", counted(start, 0))
        many = [SENTENCES[i % 6] for i in range(240)]
        result = ours.translate(many, beam=1, length_penalty=0.0, batch_tokens=1000)
        assert len(result.sentences) == 240
        assert all(result.targets)
        assert max(seen) <= 1000
        assert sum(seen) > 2_000


def test_drafts_replace_the_first_pass() -> None:
    ours = translator(DECODER)
    (first,) = ours.translations([document(SENTENCES)], passes=1, **QUICK)
    found = first.document.targets
    drafts = Document("1", tuple(Sentence(s, t, "draft") for s, t in zip(SENTENCES, found, strict=True)))
    other = Document("1", tuple(replace(s, target=t) for s, t in zip(drafts.sentences, TARGETS * 2, strict=False)))
    (from_drafts,) = ours.translations([drafts], **QUICK)
    (from_others,) = ours.translations([other], **QUICK)
    (plain,) = ours.translations([document(SENTENCES)], **QUICK)
    assert from_others.translations != plain.translations
    assert all(sentence.status == "draft" for sentence in from_drafts.document.sentences)
    once = ours.translate(other, passes=1, **QUICK)
    assert once.targets == [s.target for s in other.sentences]  # no pass left that could improve them


def test_locked_sentences_never_change_and_are_context() -> None:
    sentences = [Sentence(s) for s in SENTENCES]
    sentences[1] = Sentence(SENTENCES[1], TARGETS[1], "locked", metadata={"by": "a human"})
    other = [*sentences]
    other[1] = replace(sentences[1], target=TARGETS[3])
    for variant in (VARIANTS[0], ENCODER, DECODER, {**DECODER, "states": "frozen"}):
        ours = translator(variant)
        (one,) = ours.translations([Document("1", tuple(sentences))], **QUICK)
        (two,) = ours.translations([Document("1", tuple(other))], **QUICK)
        assert one.document.sentences[1] == sentences[1]
        assert one.translations[1] == ()
        assert two.document.sentences[1] == other[1]
        same = one.translations[0] == two.translations[0]
        assert same == (variant.get("integration") != "decoder")


def test_a_reference_is_not_looked_at() -> None:
    ours = translator(DECODER)
    referenced = Document("1", tuple(Sentence(s, "Unsinn.") for s in SENTENCES))
    assert ours.translate(referenced, **QUICK).targets == ours.translate(SENTENCES, **QUICK).targets


def test_with_frozen_states_the_first_pass_is_the_first_stage() -> None:
    ours = translator({**DECODER, "states": "frozen"})
    sentence_level = translator({"kind": "none"})
    assert ours.model.frozen is not None
    sentence_level.model.sentence.load_state_dict(ours.model.frozen.state_dict())
    assert ours.translate(SENTENCES, passes=1, **QUICK).targets == sentence_level.translate(SENTENCES, **QUICK).targets
    assert ours.translate(SENTENCES, context=False).targets != sentence_level.translate(SENTENCES, **QUICK).targets


def same(mine: Translation, theirs: Translation) -> None:
    assert mine.text == theirs.text
    assert mine.log_probability == pytest.approx(theirs.log_probability, abs=1e-4)


@pytest.mark.parametrize("variant", [VARIANTS[0], *(v for v in ONLINE if v not in READS_TARGETS)], ids=name)
def test_a_stream_equals_the_document(variant: dict[str, str]) -> None:
    ours = translator(variant)
    (expected,) = ours.translations([document(SENTENCES)], **QUICK)
    stream = ours.stream(**QUICK)
    for _ in range(2):
        assert stream.translations("") == ()
        for sentence, (theirs,) in zip(SENTENCES, expected.translations, strict=True):
            (mine,) = stream.translations(sentence)
            same(mine, theirs)
        stream.end_document()


@pytest.mark.parametrize("variant", READS_TARGETS, ids=name)
def test_a_stream_equals_a_document_whose_past_is_locked(variant: dict[str, str]) -> None:
    """With target context: what a stream has said is final, where the translations of a document come from a first
    pass. The past is given as ids, since a random model's pieces need not be those that its text is cut into."""
    ours = translator(variant, end=3.5)
    stream = ours.stream(**QUICK)
    past: list[Unit] = []
    past_matters = []
    for number, sentence in enumerate(SENTENCES):
        (mine,) = stream.translations(sentence)
        said = stream.past.sentences[-1]
        now = Unit(0, said.position, number, sentence, list(said.source))
        (theirs,) = translate_units(ours.model, [*past, now], TranslationOptions(**QUICK))[number]
        assert theirs.ids == list(said.target)
        assert theirs.log_probability == pytest.approx(mine.log_probability, abs=1e-4)
        (alone,) = translate_units(ours.model, [now], TranslationOptions(**QUICK))[0]
        past_matters.append(abs(alone.log_probability - theirs.log_probability) > 1e-3)
        past.append(replace(now, given=list(said.target), locked=True))
    assert past_matters == [False, True, True, True, True, True]


def test_a_stream_remembers_only_this_document() -> None:
    ours = translator({**DECODER, "direction": "online"})
    stream = ours.stream(beam=1)
    first = [stream.translate(sentence) for sentence in SENTENCES]
    (later,) = stream.translations(SENTENCES[0])[:1]
    stream.end_document()
    assert [stream.translate(sentence) for sentence in SENTENCES] == first
    fresh = ours.stream(beam=1).translations(SENTENCES[0])[0]
    assert later.log_probability != pytest.approx(fresh.log_probability, abs=1e-4)


def test_offline_models_do_not_stream() -> None:
    with pytest.raises(UserError, match="offline"):
        translator(ENCODER).stream()
    assert translator(ENCODER).stream(context=False).translate("Where is it?")


def test_windows_hold_whole_documents_and_never_wait_for_more_than_they_need() -> None:
    documents = [document(["a b c"] * 4, str(n)) for n in range(5)]
    assert [[d.id for d in window] for window in windows(documents, 24)] == [["0", "1"], ["2", "3"], ["4"]]
    read = []

    def reading():  # type: ignore[no-untyped-def]
        for one in documents:
            read.append(one.id)
            yield one

    next(windows(reading(), 1))
    assert read == ["0"]


@pytest.mark.parametrize(
    "options",
    [
        {"beam": 0},
        {"beam": 3000},
        {"n_best": 9},
        {"n_best": 0},
        {"passes": 0},
        {"batch_tokens": 0},
        {"length_penalty": -1.0},
        {"length_penalty": float("nan")},
    ],
)
def test_impossible_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(UserError):
        translator(VARIANTS[0]).translate("Where is it?", **options)  # type: ignore[arg-type]


def test_keywords_and_settings_are_those_of_the_options() -> None:
    """An option that is added is known to the Python interface, and tells one request to a server from another."""
    assert list(TranslationKeywords.__annotations__) == list(OPTIONS) == list(vars(TranslationOptions()))
    assert all(option.help for option in OPTIONS.values())
    shortlist = cast(Shortlist, object())
    assert TranslationOptions(shortlist=shortlist).settings() != TranslationOptions().settings()


def test_without_a_model_the_error_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("weitblick.checkpoints.installed.DEFAULT_MODEL", tmp_path / "none")
    with pytest.raises(UserError, match="name a model folder"):
        Translator.load()
    (tmp_path / "run" / "best").mkdir(parents=True)
    (tmp_path / "run" / "best" / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"run/best"):
        Translator.load(tmp_path / "run")
