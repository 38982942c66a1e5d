"""Finding rows, replacing in them, and making terms of their words at the workbench, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from test_workbench_page import PHONE, axe
from workbench_story import Story

pytestmark = pytest.mark.browser


def shown(story: Story) -> list[int]:
    rows = story.page.locator("#rows tr:not([hidden])")
    positions: list[int] = rows.evaluate_all("rows => rows.map((row) => Number(row.dataset.position))")
    return positions


def serious(page: Any) -> list[str]:
    found = page.evaluate(f"() => {{ {axe()}; return axe.run() }}")
    return [rule["id"] for rule in found["violations"] if rule["impact"] in ("serious", "critical")]


def test_rows_are_found_and_gone_through_by_keys(story: Story) -> None:
    page = story.open_text().page
    story.field(1).click()
    page.keyboard.press("Control+Shift+F")
    page.keyboard.type("QUOTAS")
    story.until(lambda: page.inner_text("#find-hits") == "3 of 4 rows")
    assert shown(story) == [0, 2, 3]
    page.keyboard.press("Enter")
    story.until(lambda: story.cursor() == 0)
    page.keyboard.press("Alt+ArrowDown")
    assert story.cursor() == 2  # over the row that is not shown
    page.keyboard.press("Control+Enter")
    assert story.cursor() == 3
    assert shown(story) == [0, 2, 3]  # kept while moving
    page.check("#find-expression")
    page.fill("#find-text", r"^the .*quotas\.$")
    story.until(lambda: shown(story) == [2])
    page.select_option("#find-state", "draft")
    story.until(lambda: page.inner_text("#find-hits") == "no row found")
    page.fill("#find-text", "(")
    story.until(lambda: "is no regular expression" in story.said())
    page.focus("#find-text")
    page.keyboard.press("Escape")
    assert shown(story) == [0, 1, 2, 3]

    # by its number, and again where the cursor was
    page.keyboard.press("Control+g")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    assert story.cursor() == 3
    story.reload()
    story.until(lambda: story.cursor() == 3)


def test_words_are_replaced_as_one_step_and_confirmed_rows_are_left(story: Story) -> None:
    page = story.open_text().page
    for position, target in enumerate(("Die Quoten.", "Sie sind hoch.", "Die Quoten und Quoten.", "Dank den Quoten.")):
        story.put(position, target, "confirmed" if position == 0 else "edited")
    story.until(lambda: story.text(3) == "Dank den Quoten.")
    before = [(row["target"], row["state"]) for row in story.stored()]
    story.field(3).click()
    page.keyboard.press("Control+h")
    page.fill("#replace-text", "quoten")
    page.fill("#replace-by", "Kontingente")
    hits = "3 hits in 2 rows. 1 confirmed row is left as it is."
    story.until(lambda: page.inner_text("#replace-hits") == hits)
    assert page.locator("#replace-rows li").count() == 2
    page.focus("#replace-by")
    page.keyboard.press("Enter")
    story.until(lambda: story.text(2) == "Die Kontingente und Kontingente.")
    story.until(lambda: page.inner_text("#changes-text") == "2 sentences changed")
    assert (story.text(0), story.state(0)) == ("Die Quoten.", "confirmed")
    page.locator("#undo-button").focus()
    page.keyboard.press("u")
    story.until(lambda: [(row["target"], row["state"]) for row in story.stored()] == before)
    page.wait_for_selector("#changes", state="hidden")
    assert story.text(2) == "Die Quoten und Quoten."


def test_words_that_are_selected_become_a_term_that_can_be_taken_back(story: Story) -> None:
    page = story.open_text().page
    before = [story.text(position) for position in range(4)]
    story.point_at_source(2)
    page.locator("tr[data-position='2'] .source .w").last.dblclick()
    page.keyboard.press("Alt+t")
    assert page.input_value("#term-source") == "quotas"
    page.keyboard.type("Fangquote")
    story.until(lambda: page.inner_text("#term-hits") == "3 drafts are translated again.")
    assert serious(page) == []
    page.keyboard.press("Enter")
    story.until(lambda: all("Fangquote" in story.text(position) for position in (0, 2, 3)))
    assert story.text(1) == before[1]
    assert "because of the term quotas = Fangquote" in story.row(2).inner_text()
    page.click("#term-withdraw")
    story.until(lambda: [story.text(position) for position in range(4)] == before)
    assert story.pairs() == []


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, PHONE], ids=["desk", "phone"])
def test_finding_and_replacing_fit_and_axe_finds_nothing_serious(story: Story, size: dict[str, int]) -> None:
    page = story.open_text().page
    page.set_viewport_size(size)
    page.emulate_media(reduced_motion="reduce")
    page.click("#find-button")
    page.fill("#find-text", "quotas")
    story.until(lambda: shown(story) == [0, 2, 3])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious(page) == []
    page.click("#replace-button")
    page.fill("#replace-text", "e")
    page.fill("#replace-by", "E")
    page.check("#replace-cased")
    story.until(lambda: page.is_enabled("#replace-apply"))
    assert page.evaluate("document.getElementById('replace-dialog').scrollWidth <= innerWidth")
    assert serious(page) == []
