"""The server for minutes under bad conditions: is anything lost, does memory grow, is anything answered with a 500?

    python benchmarks/serving_soak.py [--minutes 10] [-m MODEL] [--text FILE]

Translators confirm rows, clients vanish in the middle of their requests, others send rubbish, and in the middle of the
time the server is killed (SIGKILL) and started again. At the end every confirmation that was answered must be there.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
from serving import texts
from serving_process import ServerProcess

PATIENCE = 60.0
"""Seconds that a client waits for an answer."""

SECRET = "Xylophonversicherung"
"""A word of the documents that must never be in the log."""
RUBBISH = (
    (b"POST", "/v1/translate", b"{"),
    (b"POST", "/v1/translate", b'{"documents": [{"sentences": [1]}]}'),
    (b"POST", "/translate", b'{"q": {"a": 1}, "target": "de"}'),
    (b"POST", "/translate", b"\xff\xfe\x00"),
    (b"POST", "/translate_file", b'{"file": "../../etc/passwd"}'),
    (b"POST", "/v2/translate", b'{"text": "hello", "target_lang": "XX"}'),
    (b"PUT", "/v1/projects/none/documents/none/segments/-1", b"[]"),
    (b"GET", "/v1/projects/%2e%2e/documents/%00", b""),
    (b"BREW", "/coffee", b""),
)


class Soak:
    def __init__(self, model: str | None, sentences: list[str], folder: Path) -> None:
        self.model, self.sentences, self.folder = model, sentences, folder
        self.port = free_port()
        self.log = open(folder / "log", "w+", encoding="utf-8")  # noqa: SIM115
        self.answers: Counter[int] = Counter()
        self.confirmed: dict[tuple[str, int], str] = {}
        self.resident: list[int] = []
        self.ending = False
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "weitblick", "serve", "--port", str(self.port), "--threads", "1"]
        command += ["--data", str(self.folder / "data"), *(["-m", self.model] if self.model else [])]
        self.server = ServerProcess(command, self.log)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.server.address, timeout=PATIENCE, trust_env=False)

    def translator(self) -> None:
        """Adds documents and confirms their rows; what was answered is noted."""
        with self.client() as http:
            while not self.ending:
                try:
                    self._one_document(http)
                except (httpx.HTTPError, KeyError):
                    time.sleep(0.5)  # the server is away

    def _one_document(self, http: httpx.Client) -> None:
        project = http.post("/v1/projects", json={"name": SECRET}).json()["id"]
        text = "\n".join([f"{SECRET}.", *random.sample(self.sentences, 12)])
        url = f"/v1/projects/{project}/documents"
        url = f"{url}/{http.post(url, data={'text': text, 'name': 'soak.txt'}).json()['id']}"
        for position in range(10):
            target = f"{SECRET} {random.random()}"
            answer = http.put(f"{url}/segments/{position}", json={"target": target, "state": "confirmed"})
            self.answers[answer.status_code] += 1
            if answer.status_code == 200:
                self.confirmed[url, position] = target
            time.sleep(random.random() / 4)

    def vanishing(self) -> None:
        """Sends a text and goes away before the answer."""
        while not self.ending:
            text = " ".join(random.sample(self.sentences, 3))
            body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
            self._raw(b"POST", "/translate", body, patience=random.random() / 2, answered=False)

    def rubbish(self) -> None:
        while not self.ending:
            method, path, body = random.choice(RUBBISH)
            self._raw(method, path, body, patience=30, answered=True)
            time.sleep(0.05)

    def lines(self) -> None:
        with self.client() as http:
            while not self.ending:
                try:
                    answer = http.post(
                        "/translate", json={"q": random.choice(self.sentences), "source": "en", "target": "de"}
                    )
                    self.answers[answer.status_code] += 1
                except httpx.HTTPError:
                    time.sleep(0.5)

    def _raw(self, method: bytes, path: str, body: bytes, *, patience: float, answered: bool) -> None:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=patience + 0.01) as connection:
                head = f" {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
                connection.sendall(method + head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                answer = connection.recv(64)
            if answered and answer:
                self.answers[int(answer.split()[1])] += 1
        except OSError:
            time.sleep(0.05)

    def watch(self, seconds: float) -> None:
        """The server's memory, every few seconds; a server that has ended by itself ends all of this."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.server.process.poll() is not None:
                raise SystemExit(f"the server ended by itself ({self.server.process.returncode})")
            self.resident.append(self.server.resident_megabytes)
            time.sleep(2)

    def lost(self) -> int:
        with self.client() as http:
            rows = {url: http.get(url).json()["rows"] for url in {url for url, _ in self.confirmed}}
        return sum(
            (rows[url][position]["target"], rows[url][position]["state"]) != (target, "confirmed")
            for (url, position), target in self.confirmed.items()
        )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(options.model, texts(options.text), Path(folder))
        kinds = (soak.translator, soak.translator, soak.vanishing, soak.vanishing, soak.rubbish, soak.lines)
        threads = [threading.Thread(target=kind, daemon=True) for kind in kinds]
        for thread in threads:
            thread.start()
        try:
            soak.watch(options.minutes * 6)
            soak.server.kill()
            soak.resident.clear()
            soak.start()
            soak.watch(options.minutes * 54)
            soak.ending = True
            for thread in threads:
                thread.join(PATIENCE)
            stuck = sum(thread.is_alive() for thread in threads)
            lost = soak.lost()
            code = soak.server.end()
        finally:
            soak.ending = True
            soak.server.kill()
        soak.log.seek(0)
        log = soak.log.read()
    third = max(1, len(soak.resident) // 3)
    first, last = (max(part) for part in (soak.resident[third : 2 * third] or [0], soak.resident[-third:]))
    print(f"answers: {dict(sorted(soak.answers.items()))}")
    print(f"{len(soak.confirmed):,} confirmations answered, {lost} lost; the server ended with {code}")
    print(
        f"resident memory: at most {first} MB in the second third, {last} MB in the last; MB a minute after the kill:"
    )
    print(" ".join(str(max(soak.resident[begin : begin + 30])) for begin in range(0, len(soak.resident), 30)))
    print(f"the log has {len(log.splitlines())} lines, {log.count(SECRET)} with text of documents")
    if stuck:
        print(f"{stuck} of {len(threads)} clients still waited for an answer after {PATIENCE:g} s")
    if lost or stuck or code not in (0, -15) or soak.answers[500] or SECRET in log:
        print(log[-3000:])
        raise SystemExit(1)


if __name__ == "__main__":
    main()
