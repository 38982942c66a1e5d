"""What a row has been: the draft, edits, a review, each as a difference with who and when."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from weitblick.documents.document import Sentence
from weitblick.workbench.row_versions import difference, versions_of
from weitblick.workbench.schema import Write
from weitblick.workbench.steps import go, steps_of
from weitblick.workbench.store import Store

ANNA, BERT = "Anna", "Bert"
TEXTS = st.text(st.sampled_from("ab. ,ä\u00a0"), max_size=30)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def document(store: Store) -> str:
    return store.add_document(
        store.add_project("Versions").id, "a.txt", [Sentence("It is blue."), Sentence("Yes.")], b""
    )


def write(store: Store, document: str, target: str, state: str, person: str, tab: str) -> None:
    row = store.segment(document, 0)
    write = Write(target, state, row.version, tab, row.writer_edit + 1, person)  # type: ignore[arg-type]
    assert store.edit(document, 0, write).edit is not None


def test_draft_edits_and_review_are_versions_with_who_and_when(store: Store, document: str) -> None:
    store.translate(document, 0, "Es ist blau.", store.segment(document, 0))
    for typed in ("Es war", "Es war blau"):  # in one go
        write(store, document, typed, "edited", ANNA, "a")
    write(store, document, "Es war blau", "confirmed", ANNA, "a")
    write(store, document, "Sie war blau", "edited", BERT, "b")
    write(store, document, "Sie war blau", "reviewed", BERT, "b")
    versions = versions_of(store, document, 0)
    assert [(one.kind, one.text, one.state, one.person) for one in versions] == [
        ("draft", "Es ist blau.", "draft", None),
        ("type", "Es war blau", "edited", ANNA),
        ("confirm", "Es war blau", "confirmed", ANNA),
        ("type", "Sie war blau", "edited", BERT),
        ("review", "Sie war blau", "reviewed", BERT),
    ]
    times = [one.time for one in versions]
    assert None not in times
    assert times == sorted(times)  # type: ignore[type-var]
    removed, added = (
        [part.text for part in versions[1].difference if part.kind == kind] for kind in ("removed", "added")
    )
    assert (removed, added) == (["ist", "."], ["war"])
    assert {part.kind for part in versions[2].difference} == {"equal"}
    against = versions_of(store, document, 0, "draft")[-1].difference
    assert "".join(part.text for part in against if part.kind != "added") == "Es ist blau."
    assert "".join(part.text for part in against if part.kind != "removed") == "Sie war blau"


def test_what_was_taken_back_and_what_the_model_changed(store: Store, document: str) -> None:
    store.translate(document, 0, "Es ist blau.", store.segment(document, 0))
    store.translate(document, 1, "Ja.", store.segment(document, 1))
    cause = store.edit(document, 1, Write("Ja!", "confirmed", store.segment(document, 1).version)).edit
    store.translate(document, 0, "Das ist blau.", store.segment(document, 0), cause)
    write(store, document, "Grün.", "edited", ANNA, "a")
    step = steps_of(store, document).undo
    assert step is not None
    go(store, document, "undo", step.id, Write("", "draft", 0, "a", 9, BERT))
    versions = versions_of(store, document, 0)
    assert [(one.kind, one.because) for one in versions] == [
        ("draft", None),
        ("model", 1),
        ("type", None),
        ("undo", None),
    ]
    assert (versions[-1].text, versions[-1].person) == ("Das ist blau.", BERT)


def test_a_translation_of_the_file_is_the_first_version(store: Store) -> None:
    project = store.add_project("File").id
    document = store.add_document(project, "a.po", [Sentence("Yes.", "Ja.", "locked")], b"")
    assert [(one.kind, one.text, one.state) for one in versions_of(store, document, 0)] == [
        ("draft", "Ja.", "confirmed")
    ]
    write(store, document, "Jawohl.", "edited", ANNA, "a")
    assert [one.text for one in versions_of(store, document, 0)] == ["Ja.", "Jawohl."]


def test_a_row_without_a_translation_has_no_version(store: Store, document: str) -> None:
    assert versions_of(store, document, 0) == []


@given(TEXTS, TEXTS)
def test_a_difference_has_both_texts(before: str, after: str) -> None:
    parts = list(difference(before, after))
    assert "".join(part.text for part in parts if part.kind != "added") == before
    assert "".join(part.text for part in parts if part.kind != "removed") == after


def test_versions_by_the_api(client: TestClient) -> None:
    project = client.post("/v1/projects", json={"name": "Versions"}).json()["id"]
    text = {"text": "The house is blue.", "name": "a.txt"}
    path = (
        f"/v1/projects/{project}/documents/{client.post(f'/v1/projects/{project}/documents', data=text).json()['id']}"
    )
    body = {"target": "Blau ist es.", "state": "edited", "version": 1, "person": ANNA}
    while (row := client.get(path).json()["rows"][0])["state"] == "empty":
        pass
    client.put(f"{path}/segments/0", json={**body, "version": row["version"]})
    draft, edited = client.get(f"{path}/segments/0/versions").json()
    assert (draft["kind"], draft["text"], edited["person"]) == ("draft", row["target"], ANNA)
    assert {part["kind"] for part in edited["difference"]} <= {"equal", "added", "removed"}
    assert client.get(f"{path}/segments/0/versions?against=nothing").status_code == 422
    assert client.get(f"{path}/segments/7/versions").status_code == 404
