"""Any text through the APIs and the workbench: what is carried comes back, what a format cannot hold is refused."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

LINE = "Visit https://example.com/a?b=1&c=2 and say {name} to %s at 14:30. I like this house 😀."
CARRIED = ("https://example.com/a?b=1&c=2", "{name}", "%s", "14:30", "😀")


def libre(client: TestClient, text: str) -> str:
    answer = client.post("/translate", json={"q": text, "source": "en", "target": "de"})
    return str(answer.json()["translatedText"])


def deepl(client: TestClient, text: str) -> str:
    answer = client.post("/v2/translate", json={"text": [text], "target_lang": "DE"})
    return str(answer.json()["translations"][0]["text"])


def v1_text(client: TestClient, text: str) -> str:
    sentences = v1(client, {"text": text})["sentences"]
    return " ".join(sentence["target"] for sentence in sentences)


def v1_sentences(client: TestClient, text: str) -> str:
    (sentence,) = v1(client, {"sentences": [text]})["sentences"]
    assert sentence["source"] == text
    return str(sentence["target"])


def v1(client: TestClient, document: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/v1/translate", json={"documents": [document]})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["documents"][0]
    return found


@pytest.mark.parametrize("translate", [libre, deepl, v1_text, v1_sentences])
def test_what_is_carried_comes_back_in_every_dialect(client: TestClient, translate: Any) -> None:
    found = translate(client, LINE)
    assert [found.count(thing) for thing in CARRIED] == [1] * len(CARRIED), found


@pytest.mark.parametrize("translate", [libre, deepl, v1_text])
@pytest.mark.parametrize("text", ["😀😀", "∑ ≥ 5", "https://example.com", "\x0b"])
def test_a_text_that_is_no_language_stays_as_it_is(client: TestClient, translate: Any, text: str) -> None:
    found = translate(client, text)
    assert found == ("" if translate is v1_text else text)


def test_v1_keeps_approved_targets_and_reports_what_it_put_back(client: TestClient) -> None:
    rows = [{"source": "See {name} now.", "target": "Siehe — {name}!", "status": "locked"}, "The report is 😀 long."]
    found = v1(client, {"sentences": rows})
    assert found["sentences"][0]["target"] == "Siehe — {name}!"
    assert "😀" in found["sentences"][1]["target"]
    assert isinstance(found["notes"], list)


def uploaded(client: TestClient, text: str) -> str:
    project = client.post("/v1/projects", json={"name": "Texts"}).json()["id"]
    added = client.post(f"/v1/projects/{project}/documents", files={"file": ("a.txt", text.encode())})
    return f"/v1/projects/{project}/documents/{added.json()['id']}"


@pytest.mark.parametrize("kind", ["tmx", "xliff"])
def test_an_export_refuses_what_it_cannot_hold_and_names_the_row(client: TestClient, kind: str) -> None:
    url = uploaded(client, "The report is long.\n")
    version = client.get(url).json()["rows"][0]["version"]
    body = {"target": "Der\x0bBericht.", "state": "confirmed", "version": version}
    assert client.put(f"{url}/segments/0", json=body).status_code == 200
    answer = client.get(f"{url}/export/{kind}")
    assert answer.status_code == 409
    assert "row 1 has U+000B at character 4" in answer.text
    assert "/tmp" not in answer.text
    assert client.get(f"{url}/export/jsonl").status_code == 200
