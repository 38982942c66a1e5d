"""What the docs and the help say is true: commands and options exist, files are there, snippets compile."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from weitblick.cli.main import app
from weitblick.common.recipe_files import load_recipe
from weitblick.evaluation.study import load_study

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PANELS = {
    "Start here",
    "Data",
    "Train and translate",
    "Models from and for elsewhere",
    "See the context",
    "Judge",
    "Reproduce",
}
SHELLS = ("bash", "console", "sh")


@cache
def program() -> Any:
    return typer.main.get_command(app)


def blocks(page: Path, *languages: str) -> list[str]:
    """The fenced blocks of a page in these languages."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [text for language, text in found if language in languages]


def inline_code(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", text)]


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of each call of weitblick in a line of shell, whatever starts it, without redirections."""
    lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|;<>")
    lexer.whitespace_split = True
    for ends, words in itertools.groupby(lexer, key=lambda token: token in ("|", ";")):
        call = list(itertools.takewhile(lambda word: word not in ("<", ">"), words))
        start = next((place for place, word in enumerate(call) if Path(word).name == "weitblick"), None)
        if ends or start is None or call[0] not in (call[start], "torchrun", "python"):
            continue
        yield call[start + 1 :]


def find_command(arguments: list[str]) -> tuple[Any, list[str]]:
    """The command that arguments name, and what is left of them."""
    command, rest = program(), list(arguments)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        command = command.get_command(None, name)
        assert command is not None, f"no command {name}"
    return command, rest


def all_commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    group = command or program()
    for name in group.list_commands(None):
        inner = group.get_command(None, name)
        if hasattr(inner, "commands"):
            yield from all_commands(inner, (*path, name))
        else:
            yield (*path, name), inner


def check_options(arguments: list[str]) -> None:
    """The command exists, and so does every option that is named."""
    command, rest = find_command(arguments)
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {
        "-h",
        "--help",
    }
    for word in rest:
        if re.match(r"--?[a-z]", word):
            assert word.split("=")[0] in known, f"{' '.join(arguments)}: no option {word}"


def check_call(arguments: list[str]) -> None:
    """The command would take these arguments, and the recipe or study they name would take their changes."""
    check_options(arguments)
    command, rest = find_command(arguments)
    if hasattr(command, "commands") or "--help" in rest:
        return
    values = command.make_context(command.name, rest).params
    if "recipe" in values:
        load_recipe(ROOT / values["recipe"], [_from_root(change) for change in values["overrides"] or []])
    if "study" in values:
        load_study(ROOT / values["study"], values["overrides"] or [])


def _from_root(change: str) -> str:
    return f"base={ROOT / change.removeprefix('base=')}" if change.startswith("base=") else change


DOCUMENTED = [
    pytest.param(arguments, id=f"{page.name}: {' '.join(arguments)}")
    for page in PAGES
    for block in blocks(page, *SHELLS)
    for line in block.splitlines()
    for arguments in calls(line)
]


@pytest.mark.parametrize("arguments", DOCUMENTED)
def test_commands_in_blocks_parse(arguments: list[str]) -> None:
    check_call(arguments)


def test_blocks_have_commands() -> None:
    """The search for commands finds them: with a pipe, under torchrun, and with a comment behind."""
    assert len(DOCUMENTED) > 60
    assert list(calls("cat a.en | weitblick translate - --beam 1 > a.de")) == [["translate", "-", "--beam", "1"]]
    assert list(calls("torchrun --standalone -m weitblick train r.yaml  # both")) == [["train", "r.yaml"]]
    assert list(calls("printf 'a; b\\n' | .venv/bin/weitblick demo")) == [["demo"]]
    assert list(calls("make test")) == []


@pytest.mark.parametrize("line", ["nothing", "train r.yaml --no-such-option", "data nothing"])
def test_wrong_commands_are_found(line: str) -> None:
    with pytest.raises(AssertionError):
        check_options(line.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_text_exist(page: Path) -> None:
    for code in inline_code(page):
        if code.startswith("weitblick "):
            check_options([word for word in code.split()[1:] if not word.isupper() and "..." not in word])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in _anchors(target), f"{page.name}: {link}"


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def expand(pattern: str) -> list[str]:
    """`a-{b,c}.yaml` -> a-b.yaml, a-c.yaml"""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_are_there(page: Path) -> None:
    words = {word for code in inline_code(page) for word in code.split()}
    words |= {word for block in blocks(page, *SHELLS) for word in block.split()}
    for word in words:
        for name in expand(word):
            if re.match(r"(recipes|studies|src|tests|docs|benchmarks|\.ci)/", name):
                assert (ROOT / name).exists(), f"{page.name}: {name}"
            elif re.fullmatch(r"[a-z-]+\.yaml", name):
                assert list((ROOT / "recipes").rglob(name)), f"{page.name}: no recipe {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    lines = [*inline_code(page), *(line for block in blocks(page, *SHELLS) for line in block.splitlines())]
    for line in lines:
        if found := re.match(r"(?:\$ )?make ([a-z-]+)", line):
            assert found[1] in targets, f"{page.name}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_snippets_compile_and_import_what_exists(page: Path) -> None:
    for snippet in blocks(page, "python"):
        for node in ast.walk(ast.parse(snippet, page.name)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{page.name}: {node.module} has no {alias.name}"


def test_study_in_the_docs_is_one(tmp_path: Path) -> None:
    (snippet,) = blocks(ROOT / "docs" / "paper-tables.md", "yaml")
    (tmp_path / "studies").mkdir()
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    (tmp_path / "studies" / "mine.yaml").write_text(snippet, encoding="utf-8")
    study, rows = load_study(tmp_path / "studies" / "mine.yaml")
    assert len(rows) == len(study.rows)


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    missing = [
        page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md" and page.name not in index
    ]
    assert missing == []


# The help


@pytest.mark.parametrize("path", [path for path, _ in all_commands()], ids=" ".join)
def test_every_command_has_an_example_that_parses(path: tuple[str, ...]) -> None:
    command, _ = find_command(list(path))
    texts = [inspect.cleandoc(text) for text in (command.help, command.epilog) if text]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("Example: ")]
    examples = [arguments for line in lines for arguments in calls(line.removeprefix("Example: "))]
    assert examples, "no example in the help"
    for arguments in examples:
        check_call(arguments)
        assert tuple(arguments[: len(path)]) == path


def test_examples_of_the_program_parse() -> None:
    examples = [arguments for line in program().epilog.splitlines() for arguments in calls(line)]
    assert len(examples) >= 3
    for arguments in examples:
        check_call(arguments)


def test_every_command_has_its_panel_and_place() -> None:
    group = program()
    names = group.list_commands(None)
    panels = [group.get_command(None, name).rich_help_panel for name in names]
    assert set(panels) == PANELS
    assert [panel for panel, _ in itertools.groupby(panels)] == list(dict.fromkeys(panels)), "a panel is torn apart"


def test_packages_import_only_what_stands_above_them() -> None:
    """The table of docs/architecture.md is the order of packages."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`\w+`[^|]*)\|", text, re.MULTILINE)]
    rank = {name: number for number, names in enumerate(rows) for name in names}
    source = ROOT / "src" / "weitblick"
    packages = {path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert packages - {"__init__", "__main__"} <= rank.keys()
    wrong = [
        f"{path.relative_to(source)}: {module}"
        for path in source.rglob("*.py")
        for module in _own_imports(path)
        if (own := path.relative_to(source).parts[0].removesuffix(".py")) in rank
        and rank[module.split(".")[1]] > rank[own]
    ]
    assert wrong == []


def test_the_names_of_the_layout_are_where_it_says() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    missing = []
    for packages, names in re.findall(r"^\| (`\w+`[^|]*)\|[^|]*\|([^|]*)\|$", text, re.MULTILINE):
        places = [ROOT / "src" / "weitblick" / name for name in re.findall(r"`(\w+)`", packages)]
        files = [
            file for place in places for file in (place.with_suffix(".py"), *place.rglob("*.py")) if file.is_file()
        ]
        code = "\n".join(file.read_text(encoding="utf-8") for file in files)
        defined = set(re.findall(r"^(?:def |class |)(\w+)", code, re.MULTILINE))
        missing += [f"{packages.strip()}: {name}" for name in re.findall(r"`(\w+)`", names) if name not in defined]
    assert missing == []


def _own_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("weitblick."):
            yield node.module
