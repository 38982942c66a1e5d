"""Document-level machine translation that selects the context that matters, and shows it.

The names below are the public interface. They are imported when they are first asked for: `import weitblick` is quick
and changes nothing in the process, and translating needs neither figures nor a server. The first name that is asked for
sets how OpenMP's threads wait, if PyTorch is not loaded yet and the user has not (see `weitblick.common.threads`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from weitblick.common.errors import UserError
    from weitblick.common.recipe_files import load_recipe
    from weitblick.documents.corpora.formats import read_documents, write_documents
    from weitblick.documents.document import Document, Sentence
    from weitblick.explanation.explain import explain
    from weitblick.explanation.page import write_page
    from weitblick.memory.store import Memory
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
    "Document": "weitblick.documents.document",
    "Memory": "weitblick.memory.store",
    "Sentence": "weitblick.documents.document",
    "Translator": "weitblick.translation.translator",
    "UserError": "weitblick.common.errors",
    "explain": "weitblick.explanation.explain",
    "load_recipe": "weitblick.common.recipe_files",
    "read_documents": "weitblick.documents.corpora.formats",
    "write_documents": "weitblick.documents.corpora.formats",
    "write_page": "weitblick.explanation.page",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module("weitblick.common.threads").set_environment()  # before PyTorch is loaded
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
