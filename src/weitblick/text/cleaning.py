"""What every pipeline does to a sentence first: one line of valid Unicode with single spaces."""

from __future__ import annotations

import re

# Control characters that `str.split` does not take for white space, and halves of surrogate pairs, which are not
# characters and cannot be written as UTF-8.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(sentence: str) -> str:
    """White space of any kind (tabs, line ends, no-break spaces) and control characters become single spaces."""
    return " ".join(_CONTROL.sub(" ", without_surrogates(sentence)).split())


def without_surrogates(sentence: str) -> str:
    return _SURROGATE.sub("\ufffd", sentence)
