"""`weitblick explain` as its users meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic_explanation import STORY, build
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.explanation.schema import text_of
from weitblick.explanation.storage import from_json, load_explanation, save_explanation


@pytest.fixture
def saved(tmp_path: Path) -> str:
    save_explanation(tmp_path / "saved.json", build(heads=4))
    return str(tmp_path / "saved.json")


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["explain", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.html", b"<!doctype html>"),
        ("r.json", b'{"format_version"'),
        ("r.svg", b"<?xml"),
        ("r.pdf", b"%PDF"),
        ("r.tex", b"% needs"),
    ],
)
def test_the_name_of_the_output_tells_its_format(saved: str, tmp_path: Path, name: str, start: bytes) -> None:
    assert "14 sentences" in run(saved, "-o", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_json_about_what_was_written(saved: str, tmp_path: Path) -> None:
    value = json.loads(run(saved, "-o", tmp_path / "r.html", "--json"))
    assert (value["sentences"], value["format"]) == (14, "html")
    assert value["choices_changed"] > 0


def test_an_explanation_goes_to_standard_output_alone(saved: str) -> None:
    assert from_json(json.loads(run(saved, "-o", "-", "--format", "json"))).document == "The observatory"


def test_the_chosen_word_and_heads_are_drawn(saved: str) -> None:
    table = run(saved, "-o", "-", "--format", "latex", "--sentence", "8", "--word", "12", "--head", "2", "--head", "4")
    assert r"\textbf{it} shines" in table
    assert "Head 2: " in table
    assert "Head 4: " in table
    assert "Head 1: " not in table


def test_corpus_statistics_as_data_and_plot(saved: str, tmp_path: Path) -> None:
    run(saved, "-o", tmp_path / "reach.json", "--statistics")
    assert json.loads((tmp_path / "reach.json").read_text())["documents"] == 1
    run(saved, "-o", tmp_path / "reach.svg", "--statistics")
    assert (tmp_path / "reach.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.foo"], "does not tell a format"),
        (["-o", "x.html", "--format", "latex", "--statistics"], "--format latex is not for --statistics"),
        (["-o", "x.html", "--statistics"], "does not tell a format; use --format json"),
        (["-o", "-", "--format", "png"], "cannot go to standard output"),
        (["-o", "x.png", "--sentence", "99", "--word", "1"], "no sentence 99 .* from 1 to 14"),
        (["-o", "x.png", "--sentence", "99"], "no sentence 99"),
        (["-o", "x.png", "--sentence", "2", "--word", "30"], "no source word 30 .* 1:It 2:was"),
        (["-o", "x.png", "--word", "3"], "--word without --sentence"),
        (["-o", "x.png", "--head", "5"], "no head 5; choose heads from 1 to 4"),
    ],
)
def test_mistakes_are_named(
    saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        run(saved, *arguments)
    assert not list(tmp_path.glob("x.*"))


def test_files_that_are_missing_or_empty_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UserError, match=r"nowhere\.txt: no such file"):
        run(tmp_path / "nowhere.txt", "-o", "x.html")
    with pytest.raises(UserError, match=r"empty\.txt: holds no document"):
        run(tmp_path / "empty.txt", "-o", "x.html")
    with pytest.raises(UserError, match=r"other\.json: format_version is None"):
        run(tmp_path / "other.json", "-o", "x.html")


def test_a_model_without_context_has_a_report_but_no_figure(tmp_path: Path) -> None:
    save_explanation(tmp_path / "plain.json", build(4, kind="none"))
    run(tmp_path / "plain.json", "-o", tmp_path / "r.html")
    with pytest.raises(UserError, match="nothing to draw"):
        run(tmp_path / "plain.json", "-o", tmp_path / "r.png", "--sentence", "1", "--word", "1")
    with pytest.raises(UserError, match="context changed no word"):
        run(tmp_path / "plain.json", "-o", tmp_path / "r.png")


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small untrained model on disk."""
    from weitblick.checkpoints.folder import build as build_model
    from weitblick.checkpoints.folder import save_model
    from weitblick.common.recipe import ContextSection, ModelSection, TextSection
    from weitblick.text.pipeline import learn_pipeline

    texts = [source for source, _, _ in STORY], [target for _, target, _ in STORY]
    pipeline = learn_pipeline(texts, TextSection(kind="sentencepiece", merges=400))
    section = ModelSection(dimension=16, feed_forward=16, encoder_layers=1, decoder_layers=1, heads=2)
    sizes = (len(pipeline.source_vocabulary), len(pipeline.target_vocabulary))
    model = build_model(section, ContextSection(kind="hierarchical"), *sizes)
    folder = tmp_path_factory.mktemp("model") / "best"
    save_model(folder, model, pipeline, section, {})
    return folder


def test_documents_of_a_file_are_explained_one_by_one_or_together(model_folder: Path, tmp_path: Path) -> None:
    text = tmp_path / "speech.en"
    text.write_text("It was closed.\nThe dome is old.\n\nEvery Friday it opens.\nIt is full.\nWho built it?\n")
    run("-m", model_folder, text, "-o", tmp_path / "second.json", "--document", "2", "--beam", "1")
    explanation = load_explanation(tmp_path / "second.json")
    assert (explanation.document, len(explanation.sentences)) == ("speech.en 2", 3)
    assert explanation.sentences[1].attention is not None
    run("-m", model_folder, text, "-o", tmp_path / "reach.json", "--statistics", "--beam", "1")
    statistics = json.loads((tmp_path / "reach.json").read_text())
    assert (statistics["documents"], len(statistics["heads"])) == (2, 2)
    with pytest.raises(UserError, match=r"speech\.en: no document 3"):
        run("-m", model_folder, text, "-o", tmp_path / "third.html", "--document", "3")


LETTER = "Good day, {name}.\n\nTHE LARGE HOUSE\n\nThank you \N{GRINNING FACE}. Write to “me@example.org” now [today].\n"


@pytest.mark.parametrize("text", ["Thank you.\n", LETTER])
def test_a_file_is_explained_with_the_text_of_its_translation(tmp_path: Path, text: str) -> None:
    (tmp_path / "letter.txt").write_text(text, encoding="utf-8")
    arguments = ["--from", "txt", "--beam", "1", "-o"]
    run(tmp_path / "letter.txt", *arguments, tmp_path / "letter.json")
    CliRunner().invoke(
        app, ["translate", str(tmp_path / "letter.txt"), *arguments, str(tmp_path / "out.txt")], catch_exceptions=False
    )
    explained = load_explanation(tmp_path / "letter.json").sentences
    translated = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert " ".join(text_of(one.target) for one in explained) == " ".join(translated.split())
    assert " ".join(text_of(one.source) for one in explained) == " ".join(text.split())


def test_a_model_that_is_missing_or_alone_is_named(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "speech.en").write_text("It was closed.\n")
    with pytest.raises(UserError, match=r"nomodel: no such model folder"):
        run("-m", tmp_path / "nomodel", tmp_path / "speech.en", "-o", tmp_path / "x.html")
    with pytest.raises(UserError, match="is a model, not a document; name it with -m"):
        run(model_folder, "-o", tmp_path / "x.html")
