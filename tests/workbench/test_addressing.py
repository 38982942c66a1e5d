"""The form of address of a project: drafts and completion follow it, approved rows do not, and it can be taken back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.patience import PATIENCE
from weitblick.workbench.service import Service

TEXT = "Can you help me?\n\nThe report is ready.\n\nHave you seen your brother?\n\nYou should close the door.\n"


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end, "never reached"
        time.sleep(0.05)


@pytest.fixture
def project(client: TestClient) -> str:
    return f"/v1/projects/{client.post('/v1/projects', json={'name': 'Address'}).json()['id']}"


def added(client: TestClient, project: str) -> str:
    document = client.post(f"{project}/documents", data={"text": TEXT, "name": "a.txt"}).json()["id"]
    path = f"{project}/documents/{document}"
    until(lambda: all(row["state"] != "empty" for row in rows(client, path)))
    return path


def rows(client: TestClient, path: str) -> list[Any]:
    return client.get(path).json()["rows"]


def texts(client: TestClient, path: str) -> list[str]:
    return [row["target"] for row in rows(client, path)]


def set_form(client: TestClient, project: str, form: str) -> None:
    assert client.put(project, json={"formality": form}).json()["formality"] == form


def completed(client: TestClient, path: str, position: int, prefix: str) -> str:
    return client.post(f"{path}/segments/{position}/completion", json={"prefix": prefix}).json()["rest"]


def test_drafts_follow_and_go_back_and_what_a_person_wrote_stays(client: TestClient, project: str) -> None:
    path = added(client, project)
    before = texts(client, path)
    assert before[0] == "Kannst du mir helfen?"
    version = rows(client, path)[2]["version"]
    own = {"target": "Hast du deinen Bruder gesehen?", "state": "confirmed", "version": version}
    assert client.put(f"{path}/segments/2", json=own).status_code == 200
    set_form(client, project, "formal")
    until(lambda: "Sie" in texts(client, path)[0] and "Sie" in texts(client, path)[3])
    now = rows(client, path)
    assert (now[0]["target"], now[0]["before"]) == ("Können Sie mir helfen?", before[0])
    assert (now[1]["target"], now[1]["before"]) == (before[1], None)  # which addresses nobody
    assert (now[2]["target"], now[2]["state"]) == (own["target"], "confirmed")
    set_form(client, project, "auto")
    assert [texts(client, path)[at] for at in (0, 1, 3)] == [before[at] for at in (0, 1, 3)]
    assert client.get(project).json()["formality"] == "auto"


def test_new_documents_and_completion_follow(client: TestClient, project: str) -> None:
    set_form(client, project, "formal")
    path = added(client, project)
    assert texts(client, path)[0] == "Können Sie mir helfen?"
    assert "Sie" in completed(client, path, 2, "Haben ")
    assert texts(client, path)[3].startswith("Sie ")
    set_form(client, project, "informal")
    until(lambda: texts(client, path)[0] == "Kannst du mir helfen?")
    assert completed(client, path, 2, "").startswith("Hast du ")
    assert rows(client, path)[0]["before"] == "Können Sie mir helfen?"


def test_a_name_and_a_form_are_set_apart(client: TestClient, project: str) -> None:
    set_form(client, project, "informal")
    assert client.put(project, json={"name": "Letters"}).json()["formality"] == "informal"
    both = client.get(project).json()
    assert (both["name"], both["formality"], both["formalities"]) == (
        "Letters",
        "informal",
        ["auto", "formal", "informal"],
    )
    for wrong in ({"formality": "rude"}, {"name": ""}, {"formal": True}):
        assert client.put(project, json=wrong).status_code == 422
    assert client.put(f"{project}x", json={"formality": "formal"}).status_code == 404


def test_a_model_without_forms_is_not_asked_for_one(
    client: TestClient, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the project was made with another model."""
    set_form(client, project, "formal")
    monkeypatch.setattr(Service, "knows_formality", property(lambda _: False))
    path = added(client, project)
    assert texts(client, path)[0] == "Kannst du mir helfen?"
    assert client.get(project).json()["formalities"] == ["auto"]
    refused = client.put(project, json={"formality": "informal"})
    assert (refused.status_code, "knows no forms of address" in refused.json()["error"]) == (400, True)
    assert client.get(project).json()["formality"] == "formal"
