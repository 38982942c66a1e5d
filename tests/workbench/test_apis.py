"""The three APIs: what they answer, and how they refuse."""

from __future__ import annotations

import io
import json
import re
import time
from typing import Any

import openpyxl
import pytest
from fastapi.testclient import TestClient
from pptx import Presentation

from weitblick.files.masked_document import align_by_places
from weitblick.workbench.texts import XmlTexts

REPORT = "The report is ready."
STRATEGY, BALANCED = "We welcome this strategy.", "It is balanced."  # Sie ist ausgewogen; without context: Es


def translate(client: TestClient, **body: Any) -> Any:
    answer = client.post("/v1/translate", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["documents"]


# v1


def test_documents_keep_their_ids_and_locked_sentences(client: TestClient) -> None:
    first, second = translate(
        client,
        documents=[
            {
                "id": "a",
                "sentences": [
                    {"source": STRATEGY, "target": "Die Strategie ist willkommen.", "status": "locked", "id": "s1"},
                    {"source": BALANCED, "target": "Es ist ausgewogen.", "status": "draft"},
                    "",
                ],
            },
            {"id": "b", "text": "The directive is new. It is good.\n\nThank you."},
        ],
        n_best=2,
    )
    assert (first["id"], second["id"]) == ("a", "b")
    locked, draft, empty = first["sentences"]
    assert (locked["target"], locked["status"], locked["id"]) == ("Die Strategie ist willkommen.", "locked", "s1")
    assert draft["target"].startswith("Sie ")
    assert 0 < draft["confidence"] <= 1
    assert draft["alternatives"]
    assert empty["target"] == ""
    assert len(second["sentences"]) == 3


def test_a_document_without_sentences_is_one(client: TestClient) -> None:
    answer = client.post("/v1/translate", json={"documents": [{"id": "1", "sentences": []}]})
    assert answer.status_code == 200
    assert answer.json()["documents"][0]["sentences"] == []


def test_context_can_be_left_out(client: TestClient) -> None:
    document = {"sentences": [STRATEGY, BALANCED]}
    (together,), (apart,) = (translate(client, documents=[document], context=wish) for wish in (True, False))
    assert together["sentences"][1]["target"] != apart["sentences"][1]["target"]


def test_explanations_come_along(client: TestClient) -> None:
    (document,) = translate(client, documents=[{"sentences": [REPORT, "It is long."]}], explain=True)
    assert document["explanation"]["sentences"][0]["target"]["text"]


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        "null",
        '{"documents": []}',
        '{"documents": [{"id": "a"}]}',
        '{"documents": [{"sentences": ["a"], "text": "b"}]}',
        '{"documents": [{"sentences": [{"source": "a", "status": "locked"}]}]}',
        '{"documents": [{"sentences": ["a"]}], "beam": 0}',
        '{"documents": [{"sentences": ["a"]}], "n_best": 9}',
        '{"documents": [{"sentences": ["a"]}], "unknown": 1}',
        '{"documents": [{"sentences": [1]}]}',
        '{"documents": [{"sentences": ["a"]}], "memory": "nowhere"}',
        '{"documents": [{"sentences": ["a"]}], "target_language": "fr"}',
        "[" * 5000,
    ],
)
def test_wrong_bodies_are_refused_in_one_line(client: TestClient, body: str) -> None:
    answer = client.post("/v1/translate", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 404, 422)
    assert "\n" not in answer.json()["error"]


def test_limits(client: TestClient) -> None:
    too_many = client.post("/v1/translate", json={"documents": [{"sentences": ["word " * 5000]}]})
    assert too_many.status_code == 413
    huge = client.post("/translate", json={"q": "x" * 2**21, "source": "en", "target": "de"})
    assert huge.status_code == 413

    def chunks() -> Any:  # without a declared length
        for _ in range(40):
            yield b"x" * 2**16

    assert client.post("/translate", content=chunks()).status_code == 413


