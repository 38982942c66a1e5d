"""Pronouns of real text are found with their gender, and nothing is found where *it* cannot be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.discourse.german import Noun
from weitblick.documents.document import Document, Sentence
from weitblick.documents.mining.pronouns import find_pronouns, mine_pronouns, noun_distance
from weitblick.documents.splits import share_of
from weitblick.evaluation.suites import read_suite

NOUNS = {
    "report": Noun("report", "Bericht", "m"),
    "debate": Noun("debate", "Debatte", "f"),
    "house": Noun("house", "Haus", "n"),
}
BEFORE = ("I read the report.", "Ich habe den Bericht gelesen.")


def document(*pairs: tuple[str, str], name: str = "d") -> Document:
    return Document(name, tuple(Sentence(*pair) for pair in (BEFORE, *pairs)))


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("It is good.", "Er ist gut.", ("Er", "m", "nominative", True, False)),
        ("It must ask what they want.", "Sie muss fragen, was sie wollen.", ("Sie", "f", "nominative", True, False)),
        ("It is clear that we agree.", "Es ist klar, dass wir einig sind.", ("Es", "n", "nominative", True, True)),
        ("I think it works.", "Ich glaube, dass sie funktioniert.", ("sie", "f", "nominative", False, False)),
        ("We must support it.", "Wir müssen ihn unterstützen.", ("ihn", "m", "accusative", False, False)),
        ("We must support it.", "Wir müssen sie unterstützen.", ("sie", "f", "accusative", False, False)),
        ("They know it.", "Sie kennen es.", None),
        ("I gave it away.", "Bitte geben Sie es weg.", ("es", "n", "accusative", False, False)),
        ("We like its style.", "Wir mögen es.", None),
        ("We saw him.", "Wir haben ihn gesehen.", None),
        ("Is it his?", "Ist es seines?", None),
        ("We gave it a chance.", "Wir gaben ihm eine Chance.", None),
    ],
)  # fmt: skip
def test_what_is_found(source: str, target: str, found: tuple[str, ...] | None) -> None:
    sites = list(find_pronouns(document((source, target))))
    assert [(s.word, s.gender, s.case, s.opening, s.expletive) for s in sites] == ([found] if found else [])


def test_variants_keep_case_and_capitals() -> None:
    (opening,) = find_pronouns(document(("It is good.", "„Er ist gut.“")))
    assert [opening.variant(gender) for gender in ("m", "f", "n")] == [
        "„Er ist gut.“",
        "„Sie ist gut.“",
        "„Es ist gut.“",
    ]
    (inside,) = find_pronouns(document(("We support it.", "Wir unterstützen sie gern.")))
    assert inside.variant("m") == "Wir unterstützen ihn gern."


def test_the_first_sentence_has_nothing_before_it() -> None:
    assert not list(find_pronouns(Document("d", (Sentence("It is good.", "Er ist gut."),))))


def test_distance_is_that_of_the_nearest_noun_of_the_gender() -> None:
    house = ("We are in the house.", "Wir sind im Haus.")
    (near,) = find_pronouns(document(("It is good.", "Er ist gut.")))
    (far,) = find_pronouns(document(house, ("It is good.", "Er ist gut.")))
    (none,) = find_pronouns(document(house, ("It is good.", "Sie ist gut.")))
    assert [noun_distance(site, NOUNS) for site in (near, far, none)] == [1, 2, None]


def many() -> list[Document]:
    """Every gender in twenty documents, and es without a noun in forty."""
    nouns = {"Er": ("report", "den Bericht"), "Sie": ("debate", "die Debatte"), "Es": ("house", "das Haus")}
    made = []
    for number in range(20):
        for pronoun, (english, german) in nouns.items():
            pairs = [
                (f"I know the {english} of {number}.", f"Ich kenne {german} von {number}."),
                ("It must grow.", f"{pronoun} muss wachsen."),
                ("It is clear that it grows.", "Es ist klar, dass das wächst."),
            ]
            made.append(Document(f"{pronoun}{number}", tuple(Sentence(*pair) for pair in pairs)))
    return made


def test_held_out_documents_are_in_no_training_text_and_suites_are_balanced() -> None:
    corpus = many()
    mined = mine_pronouns(corpus, NOUNS, before=2, inside=1.0, es=0.5, expletive=0.5, held_out=0.4, whole=7, seed=1)
    held = {document.id for document in corpus if share_of(document) < 0.4}
    assert 10 < len(held) < 40
    assert not held & {document.id.split(".")[0] for document in mined.documents}
    assert {item.id.split(".")[0] for item in (*mined.suite, *mined.suite_es)} <= held
    assert all(document.sources[-1].startswith("It ") for document in mined.documents)
    counts = [sum(item.pronoun == pronoun for item in mined.suite) for pronoun in ("er", "sie", "es")]
    assert counts[0] == counts[1] == counts[2] > 0
    assert {item.pronoun for item in mined.suite_es} == {"es"}
    assert mined.counts["es"] == round(0.5 * (mined.counts["er"] + mined.counts["sie"]))
    assert all(item.distance == 1 and item.target[item.sentence] == item.reference for item in mined.suite)


def test_some_keep_all_that_stands_before_them() -> None:
    how = {"inside": 1.0, "es": 1.0, "expletive": 0.5, "held_out": 0.0, "seed": 1}
    longer = [replace(document, sentences=(*[Sentence("Yes.", "Ja.")] * 5, *document.sentences)) for document in many()]
    mined = mine_pronouns(longer, NOUNS, before=2, whole=7, **how)
    assert sorted(len(document.sentences) for document in mined.documents)[:-7] == [3] * (len(mined.documents) - 7)
    assert sum(len(document.sentences) > 3 for document in mined.documents) == 7


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for side in ("en", "de"):
        texts = [d.sources if side == "en" else d.targets for d in many()]
        Path(f"train.{side}").write_text("\n".join("".join(f"{t}\n" for t in text) for text in texts), encoding="utf-8")
    call = ["data", "pronouns", "train.en", "train.de", "-o", "it.en", "-o", "it.de"]
    suites = ["--whole", "0", "--contrast", "it.jsonl", "--contrast-es", "es.jsonl", "--held-out", "0.4"]
    result = CliRunner().invoke(app, [*call, *suites], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    documents = list(read_documents(["it.en", "it.de"]))
    assert f"{len(documents)} documents" in result.output
    assert all(document.sources[-1].startswith("It ") for document in documents)
    assert {item.pronoun for item in read_suite("it.jsonl")} == {"er", "sie", "es"}
    Path("none.en").write_text("Yes.\nNo.\n", encoding="utf-8")
    Path("none.de").write_text("Ja.\nNein.\n", encoding="utf-8")
    with pytest.raises(UserError, match="name SOURCE TARGET"):
        CliRunner().invoke(
            app, ["data", "pronouns", "none.en", "none.de", "-o", "n.en", "-o", "n.de"], catch_exceptions=False
        )
    assert not Path("n.en").exists()
