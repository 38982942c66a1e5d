"""`import --text` and `fetch --text`: the model ends with a pointer to approved translations."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_servers import ModelServer
from test_fetch import V2, fetch, firefox_files, installed, models, refused, server  # noqa: F401 (fixtures)
from typer.testing import CliRunner, Result

from weitblick.checkpoints.folder import load_model
from weitblick.cli.main import app
from weitblick.memory.transfer import FEWEST

WHO = ["Anne", "Paul", "Marie", "le voisin", "la voisine", "Jean"]
WHAT = ["la voiture", "le livre", "la maison", "le chien", "la lettre", "le jardin"]
FRENCH = [f"{who} a vu {what}." for who in WHO for what in WHAT]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "letters.fr"
    path.write_text("\n".join(FRENCH) + "\n")
    return path


def folder_of_firefox(folder: Path) -> Path:
    folder.mkdir()
    for name, content in firefox_files().values():
        (folder / name).write_bytes(content)
    return folder


def run_import(tmp_path: Path, *arguments: str) -> Result:
    folder = folder_of_firefox(tmp_path / "downloaded")
    languages = ["--source-language", "fr", "--target-language", "es"]
    return CliRunner().invoke(app, ["import", str(folder), "-o", str(tmp_path / "model"), *languages, *arguments])


def test_an_import_ends_with_a_pointer(text: Path, tmp_path: Path) -> None:
    result = run_import(tmp_path, "--text", str(text))
    assert result.exit_code == 0, result.exception
    assert f"fitted on {len(FRENCH)} sentences" in result.stderr
    loaded = load_model(tmp_path / "model")
    assert loaded.model.pointer is not None
    assert "not trained" in loaded.facts["memory"]
    assert "with a pointer to approved translations" in (tmp_path / "model" / "README.md").read_text()
    (tmp_path / "x.fr").write_text("Anne a vu la voiture.\n")
    (tmp_path / "a.tsv").write_text("Anne a vu la voiture.\tAnne vio el auto.\n")
    told = ["translate", str(tmp_path / "x.fr"), "-m", str(tmp_path / "model"), "-q"]
    assert CliRunner().invoke(app, told).stdout == "Anne vio el coche.\n"
    result = CliRunner().invoke(app, [*told, "--memory", str(tmp_path / "a.tsv")])
    assert (result.exit_code, "takes over" in result.stderr) == (0, False)


def test_a_fetched_model_ends_with_a_pointer(text: Path, server: ModelServer, models: Path) -> None:  # noqa: F811
    server.add_firefox(V2, firefox_files())
    result = fetch(server, "firefox:fr-es", "--text", str(text))
    assert result.exit_code == 0, result.exception
    loaded = load_model(models / "firefox" / "fr-es")
    assert loaded.model.pointer is not None
    assert (loaded.facts["license"], loaded.facts["imported_from"]) == ("mpl-2.0", "firefox:fr-es")


def test_too_little_text_installs_nothing(
    text: Path,
    tmp_path: Path,
    server: ModelServer,  # noqa: F811
    models: Path,  # noqa: F811
) -> None:
    text.write_text("\n".join(FRENCH[: FEWEST - 1]) + "\n")
    said = refused(run_import(tmp_path, "--text", str(text)))
    assert said.startswith(f"{text}: holds {FEWEST - 1} different sentences")
    assert not (tmp_path / "model").exists()
    server.add_firefox(V2, firefox_files())
    assert "too few" in refused(fetch(server, "firefox:fr-es", "--text", str(text)))
    assert installed(models) == []
    text.unlink()
    assert "no such file" in refused(fetch(server, "firefox:fr-es", "--text", str(text)))
