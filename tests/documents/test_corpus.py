"""What holds for every preset: identity by seed, disjoint splits, sound items, sound files, clear errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.documents.discourse.generator import PRESETS, DiscourseCorpus, generate, write_corpus

FILES = {f"{split}.{side}" for split in ("train", "dev", "test") for side in ("en", "de")}
FILES |= {"contrast.jsonl", "discourse.json"}


@pytest.fixture(scope="module", params=sorted(PRESETS))
def corpus(request: pytest.FixtureRequest) -> DiscourseCorpus:
    return generate(request.param, 300, 5)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_same_seed_same_bytes(corpus: DiscourseCorpus, tmp_path: Path) -> None:
    write_corpus(corpus, tmp_path / "a")
    write_corpus(generate(corpus.preset, 300, 5), tmp_path / "b")
    write_corpus(generate(corpus.preset, 300, 6), tmp_path / "c")
    assert set(files_of(tmp_path / "a")) == FILES
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    other = files_of(tmp_path / "c")
    assert all(content != other[name] for name, content in files_of(tmp_path / "a").items())


def test_suite_does_not_depend_on_the_number_of_training_documents(corpus: DiscourseCorpus) -> None:
    fewer = generate(corpus.preset, 1, 5)
    assert len(fewer.train) == 1
    assert (fewer.dev, fewer.test, fewer.contrast) == (corpus.dev, corpus.test, corpus.contrast)


def test_no_document_twice(corpus: DiscourseCorpus) -> None:
    documents = [tuple(document.sources) for document in corpus.train + corpus.dev + corpus.test]
    assert len(set(documents)) == len(documents)
    assert len(corpus.train) == 300
    assert corpus.dev
    assert corpus.test


def test_items_are_their_documents(corpus: DiscourseCorpus) -> None:
    documents = {document.id: document for document in corpus.test}
    assert len({item.id for item in corpus.contrast}) == len(corpus.contrast)
    for item in corpus.contrast:
        document = documents[item.id.rsplit(".", 1)[0]]
        assert list(item.source) == document.sources
        assert list(item.target) == document.targets
        assert item.reference == item.target[item.sentence]
        antecedent = item.sentence + item.distance * (1 if item.direction == "future" else -1)
        assert 0 <= antecedent < len(item.source)


def test_variants_differ_only_in_the_pronoun(corpus: DiscourseCorpus) -> None:
    for item in corpus.contrast:
        assert len({item.reference, *item.contrastive}) == 1 + len(item.contrastive)
        if item.phenomenon.startswith("pronoun"):
            assert len(item.contrastive) == 2
            reference = item.reference.rstrip(".").split()
            for variant in item.contrastive:
                pairs = zip(reference, variant.rstrip(".").split(), strict=True)
                changed = [(right, wrong) for right, wrong in pairs if right != wrong]
                assert len(changed) == 1
                assert changed[0][0].lower().strip(',"') == item.pronoun


def test_sentences_look_like_text(corpus: DiscourseCorpus) -> None:
    for document in corpus.train:
        for sentence in document.sentences:
            for text in (sentence.source, sentence.target or ""):
                start = text.lstrip('"')[0]
                assert start.isupper()
                assert text.rstrip('"')[-1] in ".?"
                assert text == " ".join(text.split())
                assert not set(text) & set("{}_")


def test_files_hold_the_corpus(corpus: DiscourseCorpus, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    description = write_corpus(corpus, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    for name in ("train", "dev", "test"):
        for side in ("source", "target"):
            text = (tmp_path / f"{name}.{'en' if side == 'source' else 'de'}").read_text(encoding="utf-8")
            read = [block.strip("\n").split("\n") for block in text.split("\n\n")]
            assert read == [[getattr(s, side) for s in document.sentences] for document in corpus.split(name)]
    lines = (tmp_path / "contrast.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(corpus.contrast) == description["items"]
    item = json.loads(lines[0])
    fields = "id source target sentence reference contrastive distance phenomenon direction pronoun"
    assert set(fields.split()) <= set(item)
    assert isinstance(item["distance"], int)
    assert json.loads((tmp_path / "discourse.json").read_text(encoding="utf-8")) == description


@pytest.mark.parametrize(("preset", "documents"), [("small", 0), ("small", -3), ("tiny", 10)])
def test_bad_requests(preset: str, documents: int) -> None:
    with pytest.raises(UserError) as caught:
        generate(preset, documents, 1)
    assert (preset if documents > 0 else str(documents)) in str(caught.value)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UserError, match="taken"):
        write_corpus(generate("small", 1, 1), tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_nothing_is_replaced_when_writing_fails(corpus: DiscourseCorpus, tmp_path: Path) -> None:
    (tmp_path / "discourse.json").mkdir()
    with pytest.raises(UserError, match=r"discourse\.json"):
        write_corpus(corpus, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["discourse.json"]


def test_command(tmp_path: Path) -> None:
    folder = str(tmp_path / "corpus")
    result = CliRunner().invoke(app, ["data", "discourse", folder, "--documents", "20", "--seed", "7", "--json"])
    assert result.exit_code == 0
    made = json.loads(result.stdout)
    assert made["documents"]["train"] == 20
    assert (made["seed"], made["preset"]) == (7, "small")
    assert {path.name for path in (tmp_path / "corpus").iterdir()} == FILES
