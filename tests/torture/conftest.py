"""What is attacked: a corpus of a few sentences, a run and its model that take a second or two to train, a memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks import MADE, SECONDS, SEED
from commands import Commands

from weitblick.documents.discourse.generator import generate, write_corpus

RECIPE = """
text: {kind: sentencepiece, merges: 120, joint_vocabulary: true}
threads: 1
model: {dimension: 16, feed_forward: 16, encoder_layers: 1, decoder_layers: 1, heads: 2, norm: pre,
        tied_embeddings: all, dropout: {embedding: 0.1, attention: 0.1, residual: 0.1}}
context: {kind: hierarchical, gate_start: 1.0}
sentence_stage: {updates: 3, batch_tokens: 200, learning_rate: 2e-3, validate_every: 2, save_every: 1, average: 2}
context_stage: {updates: 3, batch_tokens: 200, learning_rate: 2e-3, validate_every: 2, save_every: 1, average: 2}
"""
DOCUMENTS = {"train": 12, "dev": 2, "test": 2}


def pytest_report_header() -> str:
    return f"torture: seed {SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often each attack was made, after `make torture`."""
    if SECONDS:
        terminalreporter.section(f"torture: seed {SEED}, {MADE.total()} attacks")
        for name, count in sorted(MADE.items()):
            terminalreporter.write_line(f"{count:7} {name}")


@pytest.fixture(scope="session")
def weitblick() -> Iterator[Commands]:
    commands = Commands()
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def home(weitblick: Commands, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, a recipe, a run, and a document to translate. Tests work on copies of what they break."""
    folder = tmp_path_factory.mktemp("home")
    write_corpus(generate("small", 60, seed=5), folder / "corpus")
    for part, count in DOCUMENTS.items():
        for side in ("en", "de"):
            path = folder / "corpus" / f"{part}.{side}"
            documents = path.read_text(encoding="utf-8").split("\n\n")[:count]
            path.write_text("\n\n".join(documents).rstrip("\n") + "\n", encoding="utf-8")
    shutil.copy(folder / "corpus" / "test.en", folder / "document.en")
    suite = (folder / "corpus" / "contrast.jsonl").read_text(encoding="utf-8").splitlines()[:6]
    (folder / "suite.jsonl").write_text("\n".join(suite) + "\n", encoding="utf-8")
    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    weitblick(folder, "train", "recipe.yaml", "data.dir=corpus", "output=run", seconds=600).sound()
    pairs = ("corpus/dev.en", "corpus/dev.de")
    for command in (("memory", "add", "project"), ("data", "shortlist", "-m", "run/best", "-o", "words.shortlist")):
        assert weitblick(folder, *command, *pairs).sound().code == 0
    return folder


@pytest.fixture
def place(home: Path, tmp_path: Path) -> Path:
    """A folder with all of that but the run, to write in."""
    for name in ("corpus", "document.en", "suite.jsonl", "recipe.yaml", "project", "words.shortlist"):
        if (home / name).is_dir():
            shutil.copytree(home / name, tmp_path / name)
        else:
            shutil.copy(home / name, tmp_path / name)
    return tmp_path
