"""`weitblick check`: what looks wrong in a translation, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import check_inputs, print_json, print_text
from weitblick.cli.options import Json, SourceLanguage, TargetLanguage, languages_of
from weitblick.cli.real_files import AnyFormat
from weitblick.common.errors import UserError

if TYPE_CHECKING:
    from weitblick.files.checks.findings import CheckOptions, Finding, Ignored, MissedTerms, Row
    from weitblick.files.checks.own_rules import OwnRules
    from weitblick.files.checks.rows import CheckedFile

DEFAULT_PAIR = ("en", "de")


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE [TARGET]",
            help="A document and its translation, or one file with both (XLIFF, PO, CSV, TMX, TSV, JSONL).",
        ),
    ],
    glossary: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Terms and their translations, TSV or CSV. Repeatable.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Terms that are not translated, one a line. Repeatable.")
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Own rules, as YAML: a list of name, and of source, target and missing (regular expressions). "
            "Repeatable.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="[ROW:]RULE", help="A rule to ignore, everywhere or in one row. Repeatable."),
    ] = None,
    longest: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Characters that a translation may have at most.")
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Findings to print of each rule; JSON has all.")] = 50,
    from_format: Annotated[
        AnyFormat | None, typer.Option("--from", help="Format of the files; known by name and content if absent.")
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    as_json: Json = False,
) -> None:
    """Find numbers, tags, terms, signs and the like that a translation has lost or changed.

    Exit code 0: nothing found; 1: something found. Nothing is changed.

    Example: weitblick check report.docx report.de.docx --glossary terms.tsv

    Example: weitblick check messages.po --ignore end-sign --ignore 12:numbers
    """
    from weitblick.files.checks.findings import CheckOptions
    from weitblick.files.checks.rules import check as find

    if len(files) > 2:
        raise UserError(f"{len(files)} files are named", remedy="name a source and its translation, or one file")
    check_inputs(files)
    read, languages = _read(files, from_format, source_language, target_language)
    own = _own_rules(rules)
    ignored = _ignored(ignore or [], [rule.name for rule in own.rules] if own else [])
    how = CheckOptions(*languages, _terms(glossary, keep, languages), longest, ignored)
    findings = [*_language(read.rows, how), *find(read.rows, how), *_found_by_own(own, read.rows, how)]
    findings.sort(key=lambda finding: finding.row)
    if as_json:
        named = {row.number: row.name for row in read.rows if row.name is not None}
        listed = [{**one.as_json(), **({"name": named[one.row]} if one.row in named else {})} for one in findings]
        counts = dict(Counter(finding.rule for finding in findings))
        print_json({"rows": len(read.rows), "counts": counts, "findings": listed})
    else:
        print_text("\n".join(_lines(files[-1], findings, len(read.rows), show)))
    if findings:
        raise typer.Exit(1)


def _read(
    files: Sequence[str], format: str | None, source: str | None, target: str | None
) -> tuple[CheckedFile, tuple[str | None, str | None]]:
    """The rows, and the languages: as they are named, as the file says, or as the names of two files say."""
    from weitblick.files.checks.rows import rows_of_bilingual, rows_of_pair

    if len(files) == 2:
        read, named = rows_of_pair(files[0], files[1], format), languages_of(files)
    else:
        read, named = rows_of_bilingual(files[0], (source or DEFAULT_PAIR[0], target or DEFAULT_PAIR[1]), format), None
    found = (
        read.source_language or (named[0] if named else None),
        read.target_language or (named[1] if named else None),
    )
    return read, (source or found[0] or DEFAULT_PAIR[0], target or found[1] or DEFAULT_PAIR[1])


def _terms(
    glossaries: Sequence[str] | None, kept: Sequence[str] | None, languages: tuple[str | None, str | None]
) -> MissedTerms | None:
    if not glossaries and not kept:
        return None
    from weitblick.cli.console import glossary_of_files
    from weitblick.files.checks.findings import missed_terms

    check_inputs([*(glossaries or []), *(kept or [])])
    pair = (languages[0] or DEFAULT_PAIR[0], languages[1] or DEFAULT_PAIR[1])
    return missed_terms(glossary_of_files(glossaries or (), kept or (), pair))


def _own_rules(paths: Sequence[str] | None) -> OwnRules | None:
    from weitblick.files.checks.own_rules import OwnRules, read_rules

    return OwnRules([rule for path in paths for rule in read_rules(path)]) if paths else None


def _found_by_own(own: OwnRules | None, rows: Sequence[Row], how: CheckOptions) -> list[Finding]:
    from weitblick.files.checks.findings import without_ignored

    if own is None:
        return []
    try:
        return list(without_ignored(own.check(rows), how.ignored))
    finally:
        own.close()


def _language(rows: Sequence[Row], how: CheckOptions) -> list[Finding]:
    """Whether the source is in its language at all."""
    from weitblick.files.checks.findings import without_ignored
    from weitblick.files.checks.languages import language_finding

    found = language_finding([row.source for row in rows], how.source_language or DEFAULT_PAIR[0])
    return list(without_ignored([replace(found, row=rows[0].number)], how.ignored)) if found else []


def _ignored(wanted: Sequence[str], own: Sequence[str]) -> list[Ignored]:
    from weitblick.files.checks.findings import Ignored
    from weitblick.files.checks.rules import OTHER_RULES, ROW_RULES

    known = [*ROW_RULES, *OTHER_RULES, *own]
    found = []
    for one in wanted:
        row, colon, rule = one.partition(":")
        if colon and not (row.isascii() and row.isdigit() and len(row) < 10):
            raise UserError(f"--ignore {one[:60]}: {row[:20]!r} is no row", remedy="write --ignore 12:numbers")
        if (rule if colon else one) not in known:
            raise UserError(f"--ignore {one[:60]}: no such rule", remedy=f"rules: {', '.join(known)}")
        found.append(Ignored(rule, int(row)) if colon else Ignored(one))
    return found


def _lines(path: str, findings: Sequence[Finding], rows: int, show: int) -> Iterator[str]:
    shown: Counter[str] = Counter()
    for finding in findings:
        shown[finding.rule] += 1
        if shown[finding.rule] <= show:
            yield f"{path}: row {finding.row}: {finding.rule}: {finding.words}: {finding.message}"
    for rule, count in shown.items():
        if count > show:
            yield f"{path}: {rule}: and {count - show} more (--show {count} prints all)"
    summary = ", ".join(f"{count} {rule}" for rule, count in shown.items()) or "nothing found"
    yield f"{rows} row{'s' * (rows != 1)}: {summary}"
