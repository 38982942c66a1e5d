"""The checks at the workbench: what looks wrong in a row or a document, what a project ignores, and its own rules."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from weitblick.files.checks.findings import (
    LINE,
    LINES,
    CheckOptions,
    Finding,
    Ignored,
    Limits,
    MissedTerms,
    Row,
    missed_terms,
    without_ignored,
)
from weitblick.files.checks.languages import wrong_language
from weitblick.files.checks.own_rules import OwnRule, OwnRules, check_rule
from weitblick.files.checks.rules import OTHER_RULES, ROW_RULES, check
from weitblick.files.encoding import name_of
from weitblick.memory.glossary import Glossary
from weitblick.memory.terms import Term
from weitblick.text.carried import SIGNS
from weitblick.workbench.errors import Refused
from weitblick.workbench.parameters import Languages
from weitblick.workbench.placeholders import RowMasks
from weitblick.workbench.schema import Segment
from weitblick.workbench.store import Store

MOST_RULES = 200
NEVER = 2**60
"""A revision that no database will reach: nothing has changed since."""


@dataclass(frozen=True)
class StoredIgnored:
    """What a project ignores: of one row, or everywhere (`document` None); about these words, or any (`words` None)."""

    id: int
    rule: str
    words: str | None
    document: str | None
    position: int | None


class Checks:
    """The checks of all projects. Safe to use from several threads."""

    def __init__(self, store: Store, masks: RowMasks, languages: Languages) -> None:
        self._store, self._masks, self._languages = store, masks, languages
        self._lock = threading.Lock()
        self._terms: dict[str, tuple[int, MissedTerms]] = {}  # by project: the revision of its pairs, and its terms
        self._own: dict[str, OwnRules] = {}

    # What is found

    def of_row(self, document: str, position: int, target: str) -> list[Finding]:
        """What looks wrong in a translation of a row, which may not be saved yet; compared with confirmed rows."""
        segments = self._store.segments(document)
        if not 0 <= position < len(segments):
            raise Refused(404, "no such segment")
        rows = [
            replace(segment, target=target) if segment.position == position else segment
            for segment in segments
            if segment.position == position or segment.is_approved
        ]
        return self._found(document, rows, position)

    def of_document(self, document: str) -> list[Finding]:
        """What looks wrong in all rows of a document."""
        return self._found(document, self._store.segments(document), None)

    def _found(self, document: str, segments: Sequence[Segment], position: int | None) -> list[Finding]:
        project = self._store.document(document).project
        limits = self._limits(document)
        signs = self._hidden_signs(document)
        rows = []
        for one in segments:
            hidden = signs.get(one.position, ())
            typed = tuple((Counter(hidden) & Counter(SIGNS.findall(one.target))).elements())
            limit = limits.get(one.position)
            rows.append(
                Row(one.position + 1, one.source, one.target, source_tags=hidden, target_tags=typed, limits=limit)
            )
        ignored = [
            Ignored(one.rule, None if one.position is None else one.position + 1, one.words)
            for one in self.ignored(project)
            if one.document in (None, document)
        ]
        how = CheckOptions(self._languages.source, self._languages.target, self._missed(project), ignored=ignored)
        only = None if position is None else [position + 1]
        chosen = rows if only is None else [row for row in rows if row.number in only]
        own = without_ignored(self._own_rules(project).check(chosen, lenient=True), ignored)
        return sorted([*check(rows, how, only=only), *own], key=lambda finding: finding.row)

    def _hidden_signs(self, document: str) -> dict[int, tuple[str, ...]]:
        """By row, the signs of the file that the row does not show; a confirmed row has them only if they are typed."""
        file = self._masks.of(document).file
        return {} if file is None else {number: own for number, own in enumerate(file.hidden_signs()) if own}

    def _limits(self, document: str) -> dict[int, Limits]:
        file = self._masks.of(document).file
        found = enumerate(file.limits() if file is not None else ())
        return {
            position: Limits(characters=cues * (LINES * LINE + 1), seconds=seconds)
            for position, (seconds, cues) in ((position, limit) for position, limit in found if limit)
        }

    def _missed(self, project: str) -> MissedTerms:
        revision, _ = self._store.pair_changes(project, NEVER)
        with self._lock:
            known = self._terms.get(project)
        if known is None or known[0] != revision:
            terms = [Term(pair.source, pair.target, pair.origin) for pair in self._store.pairs(project, "term")]
            known = revision, missed_terms(Glossary(terms))
            with self._lock:
                self._terms[project] = known
        return known[1]

    # What cannot be saved

    def refuse_unholdable(self, document: str, position: int, target: str) -> None:
        """Refuses a text with a character that the document's file could not hold, and names its place."""
        file = self._masks.of(document).file
        source = self._store.segment(document, position).source
        for place, character in file.unwritable(target, source) if file is not None else ():
            what = "a line end" if character in "\r\n" else name_of(character)
            raise Refused(
                422,
                f"row {position + 1}: {file.format if file else 'the file'} cannot hold {what} at character {place + 1}"
                " of a sentence: remove it",
            )

    def notes(self, sources: Sequence[str]) -> list[str]:
        """What is to be said before a document is translated."""
        wanted = self._languages.source
        found = wrong_language(sources, wanted)
        if found is None:
            return []
        names = self._languages.name(found), self._languages.name(wanted)
        return [f"This looks like {names[0]}, not {names[1]}: the translation will be of no use."]

    # What a project ignores

    def ignored(self, project: str) -> list[StoredIgnored]:
        """All of it, oldest first."""
        query = "SELECT id, rule, words, document, position FROM ignored_findings WHERE project = ? ORDER BY id"
        self._store.project(project)
        return [StoredIgnored(*row) for row in self._store._rows(query, project)]

    def ignore(
        self, project: str, rule: str, words: str | None, document: str | None = None, position: int | None = None
    ) -> int:
        """Ignores findings of a rule: in one row or in the whole project; about these words or any."""
        self._store.project(project)
        if rule not in ROW_RULES and rule not in OTHER_RULES and rule not in [one.name for one in self.rules(project)]:
            raise Refused(404, f"no such rule: {rule[:60]}")
        if (document is None) != (position is None):
            raise Refused(422, "a row is named by its document and its position")
        if document is not None and position is not None:
            if self._store.document(document).project != project:
                raise Refused(404, "no such document")
            self._store.segment(document, position)
        row = (project, document, position, rule, words)
        with self._store._change() as database:
            query = "INSERT INTO ignored_findings (project, document, position, rule, words) VALUES (?, ?, ?, ?, ?)"
            return database.execute(query, row).lastrowid or 0

    def notice(self, project: str, identity: int) -> None:
        """Findings that were ignored are shown again."""
        with self._store._change() as database:
            query = "DELETE FROM ignored_findings WHERE project = ? AND id = ?"
            if not database.execute(query, (project, identity)).rowcount:
                raise Refused(404, "nothing is ignored under this number")

    # Its own rules

    def rules(self, project: str) -> list[OwnRule]:
        """The project's own rules."""
        self._store.project(project)
        rows = self._store._rows("SELECT definition FROM own_rules WHERE project = ? ORDER BY name", project)
        return [OwnRule.model_validate_json(definition) for (definition,) in rows]

    def set_rules(self, project: str, rules: Sequence[OwnRule]) -> None:
        """Replaces the project's own rules; one that is no rule is refused in one line."""
        self._store.project(project)
        names = [check_rule(rule).name for rule in rules]
        if len(set(names)) < len(names):
            raise Refused(422, "two rules have the same name")
        with self._store._change() as database:
            database.execute("DELETE FROM own_rules WHERE project = ?", (project,))
            for rule in rules:
                definition = json.dumps(rule.model_dump(exclude_none=True), ensure_ascii=False)
                database.execute("INSERT INTO own_rules VALUES (?, ?, ?)", (project, rule.name, definition))
        with self._lock:
            old = self._own.pop(project, None)
        if old is not None:
            old.close()

    def _own_rules(self, project: str) -> OwnRules:
        with self._lock:
            if project not in self._own:
                self._own[project] = OwnRules(self.rules(project))
            return self._own[project]

    def close(self) -> None:
        """Ends the processes that search for own rules."""
        with self._lock:
            for own in self._own.values():
                own.close()
            self._own.clear()


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding as the API gives it: rows have positions there, which count from 0."""
    return {"position": finding.row - 1, "rule": finding.rule, "words": finding.words, "message": finding.message}
