"""Answers that come late, when another document or project is shown by then: what was done stays where it was done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from workbench_story import TEXT, Story

pytestmark = pytest.mark.browser
OTHER = "The house is blue.\n\nThe report is long.\n\nWe agree.\n\nThank you.\n"


class Late:
    """Requests that are held back until they may go on."""

    def __init__(self, story: Story, pattern: str, method: str = "POST") -> None:
        self.story, self.pattern, self.method = story, pattern, method
        self.waiting: list[Any] = []
        self.is_over = False
        story.page.route(pattern, self._hold)

    def _hold(self, route: Any) -> None:
        if route.request.method == self.method and not self.is_over:
            self.waiting.append(route)
        else:
            route.fallback()

    def come(self) -> None:
        """Waits until something was asked."""
        self.story.until(lambda: bool(self.waiting))

    def go(self) -> None:
        """Lets what has waited go on, and what is asked from now on."""
        self.is_over = True
        for route in self.waiting:
            with self.story.page.expect_response(lambda response, url=route.request.url: response.url == url):
                route.continue_()
        self.story.page.wait_for_timeout(200)


@pytest.fixture
def two(story: Story) -> Callable[[], None]:
    """A project with two documents, the first of which is shown; gives what opens the second."""
    story.open_text(TEXT)
    with story.program() as client:
        added = client.post(f"/v1/projects/{story.project}/documents", data={"text": OTHER, "name": "other.txt"})
    story.other = added.json()["id"]  # type: ignore[attr-defined]
    first = story.document

    def open_other() -> None:
        story.page.select_option("#document-select", label="other.txt")
        story.page.wait_for_selector("#title:text-is('other.txt')")
        story.page.wait_for_selector("#rows tr[data-position='0'] .source:text-is('The house is blue.')")

    story.page.goto(f"{story.address}/#{first}")
    story.page.reload()
    story.translated()
    story.page.wait_for_selector("#title:text-is('letter.txt')")
    story.page.wait_for_selector("#document-select option:text-is('other.txt')", state="attached")
    return open_other


def other_rows(story: Story) -> list[dict[str, Any]]:
    with story.program() as client:
        path = f"/v1/projects/{story.project}/documents/{story.other}"  # type: ignore[attr-defined]
        return client.get(path).json()["rows"]


def test_a_late_answer_does_not_show_rows_of_another_document(story: Story, two: Callable[[], None]) -> None:
    story.row(0).locator("button.choose").click()
    late = Late(story, "**/rows")
    story.page.click("#chosen-copy")  # rows of the first document say what their sources say
    late.come()
    two()
    before = [story.text(position) for position in range(4)]
    late.go()
    assert [story.text(position) for position in range(4)] == before
    assert story.page.locator("#rows tr[data-chosen]").count() == 0
    assert story.stored()[0]["target"] == "The quotas are ready."
    assert [row["state"] for row in other_rows(story)] == ["draft"] * 4


def test_what_is_done_to_chosen_rows_is_not_done_in_another_document(story: Story, two: Callable[[], None]) -> None:
    """What could not be saved is sent first; meanwhile another document is shown."""
    story.page.add_init_script("window.setInterval = () => 0")  # nothing is sent again by itself
    story.reload()
    story.page.route("**/segments/1", lambda route: route.abort())
    story.field(1).fill("Sie sind sehr hoch.")
    story.until(lambda: "Not saved yet" in story.said())
    story.row(0).locator("button.choose").click()
    story.page.wait_for_timeout(500)
    story.page.unroute("**/segments/1")
    late = Late(story, "**/segments/1", "PUT")
    story.page.click("#chosen-clear")
    late.come()
    two()
    late.go()
    story.page.wait_for_timeout(500)
    assert all(row["target"] for row in other_rows(story))
    assert story.page.locator("textarea[data-position='0']").input_value() != ""


def test_undo_takes_no_step_of_another_document_back(story: Story, two: Callable[[], None]) -> None:
    story.field(0).fill("Die Fangquoten sind fertig.")
    story.until(lambda: story.stored()[0]["state"] == "edited")
    with story.program() as client:
        path = f"/v1/projects/{story.project}/documents/{story.other}"  # type: ignore[attr-defined]
        version = client.get(path).json()["rows"][0]["version"]
        body = {"target": "Blau.", "state": "edited", "version": version}
        assert client.put(f"{path}/segments/0", json=body).status_code == 200
    late = Late(story, "**/steps", "GET")
    story.page.click("#undo-button")
    late.come()
    two()
    late.go()
    story.until(lambda: story.stored()[0]["state"] == "draft")  # what was asked for where it was asked
    assert other_rows(story)[0]["target"] == "Blau."
    assert story.text(0) == "Blau."


def test_a_comment_goes_to_the_row_that_it_was_written_for(story: Story, two: Callable[[], None]) -> None:
    """A file that is added is shown while somebody writes a comment."""
    late = Late(story, "**/documents")
    story.page.evaluate(
        """() => {
          const files = new DataTransfer();
          files.items.add(new File(["We thank you."], "third.txt"));
          document.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true }));
        }"""
    )
    late.come()
    story.field(1).click()
    story.page.keyboard.press("Alt+c")
    story.page.keyboard.type("Which ones?")
    late.go()
    story.page.wait_for_selector("#title:text-is('third.txt')", state="attached")
    story.page.wait_for_function("() => document.querySelectorAll('#rows tr').length === 1")
    story.page.click("#comment-form .primary")
    story.until(lambda: [one["text"] for one in story.stored()[1]["comments"]] == ["Which ones?"])


def test_typed_text_is_sent_at_once_when_another_document_is_opened(story: Story, two: Callable[[], None]) -> None:
    story.field(0).fill("Die Fangquoten sind fertig.")
    story.page.select_option("#document-select", label="other.txt")
    story.until(lambda: story.stored()[0]["target"] == "Die Fangquoten sind fertig.")
    assert other_rows(story)[0]["target"] != "Die Fangquoten sind fertig."


def test_the_dialog_of_a_project_deletes_that_project(story: Story, two: Callable[[], None]) -> None:
    with story.program() as client:
        kept = client.post("/v1/projects", json={"name": "To be kept"}).json()["id"]
        client.post(f"/v1/projects/{kept}/documents", data={"text": OTHER, "name": "kept.txt"})
    story.reload()
    late = Late(story, f"**/v1/projects/{story.project}/pairs", "GET")
    story.page.click("#project-button")
    late.come()
    story.page.select_option("#project-select", label="To be kept")
    story.page.wait_for_selector("#title:text-is('kept.txt')", state="attached")
    late.go()
    if not story.page.locator("#project-dialog").is_visible():
        story.page.click("#project-button")
    story.page.wait_for_selector("#project-name")
    name = story.page.input_value("#project-name")
    story.page.on("dialog", lambda dialog: dialog.accept())
    story.page.click("#project-dialog button:text-is('Delete the project')")
    story.page.wait_for_selector("#project-dialog", state="hidden")
    story.until(lambda: name not in [one["name"] for one in projects(story)])
    assert len({one["id"] for one in projects(story)} & {kept, story.project}) == 1


def test_all_files_of_a_drop_go_to_one_project(story: Story, two: Callable[[], None]) -> None:
    with story.program() as client:
        elsewhere = client.post("/v1/projects", json={"name": "Elsewhere"}).json()["id"]
    story.reload()
    late = Late(story, "**/documents")
    story.page.evaluate(
        """() => {
          const files = new DataTransfer();
          for (const name of ["one.txt", "two.txt"]) files.items.add(new File(["We thank you."], name));
          document.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true }));
        }"""
    )
    late.come()
    story.page.select_option("#project-select", label="Elsewhere")
    story.page.wait_for_selector("#welcome", state="visible")
    late.go()

    def names(project: str) -> list[str]:
        with story.program() as client:
            return [one["name"] for one in client.get(f"/v1/projects/{project}").json()["documents"]]

    story.until(lambda: len(names(story.project)) + len(names(elsewhere)) == 4)
    assert names(elsewhere) == []
    assert names(story.project)[2:] == ["one.txt", "two.txt"]


def projects(story: Story) -> list[dict[str, Any]]:
    with httpx.Client(base_url=story.address, trust_env=False) as client:
        return client.get("/v1/projects").json()
