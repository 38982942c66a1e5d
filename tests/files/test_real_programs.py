"""Translated files open in the programs they are for: LibreOffice, gettext, xmllint, Chromium."""

from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
import wave
from pathlib import Path
from typing import Any

import pytest
from file_translators import reversed_words, translated, translated_bytes, upper
from office_files import book, deck, with_shared_strings
from test_markup_files import XLIFF, XLIFF2, word_file
from test_subtitles import TALK
from test_text_markup import CATALOGUE

from weitblick.files.formats import read_file


def program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on this machine (apt-get install {package})")
    return found


def run(*command: str | Path, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home or Path.home())}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)


def converted(path: Path, kind: str) -> Path:
    """The file as LibreOffice saves it in another format, with a profile of its own."""
    office = program("soffice", "libreoffice-writer-nogui")
    profile = f"-env:UserInstallation={(path.parent / 'profile').as_uri()}"
    result = run(office, profile, "--headless", "--convert-to", kind, "--outdir", path.parent, path, home=path.parent)
    made = path.with_suffix(f".{kind}")
    assert made.exists(), result.stderr
    return made


@pytest.mark.slow
def test_libreoffice_opens_word_and_opendocument(tmp_path: Path) -> None:
    source = word_file(tmp_path / "source.docx")
    (tmp_path / "word.docx").write_bytes(translated_bytes(source, None, upper))
    assert converted(tmp_path / "word.docx", "pdf").read_bytes().startswith(b"%PDF")
    opendocument = converted(source, "odt")
    file = read_file(opendocument)
    assert file.document.sources == [
        *("The protection of workers", "The house is not yet built on the hill.", "We vote tomorrow."),
        *("See the report", "Country", "99", "Name:", "the first line", "The second line.", "A header"),
        "A footer",
    ]
    assert file.rendered(file.document)[0] == opendocument.read_bytes()
    (tmp_path / "open.odt").write_bytes(translated_bytes(opendocument, None, upper))
    text = converted(tmp_path / "open.odt", "txt").read_text(encoding="utf-8-sig")
    assert "THE HOUSE IS NOT YET BUILT ON THE HILL. WE VOTE TOMORROW." in text
    assert "SEE THE REPORT" in text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "module"), [("a.pptx", "sd"), ("a.xlsx", "sc")])
def test_libreoffice_opens_slides_and_sheets(tmp_path: Path, name: str, module: str) -> None:
    office = Path(program("soffice", "libreoffice-impress-nogui")).resolve().parent
    if not list(office.glob(f"lib{module}lo.so")):
        pytest.skip(
            "no Impress or Calc on this machine (apt-get install libreoffice-impress-nogui libreoffice-calc-nogui)"
        )
    source = deck(tmp_path / name) if module == "sd" else with_shared_strings(book(tmp_path / name))
    source.write_bytes(translated_bytes(source, None, upper))
    assert converted(source, "pdf").read_bytes().startswith(b"%PDF")
    if module == "sc":
        lines = converted(source, "csv").read_text(encoding="utf-8").splitlines()
        assert lines[0] == "COUNTRY,NET WEIGHT,GROSS WEIGHT,OPEN,,SUM OF THE WEIGHT"
        assert [line.split(",")[5] for line in lines[1:4]] == ["22", "1", "50"]  # formulas find their columns


@pytest.mark.parametrize("translate", [reversed_words, upper])
def test_msgfmt_accepts_catalogues(tmp_path: Path, translate: Any) -> None:
    msgfmt = program("msgfmt", "gettext")
    (tmp_path / "new.po").write_text(translated(tmp_path / "m.po", CATALOGUE, translate), encoding="utf-8")
    result = run(msgfmt, "--check-format", "--use-fuzzy", "-o", tmp_path / "m.mo", tmp_path / "new.po")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("content", [XLIFF, XLIFF2])
def test_xmllint_accepts_xliff(tmp_path: Path, content: str) -> None:
    xmllint = program("xmllint", "libxml2-utils")
    (tmp_path / "new.xlf").write_text(translated(tmp_path / "a.xlf", content, reversed_words), encoding="utf-8")
    result = run(xmllint, "--noout", "--nonet", tmp_path / "new.xlf")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.browser
def test_chromium_shows_the_cues(tmp_path: Path, browser_page: Any) -> None:
    result = translated(tmp_path / "talk.vtt", TALK, upper)
    encode = lambda data: base64.b64encode(data).decode()  # noqa: E731
    track = f"data:text/vtt;base64,{encode(result.encode())}"
    (tmp_path / "page.html").write_text(
        f'<video src="data:audio/wav;base64,{encode(_silence())}"><track default src="{track}"></video>',
        encoding="utf-8",
    )
    browser_page.goto((tmp_path / "page.html").as_uri())
    script = "() => { const t = document.querySelector('track'); return t.readyState >= 2 ? t.readyState : 0 }"
    state = browser_page.wait_for_function(script).json_value()
    assert state == 2, "the track failed to load"
    cues = browser_page.evaluate(
        "[...document.querySelector('track').track.cues].map(c => [c.startTime, c.id, c.text])"
    )
    assert [cue[:2] for cue in cues] == [[1, "intro"], [4, ""], [6.5, ""]]
    assert cues[0][2].startswith("<v Mary>LADIES")


def _silence() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(bytes([128] * 8000))
    return out.getvalue()
