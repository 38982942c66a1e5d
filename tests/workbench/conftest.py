"""A server in this process with the model that comes with the package, and a browser in front of it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from workbench_story import Story

from tests.patience import PATIENCE
from weitblick.translation.translator import Translator
from weitblick.workbench.app import create_app
from weitblick.workbench.requests import Limits

HOME = "http://127.0.0.1"


@pytest.fixture(scope="session")
def translator() -> Translator:
    return Translator.load(device="cpu")


@pytest.fixture
def client(translator: Translator, tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(translator, tmp_path / "data", limits=Limits(body_bytes=2**20, characters=20_000))
    with TestClient(app, base_url=HOME, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def address(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a free port of this machine, for clients that speak HTTP themselves."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_app(translator, tmp_path_factory.mktemp("data"))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"{HOME}:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(PATIENCE)


@pytest.fixture
def story(local_page: Any, address: str) -> Story:
    """The workbench in a browser, before anything is opened."""
    return Story(local_page, address)
