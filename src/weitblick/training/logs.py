"""What a training run tells: a progress display on a terminal, plain lines elsewhere, JSONL and TensorBoard always."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PLAIN_EVERY = 30.0  # seconds between lines where there is no terminal


class Logs:
    """One stage's logs. Only the first process writes any."""

    def __init__(self, folder: Path, name: str, updates: int, done: int, *, active: bool, quiet: bool = False) -> None:
        self.active, self.name, self.quiet = active, name, quiet
        self.path = folder / "log.jsonl"
        self.console = Console(stderr=True)
        self.progress: Progress | None = None
        self._spoke = 0.0
        if not active:
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._forget_after(done)
        self.stream = self.path.open("a", encoding="utf-8")
        from torch.utils.tensorboard import SummaryWriter

        self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=done + 1)
        if self.console.is_terminal and not quiet:
            self.progress = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[figures]}"),
                TimeRemainingColumn(),
                console=self.console,
                refresh_per_second=4,
            )
            self.task = self.progress.add_task(name, total=updates, completed=done, figures="")
            self.progress.start()

    def _forget_after(self, done: int) -> None:
        """A resumed run takes back what was logged after the state it starts from."""
        if not self.path.exists():
            return
        kept = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if entry["update"] <= done:
                kept.append(line + "\n")
        self.path.write_text("".join(kept), encoding="utf-8")

    def write(self, kind: str, update: int, figures: dict[str, Any]) -> None:
        if not self.active:
            return
        self.stream.write(json.dumps({"kind": kind, "update": update, **figures}) + "\n")
        self.stream.flush()
        for key, value in figures.items():
            if isinstance(value, (int, float)):
                self.board.add_scalar(f"{kind}/{key}", value, update)

    def show(self, update: int, updates: int, figures: dict[str, float], left: float | None) -> None:
        """Moves the bar, or says a plain line now and then."""
        if not self.active or self.quiet:
            return
        text = "  ".join(f"{key} {value:,.4g}" for key, value in figures.items())
        if self.progress is not None:
            self.progress.update(self.task, completed=update, figures=text)
        elif time.monotonic() - self._spoke > PLAIN_EVERY:
            self._spoke = time.monotonic()
            remaining = "" if left is None else f"  about {left / 60:.1f} min left"
            print(f"{self.name} {update}/{updates}  {text}{remaining}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        if self.active and not self.quiet:
            self.console.print(text, highlight=False, soft_wrap=True)

    def close(self) -> None:
        if not self.active:
            return
        if self.progress is not None:
            self.progress.stop()
        self.stream.close()
        self.board.close()
