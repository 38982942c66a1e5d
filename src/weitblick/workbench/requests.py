"""What one client may ask for, so that the others are served, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Limits:
    """body_bytes: of a request, uploads included; characters: of text in a request; waiting_tokens: of all requests
    that have not been answered yet; patience: seconds that a request waits for a place before it is refused;
    seconds: until an answer is given up; requests_a_minute: of one key, or of one address where there are no keys."""

    body_bytes: int = 32 * 2**20
    characters: int = 500_000
    waiting_tokens: int = 100_000
    patience: float = 15.0
    seconds: float = 600.0
    requests_a_minute: int = 600


# Bodies of requests that may come as JSON or as a form, for the OpenAPI document; `parameters` reads them.

TEXT = {"type": "string"}
TEXTS = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
FLAG = {"type": "boolean"}
FILE = {"type": "string", "format": "binary"}


def body(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """Parameters that JSON or a form may name."""
    schema = _schema(required, optional or {})
    return {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": schema},
                "application/x-www-form-urlencoded": {"schema": schema},
            },
        }
    }


def file_body(required: dict[str, Any] | None = None) -> dict[str, Any]:
    """A form with a file."""
    schema = _schema({"file": FILE, **(required or {})}, {})
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def _schema(required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}
