"""Formulas of Excel, where they depend on what cells say: texts they compare with, and names of tables' columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

TOKEN = re.compile(
    r"(?P<text>\"(?:[^\"]|\"\")*\")|(?P<sheet>'(?:[^']|'')*')|(?P<name>[^\W\d][\w.\\]*)|(?P<open>[({])|(?P<close>[)}])"
    r"|(?P<compares><>|<=|>=|[=<>])|(?P<column>\[)|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
LOOKING_UP = re.compile(
    r"(?:_xlfn\.|_xlws\.)*(?:(?:COUNT|SUM|AVERAGE|MAX|MIN)IFS?|X?MATCH|[VHX]?LOOKUP|EXACT|SEARCHB?|FINDB?|SWITCH|FILTER"
    r"|GETPIVOTDATA|SUBSTITUTE|D(?:GET|SUM|COUNTA?))",
    re.IGNORECASE,
)
CRITERION = re.compile(r"(?:<>|<=|>=|[=<>])?(.*)", re.DOTALL)
NAME_BEFORE = re.compile(r"[^\W\d][\w.\\]*\Z")
LONGEST_NAME = 255

Columns = Mapping[str, Mapping[str, str]]
"""For tables by name, their columns' old names to new ones; all old names are case-folded."""


def compared_texts(formula: str, is_rule: bool = False) -> set[str]:
    """The texts, case-folded, that a formula compares with or looks up: were the cells that it reads to say them in
    another language, it would find something else. A rule (of a format, say) may be nothing but such a text."""
    tokens = [found for found in TOKEN.finditer(formula) if found.lastgroup != "space"]
    calls: list[str] = []  # the functions around a token; those of parentheses and arrays are those around them
    found: set[str] = set()
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        behind = tokens[number + 1] if number + 1 < len(tokens) else None
        if token.lastgroup == "open":
            called = before[0] if before is not None and before.lastgroup == "name" and token[0] == "(" else None
            calls.append(called if called is not None else calls[-1] if calls else "")
        elif token.lastgroup == "close" and calls:
            calls.pop()
        elif token.lastgroup == "text":
            beside = (before is not None and before.lastgroup == "compares") or (
                behind is not None and behind.lastgroup == "compares"
            )
            if beside or (is_rule and len(tokens) == 1) or (calls and LOOKING_UP.fullmatch(calls[-1])):
                text = token[0][1:-1].replace('""', '"')
                found.add(CRITERION.sub(r"\1", text, count=1).strip().casefold())
    return found - {""}


def texts_in(formula: str) -> set[str]:
    """All texts that stand in a formula, as it may say them."""
    return {t["text"][1:-1].replace('""', '"') for t in TOKEN.finditer(formula) if t["text"]}


def with_columns(formula: str, columns: Columns) -> str:
    """A formula with renamed columns of tables: Sales[Net], Sales[[#Totals],[Net]], Sales[@Net]. Texts in it that name
    columns (of INDIRECT) follow, too."""
    if "[" not in formula:
        return formula
    out, position = "", 0
    while position < len(formula):
        token = TOKEN.match(formula, position)
        if token is None:
            break
        position = token.end()
        if token["text"] and "[" in token["text"]:
            inside = with_columns(token["text"][1:-1].replace('""', '"'), columns)
            out += '"' + inside.replace('"', '""') + '"'
        elif token["column"]:
            end = _closing(formula, token.start())
            table = NAME_BEFORE.search(out[-LONGEST_NAME:])
            names = columns.get(table[0].casefold(), {}) if table else {}
            out += f"[{_inside(formula[token.end() : end], names)}{formula[end : end + 1]}"
            position = end + 1
        else:
            out += token[0]
    return out


def _closing(formula: str, start: int) -> int:
    """Where a bracket closes; ' takes the meaning of what is behind it."""
    depth, place = 0, start
    while place < len(formula):
        letter = formula[place]
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if depth == 0:
            return place
        place += 2 if letter == "'" else 1
    return len(formula)


def _inside(content: str, names: Mapping[str, str]) -> str:
    """What stands between the brackets behind a table's name, with its columns renamed."""
    row, rest = ("@", content[1:]) if content.startswith("@") else ("", content)
    if not rest.lstrip().startswith("["):
        new = _renamed(rest, names)
        return f"@[{new}]" if row and new != rest and not new.isalnum() else row + new
    pieces = _pieces(rest)
    return row + "".join(f"[{_renamed(one[1:-1], names)}]" if one.startswith("[") else one for one in pieces)


def _renamed(name: str, names: Mapping[str, str]) -> str:
    """A column's name as formulas spell it; #Totals and the like are none."""
    new = None if name.startswith("#") else names.get(_plain(name).casefold())
    return name if new is None else re.sub(r"(['\[\]#@])", r"'\1", new)


def _pieces(content: str) -> Iterator[str]:
    """The brackets of a content, and what stands between them."""
    position = 0
    while (start := content.find("[", position)) >= 0:
        end = _closing(content, start) + 1
        yield content[position:start]
        yield content[start:end]
        position = end
    yield content[position:]


def _plain(name: str) -> str:
    return re.sub("'(.)", r"\1", name, flags=re.DOTALL)
