"""Recipes from YAML: inheritance from a base, `key=value` overrides, and errors that name the nearest key."""

from __future__ import annotations

import difflib
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined

from weitblick.common.errors import UserError
from weitblick.common.files import read_lines
from weitblick.common.recipe import Recipe

Section = TypeVar("Section", bound=BaseModel)
PACKAGE = Path(__file__).parents[1]
LARGEST_FILE, MOST_VALUES, MOST_BRACKETS = 1_000_000, 20_000, 2_000  # of a recipe, written by hand
BOOLEAN = "tag:yaml.org,2002:bool"


class YamlLoader(yaml.SafeLoader):
    """YAML in which only true and false are truth values, as in YAML 1.2: `no` is a language."""


YamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != BOOLEAN]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
YamlLoader.add_implicit_resolver(BOOLEAN, re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


class _TooMuch(Exception):
    pass


def _load_yaml(text: str) -> Any:
    """The values of a YAML text. What is nested too deeply, names itself, or grows by names of names is refused."""
    if text.count("[") + text.count("{") > MOST_BRACKETS:
        raise _TooMuch(f"more than {MOST_BRACKETS} brackets")
    try:
        values = yaml.load(text, YamlLoader)
    except RecursionError:
        raise _TooMuch("nested too deeply") from None
    except (ValueError, OverflowError, LookupError, AttributeError) as error:  # numbers, dates, truths that are none
        raise _TooMuch(str(error)) from None
    waiting, seen = [values], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if seen > MOST_VALUES:
            raise _TooMuch(f"more than {MOST_VALUES} values, or a value that contains itself")
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set)):
            waiting += list(value)
    return values


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Reads a recipe with its bases, applies `key=value` overrides, and checks everything.

    The override `base=FILE`, a path from where the user stands, puts the recipe on another base than its own.
    """
    changes: dict[str, Any] = {}
    for override in overrides:
        merge(changes, parse_override(override, Recipe))
    other = changes.pop("base", None)
    path = find_packaged(path, "recipes")
    values = read_with_bases(
        path, bases=None if other is None else [find_packaged(str(b), "recipes") for b in _as_list(other)]
    )
    merge(values, changes)
    return validate(Recipe, values, str(path))


def find_packaged(path: str | Path, folder: str) -> Path:
    """The file, or the one of that name among the recipes or studies that come with the package: recipes/tiny/base.yaml
    and tiny/base.yaml are the same there."""
    path = Path(path)
    if path.exists() or path.is_absolute():
        return path
    packaged = PACKAGE / folder / Path(*(path.parts[1:] if path.parts[:1] == (folder,) else path.parts))
    return packaged if packaged.is_file() else path


def read_yaml(path: Path) -> dict[str, Any]:
    if path.is_char_device():
        raise UserError("is a device, and may never end", where=path, remedy="name a file")
    text = "\n".join(read_lines(path))
    if len(text) > LARGEST_FILE:
        raise UserError(f"has {len(text)} characters, too many for a recipe", where=path)
    try:
        values = _load_yaml(text)
    except _TooMuch as error:
        raise UserError(f"not YAML that can be read ({error})", where=path, remedy="write it plainly") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UserError(
            f"not YAML ({getattr(error, 'problem', error)})", where=path, line=mark.line + 1 if mark else None
        ) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UserError(f"holds a {type(values).__name__}, not keys and values", where=path)
    return values


def read_with_bases(path: Path, seen: tuple[Path, ...] = (), bases: list[Path] | None = None) -> dict[str, Any]:
    """A recipe's values on top of its bases', each base on top of the one named before it.

    A recipe names its bases relative to itself; `bases` takes their place.
    """
    path = path.resolve() if path.exists() else path
    if path in seen:
        raise UserError(f"base recipes go round in a circle through {path}", where=seen[0])
    values = read_yaml(path)
    own = values.pop("base", None)
    if bases is None:
        bases = [] if own is None else [path.parent / str(base) for base in _as_list(own)]
    below: dict[str, Any] = {}
    for base in bases:
        merge(below, read_with_bases(base, (*seen, path)))
    merge(below, values)
    return below


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def merge(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    """Lays `above` over `below`, section by section."""
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(below.get(key), dict):
            merge(below[key], value)
        else:
            below[key] = dict(value) if isinstance(value, Mapping) else value


def parse_override(text: str, kind: type[BaseModel]) -> dict[str, Any]:
    """`a.b=value` -> {"a": {"b": value}}, the value read as YAML, or as it stands where the key of `kind` is text."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise UserError(f"{text!r} is not an override", remedy="write key=value, for example context.kind=word")
    parsed = _parse_value(value, dict(walk_fields(kind)).get(key.strip()))
    for name in reversed(key.strip().split(".")):
        parsed = {name: parsed}
    return parsed


