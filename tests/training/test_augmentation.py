"""Variations keep a pair a pair: the same symbols once on either side, numbers of the same value, names copied."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from weitblick.text.base import FORMAL, INFORMAL, SYMBOLS
from weitblick.training import augment_looks as look
from weitblick.training import augment_spans as numbers
from weitblick.training.augment_looks import rename
from weitblick.training.augment_spans import add_spans, common_spans, mask_spans
from weitblick.training.augment_words import (
    Lexicon,
    code,
    learn_lexicon,
    linked_words,
    other_codes,
    stays_english,
    tagged,
)
from weitblick.training.augmentation import Variation, VariationRates

PAIRS = [
    ("Tom gave Mary's book to 25 people in Boston.", "Tom gab 25 Leuten in Boston Marys Buch."),
    (
        "Open config.json in Visual Studio Code and set DEBUG=1.",
        "Öffne config.json in Visual Studio Code und setze DEBUG=1.",
    ),
    ("The report of 12 May cost 1,250.50 euros.", "Der Bericht vom 12. Mai kostete 1.250,50 Euro."),
    ("“Are you coming?” she asked - and left.", "„Kommst du?“, fragte sie – und ging."),
    (
        "You can find your files at https://example.org/a?b=1.",
        "Sie finden Ihre Dateien unter https://example.org/a?b=1.",
    ),
    ("It is raining.", "Es regnet."),
]
SYMBOL = re.compile(r"⟦[^⟧]*⟧")
ALWAYS = VariationRates(*[1.0] * len(VariationRates.__dataclass_fields__))
LEXICON: Lexicon = {"book": frozenset({"buch"}), "report": frozenset({"bericht"}), "files": frozenset({"dateien"})}
ALL_AT_ONCE = Variation(ALWAYS, LEXICON)


def carried(text: str) -> Counter[str]:
    return Counter(SYMBOL.findall(text)) - Counter({FORMAL: 1, INFORMAL: 1})


@pytest.mark.parametrize("rates", [VariationRates(), ALWAYS], ids=["usual", "always"])
def test_symbols_stand_once_on_either_side_and_are_known(rates: VariationRates) -> None:
    for seed in range(300):
        for source, target in PAIRS:
            ours, theirs = Variation(rates, LEXICON).vary(source, target, Random(seed))
            assert carried(ours) == carried(theirs)
            assert all(count == 1 for count in carried(ours).values())
            assert set(SYMBOL.findall(ours)) <= set(SYMBOLS)


def test_the_same_seed_varies_alike() -> None:
    for pair in PAIRS:
        assert ALL_AT_ONCE.vary(*pair, Random(5)) == ALL_AT_ONCE.vary(*pair, Random(5))


def test_without_rates_nothing_changes() -> None:
    nothing = VariationRates(*[0.0] * len(VariationRates.__dataclass_fields__))
    assert [Variation(nothing).vary(*pair, Random(1)) for pair in PAIRS] == PAIRS


def test_masking_gives_the_pair_back_when_symbols_are_filled_in() -> None:
    masked = 0
    for seed in range(200):
        for source, target in PAIRS:
            result = mask_spans(source, target, Random(seed))
            if result is None:
                continue
            masked += 1
            assert _filled(result[0], source)
            assert _filled(result[1], target)
    assert masked > 500


def _filled(masked: str, text: str) -> bool:
    pattern = "".join(".*" if SYMBOL.fullmatch(part) else re.escape(part) for part in re.split(r"(⟦[^⟧]*⟧)", masked))
    return re.fullmatch(pattern, text) is not None


def test_what_is_common() -> None:
    source, target = PAIRS[1]
    found = [source[slice(*span.source)] for span in common_spans(source, target)]
    assert found == ["config.json", "Visual Studio Code", "DEBUG=1"]
    source, target = PAIRS[2]
    spans = common_spans(source, target)
    assert [(source[slice(*s.source)], target[slice(*s.target)], s.number) for s in spans] == [
        ("12", "12", True),
        ("1,250.50", "1.250,50", True),
    ]


def test_words_that_stand_twice_are_not_masked() -> None:
    assert common_spans("From Boston to Boston", "Von Boston nach Boston") == []


def test_added_spans_stand_on_both_sides() -> None:
    for seed in range(20):
        source, target = add_spans("Hello", "Hallo", Random(seed))
        assert carried(source) == carried(target) != Counter()


def test_other_people_have_the_same_name_on_both_sides() -> None:
    for seed in range(50):
        result = rename("Tom saw Mary's dog.", "Tom sah Marys Hund.", Random(seed))
        assert result is not None
        source, target = (
            re.fullmatch(r"(.+) saw (.+)'s dog\.", result[0]),
            re.fullmatch(r"(.+) sah (.+)[s’] Hund\.", result[1]),
        )
        assert source is not None
        assert target is not None
        assert source[1] == target[1]
        assert target[2].rstrip("s") == source[2].rstrip("s")
    assert rename("Tom left.", "Er ging.", Random(1)) is None
    renamed = rename("Mary left.", "Maria ging.", Random(1))
    assert renamed is not None
    assert renamed[0].removesuffix(" left.") == renamed[1].removesuffix(" ging.")


def test_numbers_have_the_same_value_in_both_conventions() -> None:
    for seed in range(300):
        english, german = numbers.number(Random(seed))
        assert english.replace(",", "") == german.replace(".", "").replace(",", ".")


def test_every_number_of_a_written_pair_is_on_both_sides() -> None:
    for seed in range(500):
        english, german = numbers.written(Random(seed))
        assert "{" not in english + german
        if not re.search(
            r"(?i)\d ?(?:a\.?m|p\.?m)|\d-\d", english
        ):  # 3 p.m. is 15 Uhr, 2024-01-02 may become 02.01.2024
            assert sorted(re.findall(r"\d", english)) == sorted(re.findall(r"\d", german)), (english, german)


def test_capitals_have_no_sharp_s() -> None:
    assert look.in_capitals("Street", "Straße") == ("STREET", "STRASSE")


def test_a_headline_is_in_title_case_in_english_only() -> None:
    assert look.in_title_case("The cat sat on the mat.", "Die Katze saß.") == (
        "The Cat Sat on the Mat",
        "Die Katze saß",
    )


def test_numbering_is_the_same_on_both_sides_but_for_its_word() -> None:
    for seed in range(100):
        source, target = look.numbered("cats", "Katzen", Random(seed))
        assert re.findall(r"\d+", source) == re.findall(r"\d+", target)


def test_tags_stand_around_words_that_translate_each_other() -> None:
    pair = tagged("The report is good.", "Der Bericht ist gut.", LEXICON, Random(1))
    assert pair == ("The ⟦1⟧report⟦2⟧ is good.", "Der ⟦1⟧Bericht⟦2⟧ ist gut.")
    quoted = tagged('Choose "Save as" now.', "Wähle jetzt „Speichern unter“.", {}, Random(1))
    assert quoted == ('Choose "⟦1⟧Save as⟦2⟧" now.', "Wähle jetzt „⟦1⟧Speichern unter⟦2⟧“.")
    assert tagged("It rains.", "Es regnet.", LEXICON, Random(1)) is None


def test_tags_are_closed_behind_they_are_opened() -> None:
    for seed in range(100):
        pair = tagged(
            "The report of the files: a book (good).", "Das Buch (gut): der Bericht der Dateien.", LEXICON, Random(seed)
        )
        assert pair is not None
        for text in pair:
            opened = re.findall(r"⟦([135])⟧[^⟦]+⟦([246])⟧", text)
            assert opened
            assert all(int(last) == int(first) + 1 for first, last in opened)


def test_a_lexicon_has_what_stands_together_and_not_what_is_everywhere() -> None:
    nouns = [("cat", "Katze"), ("dog", "Hund"), ("tree", "Baum"), ("house", "Haus")]
    pairs = [(f"The {one} is here {n}.", f"Hier ist {other} {n}.") for one, other in nouns for n in range(20)]
    lexicon = learn_lexicon(pairs)
    assert lexicon["cat"] == {"katze"}
    source, target = "The old cat sleeps.", "Die alte Katze schläft."
    links = linked_words(source, target, {"cat": frozenset({"katze"})})
    assert [(source[slice(*ours)], target[slice(*theirs)]) for ours, theirs in links] == [("cat", "Katze")]


def test_codes_are_the_same_on_both_sides() -> None:
    for seed in range(100):
        pair = other_codes("Open config.json now.", "Öffne jetzt config.json.", Random(seed))
        assert pair is not None
        assert pair[0].removeprefix("Open ").removesuffix(" now.") == pair[1].removeprefix("Öffne jetzt ").removesuffix(
            "."
        )
        assert " " not in code(Random(seed))
    assert other_codes("It rains.", "Es regnet.", Random(1)) is None


def test_what_stays_english_stands_on_both_sides() -> None:
    for seed in range(100):
        english, german = stays_english(Random(seed))
        title = re.search(r"[\"“](.+)[\"”]", english)
        assert english == german or (title is not None and f"„{title[1]}“" in german)


@pytest.mark.parametrize(
    ("written", "tidy"),
    [
        ("Er sagt, daß er muß.", "Er sagt, dass er muss."),
        ("Der Ausschuß faßt einen Beschluß.", "Der Ausschuss fasst einen Beschluss."),
        ("Die Straße ist groß und weiß.", "Die Straße ist groß und weiß."),
        ('Er sagt »ja« und "nein".', "Er sagt „ja“ und „nein“."),
        ("Ja - so ist es.", "Ja – so ist es."),
    ],
)
def test_german_is_tidy(written: str, tidy: str) -> None:
    assert look.tidy_target(written) == tidy
