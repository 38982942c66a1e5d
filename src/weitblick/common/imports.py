"""Imports that wait until they are needed: optional packages, and the rows of tables that name a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

from weitblick.common.errors import UserError

Extra = Literal["plots", "tensorboard", "server", "ctranslate2", "hub"]


@contextmanager
def extra(name: Extra) -> Iterator[None]:
    """Turns a failed import of an optional package into one line that says how to install it."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "a package").split(".")[0]
        raise UserError(f"{package} is not installed", remedy=f"pip install 'weitblick[{name}]'") from None


def on_call(place: str) -> Callable[..., Any]:
    """The function or class at `place` ("package.module.name"), whose module is imported when it is first called."""
    module, _, name = place.rpartition(".")

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"weitblick.{module}"), name)(*arguments, **options)

    return call
