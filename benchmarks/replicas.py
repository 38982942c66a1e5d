"""Replicas on Ray Serve, one of which is killed under load: is an answer lost, or another one given?

    python benchmarks/replicas.py TEXT [-m MODEL] [--replicas 2 4] [--clients 8] [--requests 200]

Clients send sentences of TEXT, one after the other, to `/translate`. When a third of the answers is there, one replica
is killed (SIGKILL). A client that gets no answer, or an error of the server, asks again, as every client of a service
must. Counted: answers, how many were asked for again and how often, whether all are what they were before, the longest
wait, and after how many seconds all replicas were back. Needs Ray (`pip install 'weitblick[server,replicas]'`).
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import ray
from ray import serve
from tools.turns import circumstances, report, text_parser

from weitblick.documents.corpora.formats import read_documents
from weitblick.workbench.replicas import Wishes, application

PATIENCE = 300.0
PAUSE, MOST_TRIES = 0.5, 40


def main() -> None:
    parser = text_parser(__doc__, rounds=1)
    parser.add_argument("--replicas", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--requests", type=int, default=200)
    options = parser.parse_args()
    started = circumstances()
    texts = (s.source for d in read_documents([options.text]) for s in d.sentences if s.source.strip())
    sentences = list(islice(texts, options.requests))
    rows = []
    ray.init(num_cpus=max(options.replicas), include_dashboard=False, log_to_driver=False)
    for count in options.replicas:
        with replicas(count, options.model) as address:
            rows.append({"replicas": count, **Load(address, sentences, options.clients).run(count)})
    ray.shutdown()
    report("A replica is killed under load", rows, started, options.json)


@contextmanager
def replicas(count: int, model: str | None) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(application(Wishes(replicas=count, model=model, cpus=0.5)), route_prefix="/")
    yield f"http://127.0.0.1:{port}"
    serve.shutdown()


def replica_processes() -> list[int]:
    """The replicas that Ray has started for this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "cmdline").read_bytes().startswith(b"ray::ServeReplica") and _is_ours(int(folder.name)):
                found.append(int(folder.name))
    return found


def _is_ours(process: int) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    return False


class Load:
    """Clients that ask until they are answered."""

    def __init__(self, address: str, sentences: list[str], clients: int) -> None:
        self.address, self.sentences, self.clients = address, sentences, clients
        self.http = httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False)
        self.answers: dict[int, str] = {}
        self.tries: dict[int, int] = {}
        self.waits: list[float] = []
        self.lock = threading.Lock()

    def ask(self, number: int) -> None:
        start = time.monotonic()
        for attempt in range(1, MOST_TRIES + 1):
            self.tries[number] = attempt
            with suppress(httpx.TransportError):
                body = {"q": self.sentences[number], "source": "en", "target": "de"}
                answer = self.http.post("/translate", json=body)
                if answer.status_code == 200:
                    with self.lock:
                        self.answers[number] = answer.json()["translatedText"]
                        self.waits.append(time.monotonic() - start)
                    return
                if answer.status_code < 500 and answer.status_code != 429:
                    answer.raise_for_status()
            time.sleep(PAUSE)

    def run(self, count: int) -> dict[str, Any]:
        with ThreadPoolExecutor(self.clients) as pool:
            list(pool.map(self.ask, range(len(self.sentences))))
        before, self.answers, self.tries, self.waits = self.answers, {}, {}, []
        killer = threading.Thread(target=self._kill_one, args=(count,))
        killer.start()
        start = time.monotonic()
        with ThreadPoolExecutor(self.clients) as pool:
            list(pool.map(self.ask, range(len(self.sentences))))
        seconds = time.monotonic() - start
        killer.join()
        again = [tries for tries in self.tries.values() if tries > 1]
        return {
            "requests": len(self.sentences),
            "answered": len(self.answers),
            "asked_again": len(again),
            "most_tries": max(self.tries.values()),
            "other_answers": sum(self.answers.get(number) != text for number, text in before.items()),
            "seconds": seconds,
            "median_wait": sorted(self.waits)[len(self.waits) // 2],
            "longest_wait": max(self.waits),
            "killed_after": self.killed_after,
            "all_back_after": self.back_after,
        }

    def _kill_one(self, count: int) -> None:
        while len(self.answers) < len(self.sentences) // 3:
            time.sleep(0.01)
        running = replica_processes()
        assert len(running) == count, running
        self.killed_after = len(self.answers)
        os.kill(running[0], signal.SIGKILL)
        start = time.monotonic()
        while len(set(replica_processes()) - {running[0]}) < count and time.monotonic() - start < PATIENCE:
            time.sleep(0.1)
        self.back_after = time.monotonic() - start


if __name__ == "__main__":
    main()
