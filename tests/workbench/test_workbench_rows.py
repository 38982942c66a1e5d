"""Rows at the workbench in a browser: reviewing, comments, badges, several at once, back and forth by steps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from test_workbench_finding import serious, shown
from test_workbench_page import PHONE
from workbench_story import Story

pytestmark = pytest.mark.browser
PICTURES = os.environ.get("WEITBLICK_PICTURES")
"""A folder for pictures of the page, to be looked at."""


def picture(page: Any, name: str) -> None:
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png")


def states(story: Story) -> list[str]:
    return [story.state(position) for position in range(4)]


def test_rows_are_reviewed_by_key_and_by_mouse_and_say_who(story: Story) -> None:
    page = story.open_text().page
    page.click("#project-button")
    page.fill("#person-name", "<b>Anna</b>")
    page.press("#person-name", "Enter")
    story.until(lambda: "You are <b>Anna</b>" in page.inner_text("#project-dialog .dialog-status"))
    page.keyboard.press("Escape")
    story.confirm(1, "Sie sind hoch.")
    story.until(lambda: story.state(1) == "confirmed")
    story.field(1).click()
    page.keyboard.press("Alt+r")
    story.until(lambda: story.stored()[1]["state"] == "reviewed")
    assert story.stored()[1]["person"] == "<b>Anna</b>"
    assert "by <b>Anna</b>" in story.row(1).locator(".state-name").get_attribute("title")
    story.put(3, "Wir danken Ihnen für die Quoten.", "confirmed")
    story.until(lambda: story.state(3) == "confirmed")
    story.row(3).hover()
    story.row(3).locator("button:text-is('Review')").click()
    story.until(lambda: story.state(3) == "reviewed")
    page.keyboard.press("Control+Shift+F")
    page.select_option("#find-state", "reviewed")
    story.until(lambda: shown(story) == [1, 3])
    page.click("#find-close")
    story.field(1).press_sequentially(" Ja.")
    story.until(lambda: story.stored()[1]["state"] == "edited")


def test_comments_are_written_changed_deleted_and_brought_back(story: Story) -> None:
    page = story.open_text().page
    story.field(2).click()
    page.keyboard.press("Alt+c")
    page.keyboard.type("Which <quotas>?")
    page.keyboard.press("Control+Enter")
    story.until(lambda: "Which <quotas>?" in story.row(2).inner_text())
    assert story.cursor() == 2
    page.click("#find-button")
    page.check("#find-comments")
    story.until(lambda: shown(story) == [2])
    story.row(2).locator(".comment button").click()
    page.fill("#comment-text", "Those of last year.")
    page.click("#comment-form .primary")
    story.until(lambda: story.row(2).locator(".comment-text").inner_text() == "Those of last year.")
    story.row(2).locator(".comment button").click()
    page.click("#comment-delete")
    story.until(lambda: story.stored()[2]["comments"] == [])
    page.click("#undo-button")
    story.until(lambda: story.row(2).locator(".comment-text").count() == 1)
    other = story.another_tab()
    assert "Those of last year." in other.row(2).inner_text()


def test_steps_go_back_and_forth_by_keys(story: Story) -> None:
    page = story.open_text().page
    before = [story.text(position) for position in range(4)]
    story.change_others()
    story.until(lambda: story.cursor() == 1)
    page.keyboard.press("Control+z")  # nothing was typed here: the confirmation, with what it has changed
    story.until(lambda: [story.text(position) for position in range(4)] == before)
    story.until(lambda: story.said() == "Taken back: confirming, row 1.")
    assert [row["state"] for row in story.stored()] == ["draft"] * 4
    assert story.pairs() == []
    assert story.cursor() == 0
    page.keyboard.press("Control+y")
    story.until(lambda: story.state(0) == "confirmed")
    story.until(lambda: page.inner_text("#changes-text") == "2 sentences changed")
    assert story.text(0) == "Die Fangquoten sind fertig."
    story.field(2).click()
    changed = story.text(2)
    page.keyboard.press("Control+End")
    page.keyboard.type(" Und")
    page.keyboard.press("Alt+s")
    story.until(lambda: story.stored()[2]["target"] == "The committee has adopted the quotas.")
    page.keyboard.press("Alt+Delete")
    story.until(lambda: story.stored()[2]["target"] == "")
    page.click("#undo-button")
    story.until(lambda: story.stored()[2]["target"] == "The committee has adopted the quotas.")
    page.click("#undo-button")
    story.until(lambda: story.text(2).endswith(" Und"))
    page.click("#undo-button")
    story.until(lambda: story.stored()[2]["target"] == changed)
    page.click("#redo-button")
    story.until(lambda: story.text(2).endswith(" Und"))


def test_several_rows_are_chosen_and_acted_on_as_one_step(story: Story) -> None:
    page = story.open_text().page
    before = [story.text(position) for position in range(4)]
    story.row(0).locator(".choose").click()
    story.row(2).locator(".choose").click(modifiers=["Shift"])
    assert page.inner_text("#chosen-text") == "3 rows chosen"
    page.click("#chosen-clear")
    story.until(lambda: [row["target"] for row in story.stored()] == ["", "", "", before[3]])
    page.locator("#undo-button").focus()
    page.keyboard.press("u")
    story.until(lambda: [row["target"] for row in story.stored()] == before)
    story.field(1).click()
    page.keyboard.press("Shift+Alt+ArrowDown")
    page.keyboard.press("Shift+Alt+ArrowDown")
    assert page.inner_text("#chosen-text") == "3 rows chosen"
    page.keyboard.press("Alt+r")
    story.until(lambda: states(story)[1:] == ["reviewed"] * 3)
    page.wait_for_selector("#chosen", state="hidden")


def test_a_review_goes_out_and_comes_back(story: Story, tmp_path: Path) -> None:
    page = story.open_text().page
    story.put(1, "Sie sind hoch.", "confirmed")
    story.until(lambda: story.state(1) == "confirmed")
    page.click("#export-button")
    with page.expect_download() as download:
        page.click("#export-links a:text-is('XLIFF')")
    text = Path(download.value.path()).read_text(encoding="utf-8")
    (tmp_path / "back.xlf").write_text(text.replace(">Sie sind hoch.<", ">Sie sind sehr hoch.<"), encoding="utf-8")
    page.set_input_files("#review-file", tmp_path / "back.xlf")
    story.until(lambda: story.text(1) == "Sie sind sehr hoch.")
    assert story.state(1) == "edited"
    assert "1 row edited" in story.said()
    page.click("#undo-button")
    story.until(lambda: (story.text(1), story.state(1)) == ("Sie sind hoch.", "confirmed"))
    (tmp_path / "other.xlf").write_text("<xliff/>")
    page.click("#export-button")
    page.set_input_files("#review-file", tmp_path / "other.xlf")
    story.until(lambda: "has no rows of a review" in page.inner_text("#export-dialog .dialog-status"))
    assert serious(page) == []


def test_tags_are_seen_in_both_columns_and_inserted_in_order(story: Story) -> None:
    page = story.page
    story.open_text()
    html = b"<p>The <b>red</b> house has {count} rooms for {name}.</p><p>Thank you.</p>"
    with story.program() as client:
        path = f"/v1/projects/{story.project}/documents"
        story.document = client.post(path, files={"file": ("a.html", html)}).json()["id"]
    page.goto(f"{story.address}/#{story.document}")
    page.reload()
    story.translated()
    story.until(lambda: story.row(0).locator(".tag-marks .is-placeholder").count() == 2)
    assert page.evaluate("[...CSS.highlights.get('weitblick-placeholder')].map(String)") == ["{count}", "{name}"]
    assert page.evaluate("[...CSS.highlights.get('weitblick-format')].map(String)") == ["red"]
    story.point_at_source(0)  # its words are elements then
    story.until(lambda: story.row(0).locator(".source .w").count() > 3)
    assert page.evaluate("[...CSS.highlights.get('weitblick-format')].map(String)") == ["red"]
    assert "1 tag auto" in story.row(0).inner_text()
    story.field(0).fill("Das rote Haus hat ")
    assert story.row(0).locator(".missing button").all_inner_texts() == ["{count}", "{name}"]
    page.keyboard.press("Control+End")
    page.keyboard.press("Alt+i")
    page.keyboard.type(" Zimmer für ")
    story.row(0).locator(".missing button").click()
    assert story.text(0) == "Das rote Haus hat {count} Zimmer für {name}"
    assert story.row(0).locator(".missing").is_hidden()
    story.until(lambda: story.row(0).locator(".tag-marks .is-format").count() == 1)
    assert story.row(0).locator(".tag-marks .is-format").get_attribute("data-text") == "rote"
    picture(page, "tags")
    assert serious(page) == []
    page.set_viewport_size(PHONE)
    picture(page, "tags-phone")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, PHONE], ids=["desk", "phone"])
def test_rows_with_everything_fit_and_axe_finds_nothing_serious(story: Story, size: dict[str, int]) -> None:
    page = story.open_text().page
    page.set_viewport_size(size)
    page.emulate_media(reduced_motion="reduce")
    story.put(1, "Sie sind hoch.", "reviewed")
    story.put(0, "Die Quoten sind fertig.", "confirmed")
    with story.program() as client:
        body = {"text": "Is this the word of the glossary? Somebody should look it up.", "person": "Anna"}
        client.post(f"{story.path}/segments/1/comments", json=body)
        text = "The committee has adopted the budgets.\n\nThe quotas are ready.\n"
        story.put(2, "Der Ausschuss hat die Quoten angenommen.", "confirmed")
        added = client.post(f"/v1/projects/{story.project}/documents", data={"text": text, "name": "b.txt"}).json()
    story.until(lambda: story.row(1).locator(".comment-text").count() == 1)
    story.row(3).locator(".choose").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious(page) == []
    picture(page, f"rows-{size['width']}")
    story.document = added["id"]
    page.goto(f"{story.address}/#{story.document}")
    page.reload()
    story.translated()
    story.until(lambda: story.row(0).locator("button.badge").inner_text() == "85 % repaired")
    assert story.row(1).locator("button.badge").inner_text() == "100 %"
    story.row(0).locator("button.badge").click()
    assert "budgets" in story.row(0).locator(".difference").inner_text()
    story.field(0).click()
    page.keyboard.press("Alt+m")
    assert story.row(0).locator(".difference").is_hidden()
    page.keyboard.press("Alt+m")
    picture(page, f"badges-{size['width']}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious(page) == []
    page.keyboard.press("Alt+c")
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.click("#statistics-button")
    page.click("#statistics-project")
    story.until(lambda: "85-94 %" in page.inner_text("#statistics-body"))
    picture(page, f"statistics-{size['width']}")
    assert page.evaluate("document.getElementById('statistics-dialog').scrollWidth <= innerWidth")
    assert serious(page) == []
