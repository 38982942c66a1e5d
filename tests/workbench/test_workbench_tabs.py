"""Two tabs with one document: each sees what the other does, and neither overwrites what it has not seen."""

from __future__ import annotations

import pytest
from workbench_story import Story

pytestmark = pytest.mark.browser


@pytest.fixture
def tabs(story: Story) -> tuple[Story, Story]:
    story.open_text()
    return story, story.another_tab()


def test_each_tab_sees_what_the_other_does(tabs: tuple[Story, Story]) -> None:
    a, b = tabs
    a.confirm(0, "Bestätigt in A.")
    b.until(lambda: (b.text(0), b.state(0)) == ("Bestätigt in A.", "confirmed"))
    b.until(lambda: "changed" in b.said())  # the last news of it
    b.field(0).press("End")
    b.page.keyboard.type(" Und B.")
    assert "open again" in b.said()  # typing takes an approval back, and says so
    a.until(lambda: (a.text(0), a.state(0)) == ("Bestätigt in A. Und B.", "edited"))
    a.until(lambda: "opened again in another window" in a.said())


def test_unsent_text_never_goes_over_what_the_other_tab_confirmed(tabs: tuple[Story, Story]) -> None:
    """As it was found: saves of B fail, A confirms something newer, B's saves work again."""
    a, b = tabs
    b.page.route("**/segments/**", lambda route: route.abort())
    b.field(0).fill("Alt, in B.")
    b.until(lambda: "Not saved yet" in b.said())
    a.confirm(0, "Neu und bestätigt, in A.")
    a.until(lambda: a.stored()[0]["state"] == "confirmed")
    b.page.unroute("**/segments/**")
    b.page.wait_for_selector("tr[data-position='0'][data-conflict]")
    a.until(lambda: "another window wants to write it" in a.said())  # both are told
    assert b.text(0) == "Alt, in B."
    assert (a.stored()[0]["target"], a.text(0)) == ("Neu und bestätigt, in A.",) * 2
    assert [target for _, target in a.pairs()] == ["Neu und bestätigt, in A."]
    b.row(0).get_by_role("button", name="Take the other").click()
    assert (b.text(0), b.state(0)) == ("Neu und bestätigt, in A.", "confirmed")


def test_each_tab_keeps_its_own_unsent_rows(tabs: tuple[Story, Story]) -> None:
    """Both type while nothing can be saved; nothing of either is lost, and neither shows the other's."""
    a, b = tabs
    for tab in tabs:
        tab.page.route("**/segments/**", lambda route: route.abort())
    a.field(1).fill("Von A.")
    b.field(2).fill("Von B.")
    for tab in tabs:
        tab.until(lambda tab=tab: "Not saved yet" in tab.said())  # type: ignore[misc]
    assert (a.text(2) != "Von B.", b.text(1) != "Von A.") == (True, True)
    for tab in tabs:
        tab.page.unroute("**/segments/**")
    a.until(lambda: [row["target"] for row in a.stored()][1:3] == ["Von A.", "Von B."])
    for tab in tabs:
        tab.until(lambda tab=tab: (tab.text(1), tab.text(2)) == ("Von A.", "Von B."))  # type: ignore[misc]


def test_undoing_is_seen_in_both_tabs(tabs: tuple[Story, Story]) -> None:
    a, b = tabs
    before = [a.text(2), a.text(3)]
    a.change_others()
    b.until(lambda: b.page.inner_text("#changes-text") == "2 sentences changed")
    b.page.click("#changes-undo")
    for tab in tabs:
        tab.page.wait_for_selector("#changes", state="hidden")
        assert [tab.text(2), tab.text(3)] == before
