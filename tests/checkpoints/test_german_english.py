"""German to English, from a made model to the workbench: what knows German as a target language is silent there."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from test_trained import run

from tests.workbench.test_workbench import Bench
from weitblick.translation.translator import Translator
from weitblick.workbench.app import create_app

TEXT = """Haben Sie den Bericht gelesen? Er hat 1.204 Seiten und kostet 3,5 Euro.

Am 31.12.2024 trat der Ausschuss zusammen, und du warst dort. Der Ausschuss liest den Bericht.

Haben Sie den Bericht gelesen?
"""
RIGHT = [
    "Have you read the report?",
    "It has 1,204 pages and costs 3.5 euros.",
    "On 31 December 2024 the committee met, and you were there.",
    "The committee reads the report.",
    "Have you read the report?",
]
SMALL = (
    *("text.merges=300", "model.dimension=32", "model.feed_forward=48", "model.encoder_layers=1"),
    *("model.decoder_layers=1", "sentence_stage.updates=40", "sentence_stage.batch_tokens=400"),
    *("sentence_stage.validate_every=40", "threads=1"),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny recipe the other way, to CTranslate2 and back: it comes with a pointer to approved translations."""
    folder = tmp_path_factory.mktemp("german-english")
    corpus = folder / "corpus"
    run("data", "discourse", corpus, "--documents", "40")
    sides = [f"data.{part}=[{corpus / part}.de,{corpus / part}.en]" for part in ("train", "dev")]
    languages = ["text.source_language=de", "text.target_language=en"]
    run("train", "recipes/tiny/sentence.yaml", *sides, *languages, f"output={folder / 'run'}", *SMALL)
    run("export", "ctranslate2", "-m", folder / "run" / "best", "-o", folder / "exported")
    run("import", folder / "exported", "-o", folder / "model")
    return folder / "model"


@pytest.fixture
def client(model: Path, tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(Translator.load(model, device="cpu"), tmp_path / "data")
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def test_a_document_is_opened_confirmed_and_exported(client: TestClient) -> None:
    pair = client.get("/v1/languages").json()
    assert [pair[side]["code"] for side in ("source", "target")] == ["de", "en"]
    bench = Bench(client, TEXT)
    rows = bench.filled()
    assert len(rows) == len(RIGHT)
    assert all(row["target"] for row in rows)
    for position, target in enumerate(RIGHT):
        answer = bench.put(position, target, ask=True).json()
        assert (answer["state"], answer["findings"]) == ("confirmed", [])
        bench.settle()
    assert [row["target"] for row in bench.rows()] == RIGHT
    for path in ("findings", "consistency", "corrections"):
        assert client.get(f"{bench.url}/{path}").status_code == 200
    assert client.get(f"{bench.url}/findings").json() == []
    assert client.get(f"{bench.url}/export/file").text.split("\n\n")[1].startswith(RIGHT[2])
    tmx = ElementTree.fromstring(client.get(f"{bench.url}/export/tmx").content)
    header = tmx.find("header")
    assert header is not None
    assert header.get("srclang") == "de"
    pairs = [[seg.text for seg in unit.iter("seg")] for unit in tmx.iter("tu")]
    assert ["Der Ausschuss liest den Bericht.", RIGHT[3]] in pairs


def test_numbers_are_read_in_their_languages(client: TestClient) -> None:
    """1.204 is English for a little more than one; a check that were off would not say so."""
    bench = Bench(client, TEXT)
    bench.filled()

    def found(position: int, target: str) -> list[str]:
        body = {"position": position, "target": target}
        return [one["rule"] for one in client.post(f"{bench.url}/findings", json=body).json()]

    assert found(1, "It has 1,204 pages and costs 3.50 euros.") == []
    assert found(1, "It has 1,240 pages and costs 3.5 euros.") == ["numbers"]
    assert found(2, "On 12/31/2024 the committee met, and you were there.") == []
    assert found(2, "On 30 December 2024 the committee met, and you were there.") == ["dates"]


def test_there_are_no_forms_of_address(client: TestClient) -> None:
    texts = {"documents": [{"text": "Haben Sie den Bericht gelesen?"}]}
    assert client.post("/v1/translate", json=texts).status_code == 200
    asked = client.post("/v1/translate", json={**texts, "formality": "formal"})
    assert asked.status_code == 400
    assert "knows no forms of address" in asked.text
    (english,) = client.get("/v2/languages", params={"type": "target"}).json()
    assert (english["language"], english["supports_formality"]) == ("EN", False)


def test_a_term_is_placed_without_german_articles(client: TestClient) -> None:
    bench = Bench(client, TEXT)
    rows = bench.filled()
    term = {"source": "Bericht", "target": "dossier"}
    assert client.post(f"{bench.url}/terms", json=term).status_code == 200
    bench.settle()
    for before, after in zip(rows, bench.rows(), strict=True):
        new = set(after["target"].lower().split()) - set(before["target"].lower().split())
        assert not new & {"der", "die", "das", "den", "dem", "des", "ein", "eine", "sie", "du"}


def test_nothing_decides_between_german_words(model: Path) -> None:
    loaded = Translator.load(model, device="cpu")
    assert loaded.model.context is None
    assert loaded.model.pointer is not None
    found = loaded.translate(["Der Ausschuss liest den Bericht.", "Er ist lang."])
    assert len(found.targets) == 2
