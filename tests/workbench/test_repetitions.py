"""A sentence that comes again says what was confirmed once; like ones are offered with their difference."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

AGAIN = "Press the green button."
TEXT = f"{AGAIN}\n\nThe report is ready.\n\n{AGAIN}\n\n{AGAIN}\n\nPress the red button.\n"
SAID = "Betätigen Sie die grüne Taste."
PATIENCE = 120


@pytest.fixture
def url(client: TestClient) -> str:
    project = client.post("/v1/projects", json={"name": "Again"}).json()["id"]
    added = client.post(f"/v1/projects/{project}/documents", data={"text": TEXT, "name": "a.txt"}).json()
    url = f"/v1/projects/{project}/documents/{added['id']}"
    end = time.monotonic() + PATIENCE
    while any(row["state"] != "draft" for row in rows(client, url)):
        assert time.monotonic() < end, "never translated"
        time.sleep(0.02)
    return url


def rows(client: TestClient, url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(url).json()["rows"]
    return found


def put(client: TestClient, url: str, position: int, target: str, state: str) -> None:
    body = {"target": target, "state": state, "version": 2**40}
    assert client.put(f"{url}/segments/{position}", json=body).status_code == 200


def test_a_repetition_that_is_confirmed_once_fills_the_others_and_each_can_be_taken_back(
    client: TestClient, url: str
) -> None:
    before = rows(client, url)
    put(client, url, 3, "Grüne Taste drücken.", "edited")
    put(client, url, 0, SAID, "confirmed")
    for running in client.app.state.service.workbench._improving.values():  # type: ignore[attr-defined]
        running.result.result(PATIENCE)
    now = rows(client, url)
    assert (now[2]["target"], now[2]["state"], now[2]["before"]) == (SAID, "draft", before[2]["target"])
    assert now[3]["target"] == "Grüne Taste drücken."  # a person's text is left
    kept = client.post(f"{url}/segments/2/keep", json={"version": now[2]["version"]}).json()
    assert kept["target"] == before[2]["target"]


def test_a_like_sentence_is_offered_with_its_difference(client: TestClient, url: str) -> None:
    put(client, url, 0, SAID, "confirmed")
    (match, *_) = client.get(f"{url}/segments/4/alternatives").json()["matches"]
    assert match["target"] == SAID
    changed = [part for part in match["difference"] if part["kind"] == "different"]
    assert changed == [{"kind": "different", "here": "red", "there": "green"}]
