"""The report: one HTML page that holds everything, needs no network and never runs what a document says.

The page's scripts and styles are package data, put in as they are. The explanation goes in as JSON in a script element
that browsers do not run, and reaches the screen as text nodes only. The page's content security policy names the
hashes of our own script and style and forbids everything else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from weitblick import __version__
from weitblick.explanation.influence import differences
from weitblick.explanation.schema import Explanation
from weitblick.explanation.summary import summarise
from weitblick.files import text_writer

SCRIPTS = ("data.js", "elements.js", "text.js", "word_panel.js", "influence_panel.js", "main.js")


def render(explanation: Explanation) -> str:
    """The page as one string."""
    style = _template("base.css") + "\n" + _template("page.css")
    script = '"use strict";\n' + "\n".join(_template(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    values = {
        "policy": html.escape(policy),
        "title": html.escape(f"{explanation.document} · Weitblick"),
        "version": html.escape(__version__),
        "style": style,
        "data": _inert_json(_payload(explanation)),
        "script": script,
    }
    page = _template("page.html")
    parts = []
    # One pass over the template, so that nothing that was put in is ever searched for markers itself.
    while "{{" in page:
        before, _, page = page.partition("{{")
        name, _, page = page.partition("}}")
        parts += [before, values[name]]
    return "".join([*parts, page])


def write_page(path: str | Path, explanation: Explanation) -> None:
    with text_writer(path) as stream:
        stream.write(render(explanation))


def _payload(explanation: Explanation) -> dict[str, Any]:
    """The explanation, and what the page would otherwise have to work out for itself."""
    return {
        **explanation.to_json(),
        "summary": summarise(explanation),
        "differences": [
            differences(sentence.target_without, sentence.target) if sentence.differs else [[], []]
            for sentence in explanation.sentences
        ],
    }


def _inert_json(value: Any) -> str:
    """JSON that cannot end its script element: without `<` there is neither a tag nor a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _template(name: str) -> str:
    return files("weitblick.explanation").joinpath("template", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
