"""`weitblick data` as users run it: results, and one clear line with exit code 2 for every kind of bad input."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from weitblick.cli.main import main
from weitblick.common.errors import UserError
from weitblick.documents.splits import assign, sizes


def run(*arguments: str, stdin: bytes = b"", **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "weitblick", "data", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, **options)  # type: ignore[call-overload, no-any-return]


class Call(NamedTuple):
    code: int | str | None
    out: str
    err: str


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Call]:
    """The command line without a new process, which is what takes the time."""

    def run_here(*arguments: str) -> Call:
        monkeypatch.setattr(sys, "argv", ["weitblick", "data", *arguments])
        with pytest.raises(SystemExit) as exit:
            main()
        return Call(exit.value.code, *capsys.readouterr())

    return run_here


@pytest.fixture
def pair() -> tuple[str, str]:
    Path("a.en").write_text("one two\nthree\n\nfour\n" * 5)
    Path("a.de").write_text("eins zwei drei\nvier\n\nfünf\n" * 5)
    return "a.en", "a.de"


def test_stats(pair: tuple[str, str]) -> None:
    result = run("stats", *pair, "--json")
    assert json.loads(result.stdout) == {
        "documents": 6,
        "sentences": 15,
        "source_words": 20,
        "target_words": 25,
        "average_document_length": 2.5,
    }
    assert json.loads(run("stats", "-", "--json", stdin=b"<d>\na b\n").stdout)["target_words"] is None
    table = run("stats", "--corpus", f"X/train={','.join(pair)}", "--corpus", "X/dev=a.en").stdout.decode()
    assert "15 / 15" in table
    assert "2.50 / 2.50" in table


def test_convert_to_jsonl_and_back(pair: tuple[str, str]) -> None:
    assert run("convert", *pair, "-o", "b.jsonl").returncode == 0
    assert run("convert", "b.jsonl", "-o", "c.en", "-o", "c.de.gz").returncode == 0
    assert Path("c.en").read_bytes() == Path("a.en").read_bytes()
    assert gzip.decompress(Path("c.de.gz").read_bytes()) == Path("a.de").read_bytes()
    assert run("convert", "--from", "jsonl", "-o", "d.jsonl", "b.jsonl").returncode == 0
    assert Path("d.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    one_side = run("convert", "b.jsonl", "--side", "target", "-o", "-", "--to", "text")
    assert one_side.stdout == Path("a.de").read_bytes()


def test_split_is_by_document_and_seed(pair: tuple[str, str]) -> None:
    arguments = ("split", *pair, "--dev", "1", "--test", "0.34", "--seed", "3", "-o")
    assert json.loads(run(*arguments, "x", "--json").stdout)["documents"] == {"train": 3, "dev": 1, "test": 2}
    languages = ("--source-language", "en", "--target-language", "de")
    piped = run("split", "-", "a.de", *arguments[3:], "y", *languages, stdin=Path("a.en").read_bytes())
    assert piped.returncode == 0
    names = [f"{part}.{language}" for part in ("train", "dev", "test") for language in ("en", "de")]
    assert sorted(path.name for path in Path("x").iterdir()) == sorted(names)
    assert all(Path("x", name).read_bytes() == Path("y", name).read_bytes() for name in names)
    again = run(*arguments, "x")
    assert (again.returncode, again.stderr.count(b"\n")) == (2, 1)
    assert b"x/train.en: is there from an earlier split" in again.stderr


def test_check_reports_lines_and_cleans() -> None:
    Path("a.en").write_text("one two three\nfour\nfive\n")
    Path("a.de").write_text("eins zwei drei\n\nfünf\n")
    result = run("check", "a.en", "a.de", "-o", "b.en", "-o", "b.de")
    assert result.returncode == 1
    assert b"a.en:2: empty: the target is empty" in result.stdout
    assert Path("b.de").read_text() == "eins zwei drei\nfünf\n"
    assert run("check", "b.en", "b.de").returncode == 0
    assert json.loads(run("check", "a.en", "a.de", "--json").stdout)["counts"] == {"empty": 1}


def damaged_inputs() -> dict[str, tuple[dict[str, bytes], list[str], str]]:
    text = b"a sentence\n" * 5000
    return {
        "truncated gzip": ({"a.gz": gzip.compress(text)[:60]}, ["a.gz"], "a.gz:"),
        "invalid UTF-8": ({"a": b"ok\nab\xff\n"}, ["a"], "a:2: byte 3 (0xff)"),
        "different lengths": ({"a": b"x\n", "b": b"x\ny\n"}, ["a", "b"], "b:2:"),
        "different boundaries": ({"a": b"x\n\ny\n", "b": b"x\ny\ny\n"}, ["a", "b"], "b:2:"),
        "empty": ({"a": b""}, ["a"], "a: holds no document"),
        "blank": ({"a": b"\n\n"}, ["a"], "a: holds no document"),
        "NUL": ({"a": b"x\ny\0\n"}, ["a"], "a:2: NUL"),
        "directory": ({}, ["."], ".: is a directory"),
        "missing": ({}, ["a"], "a: no such file"),
    }


@pytest.mark.parametrize("case", damaged_inputs())
def test_bad_input_is_one_line_and_leaves_nothing(case: str, call: Callable[..., Call]) -> None:
    files, arguments, complaint = damaged_inputs()[case]
    for name, content in files.items():
        Path(name).write_bytes(content)
    Path("out").mkdir()
    result = call("convert", *arguments, "-o", "out/x.jsonl")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith(f"weitblick: {complaint}")
    assert not list(Path("out").glob("*"))


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        ("a.en/x.jsonl", "no such folder"),
        ("new/x.jsonl", "no such folder"),
        (".", "is a directory"),
        ("/dev/full", "No space left"),
    ],
)
def test_bad_output_is_one_line(pair: tuple[str, str], output: str, complaint: str, call: Callable[..., Call]) -> None:
    result = call("convert", *pair, "-o", output, "--to", "jsonl")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert complaint in result.err


def test_full_standard_output_is_one_line(pair: tuple[str, str]) -> None:
    command = [sys.executable, "-m", "weitblick", "data", "convert", "a.en", "-o", "-", "--to", "text"]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert (result.returncode, result.stderr.count(b"\n")) == (2, 1)


def test_a_reader_that_leaves_is_no_error_of_the_other_output() -> None:
    Path("a").write_text("a sentence of some length\n" * 20_000)
    command = [
        sys.executable,
        "-m",
        "weitblick",
        "data",
        "convert",
        "a",
        "a",
        "-o",
        "-",
        "-o",
        "out.de",
        "--to",
        "text",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"a sentence of some length\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert not list(Path().glob("*out.de*"))


def test_a_disk_that_fills_up_leaves_no_output(pair: tuple[str, str]) -> None:
    Path("big").write_text("a sentence of some length\n" * 20_000)
    Path("small").write_text("kurz\n" * 20_000)
    Path("out.en").write_text("old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    result = run("convert", "small", "big", "-o", "out.de", "-o", "out.en", "--to", "text", preexec_fn=limit)
    assert (result.returncode, result.stderr.count(b"\n")) == (2, 1)
    assert Path("out.en").read_text() == "old"
    assert not Path("out.de").exists()
    assert not list(Path().glob(".out*"))


def test_extreme_documents_pass() -> None:
    Path("a").write_text("word " * 4999 + "word\n\n" + "x\n" * 10_000 + "\none\n")
    assert run("convert", "a", "-o", "b.jsonl").returncode == 0
    assert run("convert", "b.jsonl", "-o", "c").returncode == 0
    assert Path("c").read_bytes() == Path("a").read_bytes()
    stats = json.loads(run("stats", "b.jsonl", "--json").stdout)
    assert (stats["documents"], stats["sentences"], stats["source_words"]) == (3, 10_002, 15_001)


def test_parts_cover_all_documents_once() -> None:
    assert sizes(100, 0.1, 20) == (70, 10, 20)
    assert sizes(10, 0.25, 0.25, 0.5) == (5, 2, 2)
    parts = assign(100, (70, 10, 20), 1)
    assert [parts.count(part) for part in range(3)] == [70, 10, 20]
    assert parts != assign(100, (70, 10, 20), 2)
    held_out = [part for part in assign(100, (5, 10, 20), 1) if part]
    assert held_out == [part for part in parts if part], "a smaller train changes what is held out"
    for dev, test in ((0.6, 60), (5.5, 0), (-1, 0), (0.001, 0)):
        with pytest.raises(UserError):
            sizes(100, dev, test)
