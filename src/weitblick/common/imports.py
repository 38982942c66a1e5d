"""Imports that wait until they are needed: optional packages, and the rows of tables that name a function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any, Literal

from weitblick.common.errors import UserError

TABLES, TRIED_WITHOUT_TABLES = "torch._meta_registrations", ("2.13.",)
Extra = Literal["plots", "tensorboard", "server", "ctranslate2", "hub"]


@contextmanager
def optional_package(name: Extra) -> Iterator[None]:
    """Turns a failed import of an optional package into one line that says how to install it."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "a package").split(".")[0]
        raise UserError(f"{package} is not installed", remedy=f"pip install 'weitblick[{name}]'") from None


def load_torch() -> None:
    """Loads PyTorch without the tables by which its compiler and tensors without data compute: a quarter of the time
    that a command takes to begin, and nothing that translates reads them. Who imports them by name still gets them.
    Versions of PyTorch that this was not tried with are loaded as they are."""
    if "torch" in sys.modules or not version("torch").startswith(TRIED_WITHOUT_TABLES):
        return
    sys.modules[TABLES] = ModuleType(TABLES)
    try:
        import_module("torch")
    finally:
        del sys.modules[TABLES]


def lazy(place: str) -> Callable[..., Any]:
    """The function or class at `place` ("package.module.name"), whose module is imported when it is first called."""
    module, _, name = place.rpartition(".")

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"weitblick.{module}"), name)(*arguments, **options)

    return call
