"""Takes the pictures of the workbench and of a report for the docs, in a real browser, with the model that comes with
weitblick.

    python docs/images/take.py [-m MODEL] [-o FOLDER]

A translator's first minutes: a Word file (letter.txt) is dropped, a word is corrected and confirmed, other rows change,
one of them is looked at. Needs Chromium and playwright, as the tests do. Every wait has a limit.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docx

HERE = Path(__file__).parent
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
SECONDS = 180
APPROVED = (
    "The quotas for cod are to be reduced by a third.",
    "Die Fangquoten für Kabeljau sollen um ein Drittel gesenkt werden.",
)
"""A sentence of the letter, and what the translator makes of it: Fangquoten, where drafts say Quoten."""
LETTER = (HERE / "letter.txt").read_text(encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model")
    parser.add_argument("-o", "--output", type=Path, default=HERE)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, server(Path(folder), options.model) as address:
        letter = Path(folder) / "north-sea.docx"
        document = docx.Document()
        for paragraph in LETTER.strip().split("\n\n"):
            document.add_paragraph(paragraph)
        document.save(str(letter))
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_context(viewport=DESK, accept_downloads=True).new_page()
            page.set_default_timeout(SECONDS * 1000)
            page.goto(address)
            page.wait_for_selector("#project-select option", state="attached")
            take(page, letter, options.output)
            take_report(browser, explained(Path(folder), options.model), options.output)
            browser.close()


def take(page: Any, letter: Path, output: Path) -> None:
    def shoot(name: str) -> None:
        page.wait_for_timeout(700)  # animations, fonts
        page.screenshot(path=output / name)
        print(output / name, flush=True)

    page.set_input_files("#file-input", letter)
    page.wait_for_selector("#rows tr")
    page.wait_for_selector("tr[data-state=empty]", state="detached")
    page.click("#tab-consistency")
    page.wait_for_selector(".term, #consistency-panel .invitation")
    shoot("workbench-consistency.png")
    page.click("#tab-row")
    row = correct(page)
    page.wait_for_selector("tr[data-changed]")
    page.wait_for_function("() => / changed\\.$/.test(document.getElementById('announcement').textContent)")
    page.wait_for_timeout(3000)
    page.locator("body").click(position={"x": 640, "y": 5})
    page.keyboard.press("n")
    changed = page.locator("tr[data-changed]").first
    changed.locator(".mirror .new").first.scroll_into_view_if_needed()
    box = changed.locator(".mirror .new").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    word = changed.locator(".mirror .new").first.get_attribute("data-text")
    page.wait_for_function("word => document.getElementById('word-panel').innerText.startsWith(word)", arg=word)
    shoot("workbench.png")
    page.evaluate("document.getElementById('theme-button').click()")
    shoot("workbench-dark.png")
    page.evaluate("document.getElementById('theme-button').click()")
    page.set_viewport_size(PHONE)
    page.evaluate("row => document.querySelector(`tr[data-position='${row}']`).scrollIntoView({ block: 'start' })", row)
    page.click("#panel-toggle")
    shoot("workbench-phone.png")


def explained(folder: Path, model: str | None) -> Path:
    """The report of the letter."""
    (folder / "North Sea").write_text(LETTER, encoding="utf-8")
    report = folder / "report.html"
    command = [sys.executable, "-m", "weitblick", "explain", "--from", "txt", str(folder / "North Sea")]
    subprocess.run([*command, "-o", str(report), *(["-m", model] if model else [])], check=True, timeout=SECONDS)
    return report


def take_report(browser: Any, report: Path, output: Path) -> None:
    """A word that context decided, and what it looked at."""
    page = browser.new_context(viewport=DESK, device_scale_factor=1.5).new_page()
    page.goto(report.as_uri())
    page.wait_for_selector(".w")
    decided = """() => influences.find(({ sentence, word, changed }) =>
      changed && !data.sentences[sentence].scores[word][3].endsWith("…"))"""
    page.evaluate(f"() => actions.select({{ ...({decided})(), side: 'target' }})")
    page.wait_for_selector(".context-card")
    page.mouse.move(0, 0)
    page.wait_for_timeout(700)
    page.screenshot(path=output / "report.png")
    print(output / "report.png", flush=True)


def correct(page: Any) -> int:
    """The number of the row that is corrected and confirmed."""
    source, target = APPROVED
    rows = page.locator("#rows tr")
    for number in range(rows.count()):
        if source in rows.nth(number).locator(".source").inner_text():
            field = rows.nth(number).locator("textarea")
            field.fill(target)
            field.press("Control+Enter")
            return number
    raise SystemExit(f"no row has {source!r}")


@contextmanager
def server(folder: Path, model: str | None) -> Iterator[str]:
    command = [sys.executable, "-m", "weitblick", "serve", "--port", "0", "--data", str(folder / "data")]
    process = subprocess.Popen([*command, *(["-m", model] if model else [])], stdout=subprocess.PIPE)
    assert process.stdout is not None
    said, end = b"", time.monotonic() + SECONDS
    try:
        while b"\n" not in said and time.monotonic() < end:
            if select.select([process.stdout], [], [], 1)[0]:
                said += os.read(process.stdout.fileno(), 4096) or b"\n"
        found = re.search(rb"http://\S+", said)
        if found is None:
            raise SystemExit(f"the server did not start within {SECONDS} s: {said.decode()}")
        yield found.group().decode()
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


if __name__ == "__main__":
    main()
