"""The preview in a browser: by key and by button, without scripts, for pages and subtitles, and where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import docx
import pytest
from test_previews import SRT
from test_workbench_finding import serious
from test_workbench_page import PHONE
from test_workbench_rows import picture
from workbench_story import Story

from weitblick.workbench.libreoffice import office_program

pytestmark = pytest.mark.browser

HTML = """<!doctype html><html><head><title>Quotas</title><style>p { color: rgb(1, 2, 3) }</style></head>
<body><p>The quotas are ready.</p><a href="/v1/projects">Elsewhere</a>
<script>parent.document.title = "stolen"; document.body.append("ran")</script>
<img src="/health" onerror="document.body.append('ran')"><img src="http://example.com/a.png"></body></html>"""


def add(story: Story, folder: Path, name: str, text: str) -> Story:
    (folder / name).write_text(text, encoding="utf-8")
    with story.program() as client:
        story.project = client.post("/v1/projects", json={"name": name}).json()["id"]
    story.page.reload()
    story.page.wait_for_selector(f"#project-select option[value='{story.project}']", state="attached")
    story.page.select_option("#project-select", story.project)
    story.page.set_input_files("#file-input", folder / name)
    return story.translated()


def test_a_page_is_shown_without_its_scripts(story: Story, tmp_path: Path) -> None:
    page = add(story, tmp_path, "quotas.html", HTML).page
    answered: list[str] = []
    blocked: dict[str, str] = {}
    page.on("response", lambda response: answered.append(response.url))
    page.on("requestfailed", lambda request: blocked.update({request.url: request.failure}))
    story.field(0).fill("Die Fangquoten")
    page.keyboard.press("Alt+v")  # what was typed just now is part of it
    frame = page.frame_locator("#preview-body iframe")
    frame.locator("p").wait_for()
    assert frame.locator("p").evaluate("(p) => getComputedStyle(p).color") == "rgb(1, 2, 3)"
    assert "ran" not in frame.locator("body").inner_text()
    assert "stolen" not in page.title()
    story.until(lambda: len(blocked) == 2)
    assert blocked == {"http://example.com/a.png": "csp", f"{story.address}/health": "csp"}
    assert not [url for url in answered if "example.com" in url or url.endswith("/health")]
    assert story.text(0) in (frame.locator("p").inner_text(), frame.locator("title").inner_text())
    assert serious(page) == []
    picture(page, "preview-html")
    page.keyboard.press("Escape")
    assert page.locator("#preview-body iframe").count() == 0
    assert not page.locator("#preview-dialog").is_visible()


def test_a_preview_waits_for_a_text_that_is_on_its_way(story: Story, tmp_path: Path) -> None:
    page = add(story, tmp_path, "quotas.html", HTML).page
    held: list[Any] = []
    asked: list[str] = []
    page.route("**/segments/0", lambda route: held.append(route), times=1)
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/preview") else None)
    story.field(0).fill("Die Fangquoten")
    story.until(lambda: bool(held))
    page.keyboard.press("Alt+v")
    page.wait_for_selector("#preview-dialog[open]")
    page.wait_for_timeout(300)
    assert asked == []
    held.pop().continue_()
    frame = page.frame_locator("#preview-body iframe")
    frame.locator("p").wait_for()
    assert "Die Fangquoten" in (frame.locator("p").inner_text(), frame.locator("title").inner_text())


def test_markdown_is_a_page_on_a_phone(story: Story, tmp_path: Path) -> None:
    page = add(story, tmp_path, "quotas.md", "# The quotas\n\nThey are **high**.\n\n- The house\n- The report\n").page
    page.set_viewport_size(PHONE)
    page.click("#preview-button")
    frame = page.frame_locator("#preview-body iframe")
    assert frame.locator("h1").inner_text() == story.text(0)
    assert frame.locator("li").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(page, "preview-phone")


def test_subtitles_are_listed_with_times_and_speed(story: Story, tmp_path: Path) -> None:
    page = add(story, tmp_path, "film.srt", SRT).page
    page.click("#preview-button")
    page.wait_for_selector(".cues tbody tr")
    first, second = page.locator(".cues tbody tr").all()
    assert first.locator(".cue-time").inner_text() == "00:01.0 – 00:03.0"
    assert first.locator(".cue-text").inner_text() == story.text(0)
    assert "too fast" in second.locator(".cue-speed").inner_text()
    assert serious(page) == []
    picture(page, "preview-subtitles")
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(page, "preview-subtitles-phone")


def test_where_there_is_none_or_it_fails_that_is_said(story: Story, tmp_path: Path) -> None:
    page = add(story, tmp_path, "texts.json", '{"title": "The quotas are ready."}').page
    page.click("#preview-button")
    page.wait_for_selector("#preview-body p:has-text('There is no preview of JSON')")
    page.keyboard.press("Escape")
    page.route("**/preview", lambda route: route.abort())
    page.click("#preview-button")
    story.until(lambda: "There is no preview: the server cannot be reached" in page.inner_text("#preview-dialog"))
    page.unroute("**/preview")


@pytest.mark.skipif(office_program() is None, reason="no LibreOffice here")
def test_word_files_are_shown_by_libreoffice(story: Story, tmp_path: Path) -> None:
    letter = docx.Document()
    letter.add_heading("The quotas", 1)
    letter.add_paragraph("They are ").add_run("high.").bold = True
    letter.save(tmp_path / "letter.docx")
    story.page.click("#add-button")
    story.page.set_input_files("#file-input", tmp_path / "letter.docx")
    story.translated()
    story.page.click("#preview-button")
    assert "being made" in story.page.inner_text("#preview-body")
    frame = story.page.frame_locator("#preview-body iframe")
    assert frame.locator("h1").inner_text().strip() == story.text(0)
    assert frame.locator("b").count() >= 1
    picture(story.page, "preview-docx")
