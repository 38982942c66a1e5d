"""The reference of all recipe keys, made from the typed models."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator
from typing import Any

from pydantic_core import PydanticUndefined

from weitblick.config.load import walk_fields
from weitblick.config.recipe import Recipe


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
