"""Concordance: where words stand in the documents, the memory and the glossary of a project."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from workbench_story import Story

from weitblick.workbench.concordance import concordance
from weitblick.workbench.store import Store


def project_with_all(client: TestClient) -> tuple[str, str]:
    project = client.post("/v1/projects", json={"name": "Test"}).json()["id"]
    files = {"file": ("old.tsv", "The quota was low.\tDie Quote war niedrig.\nHello.\tÜbung 100 %.\n")}
    assert client.post(f"/v1/projects/{project}/pairs", files=files, data={"kind": "memory"}).status_code == 200
    terms = {"file": ("terms.tsv", "quota\tFangquote\n")}
    assert client.post(f"/v1/projects/{project}/pairs", files=terms, data={"kind": "glossary"}).status_code == 200
    text = {"text": "We thank you.\n\nThe quotas are ready.\n", "name": "letter.txt"}
    document = client.post(f"/v1/projects/{project}/documents", data=text).json()["id"]
    return project, document


def places(client: TestClient, project: str, **asked: Any) -> list[tuple[str, str, int | None]]:
    answer = client.get(f"/v1/projects/{project}/concordance", params=asked)
    assert answer.status_code == 200, answer.text
    return [(hit["kind"], hit["origin"], hit["position"]) for hit in answer.json()["hits"]]


def test_terms_rows_and_memory_are_found_in_this_order(client: TestClient) -> None:
    project, document = project_with_all(client)
    found = places(client, project, text="QUOTA", side="source", document=document)
    assert [(kind, position) for kind, _, position in found] == [("term", None), ("row", 1), ("memory", None)]
    assert found[1][1] == "letter.txt"


def test_the_other_side_other_letters_and_signs(client: TestClient) -> None:
    project, _ = project_with_all(client)
    assert [kind for kind, _, _ in places(client, project, text="fangquote", side="target")][:1] == ["term"]
    assert places(client, project, text="fangquote", side="source") == []
    assert [kind for kind, _, _ in places(client, project, text="übung")] == ["memory"]
    assert [kind for kind, _, _ in places(client, project, text="100 %")] == ["memory"]
    assert places(client, project, text="%") != places(client, project, text="_")
    assert places(client, project, text="100_%") == []


def test_other_projects_are_not_searched(client: TestClient) -> None:
    project_with_all(client)
    other = client.post("/v1/projects", json={"name": "Other"}).json()["id"]
    assert places(client, other, text="quota") == []


def test_the_limit_is_kept_and_said(client: TestClient) -> None:
    project, _ = project_with_all(client)
    answer = client.get(f"/v1/projects/{project}/concordance", params={"text": "quota", "limit": 1}).json()
    assert (len(answer["hits"]), answer["more"]) == (1, True)


@pytest.mark.parametrize("asked", [{}, {"text": "  "}, {"text": "a" * 201}, {"text": "a", "limit": 0}])
def test_what_is_refused(client: TestClient, asked: dict[str, Any]) -> None:
    project, _ = project_with_all(client)
    answer = client.get(f"/v1/projects/{project}/concordance", params=asked)
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]


def test_an_unknown_project(client: TestClient) -> None:
    assert client.get("/v1/projects/none/concordance", params={"text": "a"}).status_code == 404


def test_a_hundred_thousand_pairs(tmp_path: Path) -> None:
    """In milliseconds on an idle machine; here it must only not be seconds."""
    store = Store(tmp_path)
    project = store.add_project("large").id
    pairs = [
        (f"Sentence {n} about nothing in particular.", f"Satz {n} über nichts Besonderes.") for n in range(100_000)
    ]
    store.add_pairs(project, "import", pairs, "large.tmx")
    began = time.thread_time()
    hits, more = concordance(store, project, "Satz 99999 ")
    took = time.thread_time() - began
    store.close()
    assert ([hit.source for hit in hits], more) == ([pairs[-1][0]], False)
    assert took < 1


# In a browser


@pytest.mark.browser
def test_words_are_looked_up_and_gone_to(story: Story) -> None:
    page = story.open_text().page
    story.field(3).evaluate("field => { field.focus(); field.setSelectionRange(0, 3); }")
    word = story.text(3)[:3]
    page.keyboard.press("Control+k")
    assert page.input_value("#concordance-text") == word
    page.wait_for_selector(".concordance-hit mark")
    page.fill("#concordance-text", "committee")
    page.wait_for_selector("button.concordance-hit mark:text-is('committee')")
    assert "This document, row 3" in page.inner_text("button.concordance-hit")
    page.keyboard.press("Enter")
    story.until(lambda: story.cursor() == 2)
    assert page.evaluate("CSS.highlights.get('concordance').size") == 1
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    assert not page.is_visible("#concordance-dialog")
    story.field(2).click()
    page.keyboard.press("Alt+ArrowDown")
    assert not page.evaluate("CSS.highlights.has('concordance')")


@pytest.mark.browser
def test_a_hit_in_another_document_opens_it(story: Story) -> None:
    story.open_text("Nothing here.\n\nThe minister has resigned.\n")
    first = story.document
    with story.program() as client:
        text = {"text": "Another letter.\n", "name": "other.txt"}
        story.document = client.post(f"/v1/projects/{story.project}/documents", data=text).json()["id"]
    page = story.page
    page.goto(f"{story.address}/#{story.document}")
    story.reload()
    assert story.row(1).count() == 0
    page.click("#concordance-button")
    page.fill("#concordance-text", "resigned")
    page.locator("button.concordance-hit").click()
    story.until(lambda: story.cursor() == 1)
    assert page.input_value("#document-select") == first


@pytest.mark.browser
def test_a_concordance_that_fails_says_so(story: Story) -> None:
    page = story.open_text().page
    page.route("**/concordance?*", lambda route: route.abort())
    page.click("#concordance-button")
    page.fill("#concordance-text", "quotas")
    story.until(
        lambda: "could not be looked for: the server cannot be reached" in page.inner_text("#concordance-dialog")
    )
