"""The workbench in a browser: the whole story, its keys, its panel, and what axe-core says."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import docx
import pytest
from workbench_story import TEXT, Story

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}

HEAR = """() => {
  const place = document.querySelector("#announcement");
  window.heard = [];
  const note = () => window.heard.push(place.innerText);
  new MutationObserver(note).observe(place, { childList: true, subtree: true, characterData: true });
}"""


def test_the_whole_story(story: Story, tmp_path: Path) -> None:
    """Drop a docx, edit, confirm, see others change, keep one, undo, export, open the export."""
    page = story.page
    letter = docx.Document()
    for paragraph in TEXT.strip().split("\n\n"):
        letter.add_paragraph(paragraph)
    letter.save(tmp_path / "letter.docx")
    page.click("#add-button")
    page.set_input_files("#file-input", tmp_path / "letter.docx")
    story.translated()
    assert page.locator("#rows tr").count() == 4
    before = [story.text(position) for position in range(4)]
    assert "Quoten" in before[0]

    # typing is an edit that the server knows without being told to save
    story.field(0).fill("Die Fangquoten sind fertig")
    story.until(lambda: "1 edited" in page.inner_text("#counts"))
    story.field(0).press("End")
    story.field(0).press(".")
    story.field(0).press("Control+Enter")
    assert story.state(0) == "confirmed"
    assert story.cursor() == 1  # on to the next open row

    # the others are translated again: shown as a difference, counted, not by colour alone
    story.until(lambda: page.inner_text("#changes-text") == "2 sentences changed")
    assert "Fangquoten" in story.text(2)
    assert page.locator("tr[data-position='2'] del").inner_text().startswith("Quoten")
    assert page.locator("tr[data-position='2'] .mirror .new").count() >= 1
    assert story.text(1) == before[1]

    page.keyboard.press("Escape")  # out of the field; then n goes from change to change
    page.keyboard.press("n")
    page.keyboard.press("Enter")  # keep row 3 as it was
    story.until(lambda: story.text(2) == before[2])
    assert page.inner_text("#changes-text") == "1 sentence changed"
    page.click("#changes-undo")
    page.wait_for_selector("#changes", state="hidden")
    assert story.text(3) == before[3]
    assert story.text(0) == "Die Fangquoten sind fertig."

    page.click("#export-button")
    with page.expect_download() as download:
        page.click("#export-links a >> nth=0")
    download.value.save_as(tmp_path / "export.docx")
    paragraphs = [paragraph.text for paragraph in docx.Document(tmp_path / "export.docx").paragraphs]
    assert paragraphs[0] == f"Die Fangquoten sind fertig. {before[1]}"
    assert paragraphs[1:] == before[2:]


def test_keys(story: Story) -> None:
    page = story.open_text().page
    first = story.field(0)
    first.click()
    first.press("Alt+ArrowDown")
    assert story.cursor() == 1
    page.keyboard.press("Alt+ArrowUp")
    before = story.text(0)
    page.wait_for_selector(".alternative")
    alternative = page.locator(".alternative span").first.inner_text()
    page.keyboard.press("Control+1")
    assert story.text(0) == alternative
    page.keyboard.press("Escape")
    assert story.text(0) == before
    page.keyboard.press("Control+Shift+Enter")
    assert story.state(0) == "confirmed"
    assert story.cursor() == 0
    page.keyboard.press("?")  # a character like any other in a text field
    assert story.text(0) != before
    assert not page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()


def test_ctrl_z_takes_an_alternative_back(story: Story) -> None:
    page = story.open_text().page
    before = story.text(0)
    story.field(0).click()
    page.wait_for_selector(".alternative")
    page.keyboard.press("Control+1")
    assert story.text(0) != before
    page.keyboard.press("Control+z")
    assert story.text(0) == before
    story.until(lambda: story.stored()[0]["target"] == before)


def test_a_word_says_what_decided_it(story: Story) -> None:
    page = story.open_text().page
    story.point_at_source(1)
    page.wait_for_selector("#word-panel .context-card", state="attached")
    assert page.inner_text("#word-panel h2") == "They"
    story.field(1).click()
    story.field(1).press("Home")
    page.wait_for_selector("#word-panel .probability", state="attached")
    assert page.inner_text("#word-panel h2") == story.text(1).split()[0]


def test_a_word_is_explained_after_typing_and_not_shown_when_it_is_gone(story: Story) -> None:
    page = story.open_text().page
    story.field(1).click()
    story.field(1).press("End")
    page.keyboard.type(" Oder auch nicht")
    page.wait_for_selector("#word-panel .probability", state="attached")
    assert page.inner_text("#word-panel h2") == "nicht"
    page.keyboard.press("Control+Backspace")
    page.wait_for_selector("#word-panel .invitation, #word-panel h2:text-is('auch')")


def test_rows_do_not_jump_when_a_word_is_looked_at(story: Story) -> None:
    page = story.open_text().page
    places = lambda: [page.locator("#rows tr").nth(n).bounding_box() for n in range(4)]  # noqa: E731
    story.until(lambda: None not in places())  # they are laid out
    before = places()
    story.point_at_source(1)
    page.wait_for_selector("#word-panel .context-card", state="attached")
    assert places() == before


def test_pointing_at_words_leaves_the_status_line_alone(story: Story) -> None:
    page = story.open_text().page
    story.field(0).click()
    told = page.evaluate_handle(
        """() => {
          const line = document.getElementById("announcement"), told = [];
          new MutationObserver(() => told.push(line.innerText)).observe(line, { childList: true, subtree: true });
          return told;
        }"""
    )
    story.field(0).press("Control+Shift+Enter")
    story.until(lambda: story.said() == "No other sentence changed.")  # the last news of what was confirmed
    assert "Row 1 confirmed." in told.json_value()  # which may be gone before anybody looks
    story.point_at_source(1)
    page.wait_for_selector("#word-panel .context-card", state="attached")
    assert story.said() == "No other sentence changed."


def test_rows_do_not_jump_when_one_is_confirmed(story: Story) -> None:
    page = story.open_text().page
    places = lambda: [page.locator("#rows tr").nth(n).bounding_box() for n in range(4)]  # noqa: E731
    story.until(lambda: None not in places())  # they are laid out
    before = places()
    story.field(1).click()
    story.field(1).press("Control+Shift+Enter")
    assert story.state(1) == "confirmed"
    assert places() == before


def test_news_that_overtake_the_document_are_not_lost(story: Story) -> None:
    """The document is read, then a row changes, then the answer with the old row arrives."""
    page = story.open_text().page

    def overtaken(route: Any) -> None:
        answer = route.fetch()
        if "Neuer" not in answer.text():
            story.put(3, "Neuer als das Dokument.")
            page.wait_for_timeout(300)
        route.fulfill(response=answer)

    page.route("**/documents/*", overtaken)
    story.reload()
    story.until(lambda: story.text(3) == "Neuer als das Dokument.")


def test_the_row_under_the_cursor_stays_where_it_is(story: Story) -> None:
    """Whatever changes above it."""
    page = story.open_text(TEXT * 8).page
    story.field(12).click()
    top = lambda: story.row(12).bounding_box()["y"]  # noqa: E731
    story.until(lambda: top() == (page.wait_for_timeout(300), top())[1])  # it has come to rest
    before = top()
    for position in (1, 9, 11):
        story.put(position, "Anders. " * 40)
    story.until(lambda: all(story.text(position).startswith("Anders. Anders.") for position in (1, 9, 11)))
    assert abs(top() - before) < 1


ROWS_BELOW = "The quotas are ready.\n\nThe committee has adopted the quotas.\n\nWe thank you for the quotas.\n"


def test_the_row_just_below_follows_under_the_cursor(story: Story) -> None:
    story.open_text(ROWS_BELOW)
    story.change_others()
    story.until(lambda: "Fangquoten" in story.text(1))
    assert story.cursor() == 1
    story.page.wait_for_selector("tr[data-position='1'] .extra button")  # kept as it was, or accepted


def test_from_the_first_key_on_a_row_is_left_alone_and_the_new_draft_is_offered(story: Story) -> None:
    page = story.open_text(ROWS_BELOW).page
    story.field(1).click()
    page.keyboard.press("End")
    page.keyboard.type(" Ja")
    typed = story.text(1)
    story.put(0, "Die Fangquoten sind fertig.", "confirmed")
    story.until(lambda: "Fangquoten" in story.text(2))
    page.wait_for_timeout(500)
    assert story.text(1) == typed
    story.field(2).click()
    story.field(1).click()
    page.wait_for_selector(".alternative:has-text('Fangquoten')")
    page.keyboard.press("Control+1")
    story.until(lambda: "Fangquoten" in story.text(1))


def test_a_confirmed_row_can_be_opened_again(story: Story) -> None:
    story.open_text()
    story.field(1).press("Control+Shift+Enter")
    assert story.state(1) == "confirmed"
    button = story.row(1).locator(".confirm")
    story.until(lambda: len(story.pairs()) == 1)
    assert button.inner_text() == "Reopen"
    button.click()
    assert story.state(1) == "edited"
    story.until(lambda: story.pairs() == [])


def test_a_row_is_saved_where_it_stands_while_another_project_is_on_its_way(story: Story) -> None:
    """Whoever has chosen another project may go on in the document that is still there."""
    page = story.open_text().page
    first_project, first_document = story.project, story.document
    held: list[Any] = []
    story.open_text("The report is ready.\n")
    page.route(f"**/v1/projects/{first_project}", lambda route: held.append(route))
    page.select_option("#project-select", value=first_project)
    story.until(lambda: bool(held))
    story.confirm(0, "Der Rapport ist fertig.")
    story.until(lambda: [row["state"] for row in story.stored()] == ["confirmed"])
    story.field(0).press("End")
    page.keyboard.type(" Bald.")
    held.pop().continue_()
    story.until(lambda: page.evaluate("location.hash") == f"#{first_document}")
    story.translated()
    assert page.locator("#rows tr").count() == 4
    story.until(lambda: story.stored()[0]["target"] == "Der Rapport ist fertig. Bald.")
    assert "Not saved" not in story.said()


def test_a_file_goes_to_the_project_that_was_chosen_while_that_is_on_its_way(story: Story, tmp_path: Path) -> None:
    """Also where a project was empty, so that files could be dropped before the other one was there."""
    page = story.page
    file = tmp_path / "dropped.txt"
    file.write_text("The report is ready.\n", "utf-8")
    with story.program() as client:
        empty, other = (client.post("/v1/projects", json={"name": name}).json()["id"] for name in ("Empty", "Other"))
    page.reload()
    page.wait_for_selector(f"#project-select option[value='{other}']", state="attached")
    page.select_option("#project-select", empty)
    page.wait_for_selector("#welcome:not([hidden])")
    held: list[Any] = []
    page.route(f"**/v1/projects/{other}", lambda route: held.append(route), times=1)
    page.select_option("#project-select", other)
    story.until(lambda: bool(held))
    page.set_input_files("#file-input", file)
    held.pop().continue_()
    page.wait_for_selector("#rows tr[data-position]")
    with story.program() as client:
        named = [[one["name"] for one in client.get(f"/v1/projects/{id}").json()["documents"]] for id in (empty, other)]
    assert named == [[], ["dropped.txt"]]
    assert page.input_value("#project-select") == other


def test_changed_rows_are_settled_with_single_keys(story: Story) -> None:
    page = story.open_text().page
    before = story.text(2)
    story.change_others()
    page.keyboard.press("Escape")
    page.keyboard.press("k")  # none was visited yet
    assert page.inner_text("#changes-text") == "2 sentences changed"
    page.keyboard.press("n")
    page.keyboard.press("k")
    story.until(lambda: page.inner_text("#changes-text") == "1 sentence changed")
    assert story.text(2) == before
    page.wait_for_selector("tr[data-position='3'] .extra button:focus")  # on to the next one
    page.keyboard.press("a")
    page.wait_for_selector("#changes", state="hidden")
    assert "Fangquoten" in story.text(3)
    story.until(lambda: story.cursor() == 3)  # never lost


def test_all_changes_are_accepted_at_once(story: Story) -> None:
    page = story.open_text().page
    story.change_others()
    page.evaluate(HEAR)
    page.click("#changes-accept")
    page.wait_for_selector("#changes", state="hidden")
    story.until(lambda: "All changes accepted." in page.evaluate("window.heard"))  # other news may follow at once
    assert "Fangquoten" in story.text(2)
    assert [row["before"] for row in story.stored()] == [None] * 4


def test_adding_a_document_can_be_left_again(story: Story) -> None:
    page = story.open_text().page
    for leave in (lambda: page.keyboard.press("Escape"), lambda: page.click("#back-button")):
        page.click("#add-button")
        page.wait_for_selector("#rows tr", state="hidden")
        assert page.inner_text("#back-button") == "Back to letter.txt"
        leave()
        page.wait_for_selector("#rows tr")


def test_a_document_is_added_while_the_cursor_is_in_a_row(story: Story, tmp_path: Path) -> None:
    """An error in a script of the page would fail this test, as it fails all of these."""
    page = story.open_text().page
    story.field(3).click()
    page.keyboard.type("Noch ")
    (tmp_path / "other.txt").write_text("The report is ready.\n", encoding="utf-8")
    page.set_input_files("#file-input", tmp_path / "other.txt")
    page.wait_for_selector("#title:text-is('other.txt')")
    story.translated()
    assert page.locator("#rows tr").count() == 1
    story.until(lambda: "Noch " in story.stored()[3]["target"])


def test_a_text_is_found_once_by_the_search_of_the_browser(story: Story) -> None:
    """What gives a field its height is no text of the page."""
    page = story.open_text().page
    story.change_others()
    story.point_at_source(3)
    page.wait_for_selector("tr[data-position='3'] .source .w")
    for position in range(4):
        assert page.locator(f"tr[data-position='{position}'] .mirror").inner_text().strip("\u200b\n ") == ""


def test_text_that_is_refused_is_not_lost(story: Story) -> None:
    page = story.open_text().page
    page.click("#add-button")
    page.fill("#paste-text", "The report is ready. " * 60_000)
    page.click("#paste-form button")
    story.until(lambda: "characters in one request" in story.said())
    assert len(page.input_value("#paste-text")) == 21 * 60_000


def test_a_dialog_says_what_went_wrong(story: Story, tmp_path: Path) -> None:
    page = story.open_text().page
    (tmp_path / "broken.tmx").write_text("<tmx><broken", encoding="utf-8")
    page.click("#project-button")
    page.set_input_files("#import-memory", tmp_path / "broken.tmx")
    story.until(lambda: "broken.tmx" in page.inner_text("#project-dialog .dialog-status"))


def test_an_export_says_what_is_missing_for_it(story: Story) -> None:
    page = story.open_text().page
    page.click("#export-button")
    tmx = page.locator("#export-links li", has_text="TMX")
    assert "no row is confirmed yet" in tmx.inner_text()
    assert tmx.locator("a").count() == 0
    page.keyboard.press("Escape")
    story.field(0).press("Control+Enter")
    page.click("#export-button")
    assert tmx.locator("a").count() == 1


def test_words_can_be_dragged_as_anywhere_else(story: Story) -> None:
    page = story.open_text().page
    prevented = """kind => {
      const data = new DataTransfer();
      if (kind === "file") data.items.add(new File(["a"], "a.txt"));
      else data.setData("text/plain", "a");
      const event = new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true });
      document.body.dispatchEvent(event);
      return event.defaultPrevented;
    }"""
    assert page.evaluate(prevented, "file")
    assert not page.evaluate(prevented, "text")


def test_a_long_document_is_light(story: Story) -> None:
    """Words are elements in the row under the pointer only."""
    page = story.open_text().page
    assert page.locator("#rows .w").count() == 0
    story.point_at_source(1)
    page.wait_for_selector("tr[data-position='1'] .source .w")
    assert page.locator("tr:not([data-position='1']) .w").count() == 0


def test_consistency_shows_terms_and_approves_one(story: Story) -> None:
    page = story.open_text("The report is ready.\n\nThe committee has adopted the report.\n").page
    for position, target in ((0, "Der Bericht ist fertig."), (1, "Der Ausschuss hat den Rapport angenommen.")):
        story.confirm(position, target)
    story.until(lambda: len(story.pairs()) == 2)
    page.click("#tab-consistency")
    page.wait_for_selector(".term")
    term = page.locator(".term", has_text="report")
    assert "Rapport" in term.inner_text()
    term.get_by_role("button", name="Approve Rapport").click()
    page.wait_for_selector(".approved")


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, PHONE], ids=["desk", "phone"])
def test_everything_fits(story: Story, size: dict[str, int]) -> None:
    page = story.open_text().page
    page.set_viewport_size(size)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    story.field(0).click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def fetch_axe(path: Path) -> None:
    """Puts it there complete, or not at all: without a network, or a quick one, the tests are skipped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = "npm pack axe-core --silent | xargs tar xzf"
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, suppress(subprocess.TimeoutExpired, OSError):
        subprocess.run(command, shell=True, cwd=folder, check=False, capture_output=True, timeout=120)
        os.replace(Path(folder, "package", "axe.min.js"), path)


def axe() -> str:
    """axe-core, which is fetched for tests only: WEITBLICK_AXE names the file, or npm brings it."""
    path = Path(os.environ.get("WEITBLICK_AXE", "/tmp/weitblick-axe/package/axe.min.js"))
    if not path.is_file() and shutil.which("npm"):
        fetch_axe(path)
    if not path.is_file():
        pytest.skip("no axe-core on this machine (npm pack axe-core)")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(story: Story, theme: str) -> None:
    script = axe()
    page = story.open_text().page
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    story.change_others()
    page.wait_for_selector(".alternative")
    # Behind the page's policy, as an extension would run it.
    found = page.evaluate(f"() => {{ {script}; return axe.run() }}")
    serious = [
        (rule["id"], [node["html"] for node in rule["nodes"]])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
