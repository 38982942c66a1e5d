"""While long texts and files are read, others are answered."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE

LONG = "The report is long. " * 200
FILE = {"file": ("a.txt", LONG.encode())}
READERS = ("weitblick.workbench.texts.lines_content", "weitblick.workbench.uploads.read_upload")


@pytest.mark.parametrize(
    ("path", "request_"),
    [
        ("/translate", {"json": {"q": LONG, "source": "en", "target": "de"}}),
        ("/v2/translate", {"json": {"text": [LONG], "target_lang": "DE"}}),
        ("/v1/translate", {"json": {"documents": [{"text": LONG}]}}),
        ("/v1/documents", {"files": FILE}),
        ("/v2/document", {"files": FILE, "data": {"target_lang": "DE"}}),
        ("/translate_file", {"files": FILE, "data": {"source": "en", "target": "de"}}),
    ],
)
def test_others_are_answered(
    path: str, request_: dict[str, Any], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> Any:
        begun.set()
        assert go.wait(PATIENCE)
        raise RuntimeError("enough")

    for reader in READERS:
        monkeypatch.setattr(reader, slow)
    with httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.post, path, **request_)
        assert begun.wait(PATIENCE)
        try:
            assert client.get("/health").status_code == 200
        finally:
            go.set()
        assert waiting.result(PATIENCE).status_code == 500


def test_a_text_that_is_too_long_is_not_even_read(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*_: Any, **__: Any) -> Any:
        raise AssertionError("read")

    monkeypatch.setattr(READERS[0], unexpected)
    with httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as client:
        answer = client.post("/v1/translate", json={"documents": [{"text": "a" * 300_000}] * 2})
    assert answer.status_code == 413
