"""The report: one HTML page that holds everything, needs no network and never runs what a document says.

The page's scripts are modules that the workbench serves one by one; here they become one script, since a file that is
opened from a disk cannot import others. The explanation goes in as JSON in a script element
that browsers do not run, and reaches the screen as text nodes only. The page's content security policy names the
hashes of our own script and style and forbids everything else.
"""

from __future__ import annotations

import html
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from weitblick import __version__
from weitblick.common.characters import json_for_script, page_policy
from weitblick.common.files import text_writer
from weitblick.explanation.influence import differences, summarise
from weitblick.explanation.schema import Explanation
from weitblick.explanation.storage import to_json

SCRIPTS = ("data.js", "elements.js", "panel.js", "text.js", "word_panel.js", "influence_panel.js", "main.js")
"""Each may use names of those before it; their names are all different."""
IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=async |class |const |function |let )", re.MULTILINE)


def render(explanation: Explanation) -> str:
    """The page as one string."""
    style = _template("base.css") + "\n" + _template("page.css")
    script = '"use strict";\n' + "\n".join(_script(name) for name in SCRIPTS)
    values = {
        "policy": html.escape(page_policy(script, style)),
        "title": html.escape(f"{explanation.document} · Weitblick"),
        "version": html.escape(__version__),
        "style": style,
        "data": json_for_script(_payload(explanation)),
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
        **to_json(explanation),
        "summary": summarise(explanation),
        "differences": [
            differences(sentence.target_without, sentence.target) if sentence.differs else [[], []]
            for sentence in explanation.sentences
        ],
    }


def _script(name: str) -> str:
    """A module as a part of one script, in which everything is known to everything."""
    return EXPORT.sub("", IMPORT.sub("", _template(name)))


def _template(name: str) -> str:
    return files("weitblick.explanation").joinpath("template", name).read_text(encoding="utf-8")
