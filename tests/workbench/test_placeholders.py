"""Placeholders and tags at the workbench: whole, and as many as there were, whatever happens to a row."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from typing import Any

import docx
import polib
import pytest
from fastapi.testclient import TestClient
from test_workbench import Bench

from weitblick.files.masked_document import mask_pair
from weitblick.text.carried import carried_spans
from weitblick.workbench.placeholders import RowMask

LETTER = (
    "Dear {customer_name}, your report {report_id} is ready.",
    "The committee has sent the report to {customer_name}.",
    "Write to help@example.org or visit https://example.org/report?id=7 for the report.",
    "The report is long.",
    "%(count)d reports have been adopted by %s.",
)
XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" source-language="en" target-language="de" datatype="plaintext"><body>
<trans-unit id="1"><source>The report <ph id="1">{0}</ph> is <g id="2">ready</g>.</source></trans-unit>
<trans-unit id="2"><source>The committee has adopted the report <ph id="1">{1}</ph>.</source></trans-unit>
<trans-unit id="3"><source>The report is long.</source></trans-unit>
</body></file></xliff>
"""


def protected(text: str) -> Counter[str]:
    return Counter(text[start:end] for start, end in carried_spans(text))


def as_docx(texts: Sequence[str] = LETTER) -> bytes:
    letter = docx.Document()
    for text in texts:
        letter.add_paragraph(text)
    held = io.BytesIO()
    letter.save(held)
    return held.getvalue()


def as_po() -> bytes:
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=utf-8"}
    for text in LETTER:
        catalogue.append(polib.POEntry(msgid=text))
    return str(catalogue).encode()


def texts_of(name: str, content: bytes) -> list[str]:
    if name.endswith(".docx"):
        return [paragraph.text for paragraph in docx.Document(io.BytesIO(content)).paragraphs]
    return [entry.msgstr for entry in polib.pofile(content.decode())]


class FileBench(Bench):
    def __init__(self, client: TestClient, name: str, content: bytes, project: str | None = None) -> None:
        self.client = client
        self.project = project or client.post("/v1/projects", json={"name": "Files"}).json()["id"]
        added = client.post(f"/v1/projects/{self.project}/documents", files={"file": (name, content)})
        assert added.status_code == 200, added.text
        self.document = added.json()["id"]
        self.url = f"/v1/projects/{self.project}/documents/{self.document}"

    def exported(self) -> bytes:
        answer = self.client.get(f"{self.url}/export/file")
        assert answer.status_code == 200, answer.text
        return bytes(answer.content)


