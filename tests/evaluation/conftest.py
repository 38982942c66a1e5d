"""Studies that are finished, for tests that look at what they leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_samples import CONTINUED, JUDGED, STUDY, reproduce, study_file

from weitblick.documents.discourse.generator import generate, write_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few documents: most of a study's time is in its parts, which have tests of their own."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(generate("small", 12, 1), folder)
    for split in ("dev", "test"):
        for side in ("en", "de"):
            path = folder / f"{split}.{side}"
            documents = path.read_text(encoding="utf-8").split("\n\n")
            path.write_text("\n\n".join(documents[:3]) + "\n", encoding="utf-8")
    suite = folder / "contrast.jsonl"
    suite.write_text("".join(f"{line}\n" for line in suite.read_text(encoding="utf-8").splitlines()[:10]))
    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("study")
    return folder, reproduce(study_file(folder, corpus), "-o", folder / "out")


@pytest.fixture(scope="session")
def larger(tmp_path_factory: pytest.TempPathFactory, corpus: Path, finished: tuple[Path, dict[str, Any]]) -> Path:
    """The toy study on a stage 1 that is given, with a continued row, two seeds, and everything judged."""
    model = next((finished[0] / "out" / "runs").glob("talks.transformer.*")) / "best"
    text = STUDY.replace("name: toy", f"name: larger{JUDGED.replace('MODEL', str(model))}") + CONTINUED
    text = text.replace("contrast.jsonl}", "contrast.jsonl}, suite_items: {pronouns: 4}")
    folder = tmp_path_factory.mktemp("larger")
    reproduce(study_file(folder, corpus, text), "-o", folder / "out")
    return folder
