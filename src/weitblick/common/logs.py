"""The logs of a training run: a progress bar or plain lines, JSONL, TensorBoard where it is installed, and curves."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from weitblick.common.errors import UserError
from weitblick.common.files import atomic_path, check_regular_file, make_folder, text_writer
from weitblick.common.imports import optional_package

PLAIN_EVERY = 30.0  # seconds between lines where there is no terminal


class Logs:
    """One stage's logs. Only the first process writes any."""

    def __init__(self, folder: Path, name: str, updates: int, done: int, *, active: bool, quiet: bool = False) -> None:
        self.active, self.name, self.quiet = active, name, quiet
        self.path = folder / "log.jsonl"
        self.console = Console(stderr=True)
        self.progress: Progress | None = None
        self._spoke = 0.0
        self._told: set[tuple[str, int]] = set()
        if not active:
            return
        make_folder(folder)
        self._forget_after(done)
        self.stream = self.path.open("a", encoding="utf-8")
        self.board = _board(folder / "tensorboard", done + 1)
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
        """A resumed run takes back what was logged after the state it starts from. What was logged of that very update
        stands, and is not told again."""
        if self.path.exists():
            kept = [entry for entry in read_log(self.path) if entry["update"] <= done]
            self._told = {(entry["kind"], entry["update"]) for entry in kept}
            with text_writer(self.path) as stream:
                stream.writelines(json.dumps(entry) + "\n" for entry in kept)

    def __enter__(self) -> Logs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, kind: Literal["train", "dev"], update: int, figures: Mapping[str, float | list[float]]) -> None:
        if not self.active or (kind, update) in self._told:
            return
        self.stream.write(json.dumps({"kind": kind, "update": update, **figures}) + "\n")
        self.stream.flush()
        for key, value in figures.items():
            if self.board is not None and isinstance(value, (int, float)):
                self.board.add_scalar(f"{kind}/{key}", value, update)

    def show(self, update: int, updates: int, figures: Mapping[str, float], left: float | None) -> None:
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
        if self.board is not None:
            with suppress(OSError):  # a full disc: curves are no reason to lose what was trained
                self.board.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The entries of a log; what a crash or a full disc left of a line is passed over."""
    check_regular_file(path, remedy="delete it: a run goes on without what was logged")
    entries = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, dict) and isinstance(entry.get("update"), int) and isinstance(entry.get("kind"), str):
                entries.append(entry)
    return entries


def _board(folder: Path, first: int) -> Any:
    """TensorBoard's writer; None where it is not installed: all that it would show is in log.jsonl, too."""
    try:
        with optional_package("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
    except UserError as missing:
        logging.getLogger("weitblick").info("no curves for TensorBoard: %s", missing)
        return None
    return SummaryWriter(str(folder), purge_step=first)


# The training curves of a stage as a picture: loss, and how open and how sparse the context attention is.


def draw_curves(log: Path, picture: Path) -> None:
    with optional_package("plots"):
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

    entries = read_log(log)
    train = [e for e in entries if e["kind"] == "train"]
    dev = [e for e in entries if e["kind"] == "dev"]
    panels = [
        ("perplexity", [("train", train, "perplexity"), ("dev", dev, "dev_perplexity"),
                        ("dev, context removed", dev, "dev_perplexity_without_context"),
                        ("dev, random context", dev, "dev_perplexity_random_context")]),
        ("context's share of the gate", [("train", train, "context_share"), ("dev", dev, "context_share")]),
        ("sentences attended", [("train", train, "support"), ("dev", dev, "support")]),
    ]  # fmt: skip
    panels = [(title, [c for c in curves if any(c[2] in e for e in c[1])]) for title, curves in panels]
    panels = [(title, curves) for title, curves in panels if curves]
    if not panels:
        return
    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 3.6), squeeze=False)
    for axis, (title, curves) in zip(axes[0], panels, strict=True):
        for label, source, key in curves:
            points = [(e["update"], e[key]) for e in source if key in e]
            axis.plot(*zip(*points, strict=True), label=label, linewidth=1.2, marker="." if source is dev else None)
        if title == "perplexity":
            axis.set_yscale("log")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("update")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.tight_layout()
    with atomic_path(picture) as temporary:
        figure.savefig(temporary, dpi=110)
    plt.close(figure)
