"""Rows at the workbench: states with who and when, comments, several at once."""

from __future__ import annotations

import itertools
import sqlite3
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polib
import pytest
from fastapi.testclient import TestClient

from weitblick.documents.document import Sentence
from weitblick.files.inline_marks import InlineMark, missing_placeholders, target_marks
from weitblick.workbench.database import FILE
from weitblick.workbench.errors import Changed
from weitblick.workbench.schema import MIGRATIONS, Segment, Write
from weitblick.workbench.statistics import document_statistics
from weitblick.workbench.store import Store

Json = dict[str, Any]
NOBODY = Write("", "draft", 0)
NUMBERS = itertools.count(1)
XLIFF = {
    "1.2": """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" source-language="en" target-language="de" datatype="plaintext"><body>
<trans-unit id="1"><source>The house is blue.</source></trans-unit>
<trans-unit id="2"><source>The report is long.</source><target state="translated">Der Bericht ist lang.</target>
<note from="Anna">Is it?</note></trans-unit>
<trans-unit id="3" approved="yes"><source>Thank you.</source><target state="final">Danke.</target></trans-unit>
<trans-unit id="4"><source>We agree.</source>
<target state="needs-review-translation">Einverstanden.</target></trans-unit>
</body></file></xliff>""",
    "2.0": """<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f">
<unit id="1"><segment><source>The house is blue.</source></segment></unit>
<unit id="2"><notes><note>Is it?</note></notes><segment state="translated"><source>The report is long.</source>
<target>Der Bericht ist lang.</target></segment></unit>
<unit id="3"><segment state="final"><source>Thank you.</source><target>Danke.</target></segment></unit>
</file></xliff>""",
}
PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

#. Shown at the door
#: a.c:1
msgid "The house is blue."
msgstr ""

# Is it?
msgid "The report is long."
msgstr "Der Bericht ist lang."
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def document_of(store: Store, *targets: str) -> str:
    project = store.add_project("Letters").id
    drafts = [Sentence(f"Sentence {at}.", target, "draft") for at, target in enumerate(targets)]
    return store.add_document(project, "letter.txt", drafts, b"")


def write(store: Store, document: str, position: int, target: str, state: Any, act: Any = None) -> Segment:
    version = store.segment(document, position).version
    return store.edit(document, position, Write(target, state, version, "tab", next(NUMBERS), "Anna", act)).after


def texts(store: Store, document: str) -> list[tuple[str, str]]:
    return [(row.target, row.state) for row in store.segments(document)]


def upload(client: TestClient, name: str, content: str) -> str:
    project = client.post("/v1/projects", json={"name": name}).json()["id"]
    added = client.post(f"/v1/projects/{project}/documents", files={"file": (name, content.encode())}).json()
    url = f"/v1/projects/{project}/documents/{added['id']}"
    end = time.monotonic() + 120
    while any(row["state"] == "empty" for row in rows_of(client, url)):
        assert time.monotonic() < end
        time.sleep(0.05)
    return url


def rows_of(client: TestClient, url: str) -> list[Json]:
    rows: list[Json] = client.get(url).json()["rows"]
    return rows


def test_a_program_that_does_not_count_its_writes_loses_none(store: Store) -> None:
    document = document_of(store, "Eins.")
    for text in ("Zwei.", "Drei."):
        version = store.segment(document, 0).version
        store.edit(document, 0, Write(text, "edited", version, "program"))
    assert texts(store, document) == [("Drei.", "edited")]
    with pytest.raises(Changed):
        store.edit(document, 0, Write("Vier.", "edited", 1, "program"))


def put(client: TestClient, url: str, position: int, target: str, state: str, person: str = "Anna") -> Json:
    version = rows_of(client, url)[position]["version"]
    body = {"target": target, "state": state, "version": version, "person": person}
    answer = client.put(f"{url}/segments/{position}", json=body)
    assert answer.status_code == 200, answer.text
    row: Json = answer.json()
    return row


# States


