"""The paper's tables from the results of a study: as data, as Markdown and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from weitblick.common.characters import latex_text
from weitblick.common.files import text_writer, write_json
from weitblick.documents.contrast import DISTANCES
from weitblick.evaluation.scoring import CONTEXT_MODES
from weitblick.evaluation.significance import LEVEL
from weitblick.evaluation.study import Row, Study
from weitblick.evaluation.study_plan import Plan
from weitblick.evaluation.study_steps import Ledger, Step

FORMAT_VERSION = 1
LATEX_MARKS = {
    **{"†": r"$^\dagger$", "‡": r"$^\ddagger$", "▽": r"$^\triangledown$"},
    **{"★": r"$^\bigstar$", "♢": r"$^\diamondsuit$", "♣": r"$^\clubsuit$", "°": r"$^\circ$"},
}
NOTE = "† better than the baseline at p < .05, ‡ at p < .01, ▽ worse at p < .05 (approximate randomisation)"


@dataclass(frozen=True)
class Cell:
    text: str = ""
    mark: str = ""
    bold: bool = False


@dataclass(frozen=True)
class TableLine:
    """A row of a table; one without cells is a heading."""

    label: str
    cells: Sequence[Cell] = ()


@dataclass(frozen=True)
class Table:
    """`data` is the same as plain values, for JSON."""

    key: str
    caption: str
    columns: Sequence[str]
    lines: Sequence[TableLine]
    data: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def build_tables(study: Study, rows: Sequence[Row], plan: Plan, ledger: Ledger) -> list[Table]:
    scores = {corpus: ledger.result(step)["metrics"] for corpus, step in plan.scores.items()}
    tables = [
        _quality("table1", "Offline: past and future context", "offline", study, rows, scores),
        _quality("table2", "Online: past context", "online", study, rows, scores),
    ]
    tables += _contrast(rows, plan, ledger)
    tables.append(_complexity(rows, plan, ledger))
    tables += [_use(corpus, rows, steps, ledger) for corpus, steps in plan.uses.items()]
    return [table for table in tables if any(line.cells for line in table.lines)]


def _sections(rows: Sequence[Row], directions: Sequence[str]) -> list[tuple[str, list[Row]]]:
    """Sentence-level rows first, then those with context in the encoder and in the decoder."""
    sections = [("", [row for row in rows if row.sentence_level])]
    for integration in ("encoder", "decoder"):
        members = [row for row in rows if row.integration == integration and row.direction in directions]
        sections.append((f"Integration into the {integration}", members))
    return [(title, members) for title, members in sections if members]


def _lines(sections: list[tuple[str, list[Row]]], cells: dict[str, list[Cell]]) -> list[TableLine]:
    lines = []
    for title, members in sections:
        lines += [TableLine(title)] if title else []
        lines += [TableLine(row.name, cells[row.id]) for row in members]
    return lines


def _bold_best(values: dict[str, list[float | None]], texts: dict[str, list[Cell]]) -> dict[str, list[Cell]]:
    """The greatest of each column in bold."""
    if not values:
        return texts
    best = [max((v for v in column if v is not None), default=None) for column in zip(*values.values(), strict=True)]
    return {
        row: [
            Cell(cell.text, cell.mark, value is not None and value == top)
            for cell, value, top in zip(texts[row], values[row], best, strict=True)
        ]
        for row in values
    }


def _quality(
    key: str, caption: str, direction: str, study: Study, rows: Sequence[Row], scores: dict[str, Any]
) -> Table:
    """Tables 1 and 2: every metric on every corpus."""
    sections = _sections(rows, [direction])
    if not any(row.direction for _, members in sections for row in members):
        return Table(key, caption, [], [])
    shown = [row for _, members in sections for row in members]
    columns = [(corpus, metric) for corpus in scores for metric in study.metrics]
    values: dict[str, list[float | None]] = {}
    cells: dict[str, list[Cell]] = {}
    data: dict[str, Any] = {}
    for row in shown:
        found = {(c, m): scores[c][m]["systems"][row.id] for c, m in columns}
        values[row.id] = [round(found[column]["score"], 2) for column in columns]
        cells[row.id] = [Cell(f"{found[c]['score']:.2f}", _marks(found[c], study)) for c in columns]
        data[row.id] = {corpus: {m: found[corpus, m] for m in study.metrics} for corpus in scores}
    labels = [f"{corpus} {scores[corpus][metric].get('label', metric)}" for corpus, metric in columns]
    lines = _lines(sections, _bold_best(values, cells))
    signatures = {metric: next(iter(scores.values()))[metric]["signature"] for metric in study.metrics}
    return Table(key, caption, labels, lines, {"rows": data, "signatures": signatures}, _note(study))


def _marks(found: dict[str, Any], study: Study) -> str:
    """The mark against the baseline, and those of the further baselines that the row is better than, as in the paper:
    ★ and ♢ together are ♣."""
    better = "".join(
        study.baselines[name]
        for name, against in found.get("against", {}).items()
        if against["p_randomisation"] < LEVEL and against["difference"] > 0
    )
    return found.get("mark", "") + better.replace("★♢", "♣")


def _note(study: Study) -> str:
    parts = [f"{mark} better than {name} at p < .05" for name, mark in study.baselines.items()]
    if {"★", "♢"} <= set(study.baselines.values()):
        parts.append("♣ better than both")
    return "; ".join([NOTE, *parts, f"tests by {study.test_by}"])


def _contrast(rows: Sequence[Row], plan: Plan, ledger: Ledger) -> list[Table]:
    """Table 3: contrastive accuracy by antecedent distance; the controls beside it."""
    tables = []
    for (corpus, suite), steps in plan.contrasts.items():
        results = {row: [ledger.result(step) for step in runs] for row, runs in steps.items()}
        first = next(iter(results.values()))[0]["own"]
        distances = [name for name in DISTANCES if name in first["by_distance"]]
        values: dict[str, list[float | None]] = {}
        for row, runs in results.items():
            values[row] = [_mean(runs, "own"), *(_mean(runs, "own", distance) for distance in distances)]
            values[row] += [_mean(runs, mode) for mode in ("removed", "random")]
        cells = {row: [Cell("" if v is None else f"{v:.3f}") for v in column] for row, column in values.items()}
        lines = _lines(_sections_by_direction(rows), _bold_best(values, cells))
        counts = [first["items"], *(first["by_distance"][d]["items"] for d in distances)]
        lines.append(TableLine("items", [*(Cell(str(count)) for count in counts), Cell(), Cell()]))
        tables.append(
            Table(
                "table3" if len(plan.contrasts) == 1 else f"table3-{corpus}-{suite}",
                f"Contrastive accuracy on {suite} ({corpus}) by antecedent distance; context removed and random",
                ["all", *distances, "removed", "random"],
                lines,
                {"rows": results},
                f"ties count as wrong; chance is {first['chance']:.3f}",
            )
        )
    return tables


def _sections_by_direction(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    sections = [("", [row for row in rows if row.sentence_level])]
    for direction in ("offline", "online"):
        for integration in ("encoder", "decoder"):
            members = [row for row in rows if (row.integration, row.direction) == (integration, direction)]
            sections.append((f"{direction.capitalize()}, {integration}", members))
    return [(title, members) for title, members in sections if members]


def _mean(runs: Sequence[dict[str, Any]], mode: str, distance: str | None = None) -> float | None:
    found = [run[mode] for run in runs if mode in run]
    if distance is not None:
        found = [group["by_distance"][distance] for group in found]
    return round(mean(group["accuracy"] for group in found), 4) if found else None


def _complexity(rows: Sequence[Row], plan: Plan, ledger: Ledger) -> Table:
    """Table 4: parameters, and speed as a share of the baseline's; of the first corpus."""
    results = ledger.result(next(iter(plan.complexity.values())))
    cells = {}
    for row in rows:
        found = results[row.id]
        cells[row.id] = [Cell(f"{found['parameters'] / 1e6:.2f}M")]
        for name in ("training", "decoding"):
            if f"{name}_share" in found:
                cells[row.id] += [
                    Cell(f"{found[f'{name}_words_per_second']:.0f}"),
                    Cell(f"{found[f'{name}_share']:.2f}"),
                ]
    timed = len(next(iter(cells.values()))) > 1
    columns = ["parameters", *(["training words/s", "share", "decoding words/s", "share"] if timed else [])]
    note = "speed beside the baseline on the same machine" if timed else ""
    return Table(
        "table4", "Model complexity", columns, _lines(_sections_by_direction(rows), cells), {"rows": results}, note
    )


