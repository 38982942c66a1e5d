"""`weitblick serve` as a process: its address, its refusals, and what is left when it is killed."""

from __future__ import annotations

import asyncio
import os
import queue
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tests.patience import PATIENCE
from weitblick.cli.main import app
from weitblick.cli.serve import listen
from weitblick.common.errors import UserError
from weitblick.workbench.store import Store

Start = Callable[[Path], tuple[subprocess.Popen[str], httpx.Client]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers in folders; whatever still runs at the end is stopped."""
    running: list[subprocess.Popen[str]] = []

    def start(folder: Path) -> tuple[subprocess.Popen[str], httpx.Client]:
        command = [sys.executable, "-m", "weitblick", "serve", "--port", "0", "--data", str(folder), "--threads", "1"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(server)
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found, "no address"
        return server, httpx.Client(base_url=found.group(), timeout=PATIENCE, trust_env=False)

    yield start
    for server in running:
        server.kill()
        server.wait()


def test_everything_confirmed_survives_a_kill(start: Start, tmp_path: Path) -> None:
    """kill -9 while rows are typed and confirmed: what was answered is there, and the server starts again."""
    server, client = start(tmp_path)
    project = client.post("/v1/projects", json={"name": "Letters"}).json()["id"]
    text = "\n".join(f"The report number {number} is ready." for number in range(100))
    document = client.post(f"/v1/projects/{project}/documents", data={"text": text}).json()["id"]
    url = f"/v1/projects/{project}/documents/{document}"
    typed: dict[int, tuple[str, str]] = {}
    try:
        for number in range(100):
            state = "confirmed" if number % 2 else "edited"
            answer = client.put(
                f"{url}/segments/{number}",
                json={
                    "target": f"Bericht {number}.",
                    "state": state,
                    "version": client.get(url).json()["rows"][number]["version"],
                },
            )
            assert answer.status_code == 200
            typed[number] = (f"Bericht {number}.", state)
            if number == 20:
                os.kill(server.pid, signal.SIGKILL)
    except httpx.TransportError:
        pass
    assert 20 < len(typed) < 100
    server.wait()
    again, client = start(tmp_path)
    rows = client.get(url).json()["rows"]
    assert {number: (rows[number]["target"], rows[number]["state"]) for number in typed} == typed
    pairs = client.get(f"/v1/projects/{project}/pairs").json()
    assert {pair["position"] for pair in pairs} >= {n for n, (_, state) in typed.items() if state == "confirmed"}
    again.send_signal(signal.SIGINT)
    assert again.wait(PATIENCE) in (0, 130, -signal.SIGINT)


def test_answers_are_sent_at_once() -> None:
    """Not held back until the client has acknowledged their first part, which takes it 40 ms."""
    options = []

    async def connect() -> None:
        def told(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            options.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listen("127.0.0.1", 0) as listener:
            async with await asyncio.start_server(told, sock=listener):
                reader, writer = await asyncio.open_connection(*listener.getsockname())
                await reader.read()
                writer.close()

    asyncio.run(connect())
    assert options == [1]


def test_threads_that_cannot_be_had_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="100000 threads cannot be had"):
        CliRunner().invoke(app, ["serve", "--threads", "100000", "--data", str(tmp_path)], catch_exceptions=False)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_listening_elsewhere_needs_keys_or_open(host: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--keys"):
        CliRunner().invoke(app, ["serve", "--host", host, "--data", str(tmp_path)], catch_exceptions=False)


def test_a_second_server_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        arguments = ["serve", "--port", str(taken.getsockname()[1]), "--data", str(tmp_path)]
        with pytest.raises(UserError, match="is in use"):
            CliRunner().invoke(app, arguments, catch_exceptions=False)
    store = Store(tmp_path)
    with pytest.raises(UserError, match="in use by another server"):
        CliRunner().invoke(app, ["serve", "--port", "0", "--data", str(tmp_path)], catch_exceptions=False)
    store.close()


def test_backup(tmp_path: Path) -> None:
    store = Store(tmp_path)  # a server that runs
    project = store.add_project("Letters").id
    copy = tmp_path / "copy" / "workbench.sqlite"
    copy.parent.mkdir()
    assert CliRunner().invoke(app, ["serve", "--data", str(tmp_path), "--backup", str(copy)]).exit_code == 0
    assert Store(copy.parent).project(project).name == "Letters"


@pytest.mark.parametrize(("option", "opens"), [(["--browser"], True), (["--no-browser"], False), ([], False)])
def test_the_browser_is_opened(option: list[str], opens: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody sits in front of it, only if that is asked for."""
    opened = queue.Queue[str]()
    monkeypatch.setattr("webbrowser.open", opened.put)
    monkeypatch.setattr("weitblick.translation.translator.Translator.load", lambda *_, **__: None)
    monkeypatch.setattr("weitblick.workbench.app.create_app", lambda *_, **__: None)
    monkeypatch.setattr("weitblick.workbench.app.run", lambda app, listener, announce: announce())
    answer = CliRunner().invoke(app, ["serve", "--port", "0", "--data", str(tmp_path), *option])
    assert "Weitblick is at http://127.0.0.1:" in answer.stdout
    if opens:
        assert opened.get(timeout=PATIENCE) in answer.stdout
    else:
        assert opened.empty()
