"""The database's tables, and how an older database becomes one of today."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from weitblick.errors import UserError

MIGRATIONS = (
    """
    CREATE TABLE projects (id TEXT PRIMARY KEY, name TEXT NOT NULL, created REAL NOT NULL) WITHOUT ROWID;

    CREATE TABLE documents (
        id TEXT PRIMARY KEY,
        project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        file BLOB NOT NULL,      -- as it was uploaded: exports are made from it
        created REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX documents_of_project ON documents (project, created);

    CREATE TABLE segments (
        document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        source TEXT NOT NULL,
        target TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL CHECK (state IN ('empty', 'draft', 'edited', 'confirmed')),
        metadata TEXT NOT NULL DEFAULT '{}',
        change INTEGER,          -- the edit by which a confirmed row elsewhere changed this draft, until it is seen to
        PRIMARY KEY (document, position)
    ) WITHOUT ROWID;

    -- Every change of a segment, by a human or by the model; nothing is ever taken out of here but with its document.
    CREATE TABLE edits (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        time REAL NOT NULL,
        before TEXT NOT NULL, state_before TEXT NOT NULL,
        after TEXT NOT NULL, state_after TEXT NOT NULL,
        cause INTEGER            -- the confirming edit that made the model translate this segment again
    );
    CREATE INDEX edits_of_segment ON edits (document, position);

    -- What a project's memory holds: its confirmed segments, imported pairs, approved terms, suggestions.
    CREATE TABLE pairs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
        kind TEXT NOT NULL CHECK (kind IN ('segment', 'import', 'term', 'suggestion')),
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        origin TEXT NOT NULL,
        document TEXT REFERENCES documents (id) ON DELETE CASCADE,
        position INTEGER,
        time REAL NOT NULL
    );
    CREATE INDEX pairs_of_project ON pairs (project);
    CREATE UNIQUE INDEX pair_of_segment ON pairs (document, position) WHERE document IS NOT NULL;
    """,
)
"""Each brings a database from the version before to the next; the first makes an empty one. Never change one that has
been released: add another."""


def migrate(database: sqlite3.Connection, path: Path) -> None:
    """All steps that are missing, each whole or not at all."""
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise UserError(
            f"was written by a newer weitblick (schema {version}, this one knows {len(MIGRATIONS)})",
            where=path,
            remedy="install that version, or name another folder with --data",
        )
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        database.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")
