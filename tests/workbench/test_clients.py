"""The real clients of LibreTranslate and DeepL, against a server on this machine."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

libretranslatepy = pytest.importorskip("libretranslatepy")
deep_translator = pytest.importorskip("deep_translator")
deepl = pytest.importorskip("deepl")

REPORT = "The report is ready."


@pytest.fixture
def deepl_client(address: str):  # type: ignore[no-untyped-def]
    client = deepl.Translator("any-key", server_url=address)
    yield client
    client.close()


def test_libretranslatepy(address: str) -> None:
    client = libretranslatepy.LibreTranslateAPI(address)
    assert "Bericht" in client.translate(REPORT, "en", "de")
    assert client.detect("Der Bericht ist lang und gut geschrieben.")[0]["language"] == "de"
    assert {row["code"] for row in client.languages()} == {"en", "de"}


def test_deep_translator(address: str) -> None:
    """It sends everything in the query string of a POST."""
    client = deep_translator.LibreTranslator(source="en", target="de", api_key="any", custom_url=address + "/")
    assert "Bericht" in client.translate(REPORT)


def test_deepl_translates_with_context(deepl_client) -> None:  # type: ignore[no-untyped-def]
    result = deepl_client.translate_text("It is balanced.", target_lang="DE", context="We welcome this strategy.")
    assert result.text.startswith("Sie ")  # die Strategie
    assert result.billed_characters == len("It is balanced.")
    several = deepl_client.translate_text([REPORT, "It is long."], source_lang="EN", target_lang="DE")
    assert [one.detected_source_lang for one in several] == ["EN", "EN"]
    assert "Bericht" in several[0].text
    with pytest.raises(deepl.DeepLException, match="not supported"):
        deepl_client.translate_text("Bonjour", target_lang="FR")


def test_deepl_says_what_there_is(deepl_client) -> None:  # type: ignore[no-untyped-def]
    assert [language.code for language in deepl_client.get_source_languages()] == ["EN"]
    assert [language.code for language in deepl_client.get_target_languages()] == ["DE"]
    assert deepl_client.get_usage().character.count >= 0
    assert deepl_client.get_glossary_languages()[0].target_lang == "de"


def test_deepl_translates_documents(deepl_client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("time.sleep", lambda seconds, sleep=__import__("time").sleep: sleep(min(seconds, 0.05)))
    source = tmp_path / "report.txt"
    source.write_text(f"{REPORT} It is long.\n\nThank you.\n", encoding="utf-8")
    with open(source, "rb") as stream:
        result = io.BytesIO()
        status = deepl_client.translate_document(stream, result, target_lang="DE", filename="report.txt")
    assert status.done
    text = result.getvalue().decode()
    assert "Bericht" in text
    assert text.count("\n\n") == 1