def whole(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert protected(row["target"]) == protected(row["source"]), row


@pytest.mark.parametrize(("name", "content"), [("letter.docx", as_docx()), ("letter.po", as_po())])
def test_placeholders_are_whole_in_drafts_after_confirming_and_in_the_export(
    client: TestClient, name: str, content: bytes
) -> None:
    bench = FileBench(client, name, content)
    whole(bench.filled())
    bench.put(0, "Sehr geehrte Frau {customer_name}, Ihr Rapport {report_id} liegt vor.")
    bench.settle()
    whole(bench.rows())
    found = texts_of(name, bench.exported())
    assert [protected(text) for text in found] == [protected(text) for text in LETTER]
    assert found[0] == "Sehr geehrte Frau {customer_name}, Ihr Rapport {report_id} liegt vor."


def test_inline_tags_and_placeholders_of_xliff(client: TestClient) -> None:
    bench = FileBench(client, "letter.xlf", XLIFF.encode())
    bench.filled()
    bench.put(2, "Der Rapport ist lang.")
    bench.settle()
    targets = re.findall(r"<target[^>]*>(.*?)</target>", bench.exported().decode(), re.DOTALL)
    assert [sorted(re.findall(r'<(?:ph|g) id="\d">', target)) for target in targets] == [
        ['<g id="2">', '<ph id="1">'],
        ['<ph id="1">'],
        [],
    ]
    assert "{0}" in targets[0]
    assert "{1}" in targets[1]


def test_alternatives_have_the_placeholders_too(client: TestClient) -> None:
    bench = FileBench(client, "letter.docx", as_docx())
    row = bench.filled()[1]
    found = client.get(f"{bench.url}/segments/1/alternatives").json()["alternatives"]
    assert found
    for text in found:
        assert protected(text) == protected(row["source"])


def test_the_model_reads_names_in_place_of_placeholders(client: TestClient) -> None:
    bench = FileBench(client, "letter.docx", as_docx())
    bench.filled()
    bench.put(0, "Hallo {customer_name}, Rapport {report_id} liegt vor.")
    bench.settle()
    workbench = client.app.state.service.workbench  # type: ignore[attr-defined]
    document = workbench.as_document(bench.document, workbench.store.segments(bench.document))
    assert document.sentences[0].target == "Hallo ⟦1⟧, Rapport ⟦2⟧ liegt vor."  # pieces of the model's own
    assert document.sentences[0].source == "Dear ⟦1⟧, your report ⟦2⟧ is ready."
    assert not any("{" in text for text in document.sources)


def test_the_model_reads_names_in_the_memory_where_people_read_the_text(client: TestClient) -> None:
    bench = FileBench(client, "letter.docx", as_docx())
    bench.filled()
    target = "Hallo {customer_name}, Rapport {report_id} liegt vor."
    bench.put(0, target)
    other = FileBench(client, "other.docx", as_docx(), bench.project)
    workbench = client.app.state.service.workbench  # type: ignore[attr-defined]
    for document in (bench.document, other.document):
        ((pair,),) = workbench.memory_of(document).candidates(["Dear ⟦1⟧"], 8)
        assert (pair.source, pair.target) == (
            "Dear ⟦1⟧, your report ⟦2⟧ is ready.",
            "Hallo ⟦1⟧, Rapport ⟦2⟧ liegt vor.",
        )
    other.filled()
    (match,) = client.get(f"{other.url}/segments/0/alternatives").json()["matches"]
    assert (match["source"], match["target"]) == (LETTER[0], target)
    tmx = ElementTree.fromstring(client.get(f"/v1/projects/{bench.project}/export/tmx").content)
    assert [seg.text for seg in tmx.iter("seg")] == [LETTER[0], target]


def test_names_of_pairs_without_a_file() -> None:
    pair = mask_pair("Write to ⟦1⟧ or a@b.org — NOW.", "Schreiben Sie a@b.org oder ⟦1⟧.", "en")
    assert (pair.source, pair.target) == ("Write to K1 or K2 – NOW.", "Schreiben Sie K2 oder K1.")
    assert pair.names == {"K1": "⟦1⟧", "K2": "a@b.org"}


def test_an_explanation_says_what_names_stand_for(client: TestClient) -> None:
    texts = (
        "Dear {customer_name}, the quotas of {report_id} are ready.",
        "The committee has adopted the quotas of {customer_name}.",
    )
    bench = FileBench(client, "letter.docx", as_docx(texts))
    bench.filled()
    target = "Sehr geehrte Frau {customer_name}, die Fangquoten von {report_id} sind fertig."
    bench.put(0, target)
    bench.settle()
    found = client.get(f"{bench.url}/segments/1/explanation").json()
    assert not re.search(r"\b[KG]\d\b|⟦", json.dumps(found, ensure_ascii=False))
    sentence = found["sentences"][1]
    assert "{customer_name}" in "".join(sentence["source"]["text"])
    assert "{customer_name}" in "".join(sentence["target"]["text"])
    (fetched,) = sentence["fetched"]
    assert (fetched["text"], fetched["source"], fetched["target"]) == ("Fangquoten", texts[0], target)
    assert "{report_id}" in "".join(found["sentences"][0]["source"]["text"])


def test_a_row_in_which_context_has_nothing_to_decide_is_explained(client: TestClient) -> None:
    bench = FileBench(client, "thanks.txt", b"Thank you. We must act.\n")
    bench.filled()
    for row in (0, 1):
        answer = client.get(f"{bench.url}/segments/{row}/explanation")
        assert answer.status_code == 200
        assert answer.json()["sentences"][row]["target"]["text"]


def test_rows_that_the_file_no_longer_gives_are_masked_one_by_one() -> None:
    mask = RowMask(None, ["Hello {name}."], "en")
    assert mask.source(0) == "Hello K1."
    assert mask.text(0, "Hallo {name}.") == "Hallo K1."
    assert mask.unmask({0: "Hallo K1."}, lambda pairs: [], lambda document: document) == {0: "Hallo {name}."}
