"""The command on real files: every format keeps its structure, mistakes end in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tiny_models import SECTION, tiny_pipeline, tiny_translation_model
from typer.testing import CliRunner, Result

from weitblick.checkpoints.folder import save_model
from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.fast.shortlist import Shortlist

ENGLISH = "\nThe report was read.\nIt is wrong.\n\n\nWhere is it?\n\n"
QUICK = ["--beam", "2", "--length-penalty", "0", "--device", "cpu"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "best"
    model = tiny_translation_model({"kind": "hierarchical", "direction": "online"}, end=2.5)
    save_model(path, model, tiny_pipeline(), SECTION, {})
    return path


@pytest.fixture(autouse=True)
def _keep_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(app, ["translate", *map(str, arguments), *QUICK], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def blank_lines(text: str) -> list[bool]:
    return [not line.strip() for line in text.splitlines()]


def test_a_line_for_every_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_text(ENGLISH)
    run("-m", folder, tmp_path / "in.en", "-o", tmp_path / "out.de")
    written = (tmp_path / "out.de").read_text()
    assert blank_lines(written) == blank_lines(ENGLISH)
    piped = run("-m", folder, "-", stdin=ENGLISH).stdout
    assert piped == written == run("-m", folder, stdin=ENGLISH).stdout
    assert blank_lines(run("-m", folder, "-", "--no-context", stdin=ENGLISH).stdout) == blank_lines(ENGLISH)


D_LINES = "<d>\nThe report was read.\n\n<d>\nWhere is it?\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", ENGLISH),
        ("a.txt", D_LINES),
        ("a.tsv", "one\tThe report was read.\none\tIt is wrong.\ntwo\tWhere is it?\n"),
        ("a.jsonl", '{"format_version": 1, "id": "x", "sentences": [{"source": "It is wrong."}, {"source": ""}]}\n'),
    ],
    ids=["text", "d-lines", "tsv", "jsonl"],
)
def test_every_format_keeps_its_structure(folder: Path, tmp_path: Path, name: str, content: str) -> None:
    from weitblick.documents.corpora.formats import read_documents

    (tmp_path / name).write_text(content)
    run("-m", folder, tmp_path / name, "-o", tmp_path / f"out-{name}")
    before, after = (list(read_documents([tmp_path / part])) for part in (name, f"out-{name}"))
    assert [d.id for d in before] == [d.id for d in after]
    assert [d.metadata for d in before] == [d.metadata for d in after]
    for one, other in zip(before, after, strict=True):
        blank = [not s.source.strip() for s in one.sentences]
        translated = other.sources if name == "a.txt" else other.targets
        assert [not (text or "").strip() for text in translated] == blank


def test_files_with_companions_and_prose(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("It is wrong.\n\nWhere is it?\n")
    (tmp_path / "a.docids").write_text("x\nx\ny\n")
    written = run("-m", folder, tmp_path / "a.en", tmp_path / "a.docids").stdout
    assert blank_lines(written) == [False, True, False]
    prose = "The report was read. It is wrong.\n\nWhere is it?\n"
    (tmp_path / "b.txt").write_text(prose)
    assert blank_lines(run("-m", folder, tmp_path / "b.txt", "--from", "prose").stdout) == [False, True, False]


def test_several_files_go_into_a_folder(folder: Path, tmp_path: Path) -> None:
    for name in ("a.en", "b.en"):
        (tmp_path / name).write_text(ENGLISH)
    run("-m", folder, tmp_path / "a.en", tmp_path / "b.en", "-o", f"{tmp_path}/out/")
    assert (tmp_path / "out" / "a.en").read_text() == (tmp_path / "out" / "b.en").read_text()
    with pytest.raises(UserError, match="several inputs need a folder"):
        run("-m", folder, tmp_path / "a.en", tmp_path / "b.en", "-o", tmp_path / "out" / "a.en")


def test_scores_and_n_best(folder: Path) -> None:
    plain = run("-m", folder, "-", stdin=ENGLISH).stdout.splitlines()
    scored = run("-m", folder, "-", "--scores", stdin=ENGLISH).stdout.splitlines()
    assert [line.split("\t")[0] for line in scored] == plain
    for line in filter(None, scored):
        _, confidence, log_probability = line.split("\t")
        assert 0 < float(confidence) < 1
        assert float(log_probability) < 0
    listed = [
        line.split(" ||| ") for line in run("-m", folder, "-", "--n-best", "2", stdin=ENGLISH).stdout.splitlines()
    ]
    assert [row[1] for row in listed[::2]] == [line for line in plain if line]
    assert [row[0] for row in listed] == ["0", "0", "1", "1", "2", "2"]
    document = json.loads(
        run("-m", folder, "-", "--n-best", "2", "--to", "jsonl", stdin=ENGLISH).stdout.splitlines()[0]
    )
    metadata = document["sentences"][0]["metadata"]
    assert metadata["n_best"][0]["target"] == document["sentences"][0]["target"] == plain[1]
    assert 0 < metadata["confidence"] < 1


def test_streaming_gives_the_lines_of_the_document(folder: Path) -> None:
    assert run("-m", folder, "--stream", stdin=ENGLISH).stdout == run("-m", folder, "-", stdin=ENGLISH).stdout
    assert "\t" in run("-m", folder, "--stream", "--scores", stdin=ENGLISH).stdout


def test_streaming_chooses_from_a_shortlist(folder: Path, tmp_path: Path) -> None:
    words = tmp_path / "words"
    Shortlist.learn([("The report.", "Der Bericht.")], tiny_pipeline(), common=1, each=1).save(words)
    document, stream = (run("-m", folder, way, "--shortlist", words, stdin=ENGLISH).stdout for way in ("-", "--stream"))
    assert stream == document
    assert stream != run("-m", folder, "--stream", stdin=ENGLISH).stdout


def test_the_shipped_model_is_the_default(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weitblick.checkpoints.installed.DEFAULT_MODEL", folder)
    (tmp_path / "in.en").write_text(ENGLISH)
    expected = run("-m", folder, "-", stdin=ENGLISH).stdout
    assert run(tmp_path / "in.en").stdout == run("-", stdin=ENGLISH).stdout == expected


def test_mistakes_are_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_text(ENGLISH)
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        (["-m", tmp_path / "missing", tmp_path / "in.en"], "no such model folder"),
        (["-m", tmp_path / "empty", tmp_path / "in.en"], "config.json: missing from the model folder"),
        (["-m", folder, tmp_path / "missing.en"], "missing.en: no such file"),
        (["-m", folder, tmp_path / "in.en", "--n-best", "3"], "--beam 3"),
        (["-m", folder, tmp_path / "in.en", "--to", "tsv", "--scores"], "no room for scores"),
        (["-m", folder, tmp_path / "in.en", "--stream"], "standard input"),
    ):
        with pytest.raises(UserError, match=message):
            run(*arguments, "-o", tmp_path / "out.de")
        assert not (tmp_path / "out.de").exists()


@pytest.mark.parametrize("option", [("--passes", "0"), ("--n-best", "3000"), ("--batch-tokens", "0")])
def test_options_have_limits(option: tuple[str, str]) -> None:
    assert run("-", *option, stdin=ENGLISH).exit_code == 2


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "text/vocabulary.json"])
def test_a_damaged_model_names_the_file(folder: Path, tmp_path: Path, name: str) -> None:
    import shutil

    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    victim = copy / name if (copy / name).exists() else copy / "text" / "source.vocabulary.json"
    victim.write_bytes(victim.read_bytes()[:100])
    with pytest.raises(UserError, match=victim.name):
        run("-m", copy, "-", stdin=ENGLISH)


def test_two_processes_write_what_one_does(folder: Path, tmp_path: Path) -> None:
    """The document is small, so windows are made small as well: both processes have to work."""
    (tmp_path / "in.en").write_text((ENGLISH.strip() + "\n\n") * 4)
    run("-m", folder, tmp_path / "in.en", "-o", tmp_path / "one.de")
    script = tmp_path / "small_windows.py"
    script.write_text(
        "import sys\n"
        "from weitblick.translation import sharing, translator\n"
        "sharing.windows = lambda documents: translator.windows(documents, 8)\n"
        "from weitblick.cli.main import main\n"
        "main()\n"
    )
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    command = [*launch, "translate", "-m", str(folder), str(tmp_path / "in.en"), "-o", str(tmp_path / "two.de"), *QUICK]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, timeout=500)
    assert (tmp_path / "two.de").read_text() == (tmp_path / "one.de").read_text()
