"""The one kind of error a user may cause: a single line that names file, line, value and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

LONGEST = 2000  # characters of a message: values may be of any size


class UserError(Exception):
    """A user's mistake. The command line prints it as one line and exits with code 2.

    `where` is the file (or recipe key) concerned, `line` its 1-based line; `message` says what is wrong and
    with which value, `remedy` what to do about it.
    """

    def __init__(
        self, message: str, *, where: str | Path | None = None, line: int | None = None, remedy: str | None = None
    ) -> None:
        self.message, self.where, self.line, self.remedy = message, where, line, remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        place = "" if self.where is None else f"{self.where}:" + (f"{self.line}:" if self.line is not None else "")
        text = f"{place} {self.message}" if place else self.message
        text = f"{text}; {self.remedy}" if self.remedy else text
        text = " ".join(text.split())
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 300]} ... {text[-295:]}"


# Files checked against typed models: what is wrong with one is said in one line that names the field and its value.

Model = TypeVar("Model", bound=BaseModel)

WORDS = {
    "string_type": "not text",
    "int_type": "not a whole number",
    "float_type": "not a number",
    "bool_type": "not true or false",
    "greater_than_equal": "not a number from {ge}",
    "greater_than": "not a number above {gt}",
    "tuple_type": "not a list",
    "list_type": "not a list",
    "dict_type": "not a JSON object",
    "model_type": "not a JSON object",
    "literal_error": "not {expected}",
    "finite_number": "not a finite number",
}
"""What pydantic's kinds of errors mean to somebody who wrote a file."""


def parse_json(
    kind: type[Model], text: str, where: str | Path, *, line: int | None = None, remedy: str | None = None
) -> Model:
    """A JSON text as a model. Depth and digits are bounded by the parser."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise explain(error, where, line=line, remedy=remedy) from None


def parse_value(
    kind: type[Model],
    value: Any,
    where: str | Path,
    *,
    line: int | None = None,
    item: str = "",
    remedy: str | None = None,
) -> Model:
    """A value that was read already as a model; `item` names it in front of what is wrong with it."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise explain(error, where, line=line, item=item, remedy=remedy) from None


def explain(
    error: ValidationError, where: str | Path, *, line: int | None = None, item: str = "", remedy: str | None = None
) -> UserError:
    """The first mistake as a user's error."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return UserError(f"{item}not JSON ({first['ctx']['error']})", where=where, line=line, remedy=remedy)
    if first["loc"] == ("format_version",):
        return UserError(
            f"format_version is {_version(first)}, this version of weitblick reads {first['ctx']['expected']}"
            if first["type"] == "literal_error"
            else f"format_version is {_version(first)}",
            where=where,
            line=line,
            remedy="make the file again with this version, or install the version that wrote it",
        )
    return UserError(item + _mistake(first), where=where, line=line, remedy=remedy)


def _version(first: ErrorDetails) -> str:
    return "missing" if first["type"] == "missing" else short(first["input"])


def _mistake(first: ErrorDetails) -> str:
    kind, value = first["type"], first["input"]
    if kind == "value_error":  # a check across fields: its message says what is wrong
        return first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return f"is {short(value)}, {_what(first)}"
    field = "field " + repr(".".join(str(part) for part in first["loc"]))
    if kind == "missing" or value is None:
        return f"{field} is missing"
    if kind == "extra_forbidden":
        return f"unknown {field}"
    if kind == "too_short" and first["ctx"].get("actual_length") == 0:
        return f"{field} is an empty list"
    return f"{field} is {short(value)}, {_what(first)}"


def _what(first: ErrorDetails) -> str:
    words = WORDS.get(first["type"])
    return words.format(**first.get("ctx", {})) if words else first["msg"][:1].lower() + first["msg"][1:]


def short(value: Any) -> str:
    """A value as it stands in the file, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:37]}..."
