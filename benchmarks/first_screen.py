"""How long a document of 600 rows takes to have drafts on the first screen, at a server of its own.

    python benchmarks/first_screen.py TEXT [-m MODEL] [--rows 600] [--screen 24] [--rounds 3]

Lines of TEXT are uploaded as one document to `weitblick serve`; the rows of a screen are told as the page tells them.
*reading*: until the upload is answered; *first*: until a row has a draft; *screen*: until all rows of the screen have
one. Each by the clock and as processor time of the server, since a busy machine stretches the former. A short document
goes before, to warm the model, as whoever works has it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx

TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = parse_options()
    lines = [line for line in options.text.read_text(encoding="utf-8").splitlines() if line.strip()]
    text = "\n\n".join(dict.fromkeys(lines))
    rows = text.split("\n\n")[: options.rows]
    print(f"{len(rows)} rows, {sum(len(row.split()) for row in rows)} words; load {os.getloadavg()[0]:.1f}")
    with served(options.model) as (client, process):
        measured(client, process, rows[-12:], 12)
        found = [measured(client, process, rows, options.screen) for _ in range(options.rounds)]
    for part in ("reading", "first", "screen"):
        wall, used = (median(one[part][clock] for one in found) for clock in (0, 1))
        print(f"{part:8} {wall:7.2f} s by the clock, {used:6.2f} s of the processor")


def measured(client: httpx.Client, process: int, rows: list[str], screen: int) -> dict[str, tuple[float, float]]:
    """Seconds by the clock, and of the server's processor, from the upload on."""
    project = client.post("/v1/projects", json={"name": "first screen"}).json()["id"]
    began, used = time.perf_counter(), processor_seconds(process)
    passed = lambda: (time.perf_counter() - began, processor_seconds(process) - used)  # noqa: E731
    documents = f"/v1/projects/{project}/documents"
    added = client.post(documents, data={"text": "\n\n".join(rows), "name": "long.txt"}).json()
    found = {"reading": passed()}
    path = f"{documents}/{added['id']}"
    waiting = {row["position"] for row in added["rows"][:screen]}
    with client.stream("GET", f"{path}/events") as events:
        for kind, value in heard(events):
            if kind == "hello":
                client.post(f"{path}/view", json={"first": 0, "last": screen - 1})
                waiting &= {row["position"] for row in client.get(path).json()["rows"] if row["state"] == "empty"}
            elif kind == "segment" and value["state"] != "empty":
                found.setdefault("first", passed())
                waiting.discard(value["position"])
            if not waiting:
                break
    found["screen"] = passed()
    found.setdefault("first", found["screen"])
    client.delete(path)
    return found


def heard(events: httpx.Response) -> Iterator[tuple[str, dict[str, object]]]:
    """The events of a document, by kind."""
    kind = ""
    for line in events.iter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def processor_seconds(process: int) -> float:
    """What a process has used of processors, all threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def served(model: str | None) -> Iterator[tuple[httpx.Client, int]]:
    """A server of its own, and its process."""
    port = 5405
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "weitblick", "serve", "--port", str(port), "--data", folder, "--no-browser"]
        process = subprocess.Popen([*command, *(["-m", model] if model else [])], stdout=subprocess.DEVNULL)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600, trust_env=False) as client:
                wait_for(client, process)
                yield client, process.pid
        finally:
            process.terminate()
            process.wait()


def wait_for(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    """Until the server answers."""
    while process.poll() is None:
        try:
            client.get("/health")
            return
        except httpx.ConnectError:
            time.sleep(0.2)
    raise SystemExit(f"the server has ended with {process.returncode}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("-m", "--model")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--screen", type=int, default=24, help="rows that are on a screen")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
