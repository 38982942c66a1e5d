"""The file of a memory: made by several at once, in use, full, read-only, larger than a query may be."""

from __future__ import annotations

import os
import sqlite3
import threading

import pytest

from weitblick.common.errors import UserError
from weitblick.memory import store
from weitblick.memory.database import FILE, UnwritableError
from weitblick.memory.store import Memory


def test_several_may_make_one_folder_at_once(tmp_path):
    failures: list[Exception] = []

    def work(folder, name, start):
        start.wait()
        try:
            with Memory.open(folder) as memory:
                memory.add(f"source {name}", f"target {name}")
        except Exception as error:
            failures.append(error)

    for number in range(10):
        start = threading.Barrier(4)
        threads = [threading.Thread(target=work, args=(tmp_path / f"m{number}", n, start)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with Memory.open(tmp_path / f"m{number}") as memory:
            assert (len(memory), failures) == (4, [])


def test_what_another_program_writes_is_waited_for_or_named(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "LONG_WAIT", 0.05)
    monkeypatch.setattr(store, "SHORT_WAIT", 0.01)
    with Memory.open(tmp_path / "m") as memory:
        pair = memory.add("Yes.", "Ja.")
        other = sqlite3.connect(tmp_path / "m" / FILE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnwritableError, match=r"m/pairs\.sqlite: cannot be written .* wait until the other"):
            memory.add("No.", "Nein.")
        memory.store_keys({pair: b"abc"}, "model")  # can be computed again: a translation goes on without
        assert memory.keys([pair], "model") == {}
        other.execute("ROLLBACK")
        other.close()
        memory.add("No.", "Nein.")
        assert len(memory) == 2


def test_a_full_disc_leaves_what_was_there(tmp_path):
    with Memory.open(tmp_path / "m") as memory:
        pair = memory.add("Yes.", "Ja.")
        memory._database.execute("PRAGMA max_page_count = 1")  # no page more than there are
        with pytest.raises(UnwritableError, match=r"pairs\.sqlite: cannot be written .*full.*; free some space"):
            memory.extend((f"Sentence {n}.", "Satz. " * 100, "") for n in range(500))
        memory.store_keys({pair: b"abc" * 100_000}, "model")
        assert [p.source for p in memory] == ["Yes."]


def test_a_folder_that_cannot_be_written_is_read(tmp_path, monkeypatch):
    with Memory.open(tmp_path / "m") as memory:
        pair = memory.add("Yes.", "Ja.")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    before = sorted(path.name for path in (tmp_path / "m").iterdir())
    with Memory.open(tmp_path / "m") as memory:
        assert memory.matches("Yes.")[0].pair.id == pair
        memory.store_keys({pair: b"abc"}, "model")
        assert memory.keys([pair], "model") == {}
        with pytest.raises(UserError, match=r"pairs\.sqlite: cannot be written .*readonly.*; change its permissions"):
            memory.add("No.", "Nein.")
        assert sorted(path.name for path in (tmp_path / "m").iterdir()) == before == [FILE]


def test_what_others_have_just_written_is_seen_without_permission_to_write(tmp_path, monkeypatch):
    with Memory.open(tmp_path / "m") as writing:
        writing.add("Yes.", "Ja.")
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
        with Memory.open(tmp_path / "m") as memory:
            assert [pair.source for pair in memory] == ["Yes."]


def test_queries_may_be_of_any_size(tmp_path):
    with Memory.open(tmp_path / "m") as memory:
        pair = memory.add("Yes.", "Ja.")
        memory.add("No.", "Nein.")
        memory.store_keys({pair: b"abc"}, "model")
        assert memory.keys([*range(2, 50_000), pair], "model") == {pair: b"abc"}
        assert len(memory.candidates([" ".join(f"w{n}" for n in range(50_000))], 1)[0]) <= 1
