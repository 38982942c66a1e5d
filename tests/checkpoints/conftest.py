"""A small Marian model, trained by transformers with the script that the benchmarks use."""

from __future__ import annotations

import importlib.util
from argparse import Namespace
from pathlib import Path

import pytest
from french_spanish import write_corpus

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "small_marian.py"


@pytest.fixture(scope="session")
def small_marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """opus-mt-fr-es: a folder of transformers that has learned French to Spanish sentences of the toy corpus."""
    found = importlib.util.spec_from_file_location("small_marian", SCRIPT)
    assert found is not None
    assert found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    folder = tmp_path_factory.mktemp("trained") / "opus-mt-fr-es"
    pairs = write_corpus(folder.parent, 300)
    options = Namespace(languages=("fr", "es"), updates=150, dimension=32, layers=1, pieces=120, tokens=300, rate=8e-3)
    script.train_marian(pairs, folder, options)
    return folder
