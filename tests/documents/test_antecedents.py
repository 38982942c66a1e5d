"""Nouns and their genders are learned from a corpus, and pronouns agree with the noun before them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.discourse.german import learn_nouns
from weitblick.documents.document import Document, Sentence
from weitblick.documents.mining.antecedents import STATEMENTS, antecedent_documents
from weitblick.evaluation.suites import read_suite

NOUNS = {"report": ("den", "Bericht", "m"), "debate": ("die", "Debatte", "f"), "house": ("das", "Haus", "n")}
REST = [("We thank the minister.", "Wir danken dem Minister."), ("That is right.", "Das stimmt.")]


def corpus(times: int = 20) -> list[Document]:
    pairs = [
        (f"I remember the {noun} from {year}.", f"Ich kenne {article} {german} von {year}.")
        for noun, (article, german, _) in NOUNS.items()
        for year in range(1990, 1990 + times)
    ]
    return [Document("d", tuple(Sentence(*pair) for pair in [*pairs, *REST * times]))]


def test_nouns_are_learned_with_their_gender() -> None:
    found = learn_nouns(corpus())
    assert {noun: (n.german, n.gender) for noun, n in found.items()} == {
        noun: (german, gender) for noun, (_, german, gender) in NOUNS.items()
    }


def test_rare_nouns_are_not() -> None:
    assert learn_nouns(corpus(10)) == {}


def test_every_pronoun_agrees_with_the_last_noun() -> None:
    made = [document for document, _ in antecedent_documents(corpus(), learn_nouns(corpus()), 200, seed=1)]
    gender_of = {german: gender for _, german, gender in NOUNS.values()}
    pronouns = {"m": ("er", "ihn", "seine"), "f": ("sie", "sie", "ihre"), "n": ("es", "es", "seine")}
    sources = dict(STATEMENTS)
    seen = set()
    for document in made:
        gender = ""
        for sentence in document.sentences:
            target = sentence.target or ""
            gender = next((g for german, g in gender_of.items() if german in target), gender)
            if sentence.source in sources:
                nominative, accusative, possessive = pronouns[gender]
                forms = {"n": nominative, "N": nominative.capitalize(), "a": accusative}
                forms |= {"p": possessive, "P": possessive.capitalize()}
                assert target == sources[sentence.source].format(**forms)
                seen.add(gender)
    assert seen == {"m", "f", "n"}
    for seed, same in ((1, True), (2, False)):
        again = [document for document, _ in antecedent_documents(corpus(), learn_nouns(corpus()), 200, seed)]
        assert (made == again) is same


def test_items_are_what_they_say() -> None:
    items = [item for _, items in antecedent_documents(corpus(), learn_nouns(corpus()), 200, seed=1) for item in items]
    for item in items:
        assert item.reference not in item.contrastive
        assert len(item.contrastive) == (1 if item.phenomenon == "pronoun-possessive" else 2)
    none = [item for item in items if item.phenomenon == "pronoun-no-antecedent"]
    assert none
    assert all(item.pronoun == "es" and item.distance is None for item in none)
    assert ("Er war ein langer Tag.", "Sie war ein langer Tag.") in {item.contrastive for item in none}
    assert {item.phenomenon for item in items} == {
        f"pronoun-{form}" for form in ("nominative", "accusative", "possessive", "no-antecedent")
    }


def test_a_longer_sentence_is_about_its_subject() -> None:
    longer = ("The debate has shown that the report is good and the house is full.",
              "Die Debatte hat gezeigt, dass der Bericht gut und das Haus voll ist.")  # fmt: skip
    text = [Document("l", (Sentence(*longer), *corpus()[0].sentences))]
    made = [document for document, _ in antecedent_documents(text, learn_nouns(corpus()), 300, seed=1)]
    behind = [d.targets[i + 1] for d in made for i, source in enumerate(d.sources[:-1]) if source == longer[0]]
    said = {target.split()[0] for target in behind if target and target.split()[0] in ("Er", "Sie", "Es")}
    assert said
    assert "Er" not in said


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for side, texts in (("en", corpus()[0].sources), ("de", corpus()[0].targets)):
        Path(f"train.{side}").write_text("\n".join(t or "" for t in texts) + "\n", encoding="utf-8")
    Path("dev.en").write_text("".join(f"Now see the {noun}.\n" for noun in NOUNS), encoding="utf-8")
    Path("dev.de").write_text("".join(f"Nun seht {a} {german}.\n" for a, german, _ in NOUNS.values()), encoding="utf-8")
    call = ["data", "antecedents", "train.en", "train.de", "-o", "a.en", "-o", "a.de", "--documents", "5"]
    more = ["--sentences-from", "dev.en", "--sentences-from", "dev.de", "--contrast", "suite.jsonl"]
    for number, wish in enumerate((call, [*call, *more])):
        result = CliRunner().invoke(app, wish, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert "5 documents about 3 nouns" in result.output
        documents = list(read_documents(["a.en", "a.de"]))
        assert len(documents) == 5
        assert documents[0].sources[0].startswith(("I remember", "Now see")[number])
    items = read_suite(Path("suite.jsonl"))
    assert {item.pronoun for item in items} == {"er", "sie", "es"}
    assert all(item.target[item.sentence] == item.reference != item.contrastive[0] for item in items)
    Path("few.en").write_text("Yes.\n", encoding="utf-8")
    Path("few.de").write_text("Ja.\n", encoding="utf-8")
    call = ["data", "antecedents", "few.en", "few.de", "-o", "b.en", "-o", "b.de"]
    with pytest.raises(UserError, match="give a larger corpus"):
        CliRunner().invoke(app, call, catch_exceptions=False)
    assert not Path("b.en").exists()
    call = ["data", "antecedents", "train.en", "train.de", "-o", "b.en", "-o", "b.de"]
    call += ["--contrast", "train.en/suite.jsonl"]
    with pytest.raises(UserError, match=r"suite\.jsonl|train\.en"):
        CliRunner().invoke(app, call, catch_exceptions=False)
    assert not Path("b.en").exists()
