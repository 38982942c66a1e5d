"""A model without a pointer takes over the shipped one's, without training and without any text."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from tiny_models import SECTION, SOURCES, TARGETS, tiny_pipeline, tiny_translation_model
from typer.testing import CliRunner

from weitblick.checkpoints.folder import load_model, save_model
from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.common.recipe import MemorySection
from weitblick.documents.document import Document, Sentence
from weitblick.memory.pointer import FEATURES, LIKEST, MemoryPointer
from weitblick.memory.store import Memory
from weitblick.memory.transfer import (
    PAIRS,
    PIECES,
    States,
    TrainedPointer,
    decoder_states,
    likeness,
    made_pairs,
    trained_pointer,
    transferred_pointer,
)
from weitblick.text.units import split_documents
from weitblick.translation import borrowed_pointer
from weitblick.translation.borrowed_pointer import borrow_pointer, shipped_pointer
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator

WORDS = ["The report", "Mr. Smith", "The house", "It", "This voice", "Everybody", "Nothing"]
VERBS = ["was read", "is wrong", "costs more", "is near", "asks", "votes"]
TEXT = [f"{who} {does}." for who in WORDS for does in VERBS]
QUICK = {"beam": 2}
TINY = {"kind": "none"}


def without_pointer(said: list[str] | None = None) -> Translator:
    told = [] if said is None else said
    return Translator(tiny_translation_model(TINY, end=2.5), tiny_pipeline(), warn=told.append)


def document(locked: int = 0, sentences: list[str] = TEXT) -> Document:
    own = [Sentence(text, TARGETS[0], "locked") if n < locked else Sentence(text) for n, text in enumerate(sentences)]
    return Document("1", tuple(own))


def approved() -> Memory:
    memory = Memory()
    for source, target in zip(SOURCES, TARGETS, strict=True):
        memory.add(source, target)
    return memory


def trained(section: MemorySection, dimension: int, likeness: tuple[float, float] = (0.5, 0.1)) -> TrainedPointer:
    return TrainedPointer(MemoryPointer(section, dimension), likeness)


def test_pairs_are_made_of_the_vocabularies_by_the_seed() -> None:
    pipeline = tiny_pipeline()
    made = made_pairs(pipeline)
    assert len(made) == PAIRS
    assert made == made_pairs(pipeline) != made_pairs(pipeline, seed=2)
    sources, targets = zip(*made, strict=True)
    assert {len(target) for target in targets} == set(PIECES)
    for side, texts in (("source", sources), ("target", targets)):
        said = "".join(pipeline.decode(texts, side))
        assert said.replace(" ", "").isalpha()


@pytest.mark.parametrize("width", [8, 128])
def test_the_share_is_taken_over_and_keys_are_the_models_own(width: int) -> None:
    ours = without_pointer()
    given = trained(MemorySection(kind="pointer", dimension=width, candidates=5), 24)
    before = torch.get_rng_state()
    found = transferred_pointer(ours.model.sentence, ours.pipeline, given)
    assert torch.equal(before, torch.get_rng_state())
    assert (found.section.candidates, found.section.dimension) == (5, min(width, 16))
    weight = found.key.weight
    torch.testing.assert_close(weight @ weight.t(), torch.eye(len(weight)), atol=1e-4, rtol=0)
    again = transferred_pointer(ours.model.sentence, ours.pipeline, given)
    assert torch.equal(again.key.weight, found.key.weight)


def test_likeness_is_brought_to_what_the_share_was_trained_with() -> None:
    """A place as like as usual here has the share of one as like as usual there; what else is seen counts the same."""
    ours = without_pointer()
    given = trained(MemorySection(kind="pointer", dimension=8), 16, likeness=(0.4, 0.2))
    found = transferred_pointer(ours.model.sentence, ours.pipeline, given)
    mean, spread = likeness(found, decoder_states(ours.model.sentence, made_pairs(ours.pipeline)))
    assert abs(mean - 0.4) > 0.01  # otherwise this would show nothing
    for above in (-1.0, 0.0, 2.0):
        here = torch.randn(5, FEATURES)
        there = here.clone()
        here[:, LIKEST], there[:, LIKEST] = mean + above * spread, 0.4 + above * 0.2
        torch.testing.assert_close(found.share(here), given.pointer.share(there), atol=1e-4, rtol=1e-4)


def test_of_likeness_only_other_pairs_count() -> None:
    pointer = MemoryPointer(MemorySection(kind="pointer", dimension=2), 2)
    with torch.no_grad():
        pointer.key.weight.copy_(torch.eye(2))
    attended = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    assert likeness(pointer, States(attended, torch.tensor([0, 0, 1, 1])))[0] == 0.0
    mean, spread = likeness(pointer, States(attended, torch.tensor([0, 1, 1, 1])))
    assert (mean, spread > 0) == (0.5, True)  # the first two are alike, the last two see none but the first


def test_a_pointer_that_its_own_model_takes_over_is_the_same() -> None:
    ours = without_pointer()
    plain = transferred_pointer(ours.model.sentence, ours.pipeline, trained(MemorySection(kind="pointer"), 16))
    measured = trained_pointer(ours.model.sentence, ours.pipeline, plain)
    found = transferred_pointer(ours.model.sentence, ours.pipeline, measured)
    features = torch.randn(3, FEATURES)
    torch.testing.assert_close(found.share(features), plain.share(features), atol=1e-4, rtol=1e-4)


def test_keys_are_those_of_the_principal_components() -> None:
    """Of the states at the steps of made pairs: centred, and the strongest direction first."""
    ours = without_pointer()
    found = transferred_pointer(ours.model.sentence, ours.pipeline, trained(MemorySection(dimension=4), 16))
    projected = found.key(decoder_states(ours.model.sentence, made_pairs(ours.pipeline)).attended)
    torch.testing.assert_close(projected.mean(0), torch.zeros(4), atol=1e-3, rtol=0)
    spreads = projected.std(0)
    assert spreads.tolist() == sorted(spreads.tolist(), reverse=True)


def test_one_sentence_and_one_pair_are_enough() -> None:
    memory = Memory()
    memory.add(TEXT[0], TARGETS[0])
    said: list[str] = []
    ours = without_pointer(said)
    assert len(ours.translate(TEXT[:1], memory=memory, **QUICK).targets) == 1
    assert ours.model.pointer is not None
    assert len(said) == 1


def test_nothing_is_borrowed_where_nothing_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped_pointer.cache_clear()
    monkeypatch.setattr(borrowed_pointer, "DEFAULT_MODEL", tmp_path / "none")
    ours = without_pointer()
    assert borrow_pointer(ours.model, ours.pipeline) is None
    with pytest.raises(UserError, match=r"no pointer.*weitblick train recipes/imported/memory\.yaml"):
        ours.translate(TEXT, memory=approved(), **QUICK)
    shipped_pointer.cache_clear()


def test_a_memory_works_without_a_pointer_and_says_so_once() -> None:
    said: list[str] = []
    ours = without_pointer(said)
    plain = without_pointer().translate(TEXT, **QUICK)
    assert ours.translate(TEXT, **QUICK).targets == plain.targets
    assert ours.model.pointer is None
    first = ours.translate(TEXT, memory=approved(), **QUICK)
    again = ours.translate(TEXT, memory=approved(), **QUICK)
    other = without_pointer()
    assert first.targets == again.targets == other.translate(TEXT, memory=approved(), **QUICK).targets
    assert len(said) == 1
    assert "takes over the shipped model's" in said[0]
    assert torch.equal(ours.model.pointer.key.weight, other.model.pointer.key.weight)


def test_for_locked_sentences_alone_nothing_is_borrowed_and_with_a_memory_they_count() -> None:
    ours, memory = without_pointer(), Memory()
    units = split_documents([document(locked=5)], ours.pipeline, print)
    assert ours.pointer_for(units, TranslationOptions()) is None
    assert ours.model.pointer is None
    memory.add(TEXT[0], TARGETS[1])
    found = ours.pointer_for(units, TranslationOptions(memory=memory))
    assert found is not None
    assert TARGETS[0] in {origin.target for origin in found.origins}


def test_streams_fit_before_the_first_sentence() -> None:
    ours, memory = without_pointer(), Memory()
    for text in TEXT:
        memory.add(text, TARGETS[0])
    stream = ours.stream(memory=memory, beam=1)
    assert ours.model.pointer is not None
    stream.translate(TEXT[0])
    stream.confirm(0, TARGETS[1])


def test_keys_of_a_borrowed_pointer_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = without_pointer()
    with Memory.open(tmp_path / "memory") as memory:
        for source, target in zip(SOURCES, TARGETS, strict=True):
            memory.add(source, target)
        monkeypatch.setattr(Memory, "store_keys", lambda *_: pytest.fail("other text, other keys"))
        ours.translate(TEXT, memory=memory, **QUICK)


def test_the_command_right_after_an_import(tmp_path: Path) -> None:
    """`translate` and `postedit` with a model that was saved without a pointer, which stays as it is."""
    folder = tmp_path / "plain"
    save_model(folder, tiny_translation_model(TINY, end=2.5), tiny_pipeline(), SECTION, {})
    (tmp_path / "x.en").write_text("\n".join([*TEXT[:20], "", *TEXT[20:]]) + "\n")
    (tmp_path / "x.de").write_text("\n".join([*TARGETS[:1] * 20, "", *TARGETS[:1] * (len(TEXT) - 20)]) + "\n")
    (tmp_path / "a.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in zip(SOURCES, TARGETS, strict=True)))
    before = _contents(folder)
    source, target = str(tmp_path / "x.en"), str(tmp_path / "x.de")
    memory = ["-m", str(folder), "--memory", str(tmp_path / "a.tsv"), "--beam", "1"]
    result = CliRunner().invoke(app, ["translate", source, *memory])
    assert result.exit_code == 0, result.exception
    assert result.stderr.count("it takes over the shipped model's") == 1
    assert len(result.stdout.splitlines()) == len(TEXT) + 1
    judged = ["postedit", source, target, "--systems", "none,approved", "--trials", "5", *memory]
    assert CliRunner().invoke(app, judged).exit_code == 0
    assert _contents(folder) == before
    assert load_model(folder).model.pointer is None


def _contents(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
