"""Model folders on a hub of this machine, among installed ones, and chosen by their languages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from local_hub import Hub
from marian_models import random_model
from typer.testing import CliRunner, Result

from weitblick.checkpoints.folder import load_model
from weitblick.checkpoints.import_marian import TextOptions, import_marian
from weitblick.checkpoints.installed import DEFAULT_MODEL, choose_model
from weitblick.cli.main import app
from weitblick.common.errors import UserError


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    random_model(folder / "opus")
    import_marian(folder / "opus", TextOptions("en", "fi")).save(folder / "ours")
    return folder / "ours"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEITBLICK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_TOKEN", "test")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    return tmp_path / "models"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_published_and_fetched_is_the_same(hub: Hub, imported: Path, models: Path) -> None:
    (imported / "notes.bin").write_bytes(b"not for others")
    result = run("publish", "you/en-fi", "-m", str(imported), "--hub", hub.address)
    assert result.exit_code == 0, (result.output, result.exception)
    sent = hub.repositories["you/en-fi"]
    expected = {
        "README.md",
        "config.json",
        "model.safetensors",
        *(f"text/{p.name}" for p in (imported / "text").iterdir()),
    }
    assert set(sent) == expected

    result = run("fetch", "you/en-fi", "--hub", hub.address)
    assert result.exit_code == 0, (result.output, result.exception)
    assert {name: (models / "you/en-fi" / name).read_bytes() for name in expected} == sent
    for name in expected - {"README.md"}:
        assert sent[name] == (imported / name).read_bytes()
    (models / "damaged" / "text").mkdir(parents=True)
    (models / "damaged" / "config.json").write_text("{")
    assert "damaged" in run("models").stderr  # and the others are listed all the same
    listed = json.loads(run("models", "--json").stdout)["models"]
    assert [(model["name"], model["target_language"]) for model in listed] == [("you/en-fi", "fi"), ("shipped", "de")]


def test_what_is_no_model_of_ours_is_not_taken(hub: Hub, models: Path) -> None:
    hub.repositories["you/other"] = {"config.json": b"{}", "pytorch_model.bin": b"pickle"}
    for name in ("you/other", "you/nothing"):
        result = run("fetch", name, "--hub", hub.address)
        assert isinstance(result.exception, UserError)
        assert "\n" not in str(result.exception)
    assert "you/nothing is not there, or not for everybody (404); check the name" in str(result.exception)
    assert not any("pytorch_model.bin" in request for request in hub.requests)
    assert not models.exists() or not any(models.rglob("config.json"))


def test_no_server_is_one_line(models: Path, imported: Path) -> None:
    for arguments in (["fetch", "you/en-fi"], ["publish", "you/en-fi", "-m", str(imported)]):
        result = run(*arguments, "--hub", "http://127.0.0.1:9")
        assert isinstance(result.exception, UserError)
        assert "127.0.0.1:9" in str(result.exception)


def test_the_card_speaks_the_hubs_language(hub: Hub, models: Path, tmp_path: Path) -> None:
    """What the original's card says of licence and data is kept, and can be changed by who publishes."""
    random_model(tmp_path / "opus", _name_or_path="/tmp/Helsinki-NLP/opus-mt-en-fi")
    card = "---\nlicense: apache-2.0\ndatasets:\n- opus\n---\n# OPUS\n"
    (tmp_path / "opus" / "README.md").write_text(card)
    config = json.loads((tmp_path / "opus" / "config.json").read_text())
    config["_name_or_path"] = "/tmp/Helsinki-NLP/opus-mt-en-fi"
    (tmp_path / "opus" / "config.json").write_text(json.dumps(config))
    assert run("import", str(tmp_path / "opus"), "-o", str(tmp_path / "ours"), "--target-language", "fi").exit_code == 0
    for options, license, datasets in (
        ([], "apache-2.0", ["opus"]),
        (
            ["--license", "cc-by-4.0", "--dataset", "opus", "--dataset", "you/letters"],
            "cc-by-4.0",
            ["opus", "you/letters"],
        ),
    ):
        result = run("publish", "you/en-fi", "-m", str(tmp_path / "ours"), "--hub", hub.address, *options)
        assert result.exit_code == 0, result.exception
        data = ModelCard(hub.repositories["you/en-fi"]["README.md"].decode()).data
        assert (data.language, data.library_name, data.pipeline_tag) == (["en", "fi"], "weitblick", "translation")
        assert (data.license, data.datasets, data.base_model) == (license, datasets, "Helsinki-NLP/opus-mt-en-fi")


def test_a_model_is_chosen_by_its_languages(models: Path, imported: Path, tmp_path: Path) -> None:
    loaded = load_model(imported)
    assert choose_model(None, None, None) is None
    assert choose_model(None, "en", "de") == DEFAULT_MODEL
    with pytest.raises(UserError, match="no model from en to fi"):
        choose_model(None, "en", "fi")
    import shutil

    shutil.copytree(imported, models / "en-fi")
    assert choose_model(None, None, "fi") == models / "en-fi"
    assert choose_model("en-fi", None, None) == models / "en-fi"
    with pytest.raises(UserError, match="translates from en to fi"):
        choose_model("en-fi", "en", "sv")
    shutil.copytree(imported, models / "second")
    with pytest.raises(UserError, match="en-fi, second"):
        choose_model(None, "en", "fi")
    shutil.rmtree(models / "second")
    (tmp_path / "t.en").write_text("The old house.\n")
    result = run("translate", str(tmp_path / "t.en"), "--target-language", "fi", "--no-context", "-q")
    assert result.exit_code == 0, result.exception
    assert len(result.stdout.splitlines()) == 1
    assert loaded.pipeline.target_language == "fi"