def test_a_reviewed_row_is_in_the_memory_and_says_who_and_when(store: Store) -> None:
    document = document_of(store, "Null.", "Eins.")
    before = time.time()
    row = write(store, document, 0, "Null!", "reviewed")
    assert (row.state, row.person) == ("reviewed", "Anna")
    assert before <= (row.decided or 0) <= time.time()
    project = store.document(document).project
    assert [(pair.source, pair.target) for pair in store.pairs(project)] == [("Sentence 0.", "Null!")]
    assert (store.project(project).confirmed, store.project(project).reviewed) == (1, 1)
    assert store.translate(document, 0, "Modell.", row) is None
    write(store, document, 0, "Null!", "edited")
    assert store.pairs(project) == []


def test_projects_of_the_schema_before_open_with_states_and_times(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / FILE)
    database.executescript("".join(MIGRATIONS[:3]))
    database.executescript("""
        INSERT INTO projects VALUES ('p', 'Letters', 1.0);
        INSERT INTO documents VALUES ('d', 'p', 'letter.txt', x'4f', 2.0);
        INSERT INTO segments VALUES ('d', 0, 'One.', 'Zwo.', 'draft', '{}', 2, 3, 0, NULL, 0);
        INSERT INTO segments VALUES ('d', 1, 'Two.', 'Zwei.', 'confirmed', '{"block": 1}', NULL, 2, 2, 'old', 7);
        INSERT INTO edits VALUES (1, 'd', 1, 30.0, '', 'empty', 'Zwei.', 'confirmed', NULL);
        INSERT INTO edits VALUES (2, 'd', 0, 31.0, 'Eins.', 'draft', 'Zwo.', 'draft', 1);
        PRAGMA user_version = 3;
    """)
    database.close()
    store = Store(tmp_path)
    draft, confirmed = store.segments("d")
    assert (draft.before, draft.cause, draft.version, draft.decided) == ("Eins.", 1, 3, None)
    assert (confirmed.state, confirmed.decided, confirmed.writer, confirmed.writer_edit) == (
        "confirmed",
        30.0,
        "old",
        7,
    )
    assert confirmed.metadata == {"block": 1}
    kept = store.keep("d", 0, 3)
    assert (kept.target, kept.state) == ("Eins.", "edited")
    assert write(store, "d", 1, "Zwei.", "reviewed").state == "reviewed"


@pytest.mark.parametrize("version", XLIFF)
def test_xliff_says_what_rows_are_and_is_read_so(client: TestClient, version: str) -> None:
    url = upload(client, "a.xlf", XLIFF[version])
    states = ["draft", "confirmed", "reviewed", "edited"][: 4 if version == "1.2" else 3]
    assert [row["state"] for row in rows_of(client, url)] == states
    assert [[one["text"] for one in row["comments"]] for row in rows_of(client, url)][:3] == [[], ["Is it?"], []]
    put(client, url, 0, "Das Haus ist blau.", "reviewed")
    put(client, url, 2, "Danke.", "edited")  # opened again: the file must not call it final any more
    comment = {"text": "Blue & <green>", "person": 'An"na'}
    assert client.post(f"{url}/segments/0/comments", json=comment).status_code == 201
    again = client.get(f"{url}/export/file").text
    second = upload(client, "b.xlf", again)
    assert [row["state"] for row in rows_of(client, second)][:2] == ["reviewed", "confirmed"]
    if version == "1.2":
        assert [row["state"] for row in rows_of(client, second)][2:] == ["edited", "edited"]
        assert rows_of(client, second)[0]["comments"][0]["person"] == 'An"na'
    else:
        assert '<segment state="initial"><source>Thank you.' in again
    assert [one["text"] for one in rows_of(client, second)[0]["comments"]] == ["Blue & <green>"]
    assert client.get(f"{second}/export/file").text.count("Blue &amp; &lt;green&gt;") == 1


def test_xliff_keeps_what_nobody_has_touched_byte_for_byte(client: TestClient) -> None:
    url = upload(client, "a.xlf", XLIFF["1.2"])
    put(client, url, 0, "Das Haus ist blau.", "confirmed")
    lines = client.get(f"{url}/export/file").text.splitlines()
    assert lines[3:] == XLIFF["1.2"].splitlines()[3:]


