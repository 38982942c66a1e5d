"""What is typed at the workbench is never lost: without a pause, without a server, after a crash; and every request
that fails says so in plain words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from workbench_story import Story

from tests.patience import PATIENCE

pytestmark = pytest.mark.browser

AWAY = "the server cannot be reached"


def cut(story: Story, pattern: str = "**/segments/**") -> None:
    """From now on such requests of this tab reach nobody."""
    story.page.route(pattern, lambda route: route.abort())


def test_typing_without_a_pause_survives_a_reload(story: Story) -> None:
    page = story.open_text().page
    story.field(0).fill("")
    page.keyboard.type("Die Quoten werden getippt, ohne Luft zu holen, und dann", delay=30)
    page.reload()
    story.translated()
    story.until(lambda: story.text(0) == "Die Quoten werden getippt, ohne Luft zu holen, und dann")
    story.until(lambda: story.stored()[0]["target"] == story.text(0))


def test_typing_without_a_pause_is_sent_before_it_ends(story: Story) -> None:
    page = story.open_text().page
    story.field(0).fill("")
    end = time.monotonic() + PATIENCE
    while not story.stored()[0]["target"].startswith("weiter"):
        assert time.monotonic() < end, "nothing was sent while somebody typed"
        page.keyboard.type("weiter ", delay=20)


def test_what_was_typed_survives_a_server_that_is_away(story: Story) -> None:
    page = story.open_text().page
    cut(story)
    story.field(0).fill("Getippt, während der Server fort war.")
    story.until(lambda: "Not saved yet" in story.said())
    assert AWAY in story.said()
    assert story.stored()[0]["target"] != story.text(0)
    page.unroute("**/segments/**")
    story.until(lambda: story.stored()[0]["target"] == "Getippt, während der Server fort war.")
    story.until(lambda: story.said() == "Everything is saved.")


def crashed(story: Story) -> None:
    """Somebody confirms a row, the server is away, and the tab crashes."""
    story.prepare_crash()
    story.open_text()
    cut(story)
    story.confirm(0, "Vor dem Absturz.")
    story.until(lambda: "Not saved yet" in story.said())
    story.crash()
    assert story.stored()[0]["target"] != "Vor dem Absturz."


def test_after_a_crash_the_text_is_back(story: Story) -> None:
    crashed(story)
    other = story.another_tab()
    other.until(lambda: other.stored()[0]["target"] == "Vor dem Absturz.")
    other.until(lambda: (other.text(0), other.state(0)) == ("Vor dem Absturz.", "confirmed"))


@pytest.mark.parametrize(("button", "wins"), [("Keep mine", "Vor dem Absturz."), ("Take the other", "Neuer.")])
def test_after_a_crash_nothing_newer_is_written_over(story: Story, button: str, wins: str) -> None:
    """Both texts are shown, and somebody decides."""
    crashed(story)
    story.put(0, "Neuer.", "confirmed")
    other = story.another_tab()
    other.page.wait_for_selector("tr[data-position='0'][data-conflict]")
    assert other.text(0) == "Vor dem Absturz."
    assert "confirmed in another window Neuer." in other.row(0).locator(".extra").inner_text()
    other.field(0).press("Control+Enter")  # is no decision
    assert other.stored()[0]["target"] == "Neuer."
    other.row(0).get_by_role("button", name=button).click()
    other.until(lambda: other.stored()[0]["target"] == wins)
    other.until(lambda: other.text(0) == wins)
    assert other.row(0).get_attribute("data-conflict") is None
    assert [pair for pair in other.pairs() if pair[1] != wins] == []


def test_what_the_server_will_not_have_is_kept(story: Story) -> None:
    story.open_text()
    story.field(0).fill("zu lang " * 3000)
    story.until(lambda: "Not saved" in story.said())
    assert "Failed" not in story.said()
    story.reload()
    story.until(lambda: story.text(0).startswith("zu lang zu lang"))
    story.field(0).fill("kurz")
    story.until(lambda: story.stored()[0]["target"] == "kurz")


def press(selector: str) -> Callable[[Story], Any]:
    return lambda story: story.page.locator(selector).first.click()


def rename(story: Story) -> None:
    story.page.click("#project-button")
    story.page.fill("#project-name", "Anders")
    cut(story, "**/v1/projects/*")
    story.page.click(".name-form button:visible")


FAILURES: dict[str, tuple[str, Callable[[Story], Any]]] = {
    "keep": ("**/keep", press(".extra button:text-is('Keep as it was')")),
    "accept": ("**/segments/*/accept", press(".extra button:text-is('Accept')")),
    "undo all": ("**/undo", press("#changes-undo")),
    "accept all": ("**/accept", press("#changes-accept")),
    "project": ("**/pairs", press("#project-button")),
    "rename": ("**/none", rename),
}


@pytest.mark.parametrize("what", FAILURES)
def test_a_request_that_fails_says_so_in_plain_words(story: Story, what: str) -> None:
    """An unhandled error of the page would fail this test, too."""
    pattern, act = FAILURES[what]
    story.open_text().change_others()
    cut(story, pattern)
    act(story)
    story.until(lambda: AWAY in story.said())
    assert "fetch" not in story.said()


def test_a_workbench_without_a_server_says_so(story: Story) -> None:
    cut(story, "**/v1/**")
    story.page.reload()
    story.until(lambda: story.said() == f"The workbench cannot start: {AWAY}. Is weitblick serve still running?")
