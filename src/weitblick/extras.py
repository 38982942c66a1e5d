"""What is installed only by those who want it: figures, TensorBoard, the server, exports, the hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from weitblick.errors import UserError

Extra = Literal["plots", "tensorboard", "server", "ctranslate2", "hub"]


@contextmanager
def extra(name: Extra) -> Iterator[None]:
    """Imports of an extra; if it is not installed, one line says how to get it."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "a package").split(".")[0]
        raise UserError(f"{package} is not installed", remedy=f"pip install 'weitblick[{name}]'") from None
