"""Nothing typed is lost: edits, restarts, deletion, backups, older and newer databases."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from weitblick.common.errors import UserError
from weitblick.documents.document import Sentence
from weitblick.workbench.database import FILE, back_up
from weitblick.workbench.errors import Changed, Refused, describe
from weitblick.workbench.memories import Memories
from weitblick.workbench.schema import MIGRATIONS, State, Write, Written
from weitblick.workbench.store import Store

SENTENCES = [Sentence("One."), Sentence("Two.", "Zwei.", "draft"), Sentence("Three.", "Drei.", "locked")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def edit(store: Store, document: str, position: int, target: str, state: State) -> Written:
    """Writes a row as it has just been seen."""
    return store.edit(document, position, Write(target, state, store.segment(document, position).version))


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
        edit(store, document, 0, text, "edited")
    edit(store, document, 0, "Eins!", "confirmed")
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
    edit(store, document, 2, "Drei!", "confirmed")
    assert [pair.target for pair in store.pairs(project)] == ["Drei!"]
    edit(store, document, 2, "Drei!", "edited")
    assert store.pairs(project) == []


def test_the_model_never_touches_what_a_human_wrote(store: Store) -> None:
    _, document = filled(store)
    empty, draft, confirmed = store.segments(document)
    edit(store, document, 0, "Eins", "edited")
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
    (undone,), left = store.undo_changes(document, {1: changed.version})
    assert (undone.target, undone.state, undone.before, left) == ("Zwei.", "draft", None, [])
    with pytest.raises(Changed):
        store.keep(document, 1, undone.version)
    store.translate(document, 1, "Zwo.", undone, cause=8)
    accepted = store.accept(document, 1, store.segment(document, 1).version)
    assert (accepted.target, accepted.before) == ("Zwo.", None)
    unchanged = store.translate(document, 1, "Zwo.", accepted, cause=9)
    assert unchanged is not None
    assert unchanged.before is None  # the same text is no change


def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(store: Store) -> None:
    _, document = filled(store)
    seen = store.segment(document, 0).version
    store.edit(document, 0, Write("Eins, bestätigt.", "confirmed", seen, "a", 1))
    with pytest.raises(Changed) as refused:
        store.edit(document, 0, Write("Alt.", "edited", seen, "b", 1))
    assert refused.value.segment == store.segment(document, 0)
    assert store.segment(document, 0).target == "Eins, bestätigt."
    store.edit(document, 0, Write("Neu.", "edited", refused.value.segment.version, "b", 2))  # it has been seen now
    assert store.segment(document, 0).target == "Neu."


def test_the_models_drafts_stand_in_nobodys_way(store: Store) -> None:
    _, document = filled(store)
    seen = store.segment(document, 1)
    store.translate(document, 1, "Zwo.", seen)
    assert store.edit(document, 1, Write("Zwei!", "confirmed", seen.version)).after.target == "Zwei!"


def test_what_is_sent_twice_or_too_late_is_written_once_and_in_order(store: Store) -> None:
    """The answer to a write was lost, and the tab sends it again; or a later one overtakes it."""
    _, document = filled(store)
    seen = store.segment(document, 0).version
    first, second = Write("Ei", "edited", seen, "a", 1), Write("Eins", "edited", seen, "a", 2)
    for write in (first, first, second, first):
        store.edit(document, 0, write)
    assert store.segment(document, 0).target == "Eins"
    assert [edit.after for edit in store.edits(document, 0)] == ["Ei", "Eins"]


def test_undoing_is_all_in_one_and_leaves_what_was_not_seen(store: Store) -> None:
    project = store.add_project("Letters").id
    drafts = [Sentence(f"{number}.", f"Alt {number}.", "draft") for number in range(3)]
    document = store.add_document(project, "letter.txt", drafts, b"")
    for row in store.segments(document):
        store.translate(document, row.position, f"Neu {row.position}.", row, cause=7)
    seen = {row.position: row.version for row in store.segments(document)}
    edit(store, document, 1, "Von Hand.", "edited")
    undone, left = store.undo_changes(document, seen)
    assert [row.target for row in undone] == ["Alt 0.", "Alt 2."]
    assert [row.target for row in left] == ["Von Hand."]
    assert [row.target for row in store.segments(document)] == ["Alt 0.", "Von Hand.", "Alt 2."]
    with pytest.raises(Refused):
        store.undo_changes(document, {0: 1, 99: 1})
    assert [row.target for row in store.segments(document)] == ["Alt 0.", "Von Hand.", "Alt 2."]


VERSION_0_2 = """
    INSERT INTO projects VALUES ('p', 'Letters', 1.0);
    INSERT INTO documents VALUES ('d', 'p', 'letter.txt', x'4f6e652e2054776f2e2054687265652e', 2.0);
    INSERT INTO segments VALUES ('d', 0, 'One.', '', 'empty', '{"block": 0}', NULL);
    INSERT INTO segments VALUES ('d', 1, 'Two.', 'Zwo.', 'draft', '{"block": 0}', 2);
    INSERT INTO segments VALUES ('d', 2, 'Three.', 'Drei.', 'confirmed', '{"block": 0}', NULL);
    INSERT INTO edits VALUES (1, 'd', 2, 3.0, '', 'empty', 'Drei.', 'confirmed', NULL);
    INSERT INTO edits VALUES (2, 'd', 1, 4.0, 'Zwei.', 'draft', 'Zwo.', 'draft', 1);
    INSERT INTO pairs VALUES (1, 'p', 'segment', 'Three.', 'Drei.', 'letter.txt, row 3', 'd', 2, 3.0);
    INSERT INTO pairs VALUES (2, 'p', 'term', 'letter', 'Brief', 'approved term', NULL, NULL, 5.0);
    PRAGMA user_version = 1;
