"""Checks of translations: each rule finds what it should, in both directions, and leaves good translations alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.cli.options import languages_of
from weitblick.common.errors import UserError
from weitblick.files.checks.findings import CheckOptions, Finding, Ignored, Limits, Row, missed_terms
from weitblick.files.checks.languages import wrong_language
from weitblick.files.checks.numerals import converted
from weitblick.files.checks.own_rules import EndlessRuleError, OwnRule, OwnRules, check_rule, read_rules
from weitblick.files.checks.rows import rows_of_bilingual, rows_of_pair
from weitblick.files.checks.rules import ROW_RULES, check
from weitblick.memory.glossary import Glossary, Term

GERMAN = CheckOptions("en", "de")


def found(source: str, target: str, how: CheckOptions = GERMAN, **more: object) -> set[tuple[str, str]]:
    return {(one.rule, one.words) for one in check([Row(1, source, target, **more)], how)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("It weighs 1,204 kg.", "Es wiegt 1,204 kg.", ("numbers", "1,204")),
        ("Built in 2024.", "Gebaut 2042.", ("numbers", "2042")),
        ("Tighten to 12 Nm.", "Mit 21 Nm anziehen.", ("numbers", "21")),
        ("Page 17 of 20.", "Seite 17.", ("numbers", "20")),
        ("It costs 5 euros.", "Es kostet 5 Dollar.", ("units", "5 Dollar")),
        ("It is 5 km away.", "Es ist 5 m entfernt.", ("units", "5 m")),
        ("On March 5, 2024.", "Am 6. März 2024.", ("dates", "6. März 2024")),
        ("At 3:30 p.m.", "Um 14:30 Uhr.", ("dates", "14:30 Uhr")),
        ("Press <b>here</b>.", "Drücken Sie <b>hier.", ("tags", "</b>")),
        ("Press {button}.", "Drücken Sie.", ("placeholders", "{button}")),
        ("Press.", "Drücken Sie %s.", ("placeholders", "%s")),
        ("Write to a@b.com.", "Schreiben Sie an a@c.com.", ("addresses", "a@b.com")),
        ("See www.example.com.", "Siehe www.exmple.com.", ("addresses", "www.exmple.com")),
        ("Read main_window.", "Lies das Fenster.", ("codes", "main_window")),
        ("The report is long.", "The report is long.", ("untranslated", "The report is long.")),
        ("The report.", "  ", ("empty", "The report.")),
        ("It is long.", "Er ist ist lang.", ("doubled-words", "ist ist")),
        ("It is long.", "Er ist  lang.", ("spaces", "Er ist  lang.")),
        ("It is long.", " Er ist lang.", ("spaces", "Er ist lang.")),
        ("It is long, yes.", "Er ist lang , ja.", ("spaces", "g ,")),
        ("Is it long?", "Er ist lang.", ("end-sign", ".")),
        ("Name:", "Name", ("end-sign", "Name")),
        ("It (the report).", "Er (der Bericht.", ("brackets", "()")),
        ("Say “yes”.", "Sag „ja.", ("quotes", "„")),
    ],
)
def test_a_rule_finds_what_is_wrong(source: str, target: str, expected: tuple[str, str]) -> None:
    assert expected in found(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("It weighs 1,204 kg, not 1.5 t.", "Es wiegt 1.204 kg, nicht 1,5 t."),
        ("1,204,500.25 and 12.5%", "1.204.500,25 und 12,5 %"),
        ("In 2024 there were two and 3 pears.", "2024 gab es 2 und drei Birnen."),
        ("On March 5, 2024, at 3:30 p.m. sharp", "Am 5.3.2024 um 15.30 Uhr genau"),
        ("Due 12/31/2024 (2024-12-31)", "Fällig am 31.12.2024 (2024-12-31)"),
        ("On 5 March", "Am 5. März"),
        ("It costs 5 percent or $10.", "Es kostet 5 % oder 10 US-Dollar."),
        ("Press <b>{button}</b> now.", "Drücken Sie jetzt <b>{button}</b>."),
        ("“Yes”, he said (again).", "„Ja“, sagte er (wieder)."),
        ("Those who the world", "Diejenigen, die die Welt"),
        ("Is it? Yes…", "Ist es das? Ja..."),
        ("Version 2.0.1 of A5-0123/2003", "Version 2.0.1 von A5-0123/2003"),
        ("Status", "Status"),
        ("The 1990s and the 21st century", "Die 1990er und das 21. Jahrhundert"),
    ],
)
def test_a_good_translation_is_left_alone(source: str, target: str) -> None:
    assert found(source, target) == set()


def test_without_languages_both_conventions_will_do() -> None:
    unknown = CheckOptions()
    assert found("1,204 kg", "1.204 kg", unknown) == found("1,204 kg", "1,204 kg", unknown) == set()
    assert ("numbers", "1.205") in found("1,204 kg", "1.205 kg", unknown)


def test_terms_are_accepted_in_any_form_and_kept_ones_in_their_own() -> None:
    glossary = Glossary([Term("quota", "Quote", "g"), Term("Weitblick", "Weitblick", "g")])
    how = CheckOptions("en", "de", missed_terms(glossary))
    assert found("The quota of Weitblick", "Der Quoten von Weitblick", how) == set()
    assert found("The quota of Weitblick", "Die Menge von Fernsicht", how) == {
        ("terms", "quota"),
        ("kept-terms", "Weitblick"),
    }


def test_subtitles_have_lines_and_a_speed() -> None:
    lines = ("Das ist eine Zeile mit sehr viel mehr als zweiundvierzig Zeichen", "und", "drei")
    row = Row(1, "A line.", " ".join(lines), limits=Limits(seconds=1.0, lines=lines))
    said = [one.message for one in check([row], GERMAN) if one.rule == "length"]
    assert len(said) == 3
    assert f"{len(row.target)}.0 characters a second" in said[-1]
    assert found("Word", "Donaudampfschiff", CheckOptions("en", "de", longest=10)) == {("length", "Donaudampfschiff")}


def test_rows_are_compared_with_each_other() -> None:
    rows = [Row(1, "Yes.", "Ja."), Row(2, "Yes.", "Doch."), Row(3, "A b c", "Es ist so"), Row(4, "D e f", "Es ist so")]
    assert {(one.row, one.rule) for one in check(rows, GERMAN)} == {
        (1, "same-source"),
        (2, "same-source"),
        (3, "same-target"),
        (4, "same-target"),
    }
    assert {one.row for one in check(rows, GERMAN, only=[2])} == {2}


def test_findings_are_ignored_for_a_row_for_words_or_for_good() -> None:
    rows = [Row(1, "5 of 17", "fünf"), Row(2, "5 of 18", "fünf")]
    numbers = [("numbers", 1), ("numbers", 2)]

    def left(ignored: Ignored) -> list[tuple[str, int]]:
        how = CheckOptions("en", "de", ignored=[ignored, Ignored("same-target")])
        return [(one.rule, one.row) for one in check(rows, how)]

    assert left(Ignored("spaces")) == numbers
    assert left(Ignored("numbers", row=1)) == numbers[1:]
    assert left(Ignored("numbers", words="18")) == numbers[:1]
    assert left(Ignored("numbers")) == []


# Own rules


def test_own_rules_look_at_source_target_and_what_is_missing() -> None:
    rules = [
        OwnRule(name="polite", target=r"\b[Dd]u\b", message="Sie, not du"),
        OwnRule(name="brand", source="Acme", missing="Acme GmbH"),
    ]
    own = OwnRules(rules)
    rows = [Row(1, "You at Acme", "Du bei Acme"), Row(2, "You at Acme", "Sie bei Acme GmbH"), Row(3, "Duty", "Dusche")]
    assert own.check(rows) == [
        Finding(1, "polite", "Du", "Sie, not du"),
        Finding(1, "brand", "Acme", "is found by a rule of the project"),
    ]
    own.close()


def test_a_rule_that_never_ends_is_stopped_and_the_others_go_on() -> None:
    endless = OwnRules([OwnRule(name="slow", target=r"(a+)+$")], seconds=0.2)
    with pytest.raises(EndlessRuleError, match=r"rule 'slow': target '\(a\+\)\+\$' was stopped after 0.2 s in row 1"):
        endless.check([Row(1, "x", "a" * 60 + "!")])
    assert len(endless.check([Row(2, "x", "aa")])) == 1  # a new process has taken over
    endless.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- name: x\n  target: '(a'", r"rule 'x': target '\(a' is no regular expression"),
        ("- name: x", "rule 'x' looks for nothing"),
        ("- name: numbers\n  target: a", "rule 'numbers' has the name of another rule"),
        ("- nam: x", "rule 1: field 'name' is missing"),
        ("a: [", "is no YAML"),
        ("text", "is no list of rules"),
        ("- {name: x, target: a}\n- {name: x, target: b}", "two rules are called 'x'"),
    ],
)
def test_a_file_of_rules_that_is_wrong_gets_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        read_rules(path)
    assert "\n" not in str(caught.value)


def test_a_rule_is_checked_before_it_is_used() -> None:
    with pytest.raises(UserError, match="is no regular expression"):
        check_rule(OwnRule(name="x", target="[a"))


# Files and the command


def test_the_source_language_is_recognised() -> None:
    german = ["Der Bericht ist lang und wurde von dem Ausschuss noch nicht angenommen.", "Er liegt auf dem Tisch."]
    assert wrong_language(german, "en") == "de"
    assert wrong_language(german, "de") is None
    assert wrong_language(["OK"], "en") is None


XLIFF = """<xliff version="1.2"><file original="a" source-language="en" target-language="de" datatype="plaintext"><body>
<trans-unit id="a"><source>Press <g id="1">OK</g> 12 times<x id="2"/>.</source>
<target>Drücken Sie 21-mal <g id="1">OK</g>.</target></trans-unit>
<trans-unit id="b"><source>See you.</source></trans-unit></body></file></xliff>"""
PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: de\\n"

#, fuzzy
msgid "Hello %s"
msgstr "Hallo"
"""


