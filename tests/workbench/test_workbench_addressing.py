"""The form of address in a browser: set in the dialog of the project, seen in the drafts, and taken back."""

from __future__ import annotations

import pytest
from test_addressing import TEXT
from test_workbench_finding import serious
from test_workbench_page import PHONE
from test_workbench_rows import picture
from workbench_story import Story

pytestmark = pytest.mark.browser


def test_drafts_follow_the_form_of_address_and_say_why(story: Story) -> None:
    page = story.open_text(TEXT).page
    before = [story.text(position) for position in range(4)]
    page.click("#project-button")
    page.select_option("#formality", "formal")
    story.until(lambda: "Formal: drafts" in page.inner_text("#project-dialog .dialog-status"))
    picture(page, "formality")
    assert serious(page) == []
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Escape")
    story.until(lambda: page.inner_text("#changes-text") == "3 sentences changed")
    assert story.text(0) == "Können Sie mir helfen?"
    assert story.text(1) == before[1]
    assert "because of the form of address" in story.row(0).inner_text()
    picture(page, "formality-phone")
    page.click("#project-button")
    assert page.input_value("#formality") == "formal"
    page.route("**/v1/projects/*", lambda route: route.abort())
    page.select_option("#formality", "informal")
    story.until(lambda: "The form of address is not set" in page.inner_text("#project-dialog .dialog-status"))
    assert page.input_value("#formality") == "formal"  # what is set
    page.unroute("**/v1/projects/*")
    page.select_option("#formality", "auto")
    page.keyboard.press("Escape")
    story.until(lambda: [story.text(position) for position in range(4)] == before)
