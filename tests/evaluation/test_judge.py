"""The form is blind, safe and complete; answers come back as they were given; the statistics are the known ones."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.evaluation.judgement import agreement, judge_answers, read_answers, sign_test
from weitblick.evaluation.judgement_form import read_key, sample_form

NASTY = "</script><script>window.hacked = 1</script> <b>&amp; \u2028 “quoted” 'text'"


def write_documents(path: Path, prefix: str, documents: int = 5, sentences: int = 3) -> Path:
    lines = "\n\n".join("\n".join(f"{prefix} {d}.{s}" for s in range(sentences)) for d in range(documents))
    path.write_text(lines + "\n", encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> dict[str, Path]:
    return {
        "source": write_documents(tmp_path / "source.en", NASTY),
        "a": write_documents(tmp_path / "zebra-one.de", "alpha"),
        "b": write_documents(tmp_path / "zebra-two.de", "beta"),
        "form": tmp_path / "form.html",
    }


def make_form(corpus: dict[str, Path], **options: int) -> Path:
    sample_form([corpus["a"], corpus["b"]], corpus["source"], corpus["form"], **{"documents": 4, **options})
    return corpus["form"]


def write_answers(path: Path, key_file: Path, choice: dict[str, str] | str) -> Path:
    """Answers of a rater who prefers system `choice`, whichever side it is on, or always ties."""
    key = read_key(key_file)
    answers = {}
    for item, left in key.left.items():
        wanted = choice if isinstance(choice, str) else choice[item]
        side = "tie" if wanted == "tie" else ("left" if left == wanted else "right")
        answers[item] = {"adequacy": side, "fluency": "tie"}
    path.write_text(json.dumps({"format_version": 1, "form_id": key.form_id, "rater": path.stem, "answers": answers}))
    return path


@pytest.mark.parametrize(("x", "n", "p"), [(39, 54, 0.0015), (38, 54, 0.0038), (27, 54, 1.0), (15, 54, 0.0015)])
def test_sign_test_gives_published_values(x: float, n: int, p: float) -> None:
    assert sign_test(x, n).p == pytest.approx(p, abs=5e-5)


def test_half_judgement_moves_toward_the_middle() -> None:
    assert sign_test(38.5, 54).p == sign_test(38, 54).p
    assert sign_test(15.5, 54).p == sign_test(16, 54).p
    assert sign_test(2.5, 5).p == pytest.approx(1.0)


@pytest.mark.parametrize(("x", "n"), [(5, 4), (-1, 4), (1.3, 4), (0, 0)])
def test_sign_test_refuses_impossible_counts(x: float, n: int) -> None:
    with pytest.raises(UserError):
        sign_test(x, n)


def test_sign_test_command() -> None:
    result = CliRunner().invoke(app, ["judge", "sign-test", "39", "54", "--json"])
    assert json.loads(result.stdout) == {"x": 39, "n": 54, "p": pytest.approx(0.0015, abs=5e-5)}


def test_form_is_blind_and_key_is_apart(corpus: dict[str, Path]) -> None:
    page = make_form(corpus).read_text(encoding="utf-8")
    assert "zebra" not in page
    key = read_key(corpus["form"].with_suffix(".key.json"))
    assert key.systems == ("zebra-one.de", "zebra-two.de")
    assert len(key.left) == 4


def test_sides_are_shuffled_and_the_seed_decides(corpus: dict[str, Path]) -> None:
    pages, sides = set(), set()
    for seed in range(12):
        make_form(corpus, seed=seed)
        pages.add(corpus["form"].read_text(encoding="utf-8"))
        sides |= set(read_key(corpus["form"].with_suffix(".key.json")).left.values())
    assert len(pages) == 12
    assert sides == {"zebra-one.de", "zebra-two.de"}
    make_form(corpus, seed=3)
    again = corpus["form"].read_text(encoding="utf-8")
    assert make_form(corpus, seed=3).read_text(encoding="utf-8") == again


def test_text_cannot_leave_the_script_element(corpus: dict[str, Path]) -> None:
    page = make_form(corpus).read_text(encoding="utf-8")
    assert page.count("</script>") == 1
    assert "window.hacked" in page
    assert "\u2028" not in page


def test_equal_outputs_are_not_worth_judging(corpus: dict[str, Path]) -> None:
    with pytest.raises(UserError, match="differ in only 0"):
        sample_form([corpus["a"], corpus["a"]], corpus["source"], corpus["form"], documents=1)
    with pytest.raises(UserError, match="differ in only 5"):
        make_form(corpus, documents=6)


def test_preferences_are_unblinded_and_ties_split(corpus: dict[str, Path], tmp_path: Path) -> None:
    key_file = make_form(corpus).with_suffix(".key.json")
    key = read_key(key_file)
    for_b = write_answers(tmp_path / "r1.json", key_file, "zebra-two.de")
    for_a = write_answers(tmp_path / "r2.json", key_file, "zebra-one.de")
    also_b = write_answers(tmp_path / "r3.json", key_file, "zebra-two.de")
    undecided = write_answers(tmp_path / "r4.json", key_file, "tie")
    adequacy, fluency = judge_answers(key, [read_answers(path, key) for path in (for_b, also_b, for_a, undecided)])
    assert adequacy.wins == {"zebra-one.de": 4, "zebra-two.de": 8}
    assert (adequacy.ties, adequacy.test.x, adequacy.test.n) == (4, 4, 4), "a document is one trial, whoever reads it"
    assert (fluency.ties, fluency.test.x, fluency.test.p) == (16, 2, 1.0)
    assert fluency.agreement is not None
    assert fluency.agreement.plain == 1.0
    assert fluency.agreement.fleiss is None


def test_a_rater_counts_once(corpus: dict[str, Path], tmp_path: Path) -> None:
    key_file = make_form(corpus).with_suffix(".key.json")
    key = read_key(key_file)
    answers = read_answers(write_answers(tmp_path / "r1.json", key_file, "tie"), key)
    with pytest.raises(UserError, match=r"r1\.json: is of rater 'r1', as is .*r1\.json"):
        judge_answers(key, [answers, answers])


def test_the_policy_of_the_form_allows_its_own_script_only(corpus: dict[str, Path]) -> None:
    page = make_form(corpus).read_text(encoding="utf-8")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "unsafe-inline" not in policy
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src &#x27;sha256-{digest}&#x27;" in policy


def test_answers_of_another_form_and_gaps_are_named(corpus: dict[str, Path], tmp_path: Path) -> None:
    key_file = make_form(corpus).with_suffix(".key.json")
    key = read_key(key_file)
    path = write_answers(tmp_path / "r1.json", key_file, "tie")
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"form_id": "other"}))
    with pytest.raises(UserError, match="other"):
        read_answers(path, key)
    del value["answers"]["d2"]["fluency"]
    path.write_text(json.dumps(value))
    with pytest.raises(UserError, match="item d2: fluency is missing"):
        read_answers(path, key)
    with pytest.raises(UserError, match="not the key"):
        read_key(path)


def test_kappas_are_those_of_the_textbooks() -> None:
    # two raters, 50 items, 35 agreements, 20/5/10/15: Cohen's kappa is 0.4
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    found = agreement([first, second], ["yes", "no"])
    assert found is not None
    assert found.plain == pytest.approx(0.7)
    assert found.cohen == pytest.approx(0.4)
    # for two raters Fleiss' expected agreement pools both: shares .55 and .45
    assert found.fleiss == pytest.approx((0.7 - 0.505) / (1 - 0.505))
    assert agreement([first], ["yes", "no"]) is None


@pytest.mark.browser
def test_form_filled_in_by_a_browser(corpus: dict[str, Path], tmp_path: Path, browser_page) -> None:  # type: ignore[no-untyped-def]
    form = make_form(corpus)
    key = read_key(form.with_suffix(".key.json"))
    page = browser_page
    page.goto(form.as_uri())
    assert page.evaluate("window.hacked") is None
    assert NASTY.split("\u2028")[0].strip() in page.locator("#sentences td").first.text_content()
    page.fill("#rater", "Anna")
    page.click("#save")
    assert "Document 1 is not judged" in page.text_content("#status")

    # prefers the first system for meaning, sees no difference in language
    for number, left in enumerate(key.left.values(), 1):
        page.click(f"#documents li:nth-child({number}) button")
        side = "left" if left == "zebra-one.de" else "right"
        shown = page.locator("#sentences tr td").nth(1 if side == "left" else 2).text_content()
        assert shown.startswith("alpha")
        page.check(f"#adequacy-{side}")
        page.check("#fluency-tie")
    page.reload()
    assert page.text_content("#progress") == "4 of 4 documents judged"

    with page.expect_download() as download:
        page.click("#save")
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "answers-Anna.json"
    result = CliRunner().invoke(app, ["judge", "read", str(form.with_suffix(".key.json")), str(saved), "--json"])
    report = json.loads(result.stdout)
    assert report["raters"] == ["Anna"]
    assert report["questions"]["adequacy"]["wins"] == {"zebra-one.de": 4, "zebra-two.de": 0}
    assert report["questions"]["fluency"]["ties"] == 4
