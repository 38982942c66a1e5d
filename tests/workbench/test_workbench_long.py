"""Long documents in a browser: the rows on the screen come first, and only rows around it are on the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from workbench_story import NUMBERS, Story

pytestmark = pytest.mark.browser

ROWS = 5000
MOST_ELEMENTS = 120
MOST_TASK = 50.0
"""ms of the processor."""
TASKS = ("RunTask", "ThreadControllerImpl::RunTask")


@pytest.fixture
def long_story(story: Story) -> Iterator[Story]:
    """A story whose project goes afterwards: what waits for its translation would keep the server busy."""
    yield story
    with story.program() as client:
        client.delete(f"/v1/projects/{story.project}")


def open_rows(story: Story, rows: int) -> Story:
    """A new project with one document of so many rows, opened."""
    text = "\n\n".join(f"Sentence {number + 1} is about the quota of the year." for number in range(rows))
    name = f"Long {next(NUMBERS)}"
    with story.program() as client:
        story.project = client.post("/v1/projects", json={"name": name}).json()["id"]
        files = {"file": ("long.txt", text.encode())}
        story.document = client.post(f"/v1/projects/{story.project}/documents", files=files).json()["id"]
    story.page.goto(f"{story.address}/#{story.document}")
    story.page.reload()
    story.page.wait_for_selector(f"#project-select option:text-is('{name}')", state="attached")
    story.page.select_option("#project-select", label=name)
    story.page.wait_for_selector("#rows tr[data-position]")
    return story


def elements(page: Any) -> int:
    return int(page.locator("#rows tr").count())


def is_whole(page: Any) -> bool:
    """Whether the rows on the page stand in their order and are told apart for screen readers."""
    return bool(
        page.evaluate(
            """() => {
        const rows = [...document.querySelectorAll("#rows tr[data-position]")];
        const places = rows.map((row) => Number(row.dataset.position));
        const indexes = rows.map((row) => Number(row.getAttribute("aria-rowindex")));
        return places.every((place, n) => indexes[n] === place + 2 && (n === 0 || place > places[n - 1]));
    }"""
        )
    )


def test_scrolling_through_five_thousand_rows(long_story: Story) -> None:
    page = open_rows(long_story, ROWS).page
    assert page.get_attribute("#table", "aria-rowcount") == str(ROWS + 1)
    assert elements(page) < MOST_ELEMENTS
    height = page.evaluate("document.documentElement.scrollHeight")
    for step in range(1, 12):
        page.evaluate("to => scrollTo({ top: to, behavior: 'instant' })", step * height / 12)
        page.wait_for_timeout(60)
        assert elements(page) < MOST_ELEMENTS
        assert is_whole(page)
        seen = page.evaluate(
            "document.elementFromPoint(200, innerHeight / 2)?.closest('#rows tr')?.dataset.position ?? null"
        )
        assert seen is not None  # no empty space on the screen
        assert abs(int(seen) / ROWS - step / 12) < 0.05


def worst_task(page: Any, act: Callable[[], Any], times: int) -> float:
    """The longest task of the page while something is done, in ms of the processor: the machine may be busy."""
    page.context.browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline"])
    for _ in range(times):
        act()
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    events = json.loads(page.context.browser.stop_tracing())["traceEvents"]
    names = [one for one in events if one.get("name") == "thread_name"]
    main = {(one["pid"], one["tid"]) for one in names if one["args"]["name"] == "CrRendererMain"}
    tasks = [one for one in events if one.get("name") in TASKS and one.get("ph") == "X"]
    spent = [one["tdur"] / 1000 for one in tasks if (one["pid"], one["tid"]) in main and "tdur" in one]
    assert len(spent) > times
    return float(max(spent))


def test_no_task_is_long_while_five_thousand_rows_are_scrolled(long_story: Story) -> None:
    page = open_rows(long_story, ROWS).page
    page.wait_for_timeout(1000)
    assert worst_task(page, lambda: page.mouse.wheel(0, 120), 20) < MOST_TASK
    assert worst_task(page, lambda: page.evaluate("scrollBy({ top: 600, behavior: 'instant' })"), 20) < MOST_TASK


def test_the_cursor_stays_in_a_row_that_is_scrolled_away(long_story: Story) -> None:
    story = long_story
    page = open_rows(long_story, 600).page
    story.field(2).click()
    page.evaluate("scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' })")
    page.wait_for_timeout(200)
    assert story.cursor() == 2
    page.keyboard.press("Control+End")
    page.keyboard.type(" Getippt.")
    assert story.text(2).endswith(" Getippt.")
    story.until(lambda: story.stored()[2]["target"].endswith("Getippt."))
    page.keyboard.press("Alt+ArrowDown")
    story.until(lambda: story.cursor() == 3)
    assert page.evaluate("document.activeElement.getBoundingClientRect().top > 0")


def test_going_to_rows_that_are_no_elements(long_story: Story) -> None:
    story = long_story
    page = open_rows(long_story, 600).page
    page.keyboard.press("Control+g")
    page.fill("#goto-number", "480")
    page.keyboard.press("Enter")
    story.until(lambda: story.cursor() == 479)
    box = story.field(479).bounding_box()
    assert 0 < box["y"] < page.viewport_size["height"]
    story.field(479).fill("Satz 480 handelt von der Quote des Jahres.")
    page.keyboard.press("Control+Shift+Enter")
    story.until(lambda: story.state(479) == "confirmed")
    page.keyboard.press("Control+f")  # of the page: the browser's would not find what is no element
    page.fill("#find-text", "Sentence 333 ")
    story.until(lambda: page.inner_text("#find-hits") == "1 of 600 rows")
    page.keyboard.press("Enter")
    story.until(lambda: story.cursor() == 332)
    page.click("#find-close")
    story.until(lambda: story.cursor() == 332 and elements(page) > 10)
    assert is_whole(page)
    page.reload()  # where the cursor was
    story.until(lambda: story.cursor() == 332)


def test_the_rows_on_the_screen_come_first(long_story: Story) -> None:
    story = long_story
    page = open_rows(long_story, 400).page
    story.until(lambda: story.state(0) == "draft")
    drafts = [row["position"] for row in story.stored() if row["state"] == "draft"]
    assert len(drafts) < 200
    page.evaluate("scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' })")
    story.until(lambda: page.locator("tr[data-position='399'][data-state=draft]").count() == 1)
    states = [row["state"] for row in story.stored()]
    assert "empty" in states[:380]  # what nobody sees has waited


def test_adding_switching_and_deleting_while_rows_are_translated(long_story: Story) -> None:
    """An error of the page would fail this test."""
    story = long_story
    text = "\n\n".join(f"The committee has adopted report number {n}." for n in range(200))
    page = open_rows(long_story, 200).page
    first = story.document
    story.field(1).click()
    with story.program() as client:
        path = f"/v1/projects/{story.project}/documents"
        second = client.post(path, data={"text": text, "name": "second.txt"}).json()["id"]
        page.click("#add-button")
        page.fill("#paste-text", "A third letter. It is short.")
        page.click("#paste-form button")
        page.wait_for_selector("textarea[data-position='1']")
        for chosen in (first, second, first):
            page.select_option("#document-select", chosen)
            page.wait_for_timeout(150)
        story.until(lambda: page.locator("tr[data-position='0'][data-state=draft]").count() == 1)
        story.field(0).click()
        assert client.delete(f"{path}/{first}").status_code == 204
        assert client.delete(f"{path}/{second}").status_code == 204
    page.keyboard.type("Noch da")
    story.until(lambda: "no such document" in story.said() or "not" in story.said())
    page.reload()
    story.until(lambda: page.locator("#rows tr[data-position]").count() == 2)
