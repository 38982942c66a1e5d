"""A working day at the workbench, in a browser and through the real engine: a Word file comes in, a term is made, forty
rows are confirmed, words are replaced, a review goes out and comes back, the translated file opens in LibreOffice."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from pathlib import Path

import docx
import pytest
from test_reviews import changed_table
from test_workbench_finding import serious
from test_workbench_rows import picture
from workbench_story import NUMBERS, Story

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SUBJECTS = ("The committee", "The council", "The parliament", "The minister", "The president")
DOINGS = (
    "has adopted the report.",
    "has rejected the proposal.",
    "wants to reduce the quota for cod.",
    "will discuss the budget in {year}.",
    "thanks the members for their work.",
    "has sent a letter to info@example.com.",
    "is responsible for the quota.",
    "knows the problem.",
)
CONFIRMED = 40
REVIEWED = "Der Ausschuss hat den Bericht gestern angenommen."


def word_file(path: Path) -> Path:
    """Forty sentences in paragraphs with bold words, a heading and a table."""
    document = docx.Document()
    document.add_heading("The quota for cod", 1)
    for doing in DOINGS:
        for subject in SUBJECTS:
            first, _, rest = doing.partition(" ")
            paragraph = document.add_paragraph(f"{subject} {first} ")
            word, space, rest = rest.partition(" ")
            paragraph.add_run(word).bold = True
            paragraph.add_run(space + rest)
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Quota", "1,250.5"
    document.save(str(path))
    return path


def confirm_here(story: Story) -> int:
    """Confirms the row under the cursor, also where something looks wrong, and gives its number."""
    position = story.cursor()
    assert position is not None
    story.page.keyboard.press("Control+Enter")
    story.until(lambda: story.cursor() != position or story.row(position).get_attribute("data-asked") is not None)
    if story.cursor() == position:
        story.page.keyboard.press("Control+Enter")
    story.until(lambda: story.state(position) == "confirmed")
    return position


def bring_in(story: Story, file: Path) -> None:
    page, name = story.page, f"Day {next(NUMBERS)}"
    with story.program() as client:
        story.project = client.post("/v1/projects", json={"name": name}).json()["id"]
    page.reload()
    page.wait_for_selector(f"#project-select option[value='{story.project}']", state="attached")
    page.select_option("#project-select", story.project)
    page.wait_for_selector("#welcome:not([hidden])")
    page.set_input_files("#file-input", file)
    page.wait_for_selector("#rows tr[data-position]")
    story.document = page.evaluate("location.hash.slice(1)")
    story.translated()


def make_term(story: Story) -> None:
    """By the key, from the word that is selected in a translation; other rows follow."""
    page = story.page
    story.field(0).click()
    page.keyboard.press("Alt+t")
    page.fill("#term-source", "quota")
    page.fill("#term-target", "Fangquote")
    story.until(lambda: "translated again" in page.inner_text("#term-hits") and page.is_enabled("#term-apply"))
    page.click("#term-apply")
    story.until(lambda: page.evaluate("CSS.highlights.get('weitblick-term')?.size ?? 0") >= 10)
    story.until(lambda: "changed" in page.inner_text("#changes-text"))
    concerned = [row["position"] for row in story.stored() if "quota" in row["source"]]
    story.until(lambda: all("angquote" in story.stored()[position]["target"] for position in concerned))
    page.click("#changes-accept")
    page.click("#term-keep")


def replace_words(story: Story) -> None:
    """In all rows, confirmed or not, as one step that goes back, and forth, and back."""
    page = story.page

    approved = {row["position"] for row in story.stored() if row["state"] == "confirmed"}

    def rows() -> list[tuple[str, str]]:
        """Of the confirmed rows; drafts may still follow what was confirmed last."""
        return [(row["target"], row["state"]) for row in story.stored() if row["position"] in approved]

    before = rows()
    assert sum("Fangquote" in target for target, _ in before) >= 5
    page.keyboard.press("Control+h")
    page.fill("#replace-text", "Fangquote")
    page.fill("#replace-by", "Quote")
    page.check("#replace-confirmed")
    story.until(
        lambda: page.inner_text("#replace-apply").startswith("Replace in ") and page.is_enabled("#replace-apply")
    )
    page.click("#replace-apply")
    story.until(lambda: not any("Fangquote" in target for target, _ in rows()))
    page.click("#undo-button")
    story.until(lambda: rows() == before)
    page.click("#redo-button")
    story.until(lambda: not any("Fangquote" in target for target, _ in rows()))
    page.click("#undo-button")
    story.until(lambda: rows() == before)


def review(story: Story, folder: Path) -> int:
    """A table goes out, is changed in Word, and comes back; gives the row that the reviewer has changed."""
    page = story.page
    page.click("#export-button")
    with page.expect_download() as download:
        page.click("#export-links a:text-is('Review table')")
    position = next(
        row["position"] for row in story.stored() if row["source"] == "The committee has adopted the report."
    )
    cells = (position + 1, 2, REVIEWED), (position + 2, 3, "reviewed"), (position + 2, 4, "Good.")
    (folder / "back.docx").write_bytes(changed_table(Path(download.value.path()).read_bytes(), *cells))
    page.set_input_files("#review-file", folder / "back.docx")
    story.until(lambda: story.text(position) == REVIEWED)
    assert (story.state(position), story.state(position + 1)) == ("edited", "reviewed")
    assert "Good." in story.row(position + 1).inner_text()
    return position


def test_a_working_day(story: Story, tmp_path: Path) -> None:
    page = story.page
    bring_in(story, word_file(tmp_path / "day.docx"))
    make_term(story)
    story.field(1).click()
    confirmed = [confirm_here(story) for _ in range(CONFIRMED)]
    assert len(set(confirmed)) == CONFIRMED
    replace_words(story)
    position = review(story, tmp_path)
    story.field(position).click()
    page.keyboard.press("Control+Shift+Enter")
    story.until(lambda: story.state(position) == "confirmed")
    page.keyboard.press("Control+Shift+F")
    page.select_option("#find-state", "reviewed")
    story.until(lambda: page.inner_text("#find-hits").startswith("1 of "))
    page.click("#find-close")
    assert serious(page) == []
    picture(page, "working-day")
    page.click("#export-button")
    with page.expect_download() as download:
        page.click("#export-links a:text-is('Translated file')")
    assert download.value.suggested_filename == "day.de.docx"
    data = Path(download.value.path()).read_bytes()
    rows = story.stored()
    paragraphs = [one.text for one in docx.Document(io.BytesIO(data)).paragraphs]
    assert paragraphs == [row["target"] for row in rows[: len(paragraphs)]]
    assert all(any(run.bold for run in one.runs) for one in docx.Document(io.BytesIO(data)).paragraphs[1:])
    assert opened_in_libreoffice(data, tmp_path).split("\n")[: len(paragraphs)] == paragraphs


def opened_in_libreoffice(data: bytes, folder: Path) -> str:
    """The text that LibreOffice reads in a Word file."""
    office = shutil.which("soffice")
    if office is None:
        pytest.skip("no soffice on this machine (apt-get install libreoffice-writer-nogui)")
    (folder / "out.docx").write_bytes(data)
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    command = [office, profile, "--headless", "--convert-to", "txt:Text (encoded):UTF8", "--outdir", folder]
    environment = {**os.environ, "HOME": str(folder)}
    subprocess.run([*command, folder / "out.docx"], capture_output=True, timeout=300, check=True, env=environment)
    return (folder / "out.txt").read_text(encoding="utf-8-sig")
