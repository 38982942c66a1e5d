"""The server under load, and how soon it answers.

    python benchmarks/serving.py [-m MODEL] [--text FILE] [--clients 1 8 32] [--requests 64] [--rounds 3]

- *load*: so many clients, each sending one sentence after the other to `/translate`. Our engine, which translates
  together what waits together, takes turns with the way of LibreTranslate: the same server, one text at a time.
- *roof*: what the translator alone makes of so many sentences at a time, without a server.
- *behind*: the answer to a line while a document of 2,000 sentences is being translated.
- *confirm*: from confirming a row of a document of 50 sentences, in which a word that other rows have as well was
  replaced, to the first event that tells the page of a change in another row. It needs a model with a pointer to
  approved translations, and says so without one.

Clients and server are processes of their own. FILE has a sentence a line (without it a corpus is generated).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
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
from serving_process import ServerProcess

SHORT_LINES = 12
PATIENCE = 240.0
"""Seconds that any one thing may take."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--requests", type=int, default=64, help="of all clients together, in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=int, default=2000, help="sentences of the document of *behind*")
    parser.add_argument("--sheet", type=int, default=50, help="sentences of the document of *confirm*")
    parser.add_argument("--confirmations", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parts = ("load", "roof", "behind", "confirm")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", choices=("together", "alone"), help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.serve:
        serve(options.serve, rest)
        return
    if rest:
        parser.error(f"unknown: {' '.join(rest)}")
    sentences = texts(options.text)
    results: dict[str, Any] = {"date": datetime.now().isoformat(timespec="minutes"), "load": os.getloadavg()}
    if "load" in options.parts:
        results["clients"] = under_load(options, sentences)
    if "roof" in options.parts:
        results["roof"] = roof(options, sentences[: options.requests])
    if {"behind", "confirm"} & set(options.parts):
        with server("together", options) as address, client(address) as http:
            if "confirm" in options.parts:
                results["confirm"] = after_confirming(http, address, sentences[: options.sheet], options.confirmations)
            if "behind" in options.parts:
                results["behind"] = behind_a_document(http, sentences, options.long)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def serve(way: str, arguments: list[str]) -> None:
    """A server in this process, as the command starts it."""
    from weitblick.cli.main import main as command
    from weitblick.workbench.engine import Engine, Request

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
        process = ServerProcess(command)
        try:
            yield process.address
        finally:
            process.end()


def client(address: str) -> httpx.Client:
    return httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False)


def under_load(options: argparse.Namespace, sentences: list[str]) -> dict[str, Any]:
    table: dict[tuple[int, str], list[tuple[float, list[float]]]] = {}
    together: dict[int, float] = {}
    with server("together", options) as ours, server("alone", options) as theirs:
        for address in (ours, theirs):
            asyncio.run(load(address, 4, sentences[:8]))  # warm
        for number in range(options.rounds):
            for clients in options.clients:
                begin = (number * options.requests) % max(1, len(sentences) - options.requests)
                chosen = sentences[begin : begin + options.requests]
                before = sentences_and_windows(ours)
                for way, address in (("together", ours), ("alone", theirs)):
                    table.setdefault((clients, way), []).append(asyncio.run(load(address, clients, chosen)))
                made, windows = (after - then for after, then in zip(sentences_and_windows(ours), before, strict=True))
                together[clients] = made / windows  # of the last round
    print("clients  way         sentences/s     p50      p95     ratio  sentences/window")
    results: dict[str, Any] = {}
    for clients in options.clients:
        ratios = [a[0] / b[0] for a, b in zip(table[clients, "together"], table[clients, "alone"], strict=True)]
        for way in ("together", "alone"):
            rounds = table[clients, way]
            waits = sorted(wait for _, all_of in rounds for wait in all_of)
            speed = statistics.median(rate for rate, _ in rounds)
            p50, p95 = (waits[round(share * (len(waits) - 1))] for share in (0.5, 0.95))
            ratio = statistics.median(ratios) if way == "together" else 1.0
            size = together[clients] if way == "together" else 1.0
            print(f"{clients:7}  {way:10} {speed:12.1f} {p50:8.3f} {p95:8.3f} {ratio:9.2f} {size:9.1f}", flush=True)
            results[f"{clients} {way}"] = {
                "sentences_per_second": speed, "p50": p50, "p95": p95, "ratio": ratio, "sentences_a_window": size
            }  # fmt: skip
    return results


