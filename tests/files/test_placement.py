"""Whatever an alignment says: every code comes out once, tags nest, and no placeholder of ours is left in the text."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from file_translators import each
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import html

from weitblick.files.formats import read_file
from weitblick.files.translation import translate_file
from weitblick.translation.alignment import Alignment, word_spans

PARTS = ["we", "open", "the door", "+", "5 * 3 = 15", "snake_case", "<b>now", "</b>", "<i>", "later</i>", "<u>", "</u>"]


def _any_alignment(seed: int) -> object:
    chance = random.Random(seed)

    def align(pairs: list[tuple[str, str]]) -> list[Alignment]:
        found = []
        for source, target in pairs:
            spans = word_spans(source), word_spans(target)
            weights = np.zeros((len(spans[1]), len(spans[0])))
            for row in weights if len(spans[0]) else ():
                row[chance.randrange(len(spans[0]))] = 1.0
            found.append(Alignment(*spans, weights))
        return found

    return align


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PARTS), st.booleans()), min_size=1, max_size=12), st.integers(0, 999))
@example([("5 * 3 = 15", False), ("<i>+ we later</i>", False), ("<i> we later</i>", False)], 480)
def test_every_code_comes_out_once(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[str, bool]], seed: int
) -> None:
    path = Path(tmp_path_factory.mktemp("any")) / "a.html"
    source = "".join(part + " " * (spaced or part[-1] != ">") for part, spaced in parts)
    path.write_text(f"<p>{source}</p>")
    shuffled = each(lambda text: " ".join(random.Random(seed).sample(text.split(), len(text.split()))))
    align = _any_alignment(seed)
    written = translate_file(read_file(path), shuffled, align)[0].decode()  # type: ignore[arg-type]
    assert not any(letter >= "\U000f0000" for letter in written), written
    for tag in ("<b>", "</b>", "<i>", "</i>", "<u>", "</u>"):
        assert written.count(tag) == source.count(tag)
    read, was = ("".join(html.fromstring(one).itertext()) for one in (written, f"<p>{source}</p>"))
    for code in ("+", "5 * 3 = 15", "snake_case"):
        assert read.count(code) == was.count(code), written
    assert "K" not in read
