"""An imported model of Firefox's kind is one of ours: context, a pointer, 8 bits and explanations work on it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from french_spanish import documents, write_corpus
from test_trained import SHORT, run

from weitblick.checkpoints.folder import load_model
from weitblick.translation.translator import Translator

GOLDEN = Path(__file__).parent / "firefox"
SOURCES = [source for document in documents(3) for source, _ in document]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """models/: the imported model; corpus/: documents to train on."""
    folder = tmp_path_factory.mktemp("firefox")
    run("import", GOLDEN, "-o", folder / "imported", "--source-language", "fr", "--target-language", "es")
    for part, count in (("train", 40), ("dev", 15), ("test", 4)):
        write_corpus(folder / "corpus", count, part)
    return folder


@pytest.mark.parametrize("changes", [[], ["context.integration=decoder", "context.direction=online"]], ids=len)
def test_context_learns_on_top(changes: list[str], folder: Path, tmp_path: Path) -> None:
    places = [f"stage1={folder / 'imported'}", f"data.dir={folder / 'corpus'}", f"output={tmp_path / 'run'}"]
    held = ["context_stage.sentence_rate=0", "context_stage.result=last"]
    run("train", "recipes/imported/context.yaml", *places, *changes, *held, *SHORT)
    before, after = load_model(folder / "imported"), load_model(tmp_path / "run" / "best")
    for name, value in before.model.sentence.state_dict().items():
        assert torch.equal(after.model.sentence.state_dict()[name], value), name
    alone = Translator(before.model, before.pipeline).translate(SOURCES).targets
    assert Translator(after.model, after.pipeline).translate(SOURCES, context=False).targets == alone
    assert len(Translator(after.model, after.pipeline).translate(SOURCES).targets) == len(SOURCES)


def test_sentences_are_trained_on(folder: Path, tmp_path: Path) -> None:
    places = [f"stage1={folder / 'imported'}", f"data.dir={folder / 'corpus'}", f"output={tmp_path / 'run'}"]
    run("train", "recipes/imported/sentence.yaml", *places, *SHORT, "sentence_stage.result=last")
    old = load_model(folder / "imported").model.sentence.state_dict()
    new = load_model(tmp_path / "run" / "best").model.sentence.state_dict()
    assert not torch.equal(old["decoder.0.unit.forget.weight"], new["decoder.0.unit.forget.weight"])


def test_a_pointer_explanations_and_eight_bits(folder: Path, tmp_path: Path) -> None:
    places = [f"stage1={folder / 'imported'}", f"data.dir={folder / 'corpus'}", f"output={tmp_path / 'run'}"]
    run("train", "recipes/imported/memory.yaml", *places, *SHORT)
    model, text = tmp_path / "run" / "best", folder / "corpus" / "test.fr"
    assert "memory" in load_model(folder / "imported").facts
    assert "memory" not in load_model(model).facts  # which says that it was not trained
    pairs = tmp_path / "approved.tsv"
    pairs.write_text("fr\tes\nAnne a vu la voiture.\tAnne vio el automóvil.\n")
    found = run("translate", text, "-m", model, "--memory", pairs, "-q").splitlines()
    assert len(found) == len(text.read_text().splitlines())
    run("explain", text, "-m", model, "-o", tmp_path / "report.html", "-q")
    assert (tmp_path / "report.html").stat().st_size > 10_000
    plain = run("translate", text, "-m", model, "-q").splitlines()
    eight = run("translate", text, "-m", model, "-q", "--int8").splitlines()
    assert sum(a == b for a, b in zip(plain, eight, strict=True)) >= 0.8 * len(plain)
    beam = run("translate", text, "-m", model, "-q", "--beam", "4").splitlines()
    assert len(beam) == len(plain)
