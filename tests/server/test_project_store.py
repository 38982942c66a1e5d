"""Nothing typed is lost: edits, restarts, deletion, backups, older and newer databases."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from weitblick.documents.document import Sentence
from weitblick.errors import UserError
from weitblick.server.errors import Refused, describe
from weitblick.server.schema import MIGRATIONS
from weitblick.server.store import FILE, Store, back_up

SENTENCES = [Sentence("One."), Sentence("Two.", "Zwei.", "draft"), Sentence("Three.", "Drei.", "locked")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def filled(store: Store) -> tuple[str, str]:
    project = store.add_project("Letters").id
    return project, store.add_document(project, "letter.txt", SENTENCES, b"One. Two. Three.")


def test_states_follow_what_the_file_says(store: Store) -> None:
    project, document = filled(store)
    assert [row.state for row in store.segments(document)] == ["empty", "draft", "confirmed"]
    assert [(pair.source, pair.target) for pair in store.pairs(project)] == [("Three.", "Drei.")]
    assert store.project(project).confirmed == 1
    assert store.file(document) == b"One. Two. Three."


def test_every_edit_is_kept_and_survives_a_restart(store: Store, tmp_path: Path) -> None:
    project, document = filled(store)
    for text in ("E", "Ei", "Eins."):
        store.edit(document, 0, text, "edited")
    store.edit(document, 0, "Eins!", "confirmed")
    store.close()
    again = Store(tmp_path)
    assert again.segment(document, 0).target == "Eins!"
    assert [(edit.before, edit.after) for edit in again.edits(document, 0)] == [
        ("", "E"),
        ("E", "Ei"),
        ("Ei", "Eins."),
        ("Eins.", "Eins!"),
    ]
    assert ("One.", "Eins!") in [(pair.source, pair.target) for pair in again.pairs(project)]


def test_reopened_rows_leave_the_memory(store: Store) -> None:
    project, document = filled(store)
    store.edit(document, 2, "Drei!", "confirmed")
    assert [pair.target for pair in store.pairs(project)] == ["Drei!"]
    store.edit(document, 2, "Drei!", "edited")
    assert store.pairs(project) == []


def test_the_model_never_touches_what_a_human_wrote(store: Store) -> None:
    _, document = filled(store)
    empty, draft, confirmed = store.segments(document)
    store.edit(document, 0, "Eins", "edited")
    assert store.translate(document, 0, "Ein", empty) is None
    assert store.translate(document, 2, "Dritte", confirmed) is None
    stale = store.translate(document, 1, "Zwo.", draft)
    assert stale is not None
    assert stale.target == "Zwo."
    assert store.translate(document, 1, "Zweitens.", draft) is None  # it is not what it was when work began
    assert [row.target for row in store.segments(document)] == ["Eins", "Zwo.", "Drei."]


def test_changes_are_marked_kept_and_accepted(store: Store) -> None:
    _, document = filled(store)
    draft = store.segment(document, 1)
    changed = store.translate(document, 1, "Zwo.", draft, cause=7)
    assert changed is not None
    assert (changed.before, changed.cause) == ("Zwei.", 7)
    kept = store.keep(document, 1, "draft")
    assert (kept.target, kept.before) == ("Zwei.", None)
    with pytest.raises(Refused):
        store.keep(document, 1, "draft")
    store.translate(document, 1, "Zwo.", kept, cause=8)
    accepted = store.accept(document, 1)
    assert (accepted.target, accepted.before) == ("Zwo.", None)
    unchanged = store.translate(document, 1, "Zwo.", accepted, cause=9)
    assert unchanged is not None
    assert unchanged.before is None  # the same text is no change


def test_a_project_is_deleted_for_good(store: Store, tmp_path: Path) -> None:
    project, document = filled(store)
    store.edit(document, 0, "Ein Geheimnis, das niemand lesen soll.", "confirmed")
    store.delete_project(project)
    assert store.projects() == []
    with pytest.raises(Refused):
        store.segments(document)
    for path in tmp_path.iterdir():
        assert b"Geheimnis" not in path.read_bytes()


def test_a_backup_is_made_while_the_server_runs(store: Store, tmp_path: Path) -> None:
    _, document = filled(store)
    store.edit(document, 0, "Eins.", "confirmed")
    (tmp_path / "copy").mkdir()
    back_up(tmp_path, tmp_path / "copy" / FILE)
    with pytest.raises(UserError, match="already"):
        back_up(tmp_path, tmp_path / "copy" / FILE)
    store.edit(document, 0, "Anders.", "confirmed")
    assert Store(tmp_path / "copy").segment(document, 0).target == "Eins."
    with pytest.raises(UserError, match="no projects"):
        back_up(tmp_path / "nothing", tmp_path / "other.sqlite")


def test_one_server_has_a_folder(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="in use by another server"):
        Store(tmp_path)
    store.close()
    Store(tmp_path).close()


def test_databases_of_newer_versions_and_other_files_are_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / FILE)
    database.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    database.close()
    with pytest.raises(UserError, match="newer"):
        Store(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE).write_bytes(b"this is no database, " * 100)
    with pytest.raises(UserError, match="no database"):
        Store(tmp_path / "other")


def test_a_full_disc_is_said_and_nothing_is_lost(store: Store) -> None:
    _, document = filled(store)
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlite3.OperationalError) as full:
        store.edit(document, 0, "lang " * 10_000, "edited")
    status, message, _ = describe(full.value)
    assert status == 507
    assert "disc is full" in message
    assert [row.target for row in store.segments(document)] == ["", "Zwei.", "Drei."]
    store._database.execute("PRAGMA max_page_count = 1000000")
    store.edit(document, 0, "kurz", "edited")
