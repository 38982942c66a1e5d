"""Rules that a project adds: regular expressions, searched within bounded time."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weitblick.common.errors import UserError, explain
from weitblick.files.checks import matching
from weitblick.files.checks.findings import Finding, Row
from weitblick.files.checks.rules import OTHER_RULES, ROW_RULES

MOST_SECONDS = 2.0
"""Of computing, for one expression over as many texts as are sent together."""
PATIENCE = 30.0
"""Seconds by the clock beside them, on however busy a machine."""
TOGETHER = 500


class OwnRule(BaseModel):
    """A rule of a project. A row is found if its source matches `source`, its translation matches `target`, and its
    translation does not match `missing`, each as far as it is given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=60)
    source: str | None = Field(None, max_length=1000)
    target: str | None = Field(None, max_length=1000)
    missing: str | None = Field(None, max_length=1000)
    message: str = Field("", max_length=300)

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """The fields that hold an expression, and the expressions."""
        fields = {"source": self.source, "target": self.target, "missing": self.missing}
        return [(name, pattern) for name, pattern in fields.items() if pattern is not None]


def check_rule(rule: OwnRule, where: str | Path | None = None) -> OwnRule:
    """The rule, if its expressions are some and its name is free; else a user's error of one line."""
    if rule.name in ROW_RULES or rule.name in OTHER_RULES:
        raise UserError(f"rule {rule.name!r} has the name of another rule", where=where, remedy="choose another name")
    if not rule.patterns:
        raise UserError(f"rule {rule.name!r} looks for nothing", where=where, remedy="give source, target or missing")
    for field, pattern in rule.patterns:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise UserError(
                f"rule {rule.name!r}: {field} {pattern[:60]!r} is no regular expression ({error})",
                where=where,
                remedy="mend it; \\. is a full stop",
            ) from None
    return rule


def read_rules(path: str | Path) -> list[OwnRule]:
    """The rules of a YAML file: a list of name, source, target, missing, message."""
    try:
        value = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError("no such file", where=path, remedy="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read ({error})", where=path, remedy="name a YAML file") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        raise UserError("is no YAML", where=path, line=line, remedy="write a list of rules: - name: ...") from None
    if not isinstance(value, list) or not value:
        raise UserError("is no list of rules", where=path, remedy="write - name: NAME, and target: EXPRESSION below it")
    rules = []
    for number, one in enumerate(value, 1):
        try:
            rules.append(check_rule(OwnRule.model_validate(one), path))
        except ValidationError as error:
            raise explain(error, path, item=f"rule {number}: ") from None
    names = [rule.name for rule in rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"two rules are called {twice!r}", where=path, remedy="choose another name for one")
    return rules


class EndlessRuleError(UserError):
    """A rule whose expression was stopped."""


class OwnRules:
    """Rules and the process that searches for them, which is started when it is first needed. Safe for several threads,
    one after the other."""

    def __init__(self, rules: Iterable[OwnRule], *, seconds: float = MOST_SECONDS) -> None:
        self.rules = list(rules)
        self.seconds = seconds
        self._worker: Worker | None = None
        self._lock = threading.Lock()

    def check(self, rows: Sequence[Row], *, lenient: bool = False) -> list[Finding]:
        """The findings of all rules. One that is stopped is a user's error that names it and the row; with `lenient` it
        is a finding that says so, and the rule is not used again."""
        found: list[Finding] = []
        for rule in list(self.rules):
            try:
                for start in range(0, len(rows), TOGETHER):
                    found += self._of_rule(rule, rows[start : start + TOGETHER])
            except EndlessRuleError as error:
                if not lenient:
                    raise
                self.rules = [one for one in self.rules if one is not rule]
                found.append(Finding(rows[0].number, rule.name, rule.patterns[0][1][:60], str(error)))
        return found

    def _of_rule(self, rule: OwnRule, rows: Sequence[Row]) -> Iterable[Finding]:
        left = [row for row in rows if row.target.strip()]
        words = {row.number: row.target for row in left}
        for field, pattern in rule.patterns:
            texts = [row.source if field == "source" else row.target for row in left]
            spans = self._search(rule, field, pattern, texts, left)
            pairs = [
                (row, span) for row, span in zip(left, spans, strict=True) if (span is None) == (field == "missing")
            ]
            left = [row for row, _ in pairs]
            if field != "missing":
                words |= {
                    row.number: (row.source if field == "source" else row.target)[span[0] : span[1]]
                    for row, span in pairs
                    if span is not None
                }
        said = rule.message or "is found by a rule of the project"
        return [Finding(row.number, rule.name, words[row.number][:60], said) for row in left]

    def _search(
        self, rule: OwnRule, field: str, pattern: str, texts: Sequence[str], rows: Sequence[Row]
    ) -> list[list[int] | None]:
        with self._lock:
            if self._worker is None:
                self._worker = Worker()
            spans = self._worker.ask(pattern, texts, self.seconds)
            if spans is None:
                self.close()
        if spans is None:
            place = f"in row {rows[0].number}" if len(rows) == 1 else f"in rows {rows[0].number} to {rows[-1].number}"
            raise EndlessRuleError(
                f"rule {rule.name!r}: {field} {pattern[:60]!r} was stopped after {self.seconds:g} s {place}",
                remedy="write it without nested repetitions such as (a+)+",
            )
        return spans

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._worker is not None:
            self._worker.close()
        self._worker = None


class Worker:
    """A process that searches, and a thread that waits for what it says."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", matching.__file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
        )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def ask(self, pattern: str, texts: Sequence[str], seconds: float, *more: object) -> list[Any] | None:
        """The first match in each text, or what `matching` has for `more` (flags and a replacement); None if there is
        no answer in time."""
        if not texts:
            return []
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([seconds, pattern, list(texts), *more]) + "\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=seconds + PATIENCE)
        except (queue.Empty, OSError):
            return None
        return json.loads(answer) if answer else None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
