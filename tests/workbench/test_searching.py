"""Finding rows, and replacing in translations as one step, by the API."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.patience import PATIENCE
from weitblick.workbench.searching import Searching, Wanted

TEXT = "The report of 2024 is long.\n\nThe report is ready.\n\nWe thank you.\n"
TARGETS = ("Der Bericht von 2042 ist lang.", "Der Bericht und der bericht sind fertig.", "Wir danken.")


@pytest.fixture
def url(client: TestClient) -> str:
    """A document: its first row is confirmed (and looks wrong), the second edited, the third a draft."""
    project = client.post("/v1/projects", json={"name": "Find"}).json()["id"]
    added = client.post(f"/v1/projects/{project}/documents", data={"text": TEXT, "name": "a.txt"}).json()
    url = f"/v1/projects/{project}/documents/{added['id']}"
    for position, state in enumerate(("confirmed", "edited", "draft")):
        body = {"target": TARGETS[position], "state": state, "version": 2**40}
        assert client.put(f"{url}/segments/{position}", json=body).status_code == 200
    return url


def rows(client: TestClient, url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(url).json()["rows"]
    return found


def found(client: TestClient, url: str, **wanted: Any) -> list[int]:
    answer = client.post(f"{url}/search", json=wanted).json()
    assert answer["rows"] == 3
    positions: list[int] = answer["positions"]
    return positions


def test_rows_are_found_by_text_state_and_findings(client: TestClient, url: str) -> None:
    assert found(client, url) == [0, 1, 2]
    assert found(client, url, text="REPORT") == [0, 1]
    assert found(client, url, text="REPORT", cased=True) == []
    assert found(client, url, text="bericht", side="source") == []
    assert found(client, url, text=r"20\d\d", expression=True, side="target") == [0]
    assert found(client, url, text=r"20\d\d") == []  # words as they are
    assert found(client, url, states=["edited", "draft"]) == [1, 2]
    assert found(client, url, states=["edited"], text="thank") == []
    assert found(client, url, findings=True, states=["confirmed"]) == [0]
    assert found(client, url, changed=True) == []


def test_a_bad_expression_is_refused_in_one_line(client: TestClient, url: str) -> None:
    answer = client.post(f"{url}/search", json={"text": "(a", "expression": True})
    assert answer.status_code == 422
    assert "is no regular expression" in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    body = {"text": "a", "replacement": r"\7", "expression": True}
    assert client.post(f"{url}/replace/preview", json=body).status_code == 422


def test_an_expression_that_never_ends_is_stopped(client: TestClient, url: str) -> None:
    searching = client.app.state.service.workbench.searching  # type: ignore[attr-defined]
    usual, searching.seconds = searching.seconds, 0.05
    body = {"target": "a" * 60, "state": "edited", "version": 2**40}
    client.put(f"{url}/segments/1", json=body)
    answer = client.post(f"{url}/search", json={"text": "(a+)+b", "expression": True})
    assert answer.status_code == 422
    assert "was stopped after" in answer.json()["error"]
    searching.seconds = max(usual, PATIENCE)
    assert found(client, url, text="d.nk", expression=True) == [2]  # the next one is searched for again


def replaced(client: TestClient, url: str, **wanted: Any) -> dict[str, Any]:
    preview = client.post(f"{url}/replace/preview", json=wanted).json()
    seen = [{"position": row["position"], "version": row["version"]} for row in preview["rows"]]
    answer: dict[str, Any] = client.post(f"{url}/replace", json={**wanted, "rows": seen}).json()
    assert [row["target"] for row in answer["rows"]] == [row["after"] for row in preview["rows"]]
    return answer


def undone(client: TestClient, url: str, answer: dict[str, Any]) -> dict[str, Any]:
    seen = [{"position": row["position"], "version": row["version"]} for row in answer["rows"]]
    back: dict[str, Any] = client.post(f"{url}/undo", json={"rows": seen}).json()
    return back


def test_replacing_is_previewed_leaves_confirmed_rows_and_is_undone_as_one_step(client: TestClient, url: str) -> None:
    before = rows(client, url)
    wanted = {"text": "bericht", "replacement": "Rapport"}
    preview = client.post(f"{url}/replace/preview", json=wanted).json()
    assert [(row["position"], row["hits"]) for row in preview["rows"]] == [(1, 2)]
    assert (preview["hits"], preview["confirmed"]) == (2, 1)
    assert rows(client, url) == before
    answer = replaced(client, url, **wanted)
    now = rows(client, url)
    assert now[1]["target"] == "Der Rapport und der Rapport sind fertig."
    assert (now[1]["state"], now[1]["before"]) == ("edited", TARGETS[1])
    assert now[0] == before[0]
    undone(client, url, answer)
    assert [(row["target"], row["state"]) for row in rows(client, url)] == [
        (row["target"], row["state"]) for row in before
    ]


def test_confirmed_rows_are_replaced_when_that_is_said_and_come_back_confirmed(client: TestClient, url: str) -> None:
    pairs = f"{url.split('/documents')[0]}/pairs"
    answer = replaced(client, url, text=r"(von) (\d+)", replacement=r"\2 \1", expression=True, confirmed=True)
    (row,) = answer["rows"]
    assert (row["target"], row["state"]) == ("Der Bericht 2042 von ist lang.", "edited")
    assert client.get(pairs).json() == []  # open again: it is not approved any more
    undone(client, url, answer)
    assert (rows(client, url)[0]["target"], rows(client, url)[0]["state"]) == (TARGETS[0], "confirmed")
    assert [pair["target"] for pair in client.get(pairs).json()] == [TARGETS[0]]


def test_a_draft_in_which_words_were_replaced_is_a_draft_again_when_undone(client: TestClient, url: str) -> None:
    answer = replaced(client, url, text="Wir", replacement="Alle \\1")
    assert rows(client, url)[2]["target"] == "Alle \\1 danken."
    kept = client.post(f"{url}/segments/2/keep", json={"version": answer["rows"][0]["version"]}).json()
    assert (kept["target"], kept["state"], kept["before"]) == ("Wir danken.", "draft", None)


def test_rows_that_were_written_meanwhile_are_left(client: TestClient, url: str) -> None:
    wanted = {"text": "danken", "replacement": "grüßen"}
    (seen,) = client.post(f"{url}/replace/preview", json=wanted).json()["rows"]
    body = {"target": "Wir danken sehr.", "state": "edited", "version": 2**40}
    client.put(f"{url}/segments/2", json=body)
    rows_seen = [{"position": 2, "version": seen["version"]}]
    answer = client.post(f"{url}/replace", json={**wanted, "rows": rows_seen}).json()
    assert (answer["rows"], [row["target"] for row in answer["left"]]) == ([], ["Wir danken sehr."])
    assert rows(client, url)[2]["before"] is None


def test_a_replacement_that_grows_without_end_is_refused(client: TestClient, url: str) -> None:
    body = {"text": "", "replacement": "x"}
    assert client.post(f"{url}/replace/preview", json=body).status_code == 422
    body = {"text": "(?=(.*))", "replacement": r"\1" * 333, "expression": True}
    client.put(f"{url}/segments/2", json={"target": "a" * 15_000, "state": "edited", "version": 2**40})
    answer = client.post(f"{url}/replace/preview", json=body)
    assert answer.status_code == 422
    assert "more than 20,000 characters" in answer.json()["error"]


def test_what_a_file_cannot_hold_is_not_put_in_by_replacing(client: TestClient, url: str) -> None:
    wanted = {"text": "Wir", "replacement": "Wir\nalle"}
    (seen,) = client.post(f"{url}/replace/preview", json=wanted).json()["rows"]
    body = {**wanted, "rows": [{"position": 2, "version": seen["version"]}]}
    answer = client.post(f"{url}/replace", json=body)
    assert answer.status_code == 422
    assert "row 3" in answer.json()["error"]
    assert rows(client, url)[2]["target"] == "Wir danken."


def test_words_are_searched_for_as_they_are_without_a_process() -> None:
    searching = Searching()
    assert searching.replacements(Wanted("a"), "b", []) == []
    assert searching._worker is None
