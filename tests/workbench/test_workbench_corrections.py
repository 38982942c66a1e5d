"""In a browser: what a person corrected is told, becomes a term by a key, and that can be taken back."""

from __future__ import annotations

from typing import Any

import pytest
from workbench_story import Story

pytestmark = pytest.mark.browser

TEXT = "The committee has adopted the report.\n\nThe report is long.\n\nThe house is blue.\n"
"""The report of the second row is no *Rapport* by itself: the model finds that too unlikely."""


def correct(story: Story) -> None:
    """The first row is confirmed with another word."""
    draft = story.text(0)
    assert "Bericht" in draft
    story.confirm(0, draft.replace("Bericht", "Rapport"))
    story.page.wait_for_selector("#corrected:visible")


def test_a_correction_becomes_a_term_by_a_key_and_is_taken_back(story: Story) -> None:
    story.open_text(TEXT)
    before = story.text(1)
    correct(story)
    assert story.page.inner_text("#corrected-text") == "report: Bericht → Rapport · 1 more row"
    story.field(1).press("Alt+t")
    assert [story.page.input_value(f"#term-{side}") for side in ("source", "target")] == ["report", "Rapport"]
    story.until(lambda: "1 draft is translated again" in story.page.inner_text("#term-hits"))
    assert story.text(1) == before  # a preview changes nothing
    story.page.press("#term-target", "Enter")
    story.until(lambda: "Rapport" in story.text(1))
    assert story.page.is_hidden("#corrected")
    assert ("report", "Rapport") in story.pairs()
    story.page.click("#term-withdraw")
    story.until(lambda: story.text(1) == before)
    assert ("report", "Rapport") not in story.pairs()
    assert "Rapport" in story.text(0)  # what was confirmed stays
    assert story.state(0) == "confirmed"


def test_a_correction_is_left_or_gone_with_its_row(story: Story) -> None:
    story.open_text(TEXT)
    correct(story)
    story.page.click("#corrected-leave")
    assert story.page.is_hidden("#corrected")
    story.field(0).fill("Der Ausschuss hat den Report angenommen.")
    story.field(0).press("Control+Enter")
    story.page.wait_for_selector("#corrected:visible")
    story.field(0).press("End")
    story.field(0).press_sequentially(" Ja")  # open again
    story.page.wait_for_selector("#corrected", state="hidden")


def test_nothing_is_told_of_a_draft_that_was_right(story: Story) -> None:
    story.open_text(TEXT)
    asked: list[Any] = []
    story.page.on("response", lambda answer: asked.append(answer) if "/corrections" in answer.url else None)
    story.field(0).press("Control+Enter")
    story.until(lambda: bool(asked))
    assert asked[0].json() == {"corrected": [], "drafts": []}
    assert story.page.is_hidden("#corrected")
