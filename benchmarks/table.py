"""One table of what `decoding_peers.py` and `training_peers.py` wrote: a task a row, a system a column.

    python benchmarks/table.py FILE.json ... > TABLE.md

Figures are words (decoding) and target tokens (training) per second. The last column is our best over the best of the
others, by these medians. Below the table stands when, where and beside which load each file was measured.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OURS = {
    "weitblick float32": "ours, PyTorch, float32",
    "weitblick int8": "ours, PyTorch, int8",
    "weitblick float32, kernels": "ours, kernels, float32",
    "weitblick int8, kernels": "ours, kernels, int8",
}
OTHERS = {
    "transformers generate": "transformers",
    "ctranslate2 float32": "CTranslate2, float32",
    "ctranslate2 int8": "CTranslate2, int8",
    "joeynmt": "JoeyNMT",
}
TRAINED = {"weitblick": "weitblick float32", "marian": "transformers generate", "joeynmt": "joeynmt"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in parser.parse_args().files]
    tasks: dict[str, dict[str, float]] = {}
    versions: dict[str, str] = {}
    for report in reports:
        for task, system, version, speed in figures(report["rows"]):
            tasks.setdefault(task, {})[system] = speed
            versions[system.split(" ")[0]] = version
    columns = {name: shown for name, shown in (OURS | OTHERS).items() if any(name in found for found in tasks.values())}
    print(f"| | {' | '.join(columns.values())} | ours of the best |")
    print("|---" * (len(columns) + 2) + "|")
    for task, found in tasks.items():
        cells = [f"{found[name]:,.0f}" if name in found else "" for name in columns]
        print(f"| {task} | {' | '.join(cells)} | **{lead(found):.2f}** |")
    print("\n" + ", ".join(f"{name} {version}" for name, version in versions.items()) + ". " + circumstances(reports))


def figures(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, float]]:
    """Task, system, its version and its speed."""
    for row in rows:
        threads = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
        if "beam" in row:
            system, version = row["model"].rstrip(")").rsplit(" (", 1)
            search = "greedy" if row["beam"] == 1 else f"beam {row['beam']}"
            held = "" if row["instructions"] == "native" else f", {row['instructions'].upper()} only"
            yield f"{row['size']}, {search}, {threads}{held}", system, version, row["words_per_second"]
        else:
            system, version = row["model"].rsplit(" ", 1)
            task = f"training, {row['size']}, {row['precision']}, {threads}"
            yield task, TRAINED[system], version, row["tokens_per_second"]


def lead(found: dict[str, float]) -> float:
    best = [max(speed for name, speed in found.items() if (name in OURS) is own) for own in (True, False)]
    return best[0] / best[1]


def circumstances(reports: list[dict[str, Any]]) -> str:
    places = {f"{report['started']['processor']}, {report['started']['cores']} cores" for report in reports}
    days = sorted({report["started"]["date"] for report in reports})
    loads = [time["load_average"][0] for report in reports for time in (report["started"], report["ended"])]
    return f"{'; '.join(sorted(places))}, {' to '.join(days)}, load {min(loads):.0f} to {max(loads):.0f}."


if __name__ == "__main__":
    main()
