"""The store of approved pairs: one SQLite file, read through a memory map, with a full-text index of the sources.

A memory without a folder lives in RAM. `candidates` are the pairs worth a look for a sentence; `matches` are those so
like it that a translator wants to see them. Only approved text belongs here: nothing that a model has written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path

from weitblick.memory.database import (
    LONG_WAIT,
    SHORT_WAIT,
    Access,
    UnwritableError,
    connect,
    indexed_at_the_end,
    is_memory,
)
from weitblick.memory.matches import (
    MOST_TERMS,
    LocatedPair,
    Match,
    Pair,
    Search,
    marks,
    parts,
    similarity,
    tokens,
    words_of,
)

TOGETHER = 200
"""Sources that are searched for in one go; others may have the memory in between."""
FUZZY_CANDIDATES = 40
WRITTEN_TOGETHER = 2000
"""Pairs that are written in one go; from so many on, they are also indexed in one go."""
SAMPLE = 24
LATEST, FILES_JUDGED, FEW = 2000, 4, 6
"""Pairs by which a memory is judged; files among its latest pairs that are judged apart, by a few pairs each."""

Check = Callable[[Sequence[LocatedPair]], None]

COLUMNS = "id, source, target, origin, rank"


class Memory:
    """Approved pairs, oldest first. Safe to use from several threads."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._lock = Access(self.folder)
        self._database = connect(self.folder)
        self._common: dict[str, int] = {}  # words too frequent to search by, which takes time to count, and how many

    @classmethod
    def open(cls, folder: str | Path) -> Memory:
        """The memory in a folder, which is made if it is not there."""
        return cls(folder)

    @classmethod
    def read(
        cls, files: str | Path | Sequence[str | Path], languages: tuple[str, str], check: Check | None = None
    ) -> Memory:
        """The pairs of some files (TMX, JSONL, TSV, ..., or two that hold a side each), or of folders that `open`
        made. `check` is shown some pairs of each, and raises an error if they will not do."""
        from weitblick.memory.reading import together

        paths = [files] if isinstance(files, str | Path) else list(files)
        groups = together(paths, languages)
        if len(groups) == 1 and is_memory(groups[0][0]):
            memory = cls.open(groups[0][0])
            if check is not None:
                for pairs in memory.samples():
                    check(pairs)
            return memory
        memory = cls()
        for group in groups:
            before = memory._one("SELECT coalesce(max(rank), 0) FROM pairs")
            memory.extend(cls.pairs_in(group, languages))
            if check is not None:
                check(memory.sample(after=before))
        return memory

    @classmethod
    def pairs_in(cls, group: Sequence[Path], languages: tuple[str, str]) -> Iterator[LocatedPair]:
        """The pairs of a file, of two that hold a side each, or of another memory, read as they are asked for."""
        from weitblick.memory.reading import read_pairs

        if not is_memory(group[0]):
            yield from read_pairs(group, languages)
            return
        with cls.open(group[0]) as other:
            yield from [(pair.source, pair.target, pair.origin) for pair in other]

    def sample(self, count: int = SAMPLE, after: int = 0) -> list[LocatedPair]:
        """Some pairs, evenly spread; only those that were approved after the one of this rank."""
        step = max(1, self._one("SELECT count(*) FROM pairs WHERE rank > ?", after) // count)
        # By number, since ids have gaps where pairs were removed.
        numbered = "SELECT id, row_number() OVER (ORDER BY id) AS number FROM pairs WHERE rank > ?"
        chosen = f"WHERE id IN (SELECT id FROM ({numbered}) WHERE number % ? = 0) LIMIT ?"
        found = self._pairs(chosen, after, step, count)
        return [(pair.source, pair.target, pair.origin) for pair in found]

    def samples(self) -> list[list[LocatedPair]]:
        """Some pairs of all, and a few of each file among the latest: one that will not do must not hide."""
        latest: dict[str, list[LocatedPair]] = {}
        for pair in reversed(self._pairs("ORDER BY rank DESC LIMIT ?", LATEST)):
            latest.setdefault(pair.origin.rstrip("0123456789"), []).append((pair.source, pair.target, pair.origin))
        files = [_spread(pairs, FEW) for pairs in list(latest.values())[-FILES_JUDGED:]]
        return [self.sample(), *files] if len(latest) > 1 else [self.sample()]

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def __len__(self) -> int:
        return int(self._one("SELECT count(*) FROM pairs"))

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs("ORDER BY rank"))

    def __contains__(self, id: int) -> bool:
        return bool(self._one("SELECT count(*) FROM pairs WHERE id = ?", id))

    def pair(self, id: int) -> Pair:
        found = self._pairs("WHERE id = ?", id)
        if not found:
            raise KeyError(f"no approved pair has the id {id}")
        return found[0]

    def add(self, source: str, target: str, origin: str = "") -> int:
        """Adds an approved pair; the same pair approved again is one pair, now the latest."""
        return self.extend([(source, target, origin)])[-1]

    def extend(self, pairs: Iterable[tuple[str, str, str]]) -> list[int]:
        """Adds (source, target, origin) in order, all or none. Millions are read as they are written."""
        waiting = iter(pairs)
        with self._change() as database:
            rank = self._one("SELECT coalesce(max(rank), 0) FROM pairs")
            some = list(islice(waiting, WRITTEN_TOGETHER))
            ids: list[int] = []
            with indexed_at_the_end(database) if len(some) == WRITTEN_TOGETHER else nullcontext():
                while some:
                    ids += _write(database, some, rank + len(ids))
                    some = list(islice(waiting, WRITTEN_TOGETHER))
        return ids

    def remove(self, id: int) -> None:
        with self._change() as database:
            self.pair(id)
            database.execute("DELETE FROM pairs WHERE id = ?", (id,))

    def replace(self, id: int, target: str) -> None:
        """Another translation for an approved source; it is the latest approval then. A pair that said so already
        becomes one with it."""
        if not target.strip():
            raise ValueError("an approved pair needs a target; remove it instead")
        with self._change() as database:
            source = self.pair(id).source
            database.execute("DELETE FROM pairs WHERE source = ? AND target = ? AND id != ?", (source, target, id))
            rank = self._one("SELECT max(rank) FROM pairs") + 1
            database.execute("UPDATE pairs SET target = ?, rank = ? WHERE id = ?", (target, rank, id))
            database.execute("DELETE FROM keys WHERE id = ?", (id,))

    def candidates(self, sources: Sequence[str], limit: int) -> list[list[Pair]]:
        """For each source at most so many pairs that share words with it, the rarer the words the better; the best
        first, of equal ones the latest. A memory no larger than the limit is given whole, the latest first."""
        if len(self) <= limit:
            return [self._pairs("ORDER BY rank DESC")] * len(sources)
        found: list[list[Pair]] = []
        for start in range(0, len(sources), TOGETHER):
            with self._lock:
                found += self._searched(sources[start : start + TOGETHER], limit)
        return found

    def _searched(self, sources: Sequence[str], limit: int) -> Iterator[list[Pair]]:
        search = Search(self._database, sources, self._common)
        shared = [search.best(number, 2 * limit) for number in range(len(sources))]
        pairs = {pair.id: pair for pair in self._pairs_of("id", sorted({id for near in shared for id in near}))}
        latest = sorted(self._pairs_of("source", sorted(set(sources))), key=lambda pair: -pair.rank)
        same: dict[str, list[Pair]] = {}
        for pair in latest:
            same.setdefault(pair.source, []).append(pair)
        for source, near in zip(sources, shared, strict=True):
            own = {pair.id: pair for pair in (*same.get(source, ())[:limit], *(pairs[id] for id in near))}
            order = sorted(own.values(), key=lambda pair: (pair.source == source, near.get(pair.id, 0.0), pair.rank))
            yield order[::-1][:limit]

    def matches(self, source: str, limit: int = 5, at_least: float = 0.75) -> list[Match]:
        """Pairs whose source is like this one, the likest first, of equal ones the latest."""
        (near,) = self.candidates([source], max(FUZZY_CANDIDATES, limit))
        found = _rated(source, near, at_least) or _rated(source, self._alike(source), at_least)
        return sorted(found, key=lambda match: (-match.similarity, -match.pair.rank))[:limit]

    def keys(self, ids: Sequence[int], model: str) -> dict[int, bytes]:
        """What a model has stored for these pairs."""
        found: dict[int, bytes] = {}
        with self._lock:
            for some in parts(ids):
                query = f"SELECT id, data FROM keys WHERE model = ? AND id IN ({marks(some)})"
                found.update(self._database.execute(query, (model, *some)).fetchall())
        return found

    def store_keys(self, keys: dict[int, bytes], model: str) -> None:
        """Keeps what a model has computed for some pairs, until they change; where the folder cannot be written now (it
        is another's, full, or in use), it is computed again another time."""
        with suppress(UnwritableError), self._change(patient=False) as database:
            rows = ((id, model, data) for id, data in keys.items())
            database.executemany("INSERT OR REPLACE INTO keys (id, model, data) VALUES (?, ?, ?)", rows)

    def _alike(self, source: str) -> list[Pair]:
        """Pairs of about this length that have the rarer half of its words, all of them: for sentences of words so
        common that none is searched by (Thank you, Mr President)."""
        words = words_of(source)
        rarest = sorted(words, key=lambda word: (self._common.get(word, 0), word))[: (len(words) + 1) // 2]
        if not words & self._common.keys() or len(rarest) > MOST_TERMS:
            return []
        having = "id IN (SELECT rowid FROM words WHERE words MATCH ?)"
        query = " AND ".join(f'"{word}"' for word in rarest)
        order = "ORDER BY abs(length(source) - ?), rank DESC LIMIT ?"
        return self._pairs(f"WHERE {having} {order}", query, len(source), FUZZY_CANDIDATES)

    def _pairs_of(self, column: str, values: Sequence[object]) -> Iterator[Pair]:
        for some in parts(values):
            yield from self._pairs(f"WHERE {column} IN ({marks(some)})", *some)

    def _pairs(self, clause: str, *values: object) -> list[Pair]:
        columns = ", ".join(f"pairs.{column}" for column in COLUMNS.split(", "))
        with self._lock:
            rows = self._database.execute(f"SELECT {columns} FROM pairs {clause}", values).fetchall()
        return [Pair(*row) for row in rows]

    def _one(self, query: str, *values: object) -> int:
        with self._lock:
            return int(self._database.execute(query, values).fetchone()[0])

    @contextmanager
    def _change(self, patient: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it happens, or nothing. `patient`: waits for another program that writes."""
        wait = LONG_WAIT if patient else SHORT_WAIT
        with self._lock:
            self._database.execute(f"PRAGMA busy_timeout = {round(1000 * wait)}")
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:  # a full disc has ended it already
                    self._database.execute("ROLLBACK")
                raise


def _write(database: sqlite3.Connection, pairs: Sequence[tuple[str, str, str]], rank: int) -> list[int]:
    """Adds pairs behind those of this rank, and gives their ids. The ones that are known become the latest."""
    (latest,) = database.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'pairs'").fetchone()
    same = "SELECT id FROM pairs WHERE source = ? AND target = ?"
    ids: list[int] = []
    new: dict[tuple[str, str], tuple[int, str, str, str, int]] = {}
    for number, (source, target, origin) in enumerate(pairs, rank + 1):
        if not source.strip() or not target.strip():
            raise ValueError("an approved pair needs a source and a target")
        if (own := new.get((source, target))) is None:
            known = database.execute(same, (source, target)).fetchone()
            if known:
                database.execute("UPDATE pairs SET rank = ?, origin = ? WHERE id = ?", (number, origin, known[0]))
                ids.append(int(known[0]))
                continue
        id = latest + len(new) + 1 if own is None else own[0]
        new[source, target] = (id, source, target, origin, number)
        ids.append(id)
    database.executemany(f"INSERT INTO pairs ({COLUMNS}) VALUES (?, ?, ?, ?, ?)", new.values())
    return ids


def _spread(pairs: list[LocatedPair], count: int = SAMPLE) -> list[LocatedPair]:
    return pairs[:: max(1, len(pairs) // count)][:count]


def _rated(source: str, pairs: Iterable[Pair], at_least: float) -> list[Match]:
    ours = tokens(source)
    rated = (Match(pair, similarity(ours, tokens(pair.source), at_least), source) for pair in pairs)
    return [match for match in rated if match.similarity >= at_least and match.similarity > 0]
