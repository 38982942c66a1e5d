"""What `test_histories` plays with: the tabs of a browser, the workbench that can die, and what a tab shows."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from weitblick.documents.document import Sentence
from weitblick.workbench.errors import Changed, Refused
from weitblick.workbench.memories import Memories
from weitblick.workbench.schema import Segment, Write
from weitblick.workbench.service import Service
from weitblick.workbench.store import Store
from weitblick.workbench.workbench import Workbench

ROWS = 2
SOURCES = [f"Sentence {position}." for position in range(ROWS)]
PREFIX = "/rows/"
Json = dict[str, Any]
Seen = tuple[str, str]
"""A text and its state."""


class Browser:
    """The tabs of a browser, in one process of Node for all histories."""

    process: subprocess.Popen[str] | None = None

    def __init__(self) -> None:
        if Browser.process is None:
            driver = Path(__file__).with_name("drafts_driver.mjs")
            script = str(files("weitblick.workbench").joinpath("page", "drafts.js"))
            Browser.process = subprocess.Popen(
                ["node", str(driver), script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        self.requests: list[Json] = []  # on their way to the server
        self.drafts: dict[tuple[str, str], Json] = {}  # of the tabs that are open, by tab and path
        self.kept: list[Json] = []  # what the browser would still have after a crash
        self.do("reset")

    def do(self, act: str, **values: Any) -> Any:
        process = Browser.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"act": act, **values}) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        self.requests, self.kept = answer["sent"], answer["kept"]
        self.drafts = {(draft["tab"], draft["path"]): draft for draft in answer["drafts"]}
        return answer.get("value")


class Server:
    """The workbench without a model. It can die, and then starts with what is on the disc at that moment."""

    def __init__(self) -> None:
        self.folders = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        self.numbers = itertools.count()
        self.listeners: list[Tab] = []
        self.start(self.folders / "0")
        self.project = self.store.add_project("Histories").id
        sentences = [Sentence(source, f"Entwurf {at}.", "draft") for at, source in enumerate(SOURCES)]
        self.document = self.store.add_document(self.project, "a.txt", sentences, " ".join(SOURCES).encode())

    def start(self, folder: Path) -> None:
        self.folder, self.store = folder, Store(folder)
        self.store._database.execute("PRAGMA synchronous = OFF")  # no power is cut here
        self.memories = Memories(self.store)
        languages = SimpleNamespace(source="en", target="de")
        service = SimpleNamespace(
            store=self.store, memories=self.memories, languages=languages, learns=False, alphabet=None
        )
        self.bench = Workbench(cast(Service, service))
        self.bench.hub.publish = self.publish  # type: ignore[method-assign]

    def die(self) -> None:
        copy = self.folders / str(next(self.numbers) + 1)
        shutil.copytree(self.folder, copy)  # with a log that nobody has tidied up
        self.store.close()
        self.start(copy)
        for tab in self.listeners:
            tab.news.clear()

    def publish(self, topic: str, kind: str, data: Any) -> None:
        for tab in self.listeners if kind == "segment" else ():
            tab.news.append(data)

    def rows(self) -> list[Segment]:
        return self.store.segments(self.document)

    def edit(self, draft: Json) -> Json:
        """What the page is told of a request."""
        position = int(draft["path"].removeprefix(PREFIX))
        write = Write(draft["target"], draft["state"], draft["version"], draft["tab"], draft["number"])
        try:
            return {"kind": "saved", "row": asdict(self.bench.edit(self.document, position, write))}
        except Changed as changed:
            return {"kind": "conflict", "row": asdict(changed.segment)}
        except Refused as refused:
            return {"kind": "refused", "reason": refused.message}

    def end(self) -> None:
        self.store.close()
        shutil.rmtree(self.folders)


@dataclass(eq=False)
class Tab:
    """What somebody sees in one tab."""

    name: str
    rows: list[Json]
    news: list[Json] = field(default_factory=list)

    def take(self, row: Json) -> None:
        if row["version"] >= self.rows[row["position"]]["version"]:
            self.rows[row["position"]] = row
