"""Whether a text is in the language that it is to be translated from."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from weitblick.common.characters import base_language
from weitblick.text.carried import carried_spans

if TYPE_CHECKING:
    from weitblick.files.checks.findings import Finding

SAMPLE, LEAST = 4000, 60
"""Characters that are looked at, and those that there must be to tell anything."""
SURE = 0.95
ALIKE = ({"no", "nb", "nn", "da", "sv"}, {"hr", "sr", "bs", "sl"}, {"cs", "sk"}, {"pt", "gl", "es", "ca"}, {"id", "ms"})
"""Languages that are easily taken for each other."""
_identifying = threading.Lock()


@cache
def _identifier() -> Any:
    """The library that knows languages; None where the extra `server`, which brings it, is not installed."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        return None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def language_of(texts: Sequence[str]) -> str | None:
    """The language of some sentences together; None where that is not certain, or there is nothing to tell it by."""
    words: list[str] = []
    size = 0
    for text in texts:
        for start, end in reversed(list(carried_spans(text))):
            text = text[:start] + " " + text[end:]
        text = " ".join(re.findall(r"[^\W\d_]+", text))
        words.append(text)
        size += len(text)
        if size > SAMPLE:
            break
    identifier = _identifier() if size >= LEAST else None
    if identifier is None:
        return None
    with _identifying:
        code, probability = identifier.classify(" ".join(words))
    return str(code) if float(probability) >= SURE else None


def wrong_language(texts: Sequence[str], expected: str) -> str | None:
    """The language of sentences that are not in the expected one; None if they are, or that is not certain."""
    found, wanted = language_of(texts), base_language(expected)
    if found is None or found == wanted or any({found, wanted} <= group for group in ALIKE):
        return None
    return found


def language_finding(texts: Sequence[str], expected: str) -> Finding | None:
    """What is said before a document in another language is translated."""
    from weitblick.files.checks.findings import Finding

    found = wrong_language(texts, expected)
    if found is None:
        return None
    shown = next((text for text in texts if text.strip()), "")[:60]
    return Finding(1, "language", shown, f"the text looks like {found}, not {base_language(expected)}")
