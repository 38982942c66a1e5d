"""The memories of projects: bounded in RAM, and made again from the store as they were."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from weitblick.documents.document import Sentence
from weitblick.workbench import memories as module
from weitblick.workbench.errors import Changed
from weitblick.workbench.memories import Memories
from weitblick.workbench.schema import State, Write
from weitblick.workbench.store import Store


def contents(memories: Memories, project: str) -> list[tuple[str, str]]:
    return sorted((pair.source, pair.target) for pair in memories.of(project))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def write(store: Store, document: str, position: int, target: str, state: State = "confirmed") -> None:
    store.edit(document, position, Write(target, state, store.segment(document, position).version))


def confirmed(store: Store, number: int) -> tuple[str, str]:
    """A project whose first row was confirmed by hand; its second row came locked."""
    project = store.add_project(f"project {number}").id
    rows = [Sentence(f"One {number}."), Sentence(f"Two {number}.", f"Zwei {number}.", "locked")]
    document = store.add_document(project, "a.txt", rows, b"")
    write(store, document, 0, f"Eins {number}.")
    return project, document


def test_of_many_projects_the_latest_are_kept_and_the_others_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 3)
    memories = Memories(store)
    made = [confirmed(store, number) for number in range(5)]
    first, *_ = [memories.of(project) for project, _ in made]
    assert len(memories._open) == 3
    for number, (project, document) in enumerate(made):
        expected = [(f"One {number}.", f"Eins {number}."), (f"Two {number}.", f"Zwei {number}.")]
        assert contents(memories, project) == expected
        assert memories.approved(project) == dict(expected)
        write(store, document, 0, "Offen.", "edited")
        assert contents(memories, project) == expected[1:]
    assert memories.of(made[0][0]) is not first


def test_a_pair_of_two_rows_stays_while_one_of_them_has_it(store: Store) -> None:
    memories = Memories(store)
    project = store.add_project("twice").id
    document = store.add_document(project, "a.txt", [Sentence("Yes."), Sentence("Yes.")], b"")
    for position in (0, 1):
        write(store, document, position, "Ja.")
    write(store, document, 0, "Offen.", "edited")
    assert contents(memories, project) == [("Yes.", "Ja.")]
    write(store, document, 1, "Offen.", "edited")
    assert contents(memories, project) == []


def test_an_imported_pair_stays_when_a_row_that_said_the_same_changes(store: Store) -> None:
    memories = Memories(store)
    project = store.add_project("imported").id
    store.add_pairs(project, "import", [("Yes.", "Ja.")], "a.tmx")
    document = store.add_document(project, "a.txt", [Sentence("Yes.")], b"")
    write(store, document, 0, "Ja.")
    write(store, document, 0, "Jawohl.")
    assert contents(memories, project) == [("Yes.", "Ja."), ("Yes.", "Jawohl.")]
    memories = Memories(store)
    assert contents(memories, project) == [("Yes.", "Ja."), ("Yes.", "Jawohl.")]


def test_whatever_changes_the_pairs_changes_the_memory(store: Store) -> None:
    """Imports, terms, removed pairs, deleted documents: nobody has to tell the memory."""
    memories = Memories(store)
    project, document = confirmed(store, 1)
    rows = [("One 1.", "Eins 1."), ("Two 1.", "Zwei 1.")]
    assert contents(memories, project) == rows
    (pair,) = store.add_pairs(project, "import", [("Yes.", "Ja.")], "a.tmx")
    store.add_pairs(project, "term", [("report", "Bericht")], "term")
    store.add_pairs(project, "term", [("report", "Rapport")], "term")
    assert contents(memories, project) == [*rows, ("Yes.", "Ja."), ("report", "Rapport")]
    store.remove_pair(project, pair)
    assert contents(memories, project) == [*rows, ("report", "Rapport")]
    store.delete_document(document)
    assert contents(memories, project) == [("report", "Rapport")]
    assert memories.rows(project, document) == {}


def test_a_change_that_is_rolled_back_never_reaches_the_memory(store: Store) -> None:
    memories = Memories(store)
    project, _ = confirmed(store, 1)
    before = contents(memories, project)
    with suppress(RuntimeError), store._change() as database:
        database.execute("DELETE FROM pairs")
        raise RuntimeError
    assert contents(memories, project) == before


def test_simultaneous_edits_of_one_row_leave_memory_rows_and_history_in_agreement(store: Store) -> None:
    """Twelve threads write one row, each over what it has just seen, and ask for the memory in between."""
    memories = Memories(store)
    project = store.add_project("busy").id
    document = store.add_document(project, "a.txt", [Sentence("One."), Sentence("Two.")], b"")

    def work(number: int) -> None:
        for round in range(20):
            with suppress(Changed):
                write(store, document, 0, f"{number}/{round}", "confirmed" if (number + round) % 3 else "edited")
            memories.of(project)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row = store.segment(document, 0)
    assert contents(memories, project) == ([("One.", row.target)] if row.state == "confirmed" else [])
    history = store.edits(document, 0)
    assert [edit.before for edit in history[1:]] == [edit.after for edit in history[:-1]]
    assert row.version == 1 + len(history)