def _parse_value(text: str, field: Any) -> Any:
    if not text or text == "null":
        return None
    if field is not None and field.annotation in (str, str | None):
        return text
    try:
        parsed = _load_yaml(text)
    except (yaml.YAMLError, _TooMuch):
        return text
    return _number(parsed) if isinstance(parsed, str) else parsed


def _number(text: str) -> Any:
    """YAML 1.1 reads 1e-3 as a string; people mean the number."""
    try:
        return float(text)
    except ValueError:
        return text


def validate(kind: type[Section], values: dict[str, Any], where: str) -> Section:
    """Checks values against a typed model; the first error in one line, with the nearest valid key."""
    try:
        return kind.model_validate(_numbers(values))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            near = nearest(key, known_keys(kind))
            raise UserError(
                f"unknown key {key!r}",
                where=where,
                remedy=f"did you mean {near!r}?" if near else "see weitblick recipe keys",
            ) from None
        message = first["msg"].removeprefix("Value error, ")
        if isinstance(first["input"], Mapping):  # a check across the keys of a section: its message says what is wrong
            raise UserError(f"{key}: {message}" if key else message, where=where) from None
        raise UserError(f"{key or 'recipe'} = {_shown(first['input'])}: {message}", where=where) from None


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"


def _numbers(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _numbers(value) for key, value in values.items()}
    if isinstance(values, str) and values[:1].isdigit() and "e" in values:
        return _number(values)
    return values


def nearest(key: str, known: Sequence[str]) -> str | None:
    """The valid key closest to a wrong one: by its full path, else by its last part."""
    if close := difflib.get_close_matches(key, known, 1, 0.6):
        return close[0]
    last = {name.rsplit(".", 1)[-1]: name for name in known}
    close = difflib.get_close_matches(key.rsplit(".", 1)[-1], list(last), 1, 0.6)
    return last[close[0]] if close else None


def known_keys(kind: type[BaseModel]) -> list[str]:
    """Every leaf key and every section."""
    leaves = [key for key, _ in walk_fields(kind)]
    sections = {key[:end] for key in leaves for end, character in enumerate(key) if character == "."}
    return [*sorted(sections), *leaves]


def walk_fields(kind: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf key with its pydantic field, depth first."""
    for name, field in kind.model_fields.items():
        inner = _section_of(field.annotation)
        if inner is not None:
            yield from walk_fields(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def _section_of(annotation: Any) -> type[BaseModel] | None:
    options = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    for option in options:
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None


# The reference of all recipe keys, made from the typed models.


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Key, allowed values, default and meaning of every key."""
    for key, field in walk_fields(Recipe):
        default = field.default
        if default is PydanticUndefined:
            default = field.default_factory() if field.default_factory else None
        yield key, _allowed(field.annotation, field.metadata), json.dumps(default), field.description or ""


def _allowed(annotation: Any, limits: list[Any]) -> str:
    if typing.get_origin(annotation) is typing.Literal:
        return " / ".join(str(value) for value in typing.get_args(annotation))
    if isinstance(annotation, types.UnionType):
        parts = [_allowed(part, []) for part in typing.get_args(annotation) if part is not type(None)]
        name = " or ".join(parts) + ", or nothing"
    elif typing.get_origin(annotation):
        inner = ", ".join(getattr(part, "__name__", str(part)) for part in typing.get_args(annotation))
        name = f"{typing.get_origin(annotation).__name__} of {inner}"
    else:
        name = getattr(annotation, "__name__", str(annotation))
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    bounds = [
        f"{sign} {getattr(limit, attr)}" for limit in limits for attr, sign in signs.items() if hasattr(limit, attr)
    ]
    return ", ".join([name, *bounds])


def as_markdown() -> str:
    lines = [
        "# Recipe reference",
        "",
        "Every key of a recipe, made from the types by `weitblick recipe reference`. On the command line a key is set",
        "by `key=value`, for example `context.kind=word`. A recipe may name a `base` that it changes.",
        "",
        "| key | values | default | meaning |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{key}` | {values} | `{default}` | {meaning} |".replace(" | null", " | ")
        for key, values, default, meaning in rows()
    ]
    return "\n".join(lines) + "\n"
