"""Contestants take turns in every round, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

console = Console(stderr=True)

CLOCKS = ("wall", "cpu")
CLOCK_HELP = "cpu: processor time, for a machine that others use too; with 1 thread, for threads wait busily"


def option_parser(description: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """With what all benchmarks take that let contestants take turns."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help=CLOCK_HELP)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="write the results here too")
    return parser


def text_parser(description: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """As `option_parser`, of benchmarks that translate a text with a model."""
    parser = option_parser(description, rounds=rounds)
    parser.add_argument("text")
    parser.add_argument("-m", "--model")
    parser.add_argument("--int8", action="store_true")
    return parser


def take_turns(
    contestants: Mapping[str, Callable[[], float]], rounds: int, *, warm_up: int = 1, label: str = ""
) -> dict[str, list[float]]:
    """The figures of each contestant, one a round."""
    figures: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(warm_up + rounds):
        for name, run in contestants.items():
            figure = run()
            if number >= warm_up:
                figures[name].append(figure)
        console.print(f"[dim]{label} round {number - warm_up + 1} of {rounds}[/]", highlight=False)
    return figures


def ratio(figures: Mapping[str, list[float]], name: str, base: str) -> float:
    """Median over rounds of the quotient of neighbours in time: steadier than a quotient of medians."""
    return median(x / y for x, y in zip(figures[name], figures[base], strict=True))


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def circumstances() -> dict[str, Any]:
    """What every figure should travel with."""
    return {
        "date": date.today().isoformat(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(),
    }


def report(title: str, rows: list[dict[str, Any]], started: dict[str, Any], path: str | None) -> None:
    """The rows as a Markdown table; and, with a path, all of it as JSON."""
    ended = circumstances()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    numeric = [any(isinstance(row.get(column), int | float) for row in rows) for column in columns]
    lines = [[column.replace("_", " ") for column in columns], ["---:" if right else "---" for right in numeric]]
    lines += [[shown(row.get(column)) for column in columns] for row in rows]
    print(f"**{title}**\n")
    print("\n".join(f"| {' | '.join(line)} |" for line in lines))
    print(
        f"\n{started['date']}, {started['processor']}, {started['cores']} cores, "
        f"load {started['load_average'][0]} at the start, {ended['load_average'][0]} at the end"
    )
    if path:
        from weitblick.common.files import write_json

        write_json(Path(path), {"title": title, "started": started, "ended": ended, "rows": rows})


def shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
