import re

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.documents.document import Document, Sentence
from weitblick.documents.splits import Pattern, select


def document(*sources: str) -> Document:
    return Document("d", tuple(Sentence(source, source.upper()) for source in sources))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(0, 0, [["x1"], ["x2"]]), (1, 0, [["b", "x1"], ["d", "x2"]]), (2, 0, [["a", "b", "x1", "c", "d", "x2"]]),
     (0, 5, [["x1", "c", "d", "x2"]])],
)  # fmt: skip
def test_stretches_around_what_matches(before, after, expected):
    whole = document("a", "b", "x1", "c", "d", "x2")
    found = list(select([whole], Pattern(source=re.compile("x")), before, after))
    assert [part.sources for part in found] == expected
    assert len({part.id for part in found}) == len(found)


def test_all_conditions_hold_together():
    pattern = Pattern(source=re.compile("a"), target=re.compile("B"), not_source=re.compile("c"))
    found = select([document("ab", "abc", "a", "b")], pattern, 0, 0)
    assert [part.sources for part in found] == [["ab"]]


def run(*arguments) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["data", "select", *map(str, arguments)])
    return result.exit_code, str(result.exception or "")


def test_the_command(tmp_path):
    (tmp_path / "in.en").write_text("A hat.\nIt fits.\n\nNothing.\n")
    (tmp_path / "in.de").write_text("Ein Hut.\nEr passt.\n\nNichts.\n")
    out = [tmp_path / "out.en", tmp_path / "out.de"]
    wanted = ["--source-has", "(?i)\\bit\\b", "--target-has", "^Er"]
    code, _ = run(tmp_path / "in.en", tmp_path / "in.de", "-o", out[0], "-o", out[1], *wanted)
    assert code == 0
    assert [path.read_text() for path in out] == ["A hat.\nIt fits.\n", "Ein Hut.\nEr passt.\n"]


def test_wrong_patterns_are_named(tmp_path):
    (tmp_path / "in.en").write_text("A.\n")
    assert "nothing to look for" in run(tmp_path / "in.en", "-o", tmp_path / "out.en")[1]
    assert (
        "--source-has '(' is no regular expression"
        in run(tmp_path / "in.en", "-o", tmp_path / "out.en", "--source-has", "(")[1]
    )
    assert not (tmp_path / "out.en").exists()