def _use(corpus: str, rows: Sequence[Row], steps: dict[str, list[Step]], ledger: Ledger) -> Table:
    """Table 5: what context is worth in teacher forcing, with its controls, and how much of it is read."""
    results = {row: [ledger.result(step) for step in runs] for row, runs in steps.items()}
    columns: dict[str, tuple[str, ...]] = {
        **{mode: ("log_probability_per_token", mode) for mode in CONTEXT_MODES},
        "own - removed": ("cxmi", "per_token", "mean"),
        "own - random": ("own_over_random", "per_token", "mean"),
        "sentences attended": ("support",),
        "context in the gate": ("gate",),
    }
    cells = {
        row: [_figure([_inside(run, path) for run in runs], name) for name, path in columns.items()]
        for row, runs in results.items()
    }
    return Table(
        "table5",
        f"Use of context on {corpus} dev: log-probability per token in nats with own, removed and random context",
        list(columns),
        _lines(_sections_by_direction(rows), cells),
        {"rows": results},
        "target context are translations of the sentence-level baseline; means over seeds",
    )


def _inside(value: Any, path: Sequence[str]) -> float | None:
    """What stands under these keys, or None where one of them is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _figure(values: Sequence[float | None], name: str) -> Cell:
    known = [value for value in values if value is not None]
    if not known:
        return Cell()
    digits = 2 if name == "sentences attended" else 3 if name == "context in the gate" else 4
    return Cell(f"{mean(known):{'+' if ' - ' in name else ''}.{digits}f}")


# Writing


def write_tables(tables: Sequence[Table], study: Study, folder: Path) -> dict[str, Any]:
    """tables.md, tables.tex and tables.json in the folder of the study; gives what the last one holds."""
    with text_writer(folder / "tables.md") as stream:
        stream.write(markdown(tables, study.name))
    with text_writer(folder / "tables.tex") as stream:
        stream.write(latex(tables))
    report = {
        "format_version": FORMAT_VERSION,
        "study": study.name,
        "seeds": study.seeds,
        "baseline": study.baseline,
        "tables": {table.key: {"caption": table.caption, **table.data} for table in tables},
    }
    write_json(folder / "tables.json", report)
    return report


def markdown(tables: Sequence[Table], name: str) -> str:
    parts = [f"# {name}\n"]
    for table in tables:
        head = ["", *table.columns]
        rows = [head, ["---", *("---:" for _ in table.columns)]]
        for line in table.lines:
            cells = [_markdown_cell(cell) for cell in line.cells] or [""] * len(table.columns)
            rows.append([line.label if line.cells else f"*{line.label}*", *cells])
        body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
        note = f"\n\n{table.note}" if table.note else ""
        parts.append(f"**{_number(table)}.** {table.caption}\n\n{body}{note}\n")
    return "\n".join(parts)


def _number(table: Table) -> str:
    return f"Table {table.key.removeprefix('table')}"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.bold and cell.text else cell.text
    return text + cell.mark


def latex(tables: Sequence[Table]) -> str:
    """One table environment each, for the booktabs package."""
    return (
        "\n".join(
            [
                "% needs \\usepackage{booktabs,amssymb,textcomp} and \\usepackage[T1]{fontenc}",
                *map(_latex_table, tables),
            ]
        )
        + "\n"
    )


def _latex_table(table: Table) -> str:
    width = len(table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * width}}}",
        r"\toprule",
        " & ".join(["", *map(_latex, table.columns)]) + r" \\",
        r"\midrule",
    ]
    for line in table.lines:
        if not line.cells:
            lines += [r"\midrule", rf"\multicolumn{{{width + 1}}}{{l}}{{\emph{{{_latex(line.label)}}}}} \\"]
            continue
        lines.append(" & ".join([_latex(line.label), *map(_latex_cell, line.cells)]) + r" \\")
    note = f" {table.note}." if table.note else ""
    caption = _latex(f"{table.caption}.{note}")
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{table.key}}}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _latex_cell(cell: Cell) -> str:
    text = rf"\textbf{{{_latex(cell.text)}}}" if cell.bold and cell.text else _latex(cell.text)
    return text + _latex(cell.mark)


def _latex(text: str) -> str:
    """Text with the marks of significance that it may name."""
    return "".join(LATEX_MARKS.get(character) or latex_text(character) for character in text)
