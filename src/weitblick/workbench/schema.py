"""The database's tables, and how an older database becomes one of today."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from weitblick.common.errors import UserError
from weitblick.files.inline_marks import PlacedFormat
from weitblick.translation.options import Formality

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
    """
    -- Rows have versions: whoever writes one says which version was seen.
    ALTER TABLE segments ADD COLUMN version INTEGER NOT NULL DEFAULT 1;     -- counts all changes of the row
    ALTER TABLE segments ADD COLUMN written INTEGER NOT NULL DEFAULT 0;     -- the version that a person wrote last
    ALTER TABLE segments ADD COLUMN writer TEXT;                            -- the tab in which that was, if known
    ALTER TABLE segments ADD COLUMN writer_edit INTEGER NOT NULL DEFAULT 0; -- and which of the tab's writes it was
    UPDATE segments SET written = 1 WHERE state IN ('edited', 'confirmed');
    """,
    """
    -- Findings of checks that a project does not want to see: of one row, or everywhere; about these words, or any.
    CREATE TABLE ignored_findings (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
        document TEXT REFERENCES documents (id) ON DELETE CASCADE,
        position INTEGER,
        rule TEXT NOT NULL,
        words TEXT
    );
    CREATE INDEX ignored_of_project ON ignored_findings (project);

    -- A project's own rules, as JSON.
    CREATE TABLE own_rules (
        project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        definition TEXT NOT NULL,
        PRIMARY KEY (project, name)
    ) WITHOUT ROWID;
    """,
    """
    -- Rows can be reviewed; they say who decided on them, when, and where their drafts come from.
    CREATE TABLE segments_now (
        document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        source TEXT NOT NULL,
        target TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL CHECK (state IN ('empty', 'draft', 'edited', 'confirmed', 'reviewed')),
        metadata TEXT NOT NULL DEFAULT '{}',
        change INTEGER,
        version INTEGER NOT NULL DEFAULT 1,
        written INTEGER NOT NULL DEFAULT 0,
        writer TEXT,
        writer_edit INTEGER NOT NULL DEFAULT 0,
        person TEXT,             -- who wrote it last, by name, if known
        decided REAL,            -- and when
        origin TEXT,             -- where its draft comes from: see `Origin`
        match INTEGER,           -- how like the matched source is, in per cent
        matched_source TEXT,
        PRIMARY KEY (document, position)
    ) WITHOUT ROWID;
    INSERT INTO segments_now
        (document, position, source, target, state, metadata, change, version, written, writer, writer_edit, decided)
        SELECT document, position, source, target, state, metadata, change, version, written, writer, writer_edit,
            CASE WHEN state IN ('edited', 'confirmed') THEN
                (SELECT max(time) FROM edits
                WHERE edits.document = segments.document AND edits.position = segments.position) END
        FROM segments;
    DROP TABLE segments;
    ALTER TABLE segments_now RENAME TO segments;

    -- What a person would call one step: it is taken back, and done again, as a whole.
    CREATE TABLE steps (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        kind TEXT NOT NULL,
        writer TEXT,
        person TEXT,
        time REAL NOT NULL,
        undone INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX steps_of_document ON steps (document);
    ALTER TABLE edits ADD COLUMN person TEXT;
    ALTER TABLE edits ADD COLUMN step INTEGER;  -- the step that it is part of; below zero: of taking that step back
    ALTER TABLE edits ADD COLUMN kept TEXT;     -- what else the row was before, as JSON
    CREATE INDEX edits_of_step ON edits (step) WHERE step IS NOT NULL;

    -- Comments on rows. One that is deleted has no text, and its step can bring it back.
    CREATE TABLE comments (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        text TEXT,
        person TEXT,
        time REAL NOT NULL,
        version INTEGER NOT NULL DEFAULT 1
    );
    CREATE INDEX comments_of_row ON comments (document, position);
    CREATE TABLE comment_edits (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        comment INTEGER NOT NULL REFERENCES comments (id) ON DELETE CASCADE,
        step INTEGER NOT NULL,
        time REAL NOT NULL,
        before TEXT,
        after TEXT
    );
    CREATE INDEX comment_edits_of_step ON comment_edits (step);
    CREATE INDEX comment_edits_of_comment ON comment_edits (comment);
    """,
    """
    ALTER TABLE segments ADD COLUMN placed TEXT;  -- formatting that a person has placed in the translation, as JSON
    """,
    """
    -- How people are addressed in the translations of a project: auto, formal or informal.
    ALTER TABLE projects ADD COLUMN formality TEXT NOT NULL DEFAULT 'auto'
        CHECK (formality IN ('auto', 'formal', 'informal'));
    """,
)
"""Each brings a database from the version before to the next; the first makes an empty one. Never change one that has
been released: add another."""
FIRST_TABLES = ("projects", "documents", "segments", "edits", "pairs")
"""Those of the first version."""
TABLES = (*FIRST_TABLES, "comments")
"""The tables that a database cannot be without; each refers to earlier ones only."""


PAIR_CHANGES = """
    CREATE TEMP TABLE pair_changes (
        revision INTEGER PRIMARY KEY AUTOINCREMENT, project TEXT NOT NULL, pair INTEGER NOT NULL
    );
    CREATE TEMP TRIGGER pair_added AFTER INSERT ON main.pairs
        BEGIN INSERT INTO pair_changes (project, pair) VALUES (new.project, new.id); END;
    CREATE TEMP TRIGGER pair_removed AFTER DELETE ON main.pairs
        BEGIN INSERT INTO pair_changes (project, pair) VALUES (old.project, old.id); END;
"""
"""Notes which pairs were added or removed since the database was opened, in the very transaction that does so, whatever
does so. What is derived from the pairs follows it and cannot miss a change. Pairs are never updated in place."""


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


def note_pair_changes(database: sqlite3.Connection) -> None:
    """From now on `pair_changes` says which pairs have changed. It lives in RAM, as long as this connection."""
    database.execute("PRAGMA temp_store = MEMORY")
    database.executescript(PAIR_CHANGES)


# What the store gives: plain records of projects, documents and segments.

State = Literal["empty", "draft", "edited", "confirmed", "reviewed"]
APPROVED: tuple[State, ...] = ("confirmed", "reviewed")
"""The states of rows that a person has approved: they are in the memory, and no model changes them."""
Origin = Literal["context", "exact", "repaired", "fuzzy", "repetition", "machine", "rule", "file"]
"""Where a row's first translation comes from: an approved translation of the very same sentence between the same
neighbours (context) or elsewhere (exact), or of a like sentence, with the words that differ translated anew (repaired);
the model, with an approved translation of a like sentence at hand (fuzzy), for a sentence that stands further up as
well (repetition) or nowhere (machine); a rule; the file itself."""
FORMALITY = -(2**52)
"""The cause of a change for which the form of address of the project is the reason: no number of a term."""
PairKind = Literal["segment", "import", "term", "suggestion"]


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str
    created: float
    documents: int = 0
    segments: int = 0
    confirmed: int = 0
    reviewed: int = 0
    pairs: int = 0
    formality: Formality = "auto"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    id: str
    project: str
    name: str
    created: float
    segments: int = 0
    confirmed: int = 0
    reviewed: int = 0


@dataclass(frozen=True, slots=True)
class Comment:
    """What somebody says about a row; `version` counts its changes."""

    id: int
    text: str
    person: str | None
    time: float
    version: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A row of the workbench. `before` is what stood here until a confirmed row elsewhere, a term or a replacement
    changed it, as long as nobody has seen to that, and `cause` the edit that did so (of a term its number,
    below zero; FORMALITY).
    `version` counts the changes of the row; `written` is the version that a person wrote last, in the tab `writer` as
    its write number `writer_edit`; `person` is who that was, and `decided` when. `origin`, `match` (per cent) and
    `matched_source` tell where its draft comes from. `placed` is the formatting that a person has put somewhere."""

    position: int
    source: str
    target: str
    state: State
    metadata: dict[str, Any] = field(default_factory=dict)
    change: int | None = None
    before: str | None = None
    cause: int | None = None
    version: int = 1
    written: int = 0
    writer: str | None = None
    writer_edit: int = 0
    person: str | None = None
    decided: float | None = None
    origin: Origin | None = None
    match: int | None = None
    matched_source: str | None = None
    placed: tuple[PlacedFormat, ...] = ()
    comments: tuple[Comment, ...] = ()

    @property
    def is_approved(self) -> bool:
        """Whether a person has confirmed or reviewed it."""
        return self.state in APPROVED


StepKind = Literal[
    "type",
    "alternative",
    "copy",
    "clear",
    "confirm",
    "reopen",
    "review",
    "keep",
    "undo",
    "replace",
    "comment",
    "import",
    "format",
]
"""What a person would call one step. `undo`: changes of the model were taken back. `import`: a review was read.
`format`: formatting was placed."""


@dataclass(frozen=True, slots=True)
class Write:
    """What a person writes in a row, and what that person had seen: the row's `version`. `writer` is the tab and
    `writer_edit` counts what it writes from 1, so that what is sent twice or overtakes something is known; 0 is for
    writers that do not count. `person` is a name, and `act` how the text came about, unless it was typed."""

    target: str
    state: State
    version: int
    writer: str | None = None
    writer_edit: int = 0
    person: str | None = None
    act: StepKind | None = None

    def has_arrived(self, row: Segment) -> bool:
        """Whether the row holds this already, or something later from the same tab."""
        if self._is_counted_by(row.writer) and self.writer_edit <= row.writer_edit:
            return True
        return (self.target, self.state) == (row.target, row.state) and row.change is None

    def may_replace(self, row: Segment) -> bool:
        """Whether nobody else has written the row since it was seen. What the model makes of a draft is no writing."""
        return self.version >= row.written or self._is_counted_by(row.writer)

    def _is_counted_by(self, writer: str | None) -> bool:
        return self.writer is not None and self.writer == writer and self.writer_edit > 0


@dataclass(frozen=True, slots=True)
class Written:
    """A row before and after a write, and the number of the edit; none if there was nothing to write."""

    before: Segment
    after: Segment
    edit: int | None


@dataclass(frozen=True, slots=True)
class StoredPair:
    id: int
    kind: PairKind
    source: str
    target: str
    origin: str
    document: str | None
    position: int | None


@dataclass(frozen=True, slots=True)
class Edit:
    id: int
    position: int
    time: float
    before: str
    state_before: State
    after: str
    state_after: State
    cause: int | None
    person: str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a person: how many rows it changed, and the first of them."""

    id: int
    kind: StepKind
    writer: str | None
    person: str | None
    time: float
    rows: int
    first: int | None
