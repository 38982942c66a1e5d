"""Projects on disk: one SQLite file in which nothing that was typed is ever lost.

Every change is a transaction that is on disk before it is answered (WAL, synchronous FULL), and every change of a
segment is kept as an edit. One server has a folder at a time; backups are made while it runs.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from weitblick.documents.document import Sentence
from weitblick.files.blocks import Note
from weitblick.files.masked_document import BY_RULE
from weitblick.files.translatable_file import SAID
from weitblick.translation.options import Formality
from weitblick.workbench.database import FILE, connect, hold_folder
from weitblick.workbench.deletion import Deletion
from weitblick.workbench.errors import Refused
from weitblick.workbench.row_store import RowStore
from weitblick.workbench.schema import Origin, PairKind, Project, State, StoredDocument, StoredPair

PROJECTS = """SELECT projects.id, name, created,
    (SELECT count(*) FROM documents WHERE project = projects.id),
    (SELECT count(*) FROM segments JOIN documents ON document = documents.id WHERE project = projects.id),
    (SELECT count(*) FROM segments JOIN documents ON document = documents.id
     WHERE project = projects.id AND state IN ('confirmed', 'reviewed')),
    (SELECT count(*) FROM segments JOIN documents ON document = documents.id
     WHERE project = projects.id AND state = 'reviewed'),
    (SELECT count(*) FROM pairs WHERE project = projects.id), formality
    FROM projects"""
DOCUMENTS = """SELECT id, project, name, created,
    (SELECT count(*) FROM segments WHERE document = documents.id),
    (SELECT count(*) FROM segments WHERE document = documents.id AND state IN ('confirmed', 'reviewed')),
    (SELECT count(*) FROM segments WHERE document = documents.id AND state = 'reviewed')
    FROM documents"""
MARKS = ", ".join("?" * 8)
PAIR_REVISION = "SELECT coalesce(max(seq), 0) FROM temp.sqlite_sequence WHERE name = 'pair_changes'"


class Store(RowStore):
    """Safe to use from several threads."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._held = hold_folder(self.folder)
        self._lock = threading.RLock()
        self.path = self.folder / FILE
        try:
            self._database = connect(self.path)
        except BaseException:
            self._held.close()
            raise
        self._deletion = Deletion(self._database, self.folder)

    def close(self) -> None:
        with self._lock:
            self._database.close()
            self._held.close()

    # Projects

    def projects(self) -> list[Project]:
        return [Project(*row) for row in self._rows(f"{PROJECTS} ORDER BY created")]

    def project(self, project: str) -> Project:
        return Project(*self._row(f"{PROJECTS} WHERE projects.id = ?", project, what="project"))

    def add_project(self, name: str) -> Project:
        with self._change() as database:
            identity = _identity()
            database.execute("INSERT INTO projects (id, name, created) VALUES (?, ?, ?)", (identity, name, time.time()))
        return self.project(identity)

    def project_id(self, name: str) -> str | None:
        """Of the oldest project of that name."""
        found = self._rows("SELECT id FROM projects WHERE name = ? ORDER BY created LIMIT 1", name)
        return str(found[0][0]) if found else None

    def rename_project(self, project: str, name: str) -> Project:
        self.project(project)
        with self._change() as database:
            database.execute("UPDATE projects SET name = ? WHERE id = ?", (name, project))
        return self.project(project)

    def formality(self, project: str) -> Formality:
        """How people are addressed in the translations of a project."""
        (formality,) = self._row("SELECT formality FROM projects WHERE id = ?", project, what="project")
        return formality

    def set_formality(self, project: str, formality: Formality) -> None:
        """Says how people are to be addressed from now on."""
        self.project(project)
        with self._change() as database:
            database.execute("UPDATE projects SET formality = ? WHERE id = ?", (formality, project))

    def delete_project(self, project: str) -> None:
        documents = [("documents", document.id) for document in self.documents(project)]
        with self._lock:
            self._deletion([*documents, ("projects", project)])

    # Documents

    def documents(self, project: str) -> list[StoredDocument]:
        self.project(project)
        rows = self._rows(f"{DOCUMENTS} WHERE project = ? ORDER BY created", project)
        return [StoredDocument(*row) for row in rows]

    def document(self, document: str) -> StoredDocument:
        return StoredDocument(*self._row(f"{DOCUMENTS} WHERE id = ?", document, what="document"))

    def file(self, document: str) -> bytes:
        """The file that a document was uploaded as."""
        (content,) = self._row("SELECT file FROM documents WHERE id = ?", document, what="document")
        return bytes(content)

    def add_document(
        self,
        project: str,
        name: str,
        sentences: Sequence[Sentence],
        file: bytes,
        notes: Sequence[Sequence[Note]] = (),
    ) -> str:
        """Locked sentences are what their file says of them, and confirmed if it does not; drafts are drafts, all
        others are empty. `notes`: what the file says about each sentence, which become comments."""
        self.project(project)
        now = time.time()
        with self._change() as database:
            identity = _identity()
            database.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", (identity, project, name, file, now))
            seen: set[str] = set()
            for position, sentence in enumerate(sentences):
                state = _state_of(sentence)
                metadata = json.dumps(dict(sentence.metadata), ensure_ascii=False, default=str)
                row = (identity, position, sentence.source, sentence.target or "", state, metadata)
                written, origin = int(state not in ("empty", "draft")), _origin_of(sentence, seen)
                columns = "document, position, source, target, state, metadata, written, origin"
                database.execute(f"INSERT INTO segments ({columns}) VALUES ({MARKS})", (*row, written, origin))
                self.remember(database, identity, position, sentence.source, sentence.target or "", state)
                seen.add(sentence.source)
            said = [(identity, at, note.text, note.author, now) for at, own in enumerate(notes) for note in own]
            database.executemany(
                "INSERT INTO comments (document, position, text, person, time) VALUES (?, ?, ?, ?, ?)", said
            )
            self._deletion.keep_room()
        return identity

    def delete_document(self, document: str) -> None:
        self.document(document)
        with self._lock:
            self._deletion([("documents", document)])

    # The memory of a project

    def pairs(self, project: str, *kinds: PairKind) -> list[StoredPair]:
        """Oldest first."""
        self.project(project)
        marks = ",".join("?" * len(kinds))
        only = f" AND kind IN ({marks})" if kinds else ""
        return self._pairs(f"project = ?{only}", project, *kinds)

    def _pairs(self, which: str, *values: object) -> list[StoredPair]:
        query = f"SELECT id, kind, source, target, origin, document, position FROM pairs WHERE {which} ORDER BY id"
        return [StoredPair(*row) for row in self._rows(query, *values)]

    def pair_changes(self, project: str, since: int) -> tuple[int, dict[int, StoredPair | None]]:
        """The revision of the pairs now, and which of them were added or removed (None) since an earlier revision. From
        revision -1 on everything is new."""
        with self._lock:
            (revision,) = self._row(PAIR_REVISION, what="revision")
            if since < 0:
                return revision, {pair.id: pair for pair in self.pairs(project)}
            query = "SELECT DISTINCT pair FROM pair_changes WHERE project = ? AND revision > ?"
            changed: dict[int, StoredPair | None] = {pair: None for (pair,) in self._rows(query, project, since)}
            if changed:
                only = f"id IN ({query})"
                changed.update({pair.id: pair for pair in self._pairs(only, project, since)})
        return revision, changed

    def forget_pair_changes(self, until: int) -> None:
        """Nobody asks any more for what changed up to this revision."""
        with self._lock:
            self._database.execute("DELETE FROM pair_changes WHERE revision <= ?", (until,))

    def approved(self, project: str) -> dict[str, str]:
        """Of whole sentences that have been approved, the latest translation. A term is no sentence."""
        pairs = self.pairs(project, "segment", "import", "suggestion")
        return {pair.source: pair.target for pair in pairs}

    def add_pairs(self, project: str, kind: PairKind, pairs: Sequence[tuple[str, str]], origin: str) -> list[int]:
        """Of terms, the latest for a source replaces those before."""
        self.project(project)
        now = time.time()
        with self._change() as database:
            ids = []
            for source, target in pairs:
                if kind == "term":
                    database.execute(
                        "DELETE FROM pairs WHERE project = ? AND kind = 'term' AND source = ?", (project, source)
                    )
                row = (project, kind, source, target, origin, now)
                ids.append(
                    database.execute(
                        "INSERT INTO pairs (project, kind, source, target, origin, time) VALUES (?, ?, ?, ?, ?, ?)", row
                    ).lastrowid
                    or 0
                )
        return ids

    def remove_pair(self, project: str, pair: int) -> None:
        with self._change() as database:
            if not database.execute("DELETE FROM pairs WHERE project = ? AND id = ?", (project, pair)).rowcount:
                raise Refused(404, "no such pair")


def _identity() -> str:
    return secrets.token_hex(8)


def _state_of(sentence: Sentence) -> State:
    """Text that its file does not stand by is edited: it may be a person's, and no model touches it."""
    if sentence.target is None or sentence.status is None:
        return "empty"
    if sentence.status == "draft":
        return "draft"
    said = sentence.metadata.get(SAID)
    return "reviewed" if said == "reviewed" else "edited" if said == "draft" else "confirmed"


def _origin_of(sentence: Sentence, before: Collection[str]) -> Origin | None:
    """What is known of a translation before anybody is asked for one; None: nothing, and a model will be."""
    if sentence.metadata.get(BY_RULE):
        return "rule"
    if sentence.target is not None and sentence.status is not None:
        return "file"
    return "repetition" if sentence.source in before else None