def sentences_and_windows(address: str) -> list[float]:
    """How many sentences the engine has translated so far, and in how many windows."""
    with client(address) as http:
        text = http.get("/metrics").text
    names = ("weitblick_sentences_total ", "weitblick_windows_total ")
    return [float(text.partition(f"\n{name}")[2].split()[0]) for name in names]


def roof(options: argparse.Namespace, sentences: list[str]) -> dict[str, float]:
    """Sentences a second of the translator alone, by how many it is given at a time, each a document."""
    from weitblick.common.process import tune_allocator
    from weitblick.common.threads import use_threads
    from weitblick.documents.document import Document, Sentence
    from weitblick.translation.options import TranslationOptions
    from weitblick.translation.translator import Translator

    tune_allocator()
    use_threads(options.threads)  # PyTorch is loaded after weitblick, which sets how its threads wait
    translator = Translator.load(options.model)
    documents = [Document(str(number), (Sentence(text),)) for number, text in enumerate(sentences)]
    one_pass = TranslationOptions(passes=1)  # as the engine translates sentences without context
    translator.translate_window(documents[:8], one_pass)  # warm
    results = {}
    for count in (1, 2, 4, 8, 16, 32):
        start = time.perf_counter()
        for begin in range(0, len(documents), count):
            translator.translate_window(documents[begin : begin + count], one_pass)
        results[str(count)] = len(documents) / (time.perf_counter() - start)
    shown = ", ".join(f"{speed:.1f} of {count}" for count, speed in results.items())
    print(f"the translator alone, sentences/s by sentences at a time: {shown}", flush=True)
    return results


async def load(address: str, clients: int, sentences: list[str]) -> tuple[float, list[float]]:
    """Sentences a second and the time of every answer."""
    waits: list[float] = []
    left = iter(sentences)
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE, trust_env=False) as http:

        async def one_client() -> None:
            for sentence in left:
                start = time.perf_counter()
                answer = await http.post("/translate", json={"q": sentence, "source": "en", "target": "de"})
                answer.raise_for_status()
                waits.append(time.perf_counter() - start)

        start = time.perf_counter()
        await asyncio.wait_for(asyncio.gather(*(one_client() for _ in range(clients))), PATIENCE)
        return len(sentences) / (time.perf_counter() - start), waits


