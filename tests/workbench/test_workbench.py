"""The workbench without its page: rows fill, confirming improves the rest, what a human wrote stays."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.patience import PATIENCE

TEXT = "The report is ready. It is long.\n\nThe committee has adopted the report. Thank you.\n"


class Bench:
    """A document at the workbench."""

    def __init__(self, client: TestClient, text: str = TEXT, project: str | None = None) -> None:
        self.client = client
        self.project = project or client.post("/v1/projects", json={"name": "Letters"}).json()["id"]
        added = client.post(f"/v1/projects/{self.project}/documents", data={"text": text, "name": "letter.txt"})
        assert added.status_code == 200, added.text
        self.document = added.json()["id"]
        self.url = f"/v1/projects/{self.project}/documents/{self.document}"

    def rows(self) -> list[dict[str, Any]]:
        return self.client.get(self.url).json()["rows"]

    def until(self, reached: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        end = time.monotonic() + PATIENCE
        while not reached(rows := self.rows()):
            assert time.monotonic() < end, "never reached"
            time.sleep(0.05)
        return rows

    def filled(self) -> list[dict[str, Any]]:
        return self.until(lambda rows: all(row["state"] != "empty" for row in rows))

    def put(self, position: int, target: str, state: str = "confirmed", **more: Any) -> Any:
        """Writes a row as it has just been seen."""
        rows = self.rows()
        seen = rows[position]["version"] if position < len(rows) else 0
        body = {"target": target, "state": state, "version": seen, **more}
        return self.client.put(f"{self.url}/segments/{position}", json=body)

    def settle_one(self, position: int, how: str) -> Any:
        return self.client.post(
            f"{self.url}/segments/{position}/{how}", json={"version": self.rows()[position]["version"]}
        )

    def undo(self) -> dict[str, Any]:
        seen = [{"position": row["position"], "version": row["version"]} for row in self.rows() if row["before"]]
        return self.client.post(f"{self.url}/undo", json={"rows": seen}).json()

    def settle(self) -> None:
        """Until everything that was begun is done."""
        for running in list(self.client.app.state.service.workbench._improving.values()):  # type: ignore[attr-defined]
            running.result.result(PATIENCE)


@pytest.fixture
def bench(client: TestClient) -> Bench:
    return Bench(client)


def test_rows_fill_by_themselves(bench: Bench) -> None:
    rows = bench.filled()
    assert [row["source"] for row in rows][:2] == ["The report is ready.", "It is long."]
    assert {row["state"] for row in rows} == {"draft"}
    assert "Bericht" in rows[0]["target"]


def test_human_rows_are_never_touched(bench: Bench) -> None:
    bench.filled()
    bench.put(1, "Er ist sehr lang", "edited")
    bench.client.post(f"{bench.url}/focus", json={"position": 3})
    before = bench.rows()[3]
    bench.put(0, "Der Rapport ist fertig.")
    bench.settle()
    rows = bench.rows()
    assert (rows[0]["target"], rows[0]["state"]) == ("Der Rapport ist fertig.", "confirmed")
    assert (rows[1]["target"], rows[1]["state"]) == ("Er ist sehr lang", "edited")
    assert rows[3] == before  # under the cursor


def change(bench: Bench, position: int, text: str) -> None:
    """As if the model had changed a draft after a confirmation."""
    store = bench.client.app.state.service.store  # type: ignore[attr-defined]
    assert store.translate(bench.document, position, text, store.segment(bench.document, position), cause=1)


def test_changes_can_be_kept_as_they_were_or_all_undone(bench: Bench) -> None:
    before = bench.filled()
    for position in (1, 2, 3):
        change(bench, position, f"Anders {position}.")
    rows = bench.rows()
    assert [row["before"] for row in rows] == [None, *[row["target"] for row in before[1:]]]
    kept = bench.settle_one(1, "keep").json()
    assert (kept["target"], kept["before"]) == (before[1]["target"], None)
    assert kept["state"] == "edited"  # a human's choice, which later confirmations leave alone
    accepted = bench.settle_one(2, "accept").json()
    assert (accepted["target"], accepted["before"]) == ("Anders 2.", None)
    undone = bench.undo()["rows"]
    assert [row["position"] for row in undone] == [3]
    rows = bench.rows()
    assert [row["target"] for row in rows] == [
        before[0]["target"],
        before[1]["target"],
        "Anders 2.",
        before[3]["target"],
    ]
    assert bench.settle_one(3, "keep").status_code == 409


def test_a_draft_that_changes_twice_goes_back_to_what_was_seen(bench: Bench) -> None:
    before = bench.filled()[1]["target"]
    for text in ("Anders.", "Wieder anders."):
        change(bench, 1, text)
    row = bench.rows()[1]
    assert (row["target"], row["before"]) == ("Wieder anders.", before)
    assert bench.undo()["rows"][0]["target"] == before
    change(bench, 1, "Anders.")
    change(bench, 1, before)
    assert bench.rows()[1]["before"] is None  # it is what it was: no change


def test_confirmed_rows_are_the_memory_of_the_project(bench: Bench) -> None:
    bench.filled()
    bench.put(0, "Der Bericht liegt vor.")
    memories = bench.client.app.state.service.memories  # type: ignore[attr-defined]
    assert [(pair.source, pair.target) for pair in memories.of(bench.project)] == [
        ("The report is ready.", "Der Bericht liegt vor.")
    ]
    bench.put(0, "Der Bericht ist da.")
    assert [pair.target for pair in memories.of(bench.project)] == ["Der Bericht ist da."]
    other = bench.client.post(f"/v1/projects/{bench.project}/documents", json={"text": "The report is ready."}).json()
    url = f"/v1/projects/{bench.project}/documents/{other['id']}/segments/0/alternatives"
    (match,) = bench.client.get(url).json()["matches"]
    assert (match["target"], match["similarity"]) == ("Der Bericht ist da.", 1.0)
    bench.put(0, "Der Bericht ist da.", "edited")
    assert len(memories.of(bench.project)) == 0


def test_what_was_approved_word_for_word_is_taken_over(bench: Bench) -> None:
    bench.filled()
    bench.put(0, "Der Rapport steht.")
    rows = Bench(bench.client, "The report is ready.\nIt is new.\n", project=bench.project).filled()
    assert (rows[0]["target"], rows[0]["state"]) == ("Der Rapport steht.", "draft")
    assert rows[1]["target"] not in ("", "Der Rapport steht.")


def test_alternatives(bench: Bench) -> None:
    current = bench.filled()[0]["target"]
    found = bench.client.get(f"{bench.url}/segments/0/alternatives").json()["alternatives"]
    assert 1 <= len(found) <= 3
    assert current not in found
    assert bench.client.get(f"{bench.url}/segments/99/alternatives").status_code == 404


def test_wrong_edits_are_refused(bench: Bench) -> None:
    assert bench.put(0, "  ").status_code == 409
    assert bench.put(0, "a", "done").status_code == 422
    assert bench.put(99, "a").status_code == 404
    assert bench.put(10**30, "a").status_code == 422
    assert bench.client.delete(f"/v1/projects/{bench.project}/pairs/{10**30}").status_code == 422
    assert bench.client.put(f"/v1/projects/none/documents/{bench.document}/segments/0", json={}).status_code == 422
    wrong = f"/v1/projects/none/documents/{bench.document}/segments/0"
    assert bench.client.put(wrong, json={"target": "a", "state": "edited", "version": 0}).status_code == 404


def test_a_file_without_text_is_refused(bench: Bench) -> None:
    url = f"/v1/projects/{bench.project}/documents"
    for name, content in (("empty.txt", b""), ("numbers.txt", b"1 2\n3 4\n")):
        answer = bench.client.post(url, files={"file": (name, content)})
        assert (answer.status_code, answer.json()) == (400, {"error": f"{name} holds no text to translate"})
    assert len(bench.client.get(f"/v1/projects/{bench.project}").json()["documents"]) == 1


def test_exports(bench: Bench) -> None:
    bench.filled()
    for position, target in enumerate(("Eins.", "Zwei & <drei>.", "Vier.", "Danke.")):
        bench.put(position, target)
    get = lambda kind: bench.client.get(f"{bench.url}/export/{kind}")  # noqa: E731
    assert get("file").text == "Eins. Zwei & <drei>.\n\nVier. Danke.\n"
    assert "letter.de.txt" in get("file").headers["content-disposition"]
    tmx = ElementTree.fromstring(get("tmx").content)
    assert [seg.text for seg in tmx.iter("seg")][1::2] == ["Eins.", "Zwei & <drei>.", "Vier.", "Danke."]
    xliff = ElementTree.fromstring(get("xliff").content)
    name = "{urn:oasis:names:tc:xliff:document:1.2}"
    assert [unit.get("approved") for unit in xliff.iter(f"{name}trans-unit")] == [None] * 4
    assert [target.get("state") for target in xliff.iter(f"{name}target")] == ["translated"] * 4
    assert [target.text for target in xliff.iter(f"{name}target")][1] == "Zwei & <drei>."
    document = json.loads(get("jsonl").text)
    assert [row["status"] for row in document["sentences"]] == ["locked"] * 4
    assert get("pdf").status_code == 404
    whole = bench.client.get(f"/v1/projects/{bench.project}/export/tmx")
    assert len(list(ElementTree.fromstring(whole.content).iter("tu"))) == 4


def test_a_memory_holds_only_what_was_confirmed(bench: Bench) -> None:
    bench.filled()
    assert bench.client.get(f"{bench.url}/export/tmx").status_code == 409
    bench.put(1, "Er ist lang.")
    tmx = ElementTree.fromstring(bench.client.get(f"{bench.url}/export/tmx").content)
    assert [seg.text for seg in tmx.iter("seg")] == ["It is long.", "Er ist lang."]


def test_imports(bench: Bench) -> None:
    url = f"/v1/projects/{bench.project}/pairs"
    glossary = bench.client.post(
        url, files={"file": ("terms.csv", "report,Bericht\ncommittee,Ausschuss\n")}, data={"kind": "glossary"}
    )
    assert glossary.json() == {"pairs": 2}
    quoted = 'source\ttarget\n"Yes," he said.\t„Ja“, sagte er.\n"No.\tNein.\n'
    memory = bench.client.post(url, files={"file": ("a.tsv", quoted.encode())})
    assert memory.json() == {"pairs": 2}  # quotation marks of a text do not swallow what follows
    bench.filled()
    bench.put(0, "Der Bericht liegt vor.")
    tmx = bench.client.get(f"{bench.url}/export/tmx").content
    other = bench.client.post("/v1/projects", json={"name": "Other"}).json()["id"]
    imported = bench.client.post(f"/v1/projects/{other}/pairs", files={"file": ("memory.tmx", tmx)})
    assert imported.json()["pairs"] >= 1
    assert "Der Bericht liegt vor." in [
        pair["target"] for pair in bench.client.get(f"/v1/projects/{other}/pairs").json()
    ]
    for name, content in (("a.tmx", b"<tmx><broken"), ("a.csv", b"\xff\xfe"), ("a.tsv", b"")):
        assert bench.client.post(url, files={"file": (name, content)}).status_code == 400


def test_deleted_projects_are_gone(bench: Bench) -> None:
    assert bench.client.delete(f"/v1/projects/{bench.project}").status_code == 204
    assert bench.client.get(bench.url).status_code == 404
    assert bench.client.get("/v1/projects").json() == []


def test_news_of_a_document_are_streamed(address: str) -> None:
    import httpx

    with httpx.Client(base_url=address, timeout=PATIENCE) as client:
        bench = Bench(client, "The report is ready. " * 30)  # type: ignore[arg-type]
        seen: dict[str, list[Any]] = {}
        with client.stream("GET", f"{bench.url}/events") as stream:
            kind = ""
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    seen.setdefault(kind, []).append(json.loads(line.removeprefix("data: ")))
                    if kind == "progress" and seen[kind][-1]["done"] == 30:
                        break
        assert "hello" in seen
        assert len(seen["progress"]) > 1