def test_an_export_of_rows_has_states_and_notes(client: TestClient) -> None:
    url = upload(client, "a.txt", "The house is blue.\n\nThe report is long.\n")
    put(client, url, 0, "Das Haus ist blau.", "reviewed")
    put(client, url, 1, "Der Bericht ist lang.", "confirmed")
    client.post(f"{url}/segments/1/comments", json={"text": "a < b", "person": "Anna"})
    export = client.get(f"{url}/export/xliff").text
    space = "{urn:oasis:names:tc:xliff:document:1.2}"
    units = list(ElementTree.fromstring(export).iter(f"{space}trans-unit"))
    targets = [unit.find(f"{space}target") for unit in units]
    assert [target.get("state") for target in targets if target is not None] == ["final", "translated"]
    assert [unit.get("approved") for unit in units] == ["yes", None]
    note = units[1].find(f"{space}note")
    assert note is not None
    assert (note.text, note.get("from")) == ("a < b", "Anna")
    assert [row["state"] for row in rows_of(client, upload(client, "c.xlf", export))] == ["reviewed", "confirmed"]


def test_comments_of_catalogues_come_in_and_go_out(client: TestClient) -> None:
    url = upload(client, "a.po", PO)
    rows = rows_of(client, url)
    assert [[(one["text"], one["person"]) for one in row["comments"]] for row in rows] == [
        [("Shown at the door", "developer")],
        [("Is it?", None)],
    ]
    assert client.get(f"{url}/export/file").text.count("# Is it?") == 1
    for text in ("First\nin two lines", "Second"):
        client.post(f"{url}/segments/0/comments", json={"text": text})
    (old,) = rows[1]["comments"]
    gone = client.delete(f"{url}/segments/1/comments/{old['id']}", params={"version": old["version"]})
    assert gone.json()["comments"] == []
    catalogue = polib.pofile(client.get(f"{url}/export/file").text)
    assert [entry.tcomment for entry in catalogue] == ["First\nin two lines\n\nSecond", ""]
    assert catalogue[0].comment == "Shown at the door"
    again = rows_of(client, upload(client, "b.po", str(catalogue)))
    assert [one["text"] for one in again[0]["comments"]] == ["First\nin two lines", "Second", "Shown at the door"]


# Comments


def test_comments_are_versioned_found_and_brought_back(client: TestClient) -> None:
    url = upload(client, "a.txt", "The house is blue.\n\nThe report is long.\n")
    made = client.post(f"{url}/segments/1/comments", json={"text": " <b>Why?</b>\r\nSee. ", "person": "Anna"}).json()
    (comment,) = made["comments"]
    assert (comment["text"], comment["person"]) == ("<b>Why?</b>\nSee.", "Anna")
    assert client.post(f"{url}/search", json={"comments": True}).json()["positions"] == [1]
    path = f"{url}/segments/1/comments/{comment['id']}"
    body = {"text": "Why not?", "version": comment["version"], "person": "Ben"}
    changed = client.put(path, json=body).json()["comments"][0]
    assert (changed["text"], changed["person"]) == ("Why not?", "Ben")
    assert client.put(path, json={**body, "text": "Old"}).status_code == 409
    assert client.delete(path, params={"version": comment["version"]}).status_code == 409
    assert client.delete(path, params={"version": changed["version"]}).json()["comments"] == []
    assert client.put(path, json=body).status_code == 404
    step = client.get(f"{url}/steps").json()["undo"]
    assert (step["kind"], step["rows"], step["first"]) == ("comment", 1, 1)
    back = client.post(f"{url}/steps/undo", json={"step": step["id"]}).json()
    assert [one["text"] for one in back["rows"][0]["comments"]] == ["Why not?"]
    assert client.post(f"{url}/segments/1/comments", json={"text": " "}).status_code == 422
    assert client.post(f"{url}/segments/9/comments", json={"text": "x"}).status_code == 404


