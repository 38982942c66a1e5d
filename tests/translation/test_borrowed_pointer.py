"""A model without a pointer takes over the shipped one's, without training: keys from its own translations."""

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
from weitblick.memory.pointer import FEATURES, MemoryPointer
from weitblick.memory.store import Memory
from weitblick.memory.transfer import ENOUGH, FEWEST, chosen_sentences, transferred_pointer
from weitblick.text.units import split_documents
from weitblick.translation import borrowed_pointer
from weitblick.translation.borrowed_pointer import borrow_pointer, own_translations, shipped_pointer
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


def test_sentences_are_chosen_by_the_seed() -> None:
    many = [f"Sentence {number}." for number in range(2 * ENOUGH)]
    chosen = chosen_sentences(["", *many, *many])
    assert len(chosen) == len(set(chosen)) == ENOUGH
    assert chosen == [text for text in many if text in set(chosen)] == chosen_sentences(many)
    assert chosen != chosen_sentences(many, seed=2)
    assert chosen_sentences([" a ", "b", "a"]) == ["a", "b"]


@pytest.mark.parametrize("width", [8, 128])
def test_the_share_is_taken_over_and_keys_are_the_models_own(width: int) -> None:
    ours = without_pointer()
    trained = MemoryPointer(MemorySection(kind="pointer", dimension=width, candidates=5), 24)
    pairs = own_translations(ours.model, ours.pipeline, TEXT)
    before = torch.get_rng_state()
    found = transferred_pointer(ours.model.sentence, trained, pairs)
    assert torch.equal(before, torch.get_rng_state())
    features = torch.randn(3, FEATURES)
    assert torch.equal(found.share(features), trained.share(features))
    assert (found.section.candidates, found.section.dimension) == (5, min(width, 16))
    weight = found.key.weight
    torch.testing.assert_close(weight @ weight.t(), torch.eye(len(weight)), atol=1e-4, rtol=0)
    again = transferred_pointer(ours.model.sentence, trained, pairs[::-1])
    states = torch.randn(4, 16)
    torch.testing.assert_close(again.key(states).abs(), found.key(states).abs(), atol=1e-2, rtol=0)


def test_keys_are_those_of_the_principal_components() -> None:
    """Of the states at the model's own steps: centred, and the strongest direction first."""
    ours = without_pointer()
    trained = MemoryPointer(MemorySection(kind="pointer", dimension=4), 16)
    pairs = own_translations(ours.model, ours.pipeline, TEXT)
    found = transferred_pointer(ours.model.sentence, trained, pairs)
    from weitblick.memory.transfer import _states

    projected = found.key(torch.cat(list(_states(ours.model.sentence, pairs))))
    torch.testing.assert_close(projected.mean(0), torch.zeros(4), atol=1e-3, rtol=0)
    spreads = projected.std(0)
    assert spreads.tolist() == sorted(spreads.tolist(), reverse=True)


def test_too_little_text_borrows_nothing() -> None:
    ours = without_pointer()
    assert borrow_pointer(ours.model, ours.pipeline, TEXT[: FEWEST - 1] * 2) is None
    found = borrow_pointer(ours.model, ours.pipeline, TEXT[:FEWEST])
    assert found is not None
    assert found.sentences == FEWEST
    with pytest.raises(UserError, match=rf"no pointer.*{FEWEST} sentences.*--text.*weitblick train"):
        ours.translate(TEXT[:5], memory=approved(), **QUICK)


def test_nothing_is_borrowed_where_nothing_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped_pointer.cache_clear()
    monkeypatch.setattr(borrowed_pointer, "DEFAULT_MODEL", tmp_path / "none")
    ours = without_pointer()
    assert borrow_pointer(ours.model, ours.pipeline, TEXT) is None
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
    sentences = len({*TEXT, *SOURCES})
    assert f"fitted on {sentences} sentences" in said[0]
    assert torch.equal(ours.model.pointer.key.weight, other.model.pointer.key.weight)


def test_locked_sentences_are_pointed_at() -> None:
    ours = without_pointer()
    units = split_documents([document(locked=5)], ours.pipeline, print)
    found = ours.pointer_for(units, TranslationOptions())
    assert found is not None
    assert {origin.target for origin in found.origins} == {TARGETS[0]}
    few = split_documents([document(locked=2, sentences=TEXT[:6])], ours.pipeline, print)
    assert without_pointer().pointer_for(few, TranslationOptions()) is None
    judged = without_pointer()
    judged.borrows = False
    assert judged.pointer_for(units, TranslationOptions()) is None


def test_streams_fit_before_the_first_sentence() -> None:
    ours, memory = without_pointer(), Memory()
    for text in TEXT:
        memory.add(text, TARGETS[0])
    stream = ours.stream(memory=memory, beam=1)
    assert ours.model.pointer is not None
    stream.translate(TEXT[0])
    stream.confirm(0, TARGETS[1])
    with pytest.raises(UserError, match="no pointer"):
        without_pointer().stream(memory=approved(), beam=1).translate(TEXT[0])


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
