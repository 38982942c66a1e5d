"""No module needs itself: no cycle of imports, not even one that hides inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.AST) -> Iterator[str]:
    """Every name that is imported when code runs, at the top or inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        else:
            yield from imported(node)


def test_no_module_needs_itself() -> None:
    paths = {module_name(path): path for path in SOURCE.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        found = imported(ast.parse(path.read_text(encoding="utf-8")))
        needed = {full if full in paths else full.rpartition(".")[0] for full in found}
        graph[name] = (needed & paths.keys()) - {name, "weitblick"}  # the package itself only names its parts
    graph["weitblick"] = set()
    TopologicalSorter(graph).prepare()  # raises CycleError with the modules


def test_files_can_be_read_in_one_sitting() -> None:
    lengths = {module_name(path): path.read_text(encoding="utf-8").count("\n") for path in SOURCE.rglob("*.py")}
    assert [name for name, lines in lengths.items() if lines > 400] == []