def test_files_are_uploaded_and_fetched(client: TestClient) -> None:
    upload = client.post("/v1/documents", files={"file": ("../../etc/report.txt", f"{REPORT} It is long.\n")}).json()
    assert upload["name"] == "report.txt"
    while (status := client.get(f"/v1/documents/{upload['id']}").json())["status"] in ("queued", "translating"):
        time.sleep(0.05)
    assert status["finished"] == status["sentences"] == 2
    result = client.get(f"/v1/documents/{upload['id']}/result")
    assert "Bericht" in result.text
    assert "report.de.txt" in result.headers["content-disposition"]
    assert client.delete(f"/v1/documents/{upload['id']}").status_code == 204
    assert client.get(f"/v1/documents/{upload['id']}").status_code == 404


def test_slides_and_sheets_come_back_translated(client: TestClient) -> None:
    show, work = Presentation(), openpyxl.Workbook()
    show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = REPORT
    work.active["A1"], work.active["A2"] = REPORT, 7
    for name, made in (("a.pptx", show), ("a.xlsx", work)):
        made.save(file := io.BytesIO())
        upload = client.post("/v1/documents", files={"file": (name, file.getvalue())}).json()
        while client.get(f"/v1/documents/{upload['id']}").json()["status"] in ("queued", "translating"):
            time.sleep(0.05)
        result = client.get(f"/v1/documents/{upload['id']}/result")
        assert f"a.de.{name[2:]}" in result.headers["content-disposition"]
        back = io.BytesIO(result.content)
        if name == "a.pptx":
            assert "Bericht" in Presentation(back).slides[0].shapes.title.text
        else:
            cells = openpyxl.load_workbook(back).active
            assert "Bericht" in cells["A1"].value
            assert cells["A2"].value == 7


@pytest.mark.parametrize(("name", "content"), [("a.docx", b"no zip at all"), ("a.txt", b"\xff\xfe\xfa" * 9)])
def test_files_that_cannot_be_read_are_refused(client: TestClient, name: str, content: bytes) -> None:
    answer = client.post("/v1/documents", files={"file": (name, content)})
    assert answer.status_code == 400
    assert "/tmp" not in answer.json()["error"]
    assert client.post("/v1/documents").status_code == 400


# LibreTranslate


def libre(client: TestClient, **values: Any) -> Any:
    return client.post("/translate", json={"source": "en", "target": "de", **values}).json()


def test_parameters_come_in_any_way(client: TestClient) -> None:
    values = {"q": REPORT, "source": "en", "target": "de"}
    answers = [
        client.post("/translate", json=values),
        client.post("/translate", data=values),
        client.post("/translate", params=values),
        client.post("/translate", files={name: (None, value) for name, value in values.items()}),
    ]
    assert len({answer.json()["translatedText"] for answer in answers}) == 1


def test_an_array_is_a_document(client: TestClient) -> None:
    together = libre(client, q=[STRATEGY, BALANCED])["translatedText"]
    apart = libre(client, q=[STRATEGY, BALANCED], context=False)["translatedText"]
    assert together[1].startswith("Sie ")
    assert apart[1] == libre(client, q=BALANCED)["translatedText"] != together[1]


def test_white_space_and_lines_stay(client: TestClient) -> None:
    text = f"  {REPORT}\n\n\tThank you.  It is long. \r\n"
    translated = libre(client, q=text)["translatedText"]
    assert translated.startswith("  ")
    assert translated.endswith(" \r\n")
    assert "\n\n\t" in translated


def test_tags_of_html_stay(client: TestClient) -> None:
    translated = libre(client, q='<p class="a">The report &amp; the directive.</p><hr><p>Thank you.</p>', format="html")
    text = translated["translatedText"]
    assert text.startswith('<p class="a">')
    assert "</p><hr><p>" in text
    assert libre(client, q="x", format="pdf")["error"]