def test_bilingual_files_are_checked_alone(tmp_path: Path) -> None:
    (tmp_path / "a.xlf").write_text(XLIFF)
    (tmp_path / "a.po").write_text(PO)
    (tmp_path / "a.tsv").write_text("5 apples\t5 Äpfel\n6 pears\t7 Birnen\n")
    xliff = rows_of_bilingual(tmp_path / "a.xlf", ("en", "de"))
    assert (xliff.source_language, xliff.target_language) == ("en", "de")
    assert {(one.row, one.rule, one.words) for one in check(xliff.rows, GERMAN)} == {
        (1, "numbers", "21"),
        (1, "tags", '<x id="2"/>'),
        (2, "empty", "See you."),
    }
    po = rows_of_bilingual(tmp_path / "a.po", ("en", "de"))
    assert [(one.rule, one.words) for one in check(po.rows, GERMAN)] == [("placeholders", "%s")]
    tsv = rows_of_bilingual(tmp_path / "a.tsv", ("en", "de"))
    assert [(one.row, one.words) for one in check(tsv.rows, GERMAN)] == [(2, "7")]


def test_cues_belong_together_by_their_numbers(tmp_path: Path) -> None:
    cue = "{}\n00:00:0{},000 --> 00:00:0{},500\n{}\n\n"
    (tmp_path / "a.srt").write_text(cue.format(1, 1, 1, "<i>Hello</i>") + cue.format(2, 2, 3, "Bye"))
    (tmp_path / "b.srt").write_text(cue.format(2, 2, 3, "Auf Wiedersehen"))
    rows = rows_of_pair(tmp_path / "a.srt", tmp_path / "b.srt").rows
    assert [(one.row, one.rule) for one in check(rows, GERMAN)] == [(1, "empty")]


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", *map(str, arguments)])
    if isinstance(result.exception, UserError):
        return 2, str(result.exception)
    return result.exit_code, result.output


