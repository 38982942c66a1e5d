"""Text of users inside LaTeX and web pages: it is shown, and never obeyed."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "-": r"{-}",  # keeps -- and --- from becoming dashes
}


def latex_text(text: str) -> str:
    """Text that LaTeX prints as it is. Control characters, which it would refuse, are left out."""
    return "".join(LATEX.get(letter, letter) for letter in text if letter.isprintable())


def inert_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in: without `<` there is neither a tag nor a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def page_policy(script: str, style: str) -> str:
    """A content security policy that allows this script and this style, by their hashes, and nothing else."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