def behind_a_document(http: httpx.Client, sentences: list[str], length: int) -> dict[str, float]:
    """Seconds of an answer to one line while a long document is being translated, and before."""
    long = [sentences[number % len(sentences)] for number in range(length)]

    def ask(sentence: str) -> float:
        start = time.perf_counter()
        http.post("/translate", json={"q": sentence, "source": "en", "target": "de"}).raise_for_status()
        return time.perf_counter() - start

    lines = sorted(sentences, key=len)[len(sentences) // 2 :][: SHORT_LINES * 2]  # of middling length
    idle = [ask(line) for line in lines[:SHORT_LINES]]
    project = http.post("/v1/projects", json={"name": "benchmark"}).json()["id"]
    form = {"text": "\n".join(long), "name": "long.txt"}
    http.post(f"/v1/projects/{project}/documents", data=form).raise_for_status()
    waits = [ask(line) for line in lines[SHORT_LINES:]]
    http.delete(f"/v1/projects/{project}")
    result = {"idle": statistics.median(idle), "median": statistics.median(waits), "most": max(waits)}
    shown = "a line: {idle:.3f} s; behind {long:,} sentences: {median:.3f} s, at most {most:.3f} s"
    print(shown.format(long=length, **result), flush=True)
    return result


class Sheet:
    """A document at the workbench and what its page is told."""

    def __init__(self, http: httpx.Client, address: str, sentences: list[str]) -> None:
        self.http = http
        self.project = http.post("/v1/projects", json={"name": "benchmark"}).json()["id"]
        form = {"text": "\n".join(sentences), "name": "sheet.txt"}
        added = http.post(f"/v1/projects/{self.project}/documents", data=form).json()
        self.url = f"/v1/projects/{self.project}/documents/{added['id']}"
        self.events: list[tuple[float, str, dict[str, Any]]] = []
        self._until(lambda: not any(row["state"] == "empty" for row in self.rows()), "translated")
        threading.Thread(target=self._listen, args=(address + self.url,), daemon=True).start()
        self._until(lambda: bool(self.events), "listening")

    def rows(self) -> list[dict[str, Any]]:
        return list(self.http.get(self.url).raise_for_status().json()["rows"])

    def confirm(self, position: int, target: str) -> tuple[float | None, float]:
        """Seconds to the first change of another row, and to the end of all changes."""
        start = time.time()
        body = {"target": target, "state": "confirmed", "focus": position}
        self.http.put(f"{self.url}/segments/{position}", json=body).raise_for_status()

        def done() -> bool:
            found = [(when, data) for when, kind, data in tuple(self.events) if kind == "improving" and when > start]
            return any(data["done"] >= data["total"] for _, data in found)

        self._until(done, "improved")
        end = time.time()
        changes = [
            when
            for when, kind, data in tuple(self.events)
            if kind == "segment" and when > start and data["cause"] and data["position"] != position
        ]
        return (min(changes) - start if changes else None), end - start

    def _listen(self, url: str) -> None:
        kind = ""
        with httpx.Client(timeout=PATIENCE, trust_env=False) as http, http.stream("GET", f"{url}/events") as stream:
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.events.append((time.time(), kind, json.loads(line.removeprefix("data: "))))

    @staticmethod
    def _until(reached: Any, what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not reached():
            if time.monotonic() > end:
                raise SystemExit(f"not {what} within {PATIENCE:g} s")
            time.sleep(0.01)


def after_confirming(
    http: httpx.Client, address: str, sentences: list[str], confirmations: int
) -> dict[str, Any] | None:
    """Of rows whose confirmation changes others: seconds to the first change."""
    sheet = Sheet(http, address, sentences)
    firsts: list[float] = []
    ends: list[float] = []
    for position in range(len(sentences)):
        if len(ends) == confirmations:
            break
        rows = sheet.rows()
        noun = shared_noun(rows, position)
        if noun is None:
            continue
        first, end = sheet.confirm(position, rows[position]["target"].replace(noun, f"Neu{noun.lower()}"))
        firsts += [] if first is None else [first]
        ends.append(end)
    http.delete(f"/v1/projects/{sheet.project}")
    if not firsts:
        print(f"none of {len(ends)} confirmations changed another row: has the model a pointer?")
        return None
    result = {
        "confirmations": len(ends),
        "with_changes": len(firsts),
        "median": statistics.median(firsts),
        "most": max(firsts),
        "all_changes": statistics.median(ends),
    }
    shown = (
        "confirming to the first change: {median:.3f} s, at most {most:.3f} s ({with_changes} of {confirmations} "
        "confirmations changed others); to the last, or to know that there is none: {all_changes:.3f} s"
    )
    print(shown.format(**result), flush=True)
    return result


def shared_noun(rows: list[dict[str, Any]], position: int) -> str | None:
    """A word of a row's draft that looks like a noun and stands in other drafts, too."""
    if rows[position]["state"] != "draft":
        return None
    drafts = [row["target"].split() for row in rows if row["state"] == "draft" and row["position"] != position]
    words = [word for word in rows[position]["target"].split()[1:] if word.isalpha()]
    nouns = [word for word in words if word[0].isupper() and len(word) > 5]
    return next((noun for noun in nouns if any(noun in draft for draft in drafts)), None)


def texts(path: Path | None) -> list[str]:
    if path is not None:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    from weitblick.documents.discourse.generator import generate

    documents = generate("rich", 200, 1).train
    return [sentence.source for document in documents for sentence in document.sentences]


if __name__ == "__main__":
    main()
