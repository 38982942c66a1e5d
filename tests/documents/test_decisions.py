"""`data decisions`: sentences with a word that only the sentences before can tell, by a file of sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.document import Document, Sentence
from weitblick.documents.mining.decisions import DecisionFinder, mine_decisions, read_decision_kinds
from weitblick.evaluation.suites import read_suite

BEFORE = ("The committee met.", "Der Ausschuss tagte.")
ITS = DecisionFinder("its", read_decision_kinds()["its"])


def document(*pairs: tuple[str, str], name: str = "d") -> Document:
    return Document(name, tuple(Sentence(*pair) for pair in (BEFORE, *pairs)))


def corpus(count: int) -> list[Document]:
    """So many documents with each of: its that is sein, its that is ihr, a his that is sein."""
    said = (("Its aim is peace.", "Sein Ziel ist Frieden."), ("Its aim is peace.", "Ihr Ziel ist Frieden."))
    pairs = (*said, ("I know his aim.", "Ich kenne sein Ziel."))
    return [document(pair, name=f"{number} {pair[1]}") for number in range(count) for pair in pairs]


def mine(documents: list[Document], **changed: float):  # type: ignore[no-untyped-def]
    options = {"before": 3, "most": 100, "undecided": 0.5, "held_out": 0.0, "whole": 0, "seed": 1} | changed
    return mine_decisions(documents, {"its": read_decision_kinds()["its"]}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "target", "decided", "tested"),
    [
        ("Its aim is peace.", "Sein Ziel ist Frieden.", True, True),
        ("Peace is its aim.", "Frieden ist ihr Ziel.", True, False),
        ("I know her aim.", "Ich kenne ihr Ziel.", False, False),
    ],
)
def test_a_site_is_found(source: str, target: str, decided: bool, tested: bool) -> None:
    (site,) = ITS.sites(document((source, target)))
    assert (site.decided, site.tested) == (decided, tested)
    other = {"Sein": "Ihr", "ihr": "sein"}[site.words[site.choice]]
    assert site.variants() == (target.replace(site.words[site.choice], other),)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Its aim and its means.", "Sein Ziel und seine Mittel."),  # two
        ("Its aim is theirs.", "Sein Ziel ist ihres."),
        ("Its aim is peace.", "Das Ziel ist Frieden."),
        ("They know its aim.", "Sie kennen sein Ziel."),  # or theirs
        ("Peace.", "Sein Frieden."),
    ],
)
def test_what_could_be_something_else_is_no_site(source: str, target: str) -> None:
    assert not list(ITS.sites(document((source, target))))
    assert not list(ITS.sites(Document("d", (Sentence("Its aim.", "Sein Ziel."),))))  # nothing stands before


def test_columns_are_alike_and_some_are_undecided() -> None:
    found = mine([*corpus(12), *corpus(30)[1::3]])
    assert found.counts["its"] == {"Ihr": 12, "Sein": 12, "undecided": 12}
    assert len(found.documents) == 36
    assert all(len(made.sentences) == 2 for made in found.documents)
    assert mine(corpus(12), most=5, undecided=0.2).counts["its"] == {"Ihr": 5, "Sein": 5, "undecided": 2}


def test_those_come_first_that_nothing_in_their_sentence_can_tell() -> None:
    inside = [
        document((f"Peace {number} is its aim.", f"Frieden {number} ist {word} Ziel."), name=f"{word} {number}")
        for number in range(30)
        for word in ("sein", "ihr")
    ]
    found = mine([*inside, *corpus(6)], most=8)
    assert found.counts["its"] == {"Ihr": 6, "Sein": 6, "ihr": 2, "sein": 2, "undecided": 6}


def test_what_is_held_out_is_the_suite_and_not_the_corpus(tmp_path: Path) -> None:
    lines = [[(one.source, one.target) for one in made.sentences] for made in corpus(60)]
    for side, name in enumerate(("a.en", "a.de")):
        text = "\n\n".join(
            "\n".join(f"{pair[side]}" if n else f"{pair[side]} {i}" for n, pair in enumerate(made))
            for i, made in enumerate(lines)
        )
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    call = ["data", "decisions", *(str(tmp_path / name) for name in ("a.en", "a.de")), "--only", "its"]
    for name in ("b.en", "b.de"):
        call += ["-o", str(tmp_path / name)]
    suite = tmp_path / "its.jsonl"
    done = CliRunner().invoke(app, [*call, "--held-out", "0.5", "--contrast", str(suite)], catch_exceptions=False)
    assert done.exit_code == 0
    assert f"items in {suite}" in done.output.replace("\n", "")
    items = read_suite(suite)
    learned = {made.sentences[0].source for made in read_documents([str(tmp_path / "b.en"), str(tmp_path / "b.de")])}
    assert items
    assert learned
    assert not learned & {item.source[0] for item in items}
    assert len({item.pronoun for item in items}) == 2
    assert len({item.reference for item in items}) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("its: {source: '(', sets: [[a, b]]}", "no regular expression"),
        ("its: {source: its, sets: [[a]]}", r"its\.sets\.0"),
        ("its: {source: its, sets: [[a, b]], words: []}", r"its\.words"),
        ("- its", "names no kinds of decisions"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_meant_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "sets.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=complaint) as raised:
        read_decision_kinds(str(path))
    assert "\n" not in str(raised.value)
    assert "sets.yaml" in str(raised.value)