"""
"""What version 0.2 writes."""


def test_projects_of_version_0_2_open_with_everything_in_them(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / FILE)
    database.executescript(MIGRATIONS[0] + VERSION_0_2)
    database.close()
    store = Store(tmp_path)
    rows = store.segments("d")
    assert [(row.target, row.state, row.before) for row in rows] == [
        ("", "empty", None),
        ("Zwo.", "draft", "Zwei."),
        ("Drei.", "confirmed", None),
    ]
    assert [(row.version, row.written) for row in rows] == [(1, 0), (1, 0), (1, 1)]
    assert store.file("d") == b"One. Two. Three."
    memory = Memories(store).of("p")
    assert sorted((pair.source, pair.target) for pair in memory) == [("Three.", "Drei."), ("letter", "Brief")]
    with pytest.raises(Changed):  # a page of before, which has seen nothing
        store.edit("d", 2, Write("Dritte.", "edited", 0))
    assert edit(store, "d", 2, "Dritte.", "confirmed").after.target == "Dritte."
    store.close()
    assert Store(tmp_path).segment("d", 2).version == 2  # once is enough


def test_a_project_is_deleted_for_good(store: Store, tmp_path: Path) -> None:
    project, document = filled(store)
    edit(store, document, 0, "Ein Geheimnis, das niemand lesen soll.", "confirmed")
    store.delete_project(project)
    assert store.projects() == []
    with pytest.raises(Refused):
        store.segments(document)
    for path in tmp_path.iterdir():
        assert b"Geheimnis" not in path.read_bytes()


def test_a_backup_is_made_while_the_server_runs(store: Store, tmp_path: Path) -> None:
    _, document = filled(store)
    edit(store, document, 0, "Eins.", "confirmed")
    (tmp_path / "copy").mkdir()
    back_up(tmp_path, tmp_path / "copy" / FILE)
    with pytest.raises(UserError, match="already"):
        back_up(tmp_path, tmp_path / "copy" / FILE)
    edit(store, document, 0, "Anders.", "confirmed")
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
        edit(store, document, 0, "lang " * 10_000, "edited")
    status, message, _ = describe(full.value)
    assert status == 507
    assert "disc is full" in message
    assert [row.target for row in store.segments(document)] == ["", "Zwei.", "Drei."]
    store._database.execute("PRAGMA max_page_count = 1000000")
    edit(store, document, 0, "kurz", "edited")
