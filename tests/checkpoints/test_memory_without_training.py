"""`import` and `fetch` end with a model that can use approved translations, without text and without training."""

from __future__ import annotations

from pathlib import Path

import torch
from model_servers import ModelServer
from test_fetch import V2, fetch, firefox_files, models, server  # noqa: F401 (fixtures)
from typer.testing import CliRunner, Result

from weitblick.checkpoints.folder import load_model
from weitblick.cli.main import app

TEXT = ["Anne a vu la voiture.", "Paul a vu la maison."]


def run_import(tmp_path: Path) -> Result:
    folder = tmp_path / "downloaded"
    folder.mkdir()
    for name, content in firefox_files().values():
        (folder / name).write_bytes(content)
    languages = ["--source-language", "fr", "--target-language", "es"]
    return CliRunner().invoke(app, ["import", str(folder), "-o", str(tmp_path / "model"), *languages])


def test_an_import_ends_with_a_pointer(tmp_path: Path) -> None:
    result = run_import(tmp_path)
    assert result.exit_code == 0, result.exception
    assert "approved translations: yes" in result.stderr
    assert "context and decisions: none" in result.stderr
    loaded = load_model(tmp_path / "model")
    assert loaded.model.pointer is not None
    assert "not trained" in loaded.facts["memory"]
    card = (tmp_path / "model" / "README.md").read_text()
    assert "sentence-level, with a pointer to approved translations" in card


def test_one_approved_sentence_is_followed_right_after_an_import(tmp_path: Path) -> None:
    run_import(tmp_path)
    (tmp_path / "x.fr").write_text(f"{TEXT[0]}\n")
    (tmp_path / "a.tsv").write_text(f"{TEXT[0]}\tAnne vio el auto.\n")
    told = ["translate", str(tmp_path / "x.fr"), "-m", str(tmp_path / "model"), "-q"]
    assert CliRunner().invoke(app, told).stdout == "Anne vio el coche.\n"
    result = CliRunner().invoke(app, [*told, "--memory", str(tmp_path / "a.tsv")])
    assert (result.exit_code, result.stdout) == (0, "Anne vio el auto.\n")
    assert "takes over" not in result.stderr


def test_a_fetched_model_ends_with_a_pointer(server: ModelServer, models: Path, tmp_path: Path) -> None:  # noqa: F811
    server.add_firefox(V2, firefox_files())
    result = fetch(server, "firefox:fr-es")
    assert result.exit_code == 0, result.exception
    loaded = load_model(models / "firefox" / "fr-es")
    assert loaded.model.pointer is not None
    assert (loaded.facts["license"], loaded.facts["imported_from"]) == ("mpl-2.0", "firefox:fr-es")
    run_import(tmp_path)
    imported = load_model(tmp_path / "model").model.pointer
    assert torch.equal(loaded.model.pointer.key.weight, imported.key.weight)