def test_several_rows_are_one_step_and_approved_text_is_left(client: TestClient) -> None:
    url = upload(client, "a.txt", "The house is blue.\n\nThe report has 3 pages.\n\nThank you.\n\nWe agree.\n")
    put(client, url, 0, "Das Haus ist blau.", "confirmed")
    put(client, url, 1, "Der Bericht hat Seiten.", "edited")
    put(client, url, 2, "Danke.", "edited")

    def act(name: str, *positions: int, **more: Any) -> Json:
        rows = rows_of(client, url)
        seen = [{"position": at, "version": rows[at]["version"]} for at in positions]
        answer = client.post(f"{url}/rows", json={"act": name, "rows": seen, "person": "Ben", **more})
        assert answer.status_code == 200, answer.text
        done: Json = answer.json()
        return done

    def now() -> list[tuple[str, str]]:
        return [(row["target"], row["state"]) for row in rows_of(client, url)]

    before = now()
    cleared = act("clear", 0, 1, 2)
    assert [row["position"] for row in cleared["rows"]] == [1, 2]
    assert now()[0] == before[0]
    client.post(f"{url}/steps/undo", json={"step": client.get(f"{url}/steps").json()["undo"]["id"]})
    assert now() == before
    asked = act("confirm", 0, 1, 2, ask=True)
    assert [row["position"] for row in asked["rows"]] == [2]
    assert {one["position"] for one in asked["findings"]} == {1}  # a number is missing
    assert act("confirm", 1)["rows"][0]["state"] == "confirmed"
    reviewed = act("review", 0, 1, 2)["rows"]
    assert [(row["state"], row["person"]) for row in reviewed] == [("reviewed", "Ben")] * 3
    assert [row["state"] for row in act("reopen", 0, 1)["rows"]] == ["edited"] * 2
    assert [row["target"] for row in act("copy", 0, 1, 2)["rows"]] == ["The house is blue.", "The report has 3 pages."]
    stale = client.post(f"{url}/rows", json={"act": "clear", "rows": [{"position": 0, "version": 1}]}).json()
    assert (stale["rows"], stale["left"][0]["position"]) == ([], 0)


# Where drafts come from


def test_rows_say_where_their_drafts_come_from(client: TestClient) -> None:
    """A second document of a project: between the same neighbours, elsewhere, like an approved one, repeated, new."""
    first = upload(client, "a.txt", "Thank you.\n\nThe committee has adopted the report.\n\nWe agree.\n")
    for position, target in enumerate(("Danke.", "Der Ausschuss hat den Bericht angenommen.", "Einverstanden.")):
        put(client, first, position, target, "confirmed")
    project = first.rpartition("/documents/")[0]
    text = (
        "Thank you.\n\nThe committee has adopted the report.\n\nWe agree.\n\nThe house is blue.\n\nWe agree.\n\n"
        "The committee has adopted the budget.\n\nThe house is blue.\n\nThe committee has not adopted the report.\n"
    )
    added = client.post(f"{project}/documents", data={"text": text, "name": "b.txt"}).json()
    url = f"{project}/documents/{added['id']}"
    end = time.monotonic() + 120
    while rows_of(client, url)[7]["origin"] != "fuzzy":
        assert time.monotonic() < end
        time.sleep(0.05)
    rows = rows_of(client, url)
    origins = [(row["origin"], row["match"]) for row in rows]
    assert origins[:3] == [("context", 100), ("context", 100), ("exact", 100)]  # something else follows the third
    assert origins[3:5] == [("machine", None), ("exact", 100)]
    assert origins[5] == ("repaired", 85)
    assert rows[5]["target"] == "Der Ausschuss hat den Haushalt angenommen."  # the approved one, with one word anew
    assert rows[5]["matched_source"] == "The committee has adopted the report."
    assert origins[6] == ("repetition", None)
    assert origins[7] == ("fuzzy", 87)  # of a word more it is not told where it belongs: the model's own draft
    assert put(client, url, 5, "Der Haushalt.", "edited")["match"] == 85  # it still comes from there


# Statistics


