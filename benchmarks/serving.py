"""The server under load, and how soon it answers.

    python benchmarks/serving.py [-m MODEL] [--text FILE] [--clients 1 8 32] [--requests 64] [--rounds 3]

- *load*: so many clients, each sending one sentence after the other to `/translate`. Our engine, which translates
  together what waits together, takes turns with the way of LibreTranslate: the same server, one text at a time.
- *behind*: the answer to a line while a document of 2,000 sentences is being translated.
- *confirm*: from confirming a row of a document of 50 sentences to the first change of another. It needs a model with a
  pointer to approved translations, and says so without one.

Clients and server are processes of their own. FILE has a sentence a line (without it a corpus is generated).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

LONG = 2000
SHEET = 50
ASKED = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--requests", type=int, default=64, help="of all clients together, in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--parts", nargs="+", choices=("load", "behind", "confirm"), default=["load", "behind", "confirm"]
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", choices=("together", "alone"), help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.serve:
        serve(options.serve, rest)
        return
    sentences = texts(options.text)
    results: dict[str, Any] = {"date": datetime.now().isoformat(timespec="minutes"), "load": os.getloadavg()}
    if "load" in options.parts:
        results["clients"] = under_load(options, sentences)
    if {"behind", "confirm"} & set(options.parts):
        with (
            server("together", options) as address,
            httpx.Client(base_url=address, timeout=600, trust_env=False) as http,
        ):
            if "behind" in options.parts:
                results["behind"] = behind_a_document(http, address, sentences)
            if "confirm" in options.parts:
                results["confirm"] = after_confirming(http, address, sentences)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def serve(way: str, arguments: list[str]) -> None:
    """A server in this process, as the command starts it."""
    from weitblick.cli.main import main as command
    from weitblick.server.engine import Engine, Request

    def take_one(self: Engine) -> list[Request]:
        return [self._queues.requests.popleft()] if self._queues.requests else []

    if way == "alone":
        Engine._take_window = take_one  # type: ignore[method-assign]
    sys.argv = ["weitblick", "serve", *arguments]
    command()


@contextmanager
def server(way: str, options: argparse.Namespace) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--serve", way, "--port", "0", "--data", folder]
        command += ["--threads", str(options.threads), *(["--model", options.model] if options.model else [])]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if not found:
            raise SystemExit("the server did not start")
        try:
            yield found.group().rstrip("/")
        finally:
            process.terminate()
            process.wait()


def under_load(options: argparse.Namespace, sentences: list[str]) -> dict[str, Any]:
    table: dict[tuple[int, str], list[tuple[float, list[float]]]] = {}
    with server("together", options) as ours, server("alone", options) as theirs:
        for address in (ours, theirs):
            asyncio.run(load(address, 4, sentences[:8]))  # warm
        for number in range(options.rounds):
            for clients in options.clients:
                begin = (number * options.requests) % max(1, len(sentences) - options.requests)
                chosen = sentences[begin : begin + options.requests]
                for way, address in (("together", ours), ("alone", theirs)):
                    table.setdefault((clients, way), []).append(asyncio.run(load(address, clients, chosen)))
    print("clients  way         sentences/s     p50      p95     ratio")
    results: dict[str, Any] = {}
    for clients in options.clients:
        ratios = [a[0] / b[0] for a, b in zip(table[clients, "together"], table[clients, "alone"], strict=True)]
        for way in ("together", "alone"):
            rounds = table[clients, way]
            waits = sorted(wait for _, all_of in rounds for wait in all_of)
            speed = statistics.median(rate for rate, _ in rounds)
            p50, p95 = (waits[round(share * (len(waits) - 1))] for share in (0.5, 0.95))
            ratio = statistics.median(ratios) if way == "together" else 1.0
            print(f"{clients:7}  {way:10} {speed:12.1f} {p50:8.3f} {p95:8.3f} {ratio:9.2f}", flush=True)
            results[f"{clients} {way}"] = {"sentences_per_second": speed, "p50": p50, "p95": p95, "ratio": ratio}
    return results


async def load(address: str, clients: int, sentences: list[str]) -> tuple[float, list[float]]:
    """Sentences a second and the time of every answer."""
    waits: list[float] = []
    left = iter(sentences)
    async with httpx.AsyncClient(base_url=address, timeout=600, trust_env=False) as http:

        async def client() -> None:
            for sentence in left:
                start = time.perf_counter()
                answer = await http.post("/translate", json={"q": sentence, "source": "en", "target": "de"})
                answer.raise_for_status()
                waits.append(time.perf_counter() - start)

        start = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        return len(sentences) / (time.perf_counter() - start), waits


def behind_a_document(http: httpx.Client, address: str, sentences: list[str]) -> dict[str, float]:
    """Seconds of an answer to one line while a long document is being translated, and before."""
    long = [sentences[number % len(sentences)] for number in range(LONG)]

    def ask(sentence: str) -> float:
        start = time.perf_counter()
        http.post("/translate", json={"q": sentence, "source": "en", "target": "de"}).raise_for_status()
        return time.perf_counter() - start

    lines = sorted(sentences, key=len)[: ASKED * 2]
    idle = [ask(line) for line in lines[:ASKED]]
    project = http.post("/v1/projects", json={"name": "benchmark"}).json()["id"]
    http.post(
        f"/v1/projects/{project}/documents", data={"text": "\n".join(long), "name": "long.txt"}
    ).raise_for_status()
    waits = [ask(line) for line in lines[ASKED:]]
    http.delete(f"/v1/projects/{project}")
    result = {"idle": statistics.median(idle), "median": statistics.median(waits), "most": max(waits)}
    print(
        "a line: {idle:.3f} s; behind {long:,} sentences: {median:.3f} s, at most {most:.3f} s".format(
            long=LONG, **result
        )
    )
    return result


def after_confirming(http: httpx.Client, address: str, sentences: list[str]) -> dict[str, Any]:
    """Seconds from confirming to the first change, for rows whose confirmation changes others."""
    project = http.post("/v1/projects", json={"name": "benchmark"}).json()["id"]
    text = "\n".join(sentences[:SHEET])
    added = http.post(f"/v1/projects/{project}/documents", data={"text": text, "name": "sheet.txt"}).json()
    url = f"/v1/projects/{project}/documents/{added['id']}"
    while any(row["state"] == "empty" for row in http.get(url).json()["rows"]):
        time.sleep(0.2)
    events: list[tuple[float, str, dict[str, Any]]] = []
    threading.Thread(target=listen, args=(address + url, events), daemon=True).start()
    time.sleep(1)
    waits = []
    for row in http.get(url).json()["rows"][:ASKED]:
        words = row["target"].split()
        noun = next((word for word in words[1:] if word[0].isupper() and len(word) > 5), None)
        if noun is None:
            continue
        target = row["target"].replace(noun, f"Neu{noun.lower()}")  # a word of the translator's own
        start = time.time()
        body = {"target": target, "state": "confirmed", "focus": row["position"]}
        http.put(f"{url}/segments/{row['position']}", json=body).raise_for_status()
        while not any(
            kind == "improving" and data["done"] >= data["total"] for when, kind, data in events if when > start
        ):
            time.sleep(0.02)
            if time.time() - start > 60:
                break
        changed = [when for when, kind, data in events if kind == "segment" and when > start and data["cause"]]
        if changed:
            waits.append(min(changed) - start)
    http.delete(f"/v1/projects/{project}")
    if not waits:
        print("no confirmation changed another row: has the model a pointer to approved translations?")
        return {}
    result = {"confirmations": len(waits), "median": statistics.median(waits), "most": max(waits)}
    print("confirming to the first change: {median:.3f} s, at most {most:.3f} s, {confirmations} rows".format(**result))
    return result


def listen(url: str, events: list[tuple[float, str, dict[str, Any]]]) -> None:
    kind = ""
    with httpx.Client(timeout=None, trust_env=False) as http, http.stream("GET", f"{url}/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                events.append((time.time(), kind, json.loads(line.removeprefix("data: "))))


def texts(path: Path | None) -> list[str]:
    if path is not None:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    from weitblick.discourse import generate

    documents = generate("rich", 200, 1).train
    return [sentence.source for document in documents for sentence in document.sentences]


if __name__ == "__main__":
    main()
