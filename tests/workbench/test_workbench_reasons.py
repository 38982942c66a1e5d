"""The panel says why a word stands there, in a translator's words; figures are folded up for researchers."""

from __future__ import annotations

import pytest
from workbench_story import Story

pytestmark = pytest.mark.browser


def look_at(story: Story, position: int, word: str) -> str:
    """Puts the cursor into a word of a translation; what the panel says of it."""
    place = story.text(position).index(word) + 1
    story.field(position).evaluate("(field, at) => { field.focus(); field.setSelectionRange(at, at); }", place)
    story.page.wait_for_selector(f"#word-panel h2:text-is('{word}')")
    return str(story.page.inner_text("#word-panel"))


def test_context(story: Story) -> None:
    page = story.open_text("The directive is good. It must be improved.\n").page
    pronoun = story.text(1).split()[0]
    said = look_at(story, 1, pronoun)
    assert pronoun == "Sie"
    assert "Because row 1 says" in said
    assert "Without context it would say" in said
    assert "nats" not in said  # folded up
    page.click(".researchers summary")
    assert "nats" in page.inner_text("#word-panel")
    page.locator("#word-panel .reason .place-link").click()
    page.wait_for_selector("tr.visited[data-position='0']")
    look_at(story, 1, story.text(1).split()[1])
    assert page.get_attribute(".researchers", "open") is not None  # as it was left


def test_an_approved_translation_and_a_term(story: Story) -> None:
    page = story.open_text().page
    story.change_others()
    word = next(word for word in story.text(3).split() if word.startswith("Fangquoten")).rstrip(".")
    assert "from an approved translation (row 1" in look_at(story, 3, word)
    with story.program() as client:
        term = {"source": "committee", "target": "Komitee"}
        assert client.post(f"{story.path}/terms", json=term).status_code == 200
    story.until(lambda: "Komitee" in story.text(2))
    assert "Because of the term committee = Komitee (approved term)" in look_at(story, 2, "Komitee")
    assert page.locator(".researchers").count() == 1


def test_a_word_is_credited_to_the_approved_row_that_it_comes_from(story: Story) -> None:
    """Two rows say it: the one whose approval has changed this row is the reason, not the one looked at most."""
    story.open_text()
    with story.program() as client:
        focus = {"position": 3, "writer": "program"}  # as if somebody wrote there: the model leaves the row alone
        assert client.post(f"{story.path}/focus", json=focus).status_code == 204
        story.put(0, "Die Fangquoten sind fertig.", "confirmed")
        story.until(lambda: "Fangquoten" in story.text(2))
        story.page.wait_for_timeout(500)
        assert client.post(f"{story.path}/focus", json={**focus, "position": None}).status_code == 204
    story.put(2, "Der Ausschuss hat die Fangquoten angenommen.", "confirmed")
    story.until(lambda: "Fangquoten" in story.text(3))
    said = look_at(story, 3, "Fangquoten").partition("For researchers")[0]
    assert "from an approved translation (row 3" in said
    assert "Because row" not in said
    assert "row 1" not in said
