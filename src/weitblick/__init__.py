"""Document-level machine translation that selects the context that matters, and shows it.

The names below are the public interface. They are imported when they are first asked for: `import weitblick` is quick,
and translating needs neither figures nor a server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weitblick import threads

threads.set_environment()  # before anything loads PyTorch

__version__ = "0.2.0"

if TYPE_CHECKING:
    from weitblick.config.load import load_recipe
    from weitblick.documents import Document, Sentence, read_documents, write_documents
    from weitblick.errors import UserError
    from weitblick.explanation.explain import explain
    from weitblick.explanation.page import write_page
    from weitblick.memory import Memory
    from weitblick.translation.translator import Translator

__all__ = [
    "Document",
    "Memory",
    "Sentence",
    "Translator",
    "UserError",
    "__version__",
    "explain",
    "load_recipe",
    "read_documents",
    "write_documents",
    "write_page",
]

_HOMES = {
    "Document": "weitblick.documents",
    "Memory": "weitblick.memory",
    "Sentence": "weitblick.documents",
    "Translator": "weitblick.translation.translator",
    "UserError": "weitblick.errors",
    "explain": "weitblick.explanation.explain",
    "load_recipe": "weitblick.config.load",
    "read_documents": "weitblick.documents",
    "write_documents": "weitblick.documents",
    "write_page": "weitblick.explanation.page",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
