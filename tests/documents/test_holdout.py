"""What is held out depends on the text alone, and nothing of it is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.document import Document, Sentence
from weitblick.documents.splits import part_of, sample


def corpus(documents: int = 400) -> list[Document]:
    return [
        Document(str(d), tuple(Sentence(f"Sentence {d % 390} {s}", f"Satz {d} {s}") for s in range(4)))
        for d in range(documents)
    ]


@pytest.mark.parametrize("unit", ["document", "sentence"])
def test_both_parts_are_the_whole_and_share_nothing(unit: str) -> None:
    held = list(part_of(corpus(), 0.1, unit, held_out=True))  # type: ignore[arg-type]
    kept = list(part_of(corpus(), 0.1, unit, held_out=False))  # type: ignore[arg-type]
    sources = [{s.source for d in part for s in d.sentences} for part in (held, kept)]
    assert not sources[0] & sources[1]  # documents 390 to 399 have the sources of 0 to 9
    assert sum(len(d.sentences) for part in (held, kept) for d in part) == 1600
    assert 0.04 < sum(len(d.sentences) for d in held) / 1600 < 0.2


def test_order_does_not_matter() -> None:
    forth = {d.id for d in part_of(corpus(), 0.1, "document", held_out=True)}
    back = {d.id for d in part_of(reversed(corpus()), 0.1, "document", held_out=True)}
    assert forth == back


def test_a_sample_has_different_sources_and_another_key_another_sample() -> None:
    first, other = sample(corpus(), 50, ""), sample(corpus(), 50, "other")
    assert len({s.source for s in first}) == 50
    assert {s.source for s in first} != {s.source for s in other}


def test_commands(tmp_path: Path) -> None:
    for ending, side in (("en", 0), ("de", 1)):
        text = "\n\n".join("\n".join((s.source, s.target or "")[side] for s in d.sentences) for d in corpus())
        (tmp_path / f"all.{ending}").write_text(text + "\n", encoding="utf-8")
    paths = {
        name: [str(tmp_path / f"{name}.{ending}") for ending in ("en", "de")] for name in ("all", "kept", "held", "mix")
    }

    def run(*command: str) -> None:
        result = CliRunner().invoke(app, ["data", *command], catch_exceptions=False)
        assert result.exit_code == 0, result.output

    outputs = [
        "-o",
        paths["kept"][0],
        "-o",
        paths["kept"][1],
        "--rest",
        paths["held"][0],
        "--rest",
        paths["held"][1],
    ]
    run("holdout", *paths["all"], *outputs)
    kept, held = (sum(len(d.sentences) for d in read_documents(paths[name])) for name in ("kept", "held"))
    assert kept + held == 1600
    run(
        "mix",
        "kept=2",
        "held=0.5",
        "--folder",
        str(tmp_path),
        "--no-vary",
        "-o",
        paths["mix"][0],
        "-o",
        paths["mix"][1],
    )
    mixed = sum(len(d.sentences) for d in read_documents(paths["mix"]))
    assert 2 * kept < mixed < 2 * kept + held