def test_statistics_add_up_by_match_state_day_and_distance(client: TestClient) -> None:
    first = upload(client, "=a.txt", "The committee has adopted the report.\n\nWe agree.\n\nWe agree.\n")
    put(client, first, 0, "Der Ausschuss hat den Bericht angenommen.", "confirmed")
    project = first.rpartition("/documents/")[0]
    added = client.post(f"{project}/documents", data={"text": "The committee has adopted the budget.", "name": "b.txt"})
    second = f"{project}/documents/{added.json()['id']}"
    end = time.monotonic() + 120
    while rows_of(client, second)[0]["origin"] != "repaired":
        assert time.monotonic() < end
        time.sleep(0.05)
    draft = rows_of(client, first)[1]["target"]
    put(client, first, 1, f"{draft} Ja", "reviewed")
    of_first = client.get(f"{first}/statistics").json()
    assert of_first["total"] == {"rows": 3, "words": 10, "characters": 55}
    assert {name: one["words"] for name, one in of_first["classes"].items() if one["rows"]} == {
        "new": 8,
        "repetition": 2,
    }
    assert {name: one["words"] for name, one in of_first["states"].items() if one["rows"]} == {
        "draft": 2,
        "confirmed": 6,
        "reviewed": 2,
    }
    assert of_first["today"] == {"rows": 2, "words": 8, "characters": 46}
    assert of_first["distance"]["rows"] == 2
    assert of_first["distance"]["changed"] >= 1
    whole = client.get(f"{project}/statistics").json()
    assert whole["classes"]["85-94 %"] == {"rows": 1, "words": 6, "characters": 37}
    assert whole["total"]["words"] == sum(one["total"]["words"] for one in whole["documents"]) == 16
    for kind in ("classes", "states"):
        assert sum(one["words"] for one in whole[kind].values()) == 16
    lines = client.get(f"{project}/statistics", params={"format": "csv"}).text.splitlines()
    assert "'=a.txt,class,repetition,1,2,9" in lines
    assert "b.txt,state,draft,1,6,37" in lines


def test_the_distance_is_from_the_last_draft(store: Store) -> None:
    document = document_of(store, "Das ist gut.", "Eins.")
    row = store.segment(document, 0)
    store.translate(document, 0, "Das ist sehr gut.", row)
    write(store, document, 0, "Dies ist sehr gut.", "edited")
    write(store, document, 0, "Dies ist sehr gut!", "confirmed")
    write(store, document, 1, "Eins.", "confirmed")
    figures = document_statistics(store, document)
    assert (figures.distance.rows, figures.distance.changed, figures.distance.words) == (2, 2, 7)
    assert figures.distance.unchanged_rows == 1
    tomorrow = document_statistics(store, document, time.time() + 86400)
    assert (figures.today.rows, tomorrow.today.rows) == (2, 0)


# Tags and placeholders


def test_placeholders_and_formatting_have_their_places(client: TestClient) -> None:
    url = upload(client, "a.html", "<p>The <b>red</b> house has {count} rooms &amp; %s.</p><p><i>Thank you.</i></p>")
    source = rows_of(client, url)[0]["source"]
    marks = client.get(f"{url}/tags").json()["rows"]
    assert set(marks) == {"0"}  # what is around a whole sentence is nobody's choice
    found = [(source[mark["start"] : mark["end"]], mark["kind"], mark["automatic"]) for mark in marks["0"]]
    assert ("red", "format", True) in found
    assert next(one for one in found if one[1] == "placeholder") == ("{count}", "placeholder", False)
    assert "%s" in [text for text, *_ in found]
    target = "Das rote Haus hat {count} Zimmer."
    answer = client.post(f"{url}/segments/0/tags", json={"target": target}).json()
    there = [(target[mark["start"] : mark["end"]], mark["kind"], mark["automatic"]) for mark in answer["target"]]
    assert there == [("rote", "format", True), ("{count}", "placeholder", False)]
    assert answer["missing"][-1] == "%s"
    written = client.get(f"{url}/segments/0/edits").json()
    client.post(f"{url}/segments/0/tags", json={"target": "nothing"})
    assert client.get(f"{url}/segments/0/edits").json() == written  # nothing is saved
    put(client, url, 0, target, "confirmed")
    assert "<b>rote</b>" in client.get(f"{url}/export/file").text


def test_marks_of_a_translation_are_each_placeholder_once() -> None:
    marks = [InlineMark(0, 2, "placeholder", "%s"), InlineMark(3, 5, "placeholder", "%s")]
    assert [mark.start for mark in target_marks(marks, "%s und %s oder %s", None)] == [0, 7]
    assert missing_placeholders(marks, "nur %s") == ["%s"]
    assert missing_placeholders(marks, "") == ["%s", "%s"]
