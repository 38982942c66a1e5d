"""The memories of projects: bounded in RAM, and made again from the store as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from weitblick.documents.document import Sentence
from weitblick.server import memories as module
from weitblick.server.memories import Memories
from weitblick.server.store import Store


def contents(memories: Memories, project: str) -> list[tuple[str, str]]:
    return sorted((pair.source, pair.target) for pair in memories.of(project))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def confirmed(store: Store, memories: Memories, number: int) -> tuple[str, str]:
    """A project whose first row was confirmed by hand; its second row came locked."""
    project = store.add_project(f"project {number}").id
    rows = [Sentence(f"One {number}."), Sentence(f"Two {number}.", f"Zwei {number}.", "locked")]
    document = store.add_document(project, "a.txt", rows, b"")
    store.edit(document, 0, f"Eins {number}.", "confirmed")
    memories.confirm(project, document, 0, f"One {number}.", f"Eins {number}.")
    return project, document


def test_of_many_projects_the_latest_are_kept_and_the_others_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 3)
    memories = Memories(store)
    made = [confirmed(store, memories, number) for number in range(5)]
    first = memories.of(made[0][0])
    assert len(memories._open) == 3
    for number, (project, document) in enumerate(made):
        expected = [(f"One {number}.", f"Eins {number}."), (f"Two {number}.", f"Zwei {number}.")]
        assert contents(memories, project) == expected
        assert memories.approved(project) == dict(expected)
        memories.reopen(project, document, 0)
        assert contents(memories, project) == expected[1:]
    assert memories.of(made[0][0]) is not first


def test_a_pair_of_two_rows_stays_while_one_of_them_has_it(store: Store) -> None:
    memories = Memories(store)
    project = store.add_project("twice").id
    document = store.add_document(project, "a.txt", [Sentence("Yes."), Sentence("Yes.")], b"")
    for position in (0, 1):
        store.edit(document, position, "Ja.", "confirmed")
        memories.confirm(project, document, position, "Yes.", "Ja.")
    memories.reopen(project, document, 0)
    assert contents(memories, project) == [("Yes.", "Ja.")]
    memories.reopen(project, document, 1)
    assert contents(memories, project) == []


def test_an_imported_pair_stays_when_a_row_that_said_the_same_changes(store: Store) -> None:
    memories = Memories(store)
    project = store.add_project("imported").id
    store.add_pairs(project, "import", [("Yes.", "Ja.")], "a.tmx")
    document = store.add_document(project, "a.txt", [Sentence("Yes.")], b"")
    store.edit(document, 0, "Ja.", "confirmed")
    memories.confirm(project, document, 0, "Yes.", "Ja.")
    store.edit(document, 0, "Jawohl.", "confirmed")
    memories.confirm(project, document, 0, "Yes.", "Jawohl.")
    assert contents(memories, project) == [("Yes.", "Ja."), ("Yes.", "Jawohl.")]
    memories.reload(project)
    assert contents(memories, project) == [("Yes.", "Ja."), ("Yes.", "Jawohl.")]
