"""Two people in one document, each with a browser and a name: nobody types where somebody else does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_workbench_finding import serious
from test_workbench_page import PHONE
from test_workbench_rows import picture
from workbench_story import Story

pytestmark = pytest.mark.browser


def call(story: Story, name: str) -> None:
    """Sets the name of whoever is at this browser."""
    story.page.click("#project-button")
    story.page.fill("#person-name", name)
    story.page.press("#person-name", "Enter")
    story.until(lambda: name in story.page.inner_text("#project-dialog .dialog-status"))
    story.page.keyboard.press("Escape")


@pytest.fixture
def people(story: Story) -> Iterator[tuple[Story, Story]]:
    """Anna and Bert, in two browsers."""
    story.open_text()
    context = story.page.context.browser.new_context()
    errors: list[str] = []
    context.on("weberror", lambda error: errors.append(str(error.error)))
    bert = Story(context.new_page(), f"{story.address}/#{story.document}")
    bert.page.select_option("#project-select", story.project)
    bert.project, bert.document = story.project, story.document
    bert.until(lambda: bert.page.evaluate("location.hash") == f"#{story.document}")
    bert.translated()
    call(story, "Anna")
    call(bert, "Bert")
    yield story, bert
    context.close()
    assert errors == []


def typist(story: Story, position: int) -> str:
    place = story.row(position).locator(".typist")
    return place.inner_text() if place.is_visible() else ""


def test_a_row_is_free_again_when_its_typist_leaves_it(people: tuple[Story, Story]) -> None:
    anna, bert = people
    anna.field(2).click()
    bert.field(2).click()
    before = anna.text(2)
    anna.page.keyboard.type("Anna: ")
    bert.until(lambda: typist(bert, 2) == "Anna is typing here")
    bert.page.keyboard.type("no")  # which nothing comes of
    bert.until(lambda: "Anna types in row 3." in bert.said())
    bert.page.keyboard.press("Control+Enter")
    bert.page.keyboard.press("Alt+Delete")
    bert.until(lambda: bert.text(2) != before)
    assert bert.text(2) == anna.text(2)  # what she types is seen, and nothing else
    assert sorted(anna.text(2)) == sorted("Anna: " + before)
    assert bert.field(2).get_attribute("readonly") is not None
    assert (typist(anna, 2), typist(bert, 1)) == ("", "")
    picture(bert.page, "people")
    anna.field(0).click()
    bert.until(lambda: typist(bert, 2) == "")
    bert.field(2).press("End")
    bert.page.keyboard.type(" Bert.")
    anna.until(lambda: "Bert" in typist(anna, 2) and anna.text(2).endswith(" Bert."))
    assert bert.stored()[2]["person"] == "Bert"


def test_a_row_is_free_some_seconds_after_the_last_key(people: tuple[Story, Story]) -> None:
    anna, bert = people
    anna.field(1).press("End")
    anna.page.keyboard.type(" Ja.")
    bert.until(lambda: "Anna" in typist(bert, 1))
    bert.until(lambda: typist(bert, 1) == "")  # she has stopped, and is still there
    assert anna.cursor() == 1
    bert.field(1).press("End")
    bert.page.keyboard.type(" Nein.")
    anna.until(lambda: anna.text(1).endswith(" Ja. Nein."))
    anna.until(lambda: "Bert" in typist(anna, 1))
    anna.page.keyboard.type("x")
    assert "x" not in anna.text(1)


def test_a_row_is_free_when_its_tab_is_gone(people: tuple[Story, Story]) -> None:
    anna, bert = people
    anna.field(3).press("End")
    anna.page.keyboard.type(" Ja.")
    bert.until(lambda: "Anna" in typist(bert, 3))
    anna.page.close()
    bert.until(lambda: typist(bert, 3) == "")
    bert.until(lambda: bert.text(3).endswith(" Ja."))  # what she typed was sent when she went


def test_whoever_opens_the_document_sees_who_types(people: tuple[Story, Story]) -> None:
    anna, bert = people
    anna.field(0).press("End")
    anna.page.keyboard.type(" Ja.")
    bert.until(lambda: "Anna" in typist(bert, 0))
    anna.page.keyboard.type(" Ja, ja.")
    with bert.program() as client:  # she goes on while Bert's page is loaded
        body = {"position": 0, "writer": "tab", "browser": "browser", "person": "Cleo"}
        anna.page.close()
        anna_is_gone = lambda: client.get(bert.path).json()["typing"] == []  # noqa: E731
        bert.until(anna_is_gone)
        assert client.post(f"{bert.path}/typing", json=body).json() == {"holder": None}
        bert.reload()
        bert.until(lambda: "Cleo" in typist(bert, 0))
        bert.until(lambda: typist(bert, 0) == "")


def test_a_name_with_markup_is_text_and_the_page_is_accessible(people: tuple[Story, Story]) -> None:
    anna, bert = people
    call(anna, "<img src=x onerror=alert(1)>")
    anna.field(1).press("End")
    anna.page.keyboard.type(" Ja.")
    bert.until(lambda: "<img src=x onerror=alert(1)> is typing here" in typist(bert, 1))
    assert serious(bert.page) == []
    bert.page.set_viewport_size(PHONE)
    anna.page.keyboard.type(" Noch.")
    bert.until(lambda: "is typing here" in typist(bert, 1))
    assert bert.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(bert.page, "people-phone")


def test_two_tabs_of_one_person_do_not_keep_each_other_out(story: Story) -> None:
    story.open_text()
    other = story.another_tab()
    story.field(1).press("End")
    story.page.keyboard.type(" Ja.")
    other.until(lambda: other.text(1).endswith(" Ja."))
    assert typist(other, 1) == ""
    assert other.field(1).get_attribute("readonly") is None


def test_who_changed_what_in_a_row(people: tuple[Story, Story]) -> None:
    """Anna edits and confirms, Bert reviews: the row tells the draft, the edit and the review apart."""
    anna, bert = people
    draft = anna.text(1)
    anna.field(1).fill("Sie sind sehr hoch.")
    anna.until(lambda: anna.stored()[1]["state"] == "edited")
    anna.field(1).press("Control+Enter")
    bert.until(lambda: bert.state(1) == "confirmed" and typist(bert, 1) == "")
    bert.field(1).fill("Sie sind recht hoch.")
    bert.until(lambda: bert.stored()[1]["state"] == "edited")
    bert.page.keyboard.press("Alt+r")
    bert.until(lambda: bert.stored()[1]["state"] == "reviewed")
    bert.page.keyboard.press("Alt+h")
    lines = bert.page.locator("#versions-list li")
    bert.until(lambda: lines.count() == 5)
    assert [line.get_attribute("data-kind") for line in lines.all()] == ["draft", "type", "confirm", "type", "review"]
    assert lines.nth(0).locator(".version-text").inner_text() == draft == "Sie sind hoch."
    assert "by Anna" in lines.nth(1).inner_text()
    assert lines.nth(1).locator("ins").inner_text().strip() == "sehr"
    assert "the same text" in lines.nth(2).inner_text()
    assert "by Bert" in lines.nth(3).inner_text()
    assert lines.nth(3).locator("ins").inner_text().strip() == "recht"
    assert lines.nth(3).locator("del").inner_text().strip() == "sehr"
    assert serious(bert.page) == []
    picture(bert.page, "versions")
    bert.page.check("#versions-draft")
    bert.until(lambda: lines.nth(4).locator("ins").count() == 1)
    assert lines.nth(4).locator("ins").inner_text().strip() == "recht"
    bert.page.set_viewport_size(PHONE)
    assert bert.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(bert.page, "versions-phone")
    bert.page.keyboard.press("Escape")
    assert bert.cursor() == 1
    anna.row(1).hover()
    anna.row(1).get_by_role("button", name="Changes").click()
    anna.until(lambda: anna.page.locator("#versions-list li").count() == 5)
