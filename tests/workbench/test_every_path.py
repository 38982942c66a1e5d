"""Any text on every path of the server: what is carried is exactly once in a machine's draft, and exports open.

The machine in the place of the model moves all words; what the server does before and after it is all there."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

import docx
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from test_any_text import deepl, libre, v1

from tests.patience import PATIENCE
from weitblick.documents.document import Document
from weitblick.files.masked_document import align_by_places
from weitblick.text.carried import Alphabet, sentence_spans
from weitblick.text.units import is_locked
from weitblick.translation.results import TranslatedDocument, Translation
from weitblick.translation.translator import Translator
from weitblick.workbench.engine import Engine

PARTS = st.sampled_from(
    ["😀", "👨‍👩‍👧", "1️⃣", "H₂O", "x⁵", "∑", "π", "→", "{name}", "%s", "$1,200", "14:30", "https://example.com/a?b=1",
     "me@example.org", "/usr/bin", "`a b`", "snake_case", "The house", "is blue.", "привет", "日本", "&", "—", "?"]
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.one_of(PARTS, st.text(max_size=4)), min_size=1, max_size=7).map(" ".join),
    st.lists(PARTS, min_size=1, max_size=4).map("".join),
    st.text(min_size=1, max_size=20),
).map(lambda text: text.encode("utf-8", "replace").decode())
MANY = settings(max_examples=40, deadline=None)


def moved(source: str) -> str:
    return " ".join(reversed(source.split()))


def translated(document: Document) -> TranslatedDocument:
    found = [
        () if is_locked(one) or not one.source.strip() else (Translation(moved(one.source), -1.0, 1),)
        for one in document.sentences
    ]
    return TranslatedDocument.of(document, found)


@pytest.fixture
def moving(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """A server whose model puts words in reverse order."""

    def window(self: Translator, documents: Sequence[Document], *_: object) -> list[TranslatedDocument]:
        return [translated(document) for document in documents]

    def steps(self: Engine, document: Document, *_: object) -> Iterator[Any]:
        yield dict(enumerate(translated(document).translations))

    monkeypatch.setattr(Translator, "translate_window", window)
    monkeypatch.setattr(Translator, "align", lambda self, pairs: align_by_places(pairs))
    monkeypatch.setattr(Engine, "document_steps", steps)
    return client


def check(source: str, target: str, alphabet: Alphabet) -> None:
    """Each carried thing of a sentence stands in its draft as often as in the sentence."""
    spans = Counter(source[start:end] for start, end in sentence_spans(source, alphabet))
    for thing, count in spans.items():
        within = sum(other.count(thing) * often for other, often in spans.items() if other != thing)
        if source.count(thing) == count + within:  # else it also stands in what is text
            assert target.count(thing) == count + within, (thing, source, target)


@MANY
@given(text=TEXTS)
def test_the_api_of_whole_documents(moving: TestClient, translator: Translator, text: str) -> None:
    alphabet = Alphabet(translator.pipeline)
    for document in ({"sentences": [text]}, {"text": text}):
        if not text.strip():
            continue
        for sentence in v1(moving, document)["sentences"]:
            check(sentence["source"], sentence["target"], alphabet)


@MANY
@given(text=TEXTS)
def test_the_apis_of_others(moving: TestClient, translator: Translator, text: str) -> None:
    """Sentence by sentence, as the first API splits them."""
    if not text.strip():
        return
    alphabet = Alphabet(translator.pipeline)
    sources = [sentence["source"] for sentence in v1(moving, {"text": text})["sentences"]]
    carried = Counter(source[s:e] for source in sources for s, e in sentence_spans(source, alphabet))
    for found in (libre(moving, text), deepl(moving, text)):
        for thing, count in carried.items():
            if text.count(thing) == count and not any(thing in other for other in carried if other != thing):
                assert found.count(thing) == count, (thing, text, found)


def word_file(text: str) -> bytes:
    made, out = docx.Document(), io.BytesIO()
    made.add_paragraph(text)
    made.save(out)
    return out.getvalue()


def rows_of(client: TestClient, name: str, content: bytes) -> tuple[str, list[dict[str, Any]]]:
    """The address of a document at the workbench, and its rows, when all have a draft."""
    project = client.post("/v1/projects", json={"name": "Texts"}).json()["id"]
    answer = client.post(f"/v1/projects/{project}/documents", files={"file": (name, content)})
    if answer.status_code != 200:
        assert answer.status_code == 400, answer.text
        return "", []
    url = f"/v1/projects/{project}/documents/{answer.json()['id']}"
    end = time.monotonic() + PATIENCE
    rows = client.get(url).json()["rows"]
    while any(row["state"] == "empty" for row in rows):
        assert time.monotonic() < end, rows
        time.sleep(0.01)
        rows = client.get(url).json()["rows"]
    return url, rows


@MANY
@given(text=TEXTS)
def test_the_workbench_and_its_exports(moving: TestClient, translator: Translator, text: str) -> None:
    alphabet = Alphabet(translator.pipeline)
    files = {"a.txt": text.encode()}
    if all(character.isprintable() for character in text):  # else the library that makes the file refuses
        files["a.docx"] = word_file(text)
    for name, content in files.items():
        url, rows = rows_of(moving, name, content)
        for row in rows:
            check(row["source"], row["target"], alphabet)
        if not rows:
            continue
        for kind in ("file", "xliff", "jsonl"):
            answer = moving.get(f"{url}/export/{kind}")
            if answer.status_code != 200:
                assert answer.status_code in (400, 409), answer.text
                assert "U+" in answer.text, answer.text  # a character that the format cannot hold, with its place
            elif kind == "xliff":
                ElementTree.fromstring(answer.content)
            elif kind == "jsonl":
                [json.loads(line) for line in answer.text.split("\n") if line]
            elif name == "a.docx":
                docx.Document(io.BytesIO(answer.content))
            else:
                answer.content.decode()
