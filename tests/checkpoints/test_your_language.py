"""docs/your-language.md is run: every command as it stands, in a folder with a small Marian and a few documents."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from french_spanish import write_corpus
from test_trained import SHORT

import weitblick.common.recipe_files
from tests.patience import PATIENCE
from tests.test_docs import ROOT, SHELLS, blocks
from tests.test_docs_run import run_line
from weitblick.text.base import load_pipeline

PAGE = ROOT / "docs" / "your-language.md"
WITH_NETWORK = ("pip ", "hf ")


def answer(request: urllib.request.Request) -> Any:
    """The address is printed a moment before anybody listens there."""
    begun = time.monotonic()
    while True:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as found:
                return json.load(found)
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            if time.monotonic() - begun > PATIENCE:
                raise
            time.sleep(0.2)


def serve(line: str) -> None:
    """Starts the server that the page starts, at a free port, and asks it for a document."""
    command = line.replace("--port 5005", "--port 0 --data projects").split()[1:]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, "-m", "weitblick", *command], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert server.stdout is not None
        address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
        question = {"q": ["Anne a vu la voiture.", "Aujourd'hui, elle est blanche !"], "source": "fr", "target": "es"}
        request = urllib.request.Request(
            f"{address}translate", json.dumps(question).encode(), {"Content-Type": "application/json"}
        )
        assert len(answer(request)["translatedText"]) == 2
    finally:
        server.terminate()
        server.wait(PATIENCE)


def test_the_page_runs_as_it_stands(small_marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(small_marian, tmp_path / "opus-mt-fr-es")
    write_corpus(tmp_path, 60)
    original = weitblick.common.recipe_files.load_recipe
    monkeypatch.setattr(
        weitblick.common.recipe_files, "load_recipe", lambda path, changes=(): original(path, [*changes, *SHORT])
    )
    lines = [line for block in blocks(PAGE, *SHELLS) for line in block.splitlines() if line.strip()]
    served = False
    for line in lines:
        if line.startswith(WITH_NETWORK):
            continue
        if line.startswith("export "):
            monkeypatch.setenv(*line.removeprefix("export ").split("=", 1))
        elif line.startswith("weitblick serve"):
            serve(line)
            served = True
        else:
            run_line(line)
    assert served
    assert (tmp_path / "again.es").read_text() == (tmp_path / "with.es").read_text()
    assert (tmp_path / "report.html").stat().st_size > 10_000
    pipeline = load_pipeline(tmp_path / "for-ctranslate2" / "text")
    assert (pipeline.source_language, pipeline.target_language) == ("fr", "es")