def test_inline_tags_do_not_cut_sentences(client: TestClient) -> None:
    """What stands inside a paragraph is one sentence; the tag goes where its word went."""
    marked = libre(client, q="<p>The <b>report</b> is ready.</p>", format="html")["translatedText"]
    assert re.sub("<[^>]*>", "", marked) == libre(client, q=REPORT)["translatedText"]
    assert re.search("<b>[^<]*Bericht[^<]*</b>", marked)
    texts = libre(client, q=["We welcome <b>this strategy</b>.", "It is <i>balanced</i>."], format="html")
    assert texts["translatedText"][1].startswith("Sie ")


def test_alternatives_and_detection(client: TestClient) -> None:
    answer = client.post("/translate", json={"q": REPORT, "source": "auto", "target": "de", "alternatives": 2}).json()
    assert answer["detectedLanguage"]["language"] == "en"
    assert 1 <= len(answer["alternatives"]) <= 2
    assert answer["translatedText"] not in answer["alternatives"]
    same = client.post("/translate", json={"q": REPORT, "source": "en", "target": "en"}).json()
    assert same["translatedText"] == REPORT


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"q": "a", "source": "en"},
        {"q": 1, "target": "de"},
        {"q": ["a", None], "target": "de"},
        {"q": "a", "source": "fr", "target": "de"},
        {"q": "a", "source": "en", "target": "xx"},
        {"q": "a", "target": ["de"]},
        {"q": "a", "target": "de", "alternatives": "many"},
    ],
)
def test_errors_have_libretranslates_shape(client: TestClient, values: dict[str, Any]) -> None:
    answer = client.post("/translate", json=values)
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)


def test_surrogates_are_refused(client: TestClient) -> None:
    body = json.dumps({"q": "\ud800", "source": "en", "target": "de"})
    assert client.post("/translate", content=body).status_code == 400


def test_suggestions_land_in_the_memory(client: TestClient) -> None:
    values = {"q": "Mind the gap.", "s": "Achtung, Spalt.", "source": "en", "target": "de"}
    assert client.post("/suggest", data=values).json() == {"success": True}
    (project,) = client.get("/v1/projects").json()
    (pair,) = client.get(f"/v1/projects/{project['id']}/pairs").json()
    assert (pair["source"], pair["target"], pair["kind"]) == ("Mind the gap.", "Achtung, Spalt.", "suggestion")
    text = {"source": "en", "target": "de", "q": ["The report is ready. Mind the gap."]}
    (translated,) = client.post("/translate", json=text).json()["translatedText"]
    assert translated.endswith(" Achtung, Spalt.")
    assert client.post("/suggest", data={**values, "s": " "}).status_code == 400


def test_pairs_of_control_characters_harm_nobody(client: TestClient) -> None:
    """They are no text: nobody can suggest them, and where they are approved there is nothing to point at."""
    values = {"q": "The report is ready.", "s": "\x00", "source": "en", "target": "de"}
    assert client.post("/suggest", json=values).status_code == 400
    memory = [{"source": "The report is ready.", "target": "\x00"}]
    answer = client.post("/v1/translate", json={"documents": [{"text": "The report is long."}], "memory": memory})
    assert answer.status_code in (200, 400)
    project = client.post("/v1/projects", json={"name": "x"}).json()["id"]
    text = "The report is ready.\nThe report is long."
    document = client.post(f"/v1/projects/{project}/documents", data={"text": text}).json()["id"]
    url = f"/v1/projects/{project}/documents/{document}"
    client.put(f"{url}/segments/0", json={"target": "\x00", "state": "confirmed"})
    assert client.get(f"{url}/segments/1/alternatives").status_code == 200


def test_files_in_libretranslates_way(client: TestClient) -> None:
    answer = client.post(
        "/translate_file", files={"file": ("a.txt", REPORT)}, data={"source": "en", "target": "de"}
    ).json()
    assert "Bericht" in client.get(answer["translatedFileUrl"]).text
    assert client.get("/frontend/settings").json()["filesTranslation"]


