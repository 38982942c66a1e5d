"""Rows at the workbench, undone and redone by steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_rows import NOBODY, document_of, texts, write

from weitblick.workbench.errors import Changed, Refused
from weitblick.workbench.schema import Write
from weitblick.workbench.steps import go, steps_of
from weitblick.workbench.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_what_is_typed_without_a_pause_is_one_step(store: Store) -> None:
    document = document_of(store, "Null.", "Eins.")
    for text in ("N", "Nu", "Nul"):
        write(store, document, 0, text, "edited")
    write(store, document, 0, "Andere.", "edited", "alternative")
    write(store, document, 0, "Andere.", "confirmed")
    found = []
    while step := steps_of(store, document).undo:
        found.append((step.kind, store.segment(document, 0).target))
        go(store, document, "undo", step.id, NOBODY)
    assert found == [("confirm", "Andere."), ("alternative", "Andere."), ("type", "Nul")]
    assert texts(store, document) == [("Null.", "draft"), ("Eins.", "draft")]
    while step := steps_of(store, document).redo:
        go(store, document, "redo", step.id, NOBODY)
    row = store.segment(document, 0)
    assert (row.target, row.state, row.person) == ("Andere.", "confirmed", "Anna")
    assert [pair.target for pair in store.pairs(store.document(document).project)] == ["Andere."]
    go(store, document, "undo", steps_of(store, document).undo.id, NOBODY)  # type: ignore[union-attr]
    write(store, document, 1, "Neu.", "edited")
    assert steps_of(store, document).redo is None  # something else was done instead


def test_a_confirmation_is_undone_with_what_it_has_changed(store: Store) -> None:
    document = document_of(store, "Null.", "Eins.", "Zwei.")
    confirmed = store.edit(document, 0, Write("Null!", "confirmed", 1, "tab", 1))
    for position in (1, 2):
        row = store.segment(document, position)
        store.translate(document, position, f"{row.target}!", row, cause=confirmed.edit)
    store.accept(document, 2, store.segment(document, 2).version)
    step = steps_of(store, document).undo
    assert step is not None
    done = go(store, document, "undo", step.id, NOBODY)
    assert texts(store, document) == [("Null.", "draft"), ("Eins.", "draft"), ("Zwei.!", "draft")]  # one was accepted
    assert [row.position for row in done.rows] == [0, 1]
    go(store, document, "redo", step.id, NOBODY)
    assert texts(store, document)[:2] == [("Null!", "confirmed"), ("Eins.!", "draft")]
    assert store.segment(document, 1).before == "Eins."


def test_a_step_is_undone_only_if_it_is_the_latest_and_leaves_what_has_changed(store: Store) -> None:
    document = document_of(store, "Null.", "Eins.")
    write(store, document, 0, "Null!", "confirmed")
    step = steps_of(store, document).undo
    assert step is not None
    write(store, document, 1, "Eins!", "edited")
    with pytest.raises(Refused, match="another step"):
        go(store, document, "undo", step.id, NOBODY)
    assert texts(store, document) == [("Null!", "confirmed"), ("Eins!", "edited")]
    with pytest.raises(Refused, match="nothing to redo"):
        go(store, document, "redo", step.id, NOBODY)


def test_who_has_not_seen_that_a_step_was_undone_is_refused(store: Store) -> None:
    document = document_of(store, "Null.")
    seen = store.edit(document, 0, Write("Null!", "confirmed", 1, "tab", 4)).after
    step = steps_of(store, document).undo
    assert step is not None
    go(store, document, "undo", step.id, Write("", "draft", 0, "tab", 5))
    with pytest.raises(Changed):
        store.edit(document, 0, Write("Anders.", "edited", seen.version, "other", 1))
    late = store.edit(document, 0, Write("Null!", "confirmed", seen.version, "tab", 4))  # overtaken by the undoing
    assert late.edit is None