def test_the_command_tells_by_its_exit_code(tmp_path: Path) -> None:
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    source.write_text("Page 12.\nIt is long.\n")
    target.write_text("Seite 21.\nEr ist lang.\n")
    code, output = run(source, target)
    assert (code, output.splitlines()[-1]) == (1, "2 rows: 1 numbers")
    assert f"{target}: row 1: numbers: 21: the source has 12" in output
    assert run(source, target, "--ignore", "1:numbers")[0] == 0
    assert run(source, target, "--ignore", "2:numbers")[0] == 1
    code, output = run(source, target, "--json")
    assert json.loads(output) == {
        "rows": 2,
        "counts": {"numbers": 1},
        "findings": [{"row": 1, "rule": "numbers", "words": "21", "message": "the source has 12"}],
    }


def test_the_command_explains_what_it_cannot_do(tmp_path: Path) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "b.docx"
    source.write_text("Page 12.\nIt is long.\n")
    target.write_bytes(b"PK")
    assert run(source, tmp_path / "none")[0] == 2
    assert "no such rule; rules: empty" in run(source, source, "--ignore", "nmbers")[1]
    assert "'x' is no row" in run(source, source, "--ignore", "x:numbers")[1]
    assert "3 files are named" in run(source, source, source)[1]
    assert run(source)[0] == 2


# Cells


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1,204", "1.204"),
        ("1,204.50", "1.204,50"),
        ("-3.5", "-3,5"),
        ("(1,204)", "(1.204)"),
        ("$1,204.50", "1.204,50\u00a0$"),
        ("45%", "45\u00a0%"),
        ("12/31/2024", "31.12.2024"),
        ("2024-12-31", "2024-12-31"),
        ("2024", "2024"),
        ("A5-0123/2003", "A5-0123/2003"),
        ("1.2.3", "1.2.3"),
        ("10:30", "10:30"),
        ("–", "–"),
    ],
)
def test_cells_are_converted_by_the_conventions_of_the_target(cell: str, expected: str) -> None:
    assert converted(cell, "en", "de") == expected
    assert converted(cell, "en", "en") == cell


def test_cells_are_converted_back() -> None:
    assert converted("1.204,50", "de", "en") == "1,204.50"
    assert converted("31.12.2024", "de", "en") == "12/31/2024"
    assert converted("1,204", "en", "fr") == "1\u00a0204"


def test_every_rule_says_what_it_is() -> None:
    assert all(rule.__doc__ for rule in ROW_RULES.values())


def test_names_of_files_that_say_a_format_say_no_language() -> None:
    """`a.txt` and `b.txt` are in no language called txt, in which 1.204 would be another number."""
    assert languages_of(["a.en", "b.de"]) == ("en", "de")
    assert languages_of(["a.txt", "b.txt"]) is None
    assert languages_of(["a.en", "b.srt"]) is None