# DeepL


def test_deepls_get_may_have_a_form_body(client: TestClient) -> None:
    answer = client.request("GET", "/v2/languages", data={"type": "target"})
    assert answer.json()[0]["language"] == "DE"


@pytest.mark.parametrize(
    ("formality", "said"), [("more", "Sind Sie müde?"), ("prefer_less", "Bist du müde?"), ("less", "Bist du müde?")]
)
def test_deepl_formality(client: TestClient, formality: str, said: str) -> None:
    body = {"text": ["Are you tired?"], "target_lang": "DE", "formality": formality}
    answer = client.post("/v2/translate", json=body).json()
    assert answer["translations"][0]["text"] == said


def test_formality_that_nobody_knows(client: TestClient) -> None:
    answer = client.post("/v2/translate", json={"text": ["Go."], "target_lang": "DE", "formality": "rude"})
    assert answer.status_code == 400
    assert "rude" in answer.text
    body = {"documents": [{"sentences": [{"source": "Go."}]}], "formality": "rude"}
    assert client.post("/v1/translate", json=body).status_code == 422


@pytest.mark.parametrize("path", ["/v2/translate", "/v2/document", "/v2/document/x", "/v2/nothing"])
def test_errors_have_deepls_shape(client: TestClient, path: str) -> None:
    answer = client.post(path, json={})
    assert answer.status_code in (400, 404)
    assert isinstance(answer.json()["message"], str)


# The server


def test_health_metrics_and_docs(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    libre(client, q=REPORT)
    client.get("/no/such/thing")
    metrics = client.get("/metrics").text
    assert 'weitblick_requests_total{endpoint="/translate",status="200"} 1.0' in metrics
    assert "no/such/thing" not in metrics
    assert "weitblick_sentences_total 1.0" in metrics
    assert "http" not in client.get("/docs").text.replace("http-equiv", "")
    assert client.get("/openapi.json").json()["paths"]["/v1/translate"]


def test_an_error_of_ours_shows_no_trace(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(client.app.state.service.engine.translator, "translate_window", broken)  # type: ignore[attr-defined]
    answer = client.post("/translate", json={"q": "a", "source": "en", "target": "de"})
    assert answer.status_code == 500
    assert "secret" not in answer.text


MARKED = [
    ("The <x>report</x> is <ph id='1'/> ready.", ["The report is ready."]),
    ("<doc><t>The report</t><p>It <g n='1'>is</g> long. New.</p></doc>", ["The report", "It is long.", "New."]),
    ("<a><b>One.</b><b>Two.</b></a>", ["One.", "Two."]),
    ("See <Name translate='no'>Mr Smith</Name> now.", None),
    ("The <b>report is ready.", None),
    ("5 < 6 & <!-- note --> more.", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentences"), MARKED)
def test_xml_tags_within_sentences_do_not_cut_them(text: str, sentences: list[str] | None) -> None:
    marked = XmlTexts([text], "en")
    sources = [" ".join(source.split()) for document in marked.documents() for source in document.sources]
    if sentences is not None:
        assert sources == sentences
    unchanged = [document.sources for document in marked.documents()]
    assert marked.join(unchanged, align_by_places, lambda lost: lost) == [text]


def test_deepls_xml(client: TestClient) -> None:
    text = "<doc>The <x id='7'>report</x> is ready.</doc>"
    answer = client.post("/v2/translate", json={"text": [text], "target_lang": "DE", "tag_handling": "xml"}).json()
    translated = answer["translations"][0]["text"]
    assert re.fullmatch(r"<doc>.*<x id='7'>.*</x>.*</doc>", translated)
    assert "Bericht" in translated


def test_every_endpoint_says_that_it_may_refuse(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert all("4XX" in operation["responses"] for methods in paths.values() for operation in methods.values())
