"""Bodies of requests that may come as JSON or as a form, for the OpenAPI document; `parameters` reads them."""

from __future__ import annotations

from typing import Any

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
