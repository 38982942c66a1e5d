"""Rows that somebody types in are held for a while, announced, and never in the way of what is saved."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from weitblick.workbench.events import Hub
from weitblick.workbench.presence import HELD_SECONDS, Presence, Typist

ANNA, BERT = Typist("tab a", "browser a", "Anna"), Typist("tab b", "browser b", "Bert")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def heard() -> list[tuple[str, int, float]]:
    return []


@pytest.fixture
def presence(clock: Clock, heard: list[tuple[str, int, float]], monkeypatch: pytest.MonkeyPatch) -> Presence:
    def publish(self: Hub, topic: str, kind: str, data: Any) -> None:
        heard.append((kind, data["position"], data["seconds"]))

    monkeypatch.setattr(Hub, "publish", publish)
    return Presence(Hub(), clock)


def test_a_row_is_held_until_some_seconds_after_the_last_key(presence: Presence, clock: Clock) -> None:
    assert presence.hold("d", 3, ANNA) is None
    clock.now += HELD_SECONDS - 1
    assert presence.hold("d", 3, ANNA) is None  # another key
    clock.now += HELD_SECONDS - 1
    holder = presence.hold("d", 3, BERT)
    assert holder is not None
    assert (holder["person"], holder["seconds"]) == ("Anna", 1.0)
    clock.now += 1
    assert presence.held("d") == []
    assert presence.hold("d", 3, BERT) is None


def test_a_tab_holds_one_row_and_leaves_it_when_it_goes(
    presence: Presence, heard: list[tuple[str, int, float]]
) -> None:
    presence.hold("d", 3, ANNA)
    presence.hold("d", 4, ANNA)
    assert [one["position"] for one in presence.held("d")] == [4]
    presence.release("d", "tab b")  # which holds nothing
    assert [one["position"] for one in presence.held("d")] == [4]
    presence.release("d", "tab a")
    assert presence.held("d") == []
    assert heard == [("typing", 3, 8.0), ("typing", 3, 0.0), ("typing", 4, 8.0), ("typing", 4, 0.0)]


@pytest.mark.parametrize(
    ("other", "is_kept_out"),
    [
        (Typist("tab 2", "browser a", "Anna"), False),  # another tab of the same browser
        (Typist("tab 2", "browser a", "Bert"), True),  # under another name
        (Typist("tab 2", "browser b", "Anna"), True),  # in another browser, perhaps another Anna
        (Typist("tab 2"), True),  # a program that says nothing of itself
        (Typist("tab a", None, "Anne"), False),  # the tab itself, whose name was changed
    ],
)
def test_who_is_kept_out(presence: Presence, other: Typist, is_kept_out: bool) -> None:
    presence.hold("d", 0, ANNA)
    assert (presence.hold("d", 0, other) is not None) == is_kept_out


def test_nobody_knows_of_a_document_that_is_gone(presence: Presence) -> None:
    presence.hold("d", 0, ANNA)
    presence.focus("d", 0, "tab a")
    presence.forget("d")
    assert (presence.held("d"), presence.under_cursor("d")) == ([], set())


@pytest.fixture
def path(client: TestClient) -> str:
    project = client.post("/v1/projects", json={"name": "Two people"}).json()["id"]
    text = {"text": "The quotas are ready.\n\nThey are high.\n\nWe agree.", "name": "a.txt"}
    added = client.post(f"/v1/projects/{project}/documents", data=text)
    return f"/v1/projects/{project}/documents/{added.json()['id']}"


def types(client: TestClient, path: str, typist: Typist, position: int | None) -> Any:
    body = {"writer": typist.writer, "browser": typist.browser, "person": typist.person}
    return client.post(f"{path}/typing", json={"position": position, **body})


def test_holding_a_row_is_never_in_the_way_of_saving(client: TestClient, path: str) -> None:
    assert types(client, path, ANNA, 0).json() == {"holder": None}
    assert types(client, path, BERT, 0).json()["holder"]["person"] == "Anna"
    (held,) = client.get(path).json()["typing"]
    assert (held["position"], held["person"]) == (0, "Anna")
    row = client.get(path).json()["rows"][0]
    body = {"target": "Von Bert.", "state": "edited", "version": row["version"], "writer": "tab b"}
    assert client.put(f"{path}/segments/0", json=body).json()["target"] == "Von Bert."  # typed before he was told
    assert types(client, path, ANNA, None).json() == {"holder": None}
    assert client.get(path).json()["typing"] == []


def test_what_is_done_to_many_rows_leaves_the_one_that_somebody_types_in(client: TestClient, path: str) -> None:
    for position, target in enumerate(["Die Quote.", "Die Quote auch.", "Die Quote noch."]):
        version = client.get(path).json()["rows"][position]["version"]
        body = {"target": target, "state": "edited", "version": version}
        assert client.put(f"{path}/segments/{position}", json=body).status_code == 200
    types(client, path, ANNA, 1)
    seen = [{"position": row["position"], "version": row["version"]} for row in client.get(path).json()["rows"]]
    by = {"rows": seen, "writer": "tab b"}
    replaced = client.post(f"{path}/replace", json={"text": "Quote", "replacement": "Rate", **by}).json()
    assert [row["target"] for row in replaced["rows"]] == ["Die Rate.", "Die Rate noch."]
    assert [row["position"] for row in replaced["left"]] == [1]
    seen = [{"position": row["position"], "version": row["version"]} for row in client.get(path).json()["rows"]]
    confirmed = client.post(f"{path}/rows", json={"act": "confirm", "rows": seen, "writer": "tab b"}).json()
    assert [row["position"] for row in confirmed["rows"]] == [0, 2]
    assert [row["position"] for row in confirmed["left"]] == [1]


@pytest.mark.parametrize(
    "body",
    [{}, {"writer": ""}, {"writer": "a", "position": -1}, {"writer": "a", "person": "x" * 101}, {"writer": 3}],
)
def test_what_is_no_message_is_refused(client: TestClient, path: str, body: dict[str, Any]) -> None:
    assert client.post(f"{path}/typing", json=body).status_code == 422


def test_a_row_that_is_not_there_is_not_held(client: TestClient, path: str) -> None:
    assert types(client, path, ANNA, 99).status_code == 404
    assert client.post(f"{path}x/typing", json={"writer": "a"}).status_code == 404
