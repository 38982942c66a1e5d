"""Completion while typing, in a browser: offered in grey, taken by key or pointer, and never text before that."""

from __future__ import annotations

from typing import Any

import pytest
from workbench_story import Story

pytestmark = pytest.mark.browser

OFFERED = "tr[data-current] .offered .rest"


def offered(story: Story) -> str:
    """What stands in grey behind the text; nothing if there is nothing."""
    found = story.page.locator(OFFERED)
    return str(found.get_attribute("data-text")) if found.count() else ""


def begin(story: Story, position: int, text: str) -> str:
    """Somebody empties a row and types; what is offered then."""
    story.field(position).fill("")
    story.page.keyboard.type(text, delay=20)
    story.until(lambda: offered(story) != "" and story.text(position) == text)
    return offered(story)


def test_the_rest_is_offered_and_taken_word_by_word(story: Story) -> None:
    page = story.open_text().page
    rest = begin(story, 0, "Die Fang")
    assert rest.startswith("quoten")
    page.keyboard.press("Tab")
    assert story.text(0) == "Die Fangquoten"
    assert story.cursor() == 0
    story.until(lambda: offered(story) == rest.removeprefix("quoten"))
    page.keyboard.press("Alt+ArrowRight")
    assert story.text(0) == "Die Fang" + rest
    story.until(lambda: offered(story) == "")
    story.until(lambda: story.stored()[0]["target"] == "Die Fang" + rest)
    page.keyboard.press("Control+z")
    assert story.text(0) == "Die Fangquoten"


def test_what_is_offered_is_no_text(story: Story) -> None:
    """Not of the field, the page, what is saved, what is exported or what a screen reader hears."""
    page = story.open_text().page
    rest = begin(story, 0, "Die Quoten")
    assert story.text(0) == "Die Quoten"
    assert rest not in page.inner_text("#rows")
    assert page.locator(".offered").get_attribute("aria-hidden") == "true"
    assert rest.strip() not in str(page.locator("#rows").aria_snapshot())
    story.until(lambda: story.stored()[0]["target"] == "Die Quoten")
    with story.program() as client:
        assert client.get(f"{story.path}/export/file").text.startswith("Die Quoten ")
    page.keyboard.press("Control+Enter")  # there is no full stop
    page.keyboard.press("Control+Enter")
    story.until(lambda: story.stored()[0]["state"] == "confirmed")
    assert story.stored()[0]["target"] == "Die Quoten"
    assert page.locator(".offered").count() == 0


def test_whoever_types_what_is_offered_asks_nothing(story: Story) -> None:
    page = story.open_text().page
    rest = begin(story, 0, "Die Quoten ")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/completion") else None)
    page.keyboard.type(rest[:3], delay=20)
    story.until(lambda: offered(story) == rest[3:])
    page.wait_for_timeout(300)
    assert asked == []
    page.keyboard.press("ArrowLeft")
    story.until(lambda: offered(story) == "")
    page.wait_for_timeout(300)
    assert asked == []  # nothing has changed


def test_late_answers_are_dropped(story: Story) -> None:
    page = story.open_text().page
    held: list[Any] = []
    page.route("**/segments/*/completion", lambda route: held.append(route))
    story.field(0).fill("")
    page.keyboard.type("Die", delay=10)
    story.until(lambda: len(held) > 0)
    page.keyboard.type(" Quoten", delay=10)
    page.keyboard.press("Alt+ArrowDown")  # another row
    for route in held:
        try:
            route.fulfill(json={"rest": " ALT"})
        except Exception:  # the page has given it up
            continue
    page.wait_for_timeout(300)
    assert page.locator(".offered").count() == 0


def test_in_the_middle_the_rest_can_be_replaced(story: Story) -> None:
    page = story.open_text().page
    story.field(0).fill("Die Quoten waren alt.")
    for _ in range(len(" waren alt.")):
        page.keyboard.press("ArrowLeft")
    page.keyboard.type(" bleiben", delay=10)  # which no draft says
    line = page.locator("tr[data-current] .rest-line .rest")
    story.until(lambda: line.count() == 1)
    rest = str(line.get_attribute("data-text"))
    page.locator("tr[data-current] .take button").click()
    assert story.text(0) == "Die Quoten bleiben" + rest
    assert story.cursor() == 0
    page.keyboard.press("Control+z")
    assert story.text(0) == "Die Quoten bleiben waren alt."


def test_by_the_pointer(story: Story) -> None:
    page = story.open_text().page
    rest = begin(story, 0, "Die")
    page.get_by_role("button", name="Next word").click()
    story.until(lambda: story.text(0) == "Die" + rest[: rest.index(" ", 1)])
    assert story.cursor() == 0


def test_off_by_a_key_and_remembered(story: Story) -> None:
    page = story.open_text().page
    begin(story, 0, "Die Quoten")
    page.keyboard.press("Alt+p")
    assert page.locator(".offered").count() == 0
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/completion") else None)
    story.reload()
    assert page.get_attribute("#completion-button", "aria-pressed") == "false"
    story.field(1).fill("")
    page.keyboard.type("Sie sind", delay=10)
    page.wait_for_timeout(400)
    assert asked == []
    page.keyboard.press("Tab")  # goes where it always went
    assert story.cursor() != 1
    page.click("#completion-button")
    assert begin(story, 1, "Sie")


def test_a_server_that_is_away_is_said_once(story: Story) -> None:
    page = story.open_text().page
    page.route("**/completion", lambda route: route.abort())
    story.field(0).press("End")
    page.keyboard.type(" Und")
    story.until(lambda: "What you type is not completed: the server cannot be reached" in story.said())
