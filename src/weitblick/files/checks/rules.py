"""The table of rules. A rule looks at one row and gives the words that look wrong, each with what to say about them.

To add one, write such a function and name it in `ROW_RULES`. `compare_rows` has what can only be seen in several rows.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from weitblick.common.characters import base_language
from weitblick.files.checks.findings import FASTEST, LINE, LINES, CheckOptions, Finding, Row, RowRule, without_ignored
from weitblick.files.checks.number_rules import dates, numbers, units
from weitblick.text.carried import carried_spans

Words = Iterator[tuple[str, str]]

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
ADDRESS = re.compile(r"(?:https?|ftp|file|mailto|tel|git|ssh|data):.+|www\..+|[^\s@]+@[\w-]+(?:\.[\w-]+)+")
TAG = re.compile(r"</?[A-Za-z][\w.:-]*(?:\s[^<>]*)?/?>|⟦#?\d+⟧")
PLACEHOLDER = re.compile(r"\$?\{.*\}|#\{.*\}|%\{.*\}|%[^%\s]+|%[A-Z_]{2,}%|\$t\(.*\)", re.DOTALL)
CODE = re.compile(r"(?=.*[A-Za-z])(?=.*[\d_/\\:.]).{3,}|`.*`")
NO_CODE = re.compile(r"[$€£¥]|\d.*|.*[²³°]")
DOUBLED = re.compile(r"(?<![\w'’-])([^\W\d_]+)[ \u00a0]+\1(?![\w'’-])", re.IGNORECASE)
NOT_DOUBLED = {
    "de": {"die", "der", "das", "sie", "den", "dem"},
    "en": {"that", "had", "is"},
    "fr": {"nous", "vous"},
    "nl": {"die", "dat"},
}
SPACE_BEFORE = re.compile(r"\w([ \u00a0]+[,;:!?]|[ \u00a0]+\.(?![\w.]))")
SPACED_SIGNS = {"fr"}  # a space stands before ; : ! and ?
ENDINGS = str.maketrans({"。": ".", "！": "!", "？": "?", "؟": "?", "：": ":", "；": ";", "…": "…", "।": "."})
CLOSING = "\"'”’»)]}›“‘ \u00a0"
BRACKETS = {"(": ")", "[": "]", "{": "}"}
DOUBLE_QUOTES = re.compile('["“”„‟«»″]')


def empty(row: Row, how: CheckOptions) -> Words:
    """A row without a translation."""
    if row.source.strip() and not row.target.strip():
        yield _short(row.source), "is not translated"


def untranslated(row: Row, how: CheckOptions) -> Words:
    """A translation that is its source; names, codes and single words may be."""
    words = WORD.findall(_without_codes(row.source))
    if _same(row.source, row.target) and len(words) >= 3 and any(word.islower() for word in words):
        yield _short(row.target), "is the same as the source"


def tags(row: Row, how: CheckOptions) -> Words:
    """Tags of the file, and those that are spelled out in a text."""
    sides = [_spelled(text, TAG) for text in (row.source, row.target)]
    if row.source_tags is not None and row.target_tags is not None:
        sides = [Counter(row.source_tags) + sides[0], Counter(row.target_tags) + sides[1]]
    yield from _differences(*sides)


def placeholders(row: Row, how: CheckOptions) -> Words:
    """{name}, %s, ${name} and the like."""
    yield from _differences(_spelled(row.source, PLACEHOLDER), _spelled(row.target, PLACEHOLDER))


def addresses(row: Row, how: CheckOptions) -> Words:
    """E-mail and web addresses."""
    yield from _differences(_spelled(row.source, ADDRESS), _spelled(row.target, ADDRESS))


def codes(row: Row, how: CheckOptions) -> Words:
    """Identifiers, file names and numbers with letters, which no language changes."""
    for code in _spelled(row.source, CODE, but=(TAG, PLACEHOLDER, ADDRESS, NO_CODE)):
        if code not in row.target:
            yield code, "is not in the translation"


def terms(row: Row, how: CheckOptions) -> Words:
    """Terms of a glossary, whose inflected forms will do."""
    for source, target in _missed(row, how):
        if source != target:
            yield source, f"should be {target}"


def kept(row: Row, how: CheckOptions) -> Words:
    """Terms that are not to be translated."""
    for source, target in _missed(row, how):
        if source == target:
            yield source, "should stay as it is"


def doubled(row: Row, how: CheckOptions) -> Words:
    """A word twice, where the source has none twice."""
    if DOUBLED.search(row.source):
        return
    for found in DOUBLED.finditer(row.target):
        if found[1].lower() not in NOT_DOUBLED.get(_language(how), ()):
            yield found[0], "a word stands twice"


def spaces(row: Row, how: CheckOptions) -> Words:
    """Spaces at the edges, two in a row, before a sign."""
    if not row.target.strip():
        return
    for edge, strip in (("begins", str.lstrip), ("ends", str.rstrip)):
        if (strip(row.target) != row.target) != (strip(row.source) != row.source):
            has = "with" if strip(row.target) != row.target else "without"
            yield _short(row.target), f"{edge} {has} a space, unlike the source"
    if "  " in row.target.strip() and "  " not in row.source.strip():
        at = row.target.index("  ", len(row.target) - len(row.target.lstrip()))
        yield row.target[max(0, at - 12) : at + 14].strip(), "two spaces stand in a row"
    if _language(how) not in SPACED_SIGNS and not SPACE_BEFORE.search(row.source):
        for found in SPACE_BEFORE.finditer(row.target):
            yield found[0], "a space stands before the sign"


def ending(row: Row, how: CheckOptions) -> Words:
    """The sign at the end: full stop, question mark, colon."""
    ours, theirs = _end_of(row.source), _end_of(row.target)
    if ours != theirs and row.source.strip() and row.target.strip():
        words = f"the source ends with “{ours}”" if ours else "the source has no sign at its end"
        yield (
            theirs or _short(row.target.split()[-1]),
            f"{words}, the translation {f'with “{theirs}”' if theirs else 'without'}",
        )


def brackets(row: Row, how: CheckOptions) -> Words:
    """Brackets that do not open or close as in the source."""
    sides = [_without_codes(text) for text in (row.source, row.target)]
    if not row.target.strip():
        return
    for opening, closing in BRACKETS.items():
        counts = [(side.count(opening), side.count(closing)) for side in sides]
        if counts[0] != counts[1]:
            said = [f"{a} {opening} and {b} {closing}" for a, b in counts]
            yield f"{opening}{closing}", f"the source has {said[0]}, the translation {said[1]}"


def quotes(row: Row, how: CheckOptions) -> Words:
    """Quotation marks, of whatever kind: as many as in the source."""
    sides = [len(DOUBLE_QUOTES.findall(_without_codes(text))) for text in (row.source, row.target)]
    if sides[0] != sides[1] and row.target.strip() and (sides[1] % 2 or not all(sides)):
        mark = DOUBLE_QUOTES.search(row.target) or DOUBLE_QUOTES.search(row.source)
        yield mark[0] if mark else '"', f"the source has {sides[0]} quotation marks, the translation {sides[1]}"


def length(row: Row, how: CheckOptions) -> Words:
    """What does not fit: too many characters, and in subtitles too long lines, too many of them, or too fast."""
    limits = row.limits
    most = (limits.characters if limits else None) or how.longest
    size = len(row.target)
    if most is not None and size > most:
        yield _short(row.target), f"has {size} characters, and {most} are allowed"
    if limits is None:
        return
    for line in limits.lines:
        if len(line) > LINE:
            yield _short(line), f"a line of {len(line)} characters, and {LINE} are allowed"
    if len(limits.lines) > LINES:
        yield _short(row.target), f"{len(limits.lines)} lines, and {LINES} are allowed"
    elif not limits.lines and limits.seconds and size > LINES * LINE + 1 and limits.seconds < size / 6:
        yield _short(row.target), f"{size} characters do not fit on {LINES} lines of {LINE}"
    if limits.seconds and size / limits.seconds > FASTEST:
        speed = size / limits.seconds
        yield _short(row.target), f"{speed:.1f} characters a second, and {FASTEST:g} can be read"


ROW_RULES: dict[str, RowRule] = {
    "empty": empty,
    "untranslated": untranslated,
    "numbers": numbers,
    "dates": dates,
    "units": units,
    "tags": tags,
    "placeholders": placeholders,
    "addresses": addresses,
    "codes": codes,
    "terms": terms,
    "kept-terms": kept,
    "doubled-words": doubled,
    "spaces": spaces,
    "end-sign": ending,
    "brackets": brackets,
    "quotes": quotes,
    "length": length,
}
OTHER_RULES = ("same-source", "same-target", "language")
"""Rules that look at several rows: see `compare_rows` and `languages.wrong_language`."""


def check(rows: Sequence[Row], how: CheckOptions, *, only: Collection[int] | None = None) -> list[Finding]:
    """All findings, in the order of the rows; with `only`, those of some rows, which are compared with all of them."""
    found = [
        Finding(row.number, rule, words, message)
        for row in rows
        if only is None or row.number in only
        for rule, look in ROW_RULES.items()
        for words, message in look(row, how)
    ]
    found += [finding for finding in compare_rows(rows, how) if only is None or finding.row in only]
    return sorted(without_ignored(found, how.ignored), key=lambda finding: finding.row)


def compare_rows(rows: Sequence[Row], how: CheckOptions) -> Iterator[Finding]:
    """The same source with different translations, and the same translation of different sources."""
    by_source: defaultdict[str, list[Row]] = defaultdict(list)
    by_target: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.source.strip() and row.target.strip():
            by_source[" ".join(row.source.split())].append(row)
            if len(WORD.findall(row.target)) >= 3:
                by_target[" ".join(row.target.split())].append(row)
    for same in by_source.values():
        for row in same:
            if other := next((one for one in same if not _same(one.target, row.target)), None):
                words = f"row {other.number} has the same source and says: {_short(other.target)}"
                yield Finding(row.number, "same-source", _short(row.target), words)
    for same in by_target.values():
        for row in same:
            if other := next((one for one in same if _bare(one.source) != _bare(row.source)), None):
                words = f"is the translation of another source, too, in row {other.number}: {_short(other.source)}"
                yield Finding(row.number, "same-target", _short(row.target), words)


def _missed(row: Row, how: CheckOptions) -> Iterable[tuple[str, str]]:
    return how.missed_terms(row.source, row.target) if how.missed_terms and row.target.strip() else ()


def _language(how: CheckOptions) -> str:
    return base_language(how.target_language) if how.target_language else ""


def _spelled(text: str, kind: re.Pattern[str], but: Sequence[re.Pattern[str]] = ()) -> Counter[str]:
    """What of one kind is spelled out in a text, and how often."""
    spans = (text[start:end] for start, end in carried_spans(text))
    return Counter(one for one in spans if kind.fullmatch(one) and not any(other.fullmatch(one) for other in but))


def _differences(source: Counter[str], target: Counter[str]) -> Words:
    for words in source - target:
        yield words, "is not in the translation"
    for words in target - source:
        yield words, "is not in the source"


def _without_codes(text: str) -> str:
    """A text without tags, placeholders, addresses and the like."""
    spans = list(carried_spans(text))
    for start, end in reversed(spans):
        if any(kind.fullmatch(text[start:end]) for kind in (TAG, PLACEHOLDER, ADDRESS, CODE)):
            text = text[:start] + " " + text[end:]
    return text


def _end_of(text: str) -> str:
    """The sign that a text ends with, behind which quotes and brackets may close."""
    bare = text.strip().translate(ENDINGS).rstrip(CLOSING)
    if bare.endswith(("...", "…")):
        return "…"
    return bare[-1:] if bare[-1:] in tuple(".!?:;,") else ""


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()) == " ".join(other.split())


def _bare(text: str) -> str:
    """A text without capitals and signs."""
    return " ".join(re.findall(r"\w+", text.lower()))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"
