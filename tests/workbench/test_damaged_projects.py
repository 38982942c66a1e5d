"""Damaged databases are said in one line and saved as far as they can be read; a full disc cannot keep a text."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.documents.document import Sentence
from weitblick.workbench.database import FILE, back_up
from weitblick.workbench.errors import Refused, describe
from weitblick.workbench.recovery import recover
from weitblick.workbench.schema import Write
from weitblick.workbench.store import Store

PAGE = 4096
SECRET = "Geheimnis"


def fill(store: Store, documents: int = 3, rows: int = 150) -> str:
    project = store.add_project("Letters").id
    for number in range(documents):
        sources = [f"Sentence {row} of letter {number}." for row in range(rows)]
        file = "\n".join(sources).encode()
        document = store.add_document(project, f"letter{number}.txt", [Sentence(one) for one in sources], file)
        for row in range(rows):
            state: Any = "confirmed" if row % 2 else "edited"
            store.edit(document, row, Write(f"Satz {row} in Brief {number}.", state, 1))
    return project


def pages_of(path: Path, name: str) -> list[int]:
    """The leaves of a table, or of an index."""
    database = sqlite3.connect(path)
    found = database.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (name,)).fetchall()
    database.close()
    return [number for (number,) in found]


def destroy(path: Path, page: int) -> None:
    with open(path, "r+b") as stream:
        stream.seek((page - 1) * PAGE)
        stream.write(b"\xff" * PAGE)


def targets(folder: Path) -> dict[str, list[str]]:
    store = Store(folder)
    try:
        documents = [document for project in store.projects() for document in store.documents(project.id)]
        return {document.name: [row.target for row in store.segments(document.id)] for document in documents}
    finally:
        store.close()


@pytest.mark.parametrize(("value", "saved"), [("formal", "formal"), ("\x00nonsense", "auto")])
def test_a_form_of_address_is_saved_and_damage_of_it_costs_no_project(tmp_path: Path, value: str, saved: str) -> None:
    store = Store(tmp_path)
    project = fill(store, documents=1, rows=40)
    with store._change() as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute("UPDATE projects SET formality = ?", (value,))
    store.close()
    before = targets(tmp_path) if value == "formal" else {}
    try:
        destroy(tmp_path / FILE, pages_of(tmp_path / FILE, "edits_of_segment")[0])
    except sqlite3.OperationalError:
        pytest.skip("this SQLite does not tell where its pages are")
    assert recover(tmp_path, "en") is not None
    again = Store(tmp_path)
    assert (again.project(project).name, again.formality(project)) == ("Letters", saved)
    again.close()
    assert not before or targets(tmp_path) == before


@pytest.mark.parametrize("table", ["projects", "documents", "segments", "edits", "pairs", "edits_of_segment"])
def test_what_can_be_read_is_saved(tmp_path: Path, table: str) -> None:
    store = Store(tmp_path)
    fill(store)
    store.close()
    before = targets(tmp_path)
    try:
        destroyed = pages_of(tmp_path / FILE, table)[0]
    except sqlite3.OperationalError:
        pytest.skip("this SQLite does not tell where its pages are")
    destroy(tmp_path / FILE, destroyed)
    with pytest.raises(UserError, match=r"is damaged.*--recover"):
        Store(tmp_path)
    answer = CliRunner().invoke(app, ["serve", "--data", str(tmp_path), "--recover"])
    assert answer.exit_code == 0
    assert "saved" in answer.stdout
    after = targets(tmp_path)
    if table == "documents":  # their names are lost, not their rows
        assert sorted(after.values()) == sorted(before.values())
    else:
        assert after == before
    assert [path for path in tmp_path.iterdir() if ".damaged-" in path.name]
    assert recover(tmp_path, "en") is None  # it is in order now


@pytest.mark.parametrize("size", [1, 50, 100])
def test_a_database_whose_beginning_is_lost_is_saved(tmp_path: Path, size: int) -> None:
    store = Store(tmp_path)
    fill(store)
    store.close()
    before = targets(tmp_path)
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(b"x" * size + content[size:])
    with pytest.raises(UserError, match="--recover"):
        Store(tmp_path)
    assert recover(tmp_path, "en") is not None
    assert targets(tmp_path) == before


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all, " * 1000)
    with pytest.raises(UserError, match="no database"):
        Store(tmp_path)
    with pytest.raises(UserError, match="nothing that can be read"):
        recover(tmp_path, "en")
    assert (tmp_path / FILE).read_bytes() == b"no database at all, " * 1000
    with pytest.raises(UserError, match="holds no projects"):
        recover(tmp_path / "nothing", "en")


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / FILE)
    other.executescript("CREATE TABLE songs (name TEXT); PRAGMA user_version = 2")
    other.close()
    with pytest.raises(UserError, match="no table projects"):
        Store(tmp_path)


def test_a_text_that_is_no_utf8_is_no_failure(client: TestClient, tmp_path: Path) -> None:
    project = client.post("/v1/projects", json={"name": "Texts"}).json()["id"]
    files = {"file": ("a.txt", b"The report is long.\nIt is blue.\n")}
    document = client.post(f"/v1/projects/{project}/documents", files=files).json()["id"]
    url = f"/v1/projects/{project}/documents/{document}"
    other = sqlite3.connect(tmp_path / "data" / FILE)
    other.execute(
        """UPDATE segments SET target = CAST(x'44e472' AS TEXT), state = 'edited', metadata = '{' WHERE position = 0"""
    )
    other.commit()
    other.close()
    answer = client.get(url)
    assert answer.status_code == 200
    first = answer.json()["rows"][0]
    assert first["target"] == "D\ufffdr"
    body = {"target": "Der Bericht.", "state": "confirmed", "version": first["version"]}
    assert client.put(f"{url}/segments/0", json=body).status_code == 200


def test_damage_while_the_server_runs_names_the_remedy() -> None:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT  # type: ignore[misc]
    status, message, _ = describe(error)
    assert (status, "--recover" in message) == (500, True)


# A disc of a few megabytes.


@pytest.fixture
def disc(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disc"
    place.mkdir()
    options = "size=12m"
    if (
        os.name == "nt"
        or os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("a disc of its own needs a system administrator")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def stuff(disc: Path) -> None:
    """Takes all that is left of a disc."""
    with open(disc / "ballast", "ab", buffering=0) as stream:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    stream.write(b"x" * size)
            except OSError:
                continue


def texts_on(disc: Path) -> list[str]:
    return [path.name for path in disc.iterdir() if SECRET.encode() in path.read_bytes()]


def test_a_full_disc_keeps_no_project_and_no_text(disc: Path) -> None:
    store = Store(disc)
    project = store.add_project("Letters").id
    documents = []
    for number in range(3):
        sources = [Sentence(f"{SECRET} {row}.") for row in range(300)]
        documents.append(store.add_document(project, f"{number}.txt", sources, f"{SECRET} {number}\n".encode() * 9000))
    kept = store.add_project("Other").id
    stuff(disc)

    def write_on() -> None:
        for version in range(1, 100):
            store.edit(documents[0], 0, Write(f"{SECRET} " * 10_000 + str(version), "edited", version))

    with pytest.raises(sqlite3.OperationalError) as full:
        write_on()
    assert "nothing was changed" in describe(full.value)[1]
    stuff(disc)
    store.delete_project(project)
    assert [one.id for one in store.projects()] == [kept]
    assert texts_on(disc) == []
    store.close()
    assert texts_on(disc) == []
    store = Store(disc)
    assert [one.id for one in store.projects()] == [kept]
    store.close()


def test_what_a_full_disc_cannot_delete_is_still_there_and_said_so(disc: Path) -> None:
    store = Store(disc)
    project = store.add_project("Letters").id
    store.add_document(project, "a.txt", [Sentence("One.")], SECRET.encode() * 200_000)
    (disc / "workbench.reserve").unlink()  # as if it never had room
    stuff(disc)
    with pytest.raises(Refused, match="the disc is full: nothing was changed"):
        store.delete_project(project)
    assert store.project(project).documents == 1
    (disc / "ballast").unlink()
    store.delete_project(project)
    assert (store.projects(), texts_on(disc)) == ([], [])
    store.close()


def test_a_backup_from_a_folder_where_nothing_can_be_written(disc: Path, tmp_path: Path) -> None:
    store = Store(disc)
    fill(store, 1, 3)
    shutil.copytree(disc, tmp_path / "killed")  # with a log that nobody has tidied up
    store.close()
    for name in ("workbench.sqlite", "workbench.sqlite-wal"):
        shutil.copyfile(tmp_path / "killed" / name, disc / name)
    subprocess.run(["mount", "-o", "remount,ro", disc], check=True)
    (tmp_path / "copy").mkdir()
    back_up(disc, tmp_path / "copy" / FILE)
    assert targets(tmp_path / "copy") == {"letter0.txt": [f"Satz {row} in Brief 0." for row in range(3)]}
