"""Options and overrides with values that nobody means: refused in one line, or taken at their word."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attacks import Attack, attacks
from commands import Commands, contents

VALUES = (
    "", " ", "0", "-1", "1", "2", "1e9", "1e999", "nan", "inf", "-inf", "9" * 30, "9" * 5000, "0x10", "1.5", "true",
    "no", "null", "~", "x", "é\u202e", "a\nb", "\udcff", "-", "--", "-o", "/dev/null", "/dev/full", "/proc/nowhere/x",
    ".", "/proc", "a" * 300, "%s", "[1, 2]", "{a: 1}", "[[", "*a", "2020-01-01", "document.en", "corpus", "recipe.yaml",
    "en", "de", "fr", "xx-YY", "document.en/x", "auto", "cpu", "cuda:99",
)  # fmt: skip
MEMORY = "project/pairs.sqlite"
LONG = {"serve", "demo", "train", "reproduce", "publish", "fetch", "complexity", "postedit"}
"""Commands that take minutes, use the network or never end when their options are right."""
SMALL = {"--trials": "5", "--documents": "2", "--beam": "1"}
ARGUMENTS: dict[str, Sequence[str]] = {
    "translate": ("document.en",),
    "check": ("corpus/dev.en", "corpus/dev.de"),
    "explain": ("document.en", "-o", "out.html"),
    "score": ("corpus/test.de", "--reference", "corpus/test.de"),
    "compare": ("corpus/test.de", "corpus/test.de", "corpus/test.de"),
    "contrast": ("suite.jsonl",),
    "context-use": ("corpus/dev.en", "corpus/dev.de"),
    "data convert": ("corpus/dev.en", "corpus/dev.de", "-o", "out.tsv"),
    "data stats": ("corpus/dev.en", "corpus/dev.de"),
    "data check": ("corpus/dev.en", "corpus/dev.de"),
    "data split": ("corpus/train.en", "corpus/train.de", "-o", "out"),
    "data holdout": ("corpus/dev.en", "corpus/dev.de", "-o", "out.tsv", "--held-out", "rest.tsv"),
    "data sample": ("corpus/dev.en", "corpus/dev.de", "-o", "out.tsv", "-n", "3"),
    "data mix": ("dev=1", "--folder", "corpus", "-o", "out.tsv"),
    "data select": ("corpus/dev.en", "corpus/dev.de", "-o", "out.tsv", "--source-has", "it"),
    "data antecedents": ("corpus/dev.en", "corpus/dev.de", "-o", "out"),
    "data pronouns": ("corpus/dev.en", "corpus/dev.de", "-o", "out.tsv"),
    "data decisions": ("corpus/dev.en", "corpus/dev.de", "-o", "out.tsv"),
    "data shortlist": ("corpus/dev.en", "corpus/dev.de", "-o", "out.txt"),
    "data discourse": ("out", "--documents", "2"),
    "judge sample": ("corpus/test.de", "corpus/test.de", "--source", "corpus/test.en", "-o", "form.html"),
    "judge sign-test": ("3", "5"),
    "memory add": ("project", "corpus/dev.en", "corpus/dev.de"),
    "memory matches": ("document.en", "--memory", "corpus/dev.tsv"),
    "memory list": ("project",),
    "memory replace": ("project", "1", "x"),
    "memory remove": ("project", "1"),
    "memory export": ("project", "-o", "out.tmx"),
    "recipe show": ("recipe.yaml",),
    "recipe keys": (),
    "models": (),
    "export ctranslate2": ("-o", "out"),
    "export marian": ("-o", "out"),
    "export firefox": ("-o", "out"),
    "import": ("corpus", "-o", "out"),
}


def commands() -> dict[str, Any]:
    """Every command by its full name, as click knows it."""
    import typer

    from weitblick.cli.main import app

    found = {}
    waiting = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        if hasattr(command, "commands"):
            waiting += [(f"{name} {key}", command.get_command(None, key)) for key in command.list_commands(None)]
        else:
            found[name.strip()] = command
    return dict(sorted(found.items()))


def test_every_command_is_attacked() -> None:
    missing = {name for name in commands() if name.split()[0] not in LONG} - ARGUMENTS.keys()
    assert missing <= {"judge read", "recipe reference"}, "give them arguments above"


@pytest.mark.parametrize("name", ARGUMENTS)
def test_options(weitblick: Commands, home: Path, place: Path, name: str) -> None:
    options = [
        (max(parameter.opts, key=len), bool(getattr(parameter, "is_flag", False)))
        for parameter in commands()[name].params
        if parameter.opts[0].startswith("-") and parameter.name not in ("help", "install_completion")
    ]
    model = ["-m", str(home / "run" / "best")] if any(option == "--model" for option, _ in options) else []
    inputs = {path: content for path, content in contents(place).items() if path != MEMORY}  # which commands change

    def make(attack: Attack) -> list[str]:
        given = [*name.split(), *ARGUMENTS[name], *model]
        if attack.random() < 0.2:
            given[attack.randrange(len(name.split()), len(given) + 1) :] = [attack.choice(VALUES)]
        for option, flag in attack.sample(options, min(len(options), attack.choice((1, 1, 2, 3)))):
            given += [option] if flag else [option, attack.choice(VALUES)]
        return [part for part in given if "\0" not in part]

    several = []
    for attack in attacks(f"options_{name}", 3, 0.01):
        several.append((attack, make(attack)))
        if len(several) == 3:
            _run(weitblick, place, several, inputs)
            several = []
    _run(weitblick, place, several, inputs)


def _run(weitblick: Commands, place: Path, several: list[tuple[Attack, list[str]]], inputs: dict[str, bytes]) -> None:
    outcomes = weitblick.each(place, [command for _, command in several])
    for (attack, _), outcome in zip(several, outcomes, strict=True):
        try:
            if "out of memory" not in outcome.complaint:  # what was asked for may be too much
                outcome.sound()
        except AssertionError as error:
            raise AssertionError(f"{attack}\n{error}") from None
    now = contents(place)
    for path, content in inputs.items():
        assert now.get(path) == content, f"{path} was changed by one of {[command for _, command in several]}"


def test_overrides(weitblick: Commands, place: Path) -> None:
    from weitblick.common.recipe import Recipe
    from weitblick.common.recipe_files import known_keys

    keys = known_keys(Recipe)
    several = []
    for attack in attacks("overrides", 100, 0.02):
        given = [f"{attack.choice(keys)}={attack.choice(VALUES)}" for _ in range(attack.choice((1, 1, 2)))]
        if attack.random() < 0.1:
            given.append(attack.choice(VALUES))
        several.append((attack, ["recipe", "show", "recipe.yaml", "--", *given]))
        if len(several) == 50:
            _run(weitblick, place, several, contents(place))
            several = []


def test_trainings_with_overrides(weitblick: Commands, place: Path) -> None:
    """Values that a recipe lets pass must not break the training either."""
    from weitblick.common.recipe import Recipe
    from weitblick.common.recipe_files import known_keys

    long = ("updates", "epochs", "output", "base", "stage1", "data.dir", "validate_every", "save_every")
    keys = [key for key in known_keys(Recipe) if not key.endswith(long)]
    inputs = contents(place)
    for attack in attacks("trainings_with_overrides", 3, 0.1):
        override = f"{attack.choice(keys)}={attack.choice(VALUES)}"
        command = ["train", "recipe.yaml", "data.dir=corpus", f"output=run{attack.number}", override]
        _run(weitblick, place, [(attack, command)], inputs)


def test_no_input_is_an_output(weitblick: Commands, home: Path, place: Path) -> None:
    """Whatever a command reads, by whatever option, it never writes over: files, links to them, memories, models."""
    shutil.copytree(home / "run" / "best", place / "model")
    (place / "approved.tsv").write_text("document\tsource\ttarget\na\tOne.\tEins.\n", encoding="utf-8")
    (place / "terms.tsv").write_text("house\tHaus\n", encoding="utf-8")
    (place / "link.en").symlink_to("document.en")
    inputs = contents(place)
    memories = ["--memory", "approved.tsv", "--memory", "project"]
    translate = ["translate", "document.en", "-m", "model", *memories, "--glossary", "terms.tsv"]
    translate += ["--keep", "terms.tsv", "--shortlist", "words.shortlist", "-o"]
    explain = ["explain", "document.en", "-m", "model", *memories, "--format", "json", "-o"]
    convert = ["data", "convert", "corpus/dev.en", "corpus/dev.de", "--to", "tsv", "-o"]
    shortlist = ["data", "shortlist", "corpus/dev.en", "corpus/dev.de", "-m", "model", "-o"]
    commands = [
        *([*translate, name] for name in ("document.en", "./link.en", ".", "approved.tsv", "terms.tsv")),
        *([*translate, name] for name in ("model/config.json", "words.shortlist", MEMORY)),
        *([*explain, name] for name in ("document.en", "link.en", "approved.tsv", "model/text/pipeline.json", MEMORY)),
        *([*convert, name] for name in ("corpus/dev.en", "corpus/../corpus/dev.de")),
        *([*shortlist, name] for name in ("corpus/dev.en", "model/model.safetensors")),
        ["memory", "export", "project", "-o", MEMORY],
    ]
    for outcome in weitblick.each(place, commands):
        assert outcome.sound().code == 2, outcome
        assert "never written over" in outcome.complaint, outcome
    assert contents(place) == inputs
