"""Numbers, dates, times and units in a text, read by the conventions of its language, and written by those of another.

1,204 is 1204 in English and 1.204 in German. Each numeral has one reading by its own language and perhaps another by
the other convention, so that 1.204 is recognised as the translation of 1,204, and 1,204 in German as a mistake.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from weitblick.common.characters import base_language

Kind = Literal["number", "date", "time"]

DECIMAL_POINT = {"en", "zh", "ja", "ko", "th", "he", "hi", "ga", "mt", "ur"}
"""Languages that write 1,204.5; the others here write 1.204,5 or 1 204,5."""
SPACED_THOUSANDS = {"fr", "pl", "cs", "sk", "ru", "uk", "bg", "fi", "sv", "no", "nb", "hu", "et", "lv", "lt"}
SPACES = " \u00a0\u202f\u2009"

MONTHS = {
    "en": "january february march april may june july august september october november december",
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
}
MONTH_OF = {name: number for names in MONTHS.values() for number, name in enumerate(names.split(), 1)}
MONTH_OF |= {name[:3]: number for name, number in MONTH_OF.items() if name in MONTHS["en"].split()}
MONTH_OF |= {"jänner": 1, "sept": 9, "mär": 3, "mrz": 3, "okt": 10, "dez": 12}
_MONTH = "|".join(sorted(map(re.escape, MONTH_OF), key=len, reverse=True))

TIME = re.compile(
    r"(?<![\d.,:])(?P<hour>\d{1,2})(?:[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?)?\s?(?P<half>[ap]\.?\s?m\b\.?)"
    r"|(?<![\d.,:])(?P<hour2>\d{1,2}):(?P<minute2>[0-5]\d)(?!\d)(?::[0-5]\d)?(?:\s?(?:uhr|h)\b)?"
    r"|(?<![\d.,:])(?P<hour3>\d{1,2})(?:\.(?P<minute3>[0-5]\d))?\s?uhr\b",
    re.IGNORECASE,
)
DATE = re.compile(
    rf"\b(?P<y1>\d{{4}})-(?P<m1>\d{{2}})-(?P<d1>\d{{2}})\b"
    rf"|(?<![\d.])(?P<d2>\d{{1,2}})\.\s?(?P<m2>\d{{1,2}})\.\s?(?P<y2>\d{{4}}|\d{{2}})(?!\d)"
    rf"|(?<![\d/])(?P<a3>\d{{1,2}})/(?P<b3>\d{{1,2}})/(?P<y3>\d{{4}}|\d{{2}})(?![\d/])"
    rf"|\b(?P<m4>{_MONTH})\b\.?\s+(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s+(?P<y4>\d{{4}}))?"
    rf"|(?<!\d)(?P<d5>\d{{1,2}})(?:st|nd|rd|th|er|º)?\.?\s+(?:of\s+|de\s+)?(?P<m5>{_MONTH})\b\.?(?:,?\s+(?:de\s+)?(?P<y5>\d{{4}}))?",
    re.IGNORECASE,
)
NUMBER = re.compile(rf"\d+(?:[.,'’{SPACES}]\d{{3}}(?!\d))*(?:[.,]\d+)?")


@dataclass(frozen=True)
class Numeral:
    """Something with digits: its words and place, how it reads in its own language, and how it might read as well."""

    kind: Kind
    words: str
    start: int
    value: str
    others: frozenset[str] = frozenset()

    def agrees(self, other: Numeral) -> bool:
        """Whether both say the same, each in its own language."""
        return self.kind == other.kind and (self.value == other.value or bool(self.others & other.others))


def has_decimal_point(language: str | None) -> bool | None:
    """Whether a language writes 1,204.5; None where that is not known."""
    return None if language is None else base_language(language) in DECIMAL_POINT


def numerals(text: str, language: str | None) -> list[Numeral]:
    """The dates, times and numbers of a text, in order."""
    found = [
        Numeral("date", one[0], one.start(), days[0], frozenset(days))
        for one in DATE.finditer(text)
        if (days := _days(one, language))
    ]
    for one in TIME.finditer(text):
        if not _covered(one, found) and (times := _times(one)):
            found.append(Numeral("time", one[0], one.start(), times[0], frozenset(times)))
    for one in NUMBER.finditer(text):
        if not _covered(one, found):
            found += _numbers(one, language)
    return sorted(found, key=lambda numeral: numeral.start)


def parts(numeral: Numeral, language: str | None) -> list[Numeral]:
    """A date or time as the mere numbers in it: for where the other side writes it in a way that is not known here."""
    return [number for one in NUMBER.finditer(numeral.words) for number in _numbers(one, language, numeral.start)]


def _covered(one: re.Match[str], found: list[Numeral]) -> bool:
    return any(known.start < one.end() and one.start() < known.start + len(known.words) for known in found)


def _days(one: re.Match[str], language: str | None) -> list[str]:
    """A date as year-month-day, the likeliest reading first; nothing where it can be none."""
    group = one.groupdict()
    if group["a3"]:
        a, b, year = group["a3"], group["b3"], group["y3"]
        orders = [(b, a), (a, b)] if has_decimal_point(language) else [(a, b), (b, a)]
        wanted = [(year, month, day) for day, month in orders]
    else:
        number = next(n for n in "1245" if group[f"m{n}"])
        wanted = [(group[f"y{number}"], group[f"m{number}"], group[f"d{number}"])]
    days = []
    for year, month, day in wanted:
        month_number = int(month) if month.isdigit() else MONTH_OF[month.lower()]
        if 1 <= month_number <= 12 and 1 <= int(day) <= 31:
            days.append(f"{_year(year)}-{month_number}-{int(day)}")
    return list(dict.fromkeys(days))


def _year(year: str | None) -> str:
    if year is None or len(year) == 4:
        return year or ""
    return ("20" if int(year) < 50 else "19") + year


def _times(one: re.Match[str]) -> list[str]:
    """A time as hour and minute; without a half of the day it may be in either."""
    group = one.groupdict()
    hour = int(group["hour"] or group["hour2"] or group["hour3"])
    minute = int(group["minute"] or group["minute2"] or group["minute3"] or 0)
    if hour > 24:
        return []
    if group["half"]:
        return [f"{hour % 12 + 12 * (group['half'][0] in 'pP')}:{minute}"]
    return [f"{hour % 24}:{minute}"] + ([f"{hour % 12 + 12}:{minute}"] if hour < 12 else [])


def _numbers(one: re.Match[str], language: str | None, offset: int = 0) -> list[Numeral]:
    words, start = one[0], offset + one.start()
    readings = _readings(words)
    if not readings:  # two numbers beside each other, or a number of sections
        return [
            Numeral("number", part[0], start + part.start(), part[0].lstrip("0") or "0", frozenset({part[0]}))
            for part in re.finditer(r"\d+", words)
        ]
    point = has_decimal_point(language)
    own = readings.get(bool(point), next(iter(readings.values())))
    others = frozenset(readings.values()) if point is None else frozenset({own})
    return [Numeral("number", words, start, own, others)]


def _readings(words: str) -> dict[bool, str]:
    """The values of a number with a decimal point (True) and with a decimal comma (False), as far as it has them."""
    found = {}
    for point in (True, False):
        decimal, thousands = (".", ",") if point else (",", ".")
        groups = rf"\d{{1,3}}(?:[{thousands}'’{SPACES}]\d{{3}})+|\d+"
        if whole := re.fullmatch(rf"({groups})(?:{re.escape(decimal)}(\d+))?", words):
            digits = re.sub(r"\D", "", whole[1]).lstrip("0") or "0"
            fraction = (whole[2] or "").rstrip("0")
            found[point] = f"{digits}.{fraction}" if fraction else digits
    return found


def misread(numeral: Numeral, value: str) -> bool:
    """Whether a number has this value by the conventions of the other language, and not by its own."""
    return numeral.value != value and numeral.kind == "number" and value in _readings(numeral.words).values()


# Units

_UNITS = """
% percent prozent pourcent percento|‰|°c|°f|°|km kilometres kilometers kilometer kilometern|m metres meters meter metern
cm centimetres centimeters zentimeter zentimetern|mm millimetres millimeters millimeter millimetern|µm|nm|km²|m²|cm²|m³
km/h|mph|kg kilograms kilogram kilogramm|g grams gramm|mg|µg|t tonnes tons tonnen|l litres liters liter litern|ml|hl
v volts volt|mv|kv|a amps ampere|ma|w watts watt|kw|mw|kwh|mwh|wh|n newton newtons|j|kj
hz|khz|mhz|ghz|bar|pa|kpa|mpa|psi
€ eur euros euro|$ usd dollars dollar us-dollar|£ gbp pounds pfund|¥ yen|chf
kb|mb|gb|tb|kbit/s|mbit/s|gbit/s|ft feet|inches zoll inch|lb lbs|oz|ms|db|rpm u/min min⁻¹
"""
UNIT_OF = {
    name: unit.split()[0] for line in _UNITS.strip().split("\n") for unit in line.split("|") for name in unit.split()
}
CASED = {"nm": "Nm", "mw": "MW", "mpa": "MPa"}
"""Nm is torque and nm a length, MW is a billion mW: capitals count."""
LETTERS = {"a", "v", "w", "n", "j"}
"""Words, where A, V, W, N and J are units."""
UNIT = re.compile(r"[ \u00a0\u202f\u2009-]?([%‰€$£¥]|°[CF]?|[^\W\d_]+(?:/[^\W\d_]+)?[²³]?)")


def unit_of(text: str, numeral: Numeral) -> tuple[str, str] | None:
    """The unit of a number: one name for all its spellings, and the words; None if there is none that is known."""
    before = text[: numeral.start].rstrip(SPACES)[-1:]
    if before and before in "€$£¥":
        return before, before + numeral.words
    found = UNIT.match(text, numeral.start + len(numeral.words))
    if found is None:
        return None
    name = found[1].lower()
    if name in CASED and found[1] == CASED[name]:
        return CASED[name], numeral.words + found[0]
    unit = UNIT_OF.get(name) if found[1] not in LETTERS else None
    return None if unit is None else (unit, numeral.words + found[0])


# Cells that are nothing but a number, a date or a code, written by the conventions of another language.

AMOUNT = re.compile(
    rf"^(?P<sign>[-+−–(]?)(?P<before>[€$£¥]?)\s?(?P<number>{NUMBER.pattern})(?P<behind>\s?[%‰€£¥$]?)(?P<end>\)?)$"
)


def converted(cell: str, source: str | None, target: str | None) -> str:
    """A cell without a word as the target's language writes it; as it is where there is nothing to change or doubt."""
    text = cell.strip()
    if source is None or target is None or base_language(source) == base_language(target):
        return cell
    if DATE.fullmatch(text):
        return cell.replace(text, _converted_date(text, source, target))
    amount = AMOUNT.match(text)
    if amount is None:
        return cell
    number = converted_number(amount["number"], source, target)
    before, behind = amount["before"], amount["behind"].strip()
    if before and not has_decimal_point(target):
        before, behind = "", before
    if behind:
        space = "" if has_decimal_point(target) and behind in "%‰" else "\u00a0"
        behind = (space if before == "" and behind in "%‰€£¥$" else "") + behind
    return cell.replace(text, f"{amount['sign']}{before}{number}{behind}{amount['end']}")


def converted_number(number: str, source: str, target: str) -> str:
    """A number with the target's signs for thousands and decimals; one that is not written as in its language stays."""
    ours, theirs = has_decimal_point(source), has_decimal_point(target)
    readings = _readings(number)
    if ours is None or theirs is None or ours not in readings or (ours == theirs and not _is_spaced(source, target)):
        return number
    decimal = "." if ours else ","
    whole, _, fraction = number.rpartition(decimal) if decimal in number else (number, "", "")
    if whole.isdigit() and not fraction:
        return number  # a year, a number of a page: grouped only where it was
    sign = "," if theirs else "\u00a0" if base_language(target) in SPACED_THOUSANDS else "."
    grouped = re.sub(rf"[.,'’{SPACES}]", sign, whole)
    return grouped + (("." if theirs else ",") + fraction if fraction else "")


def _is_spaced(source: str, target: str) -> bool:
    return (base_language(source) in SPACED_THOUSANDS) != (base_language(target) in SPACED_THOUSANDS)


def _converted_date(text: str, source: str, target: str) -> str:
    """12/31/2024 as 31.12.2024 in German. What can be read in two ways (03/04/2024) is the source's."""
    slashed = re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})", text)
    dotted = re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2})", text)
    if slashed and has_decimal_point(source):
        a, b, year = slashed.groups()
        day, month = (a, b) if int(a) > 12 else (b, a)
        if int(month) > 12:
            return text
        return f"{day}.{month}.{year}" if base_language(target) in DOTTED else f"{day}/{month}/{year}"
    if dotted and base_language(target) == "en":
        day, month, year = dotted.groups()
        return f"{month}/{day}/{year}" if int(month) <= 12 else text
    return text


DOTTED = {"de", "pl", "cs", "sk", "sl", "hr", "fi", "no", "nb", "da", "ru", "uk", "bg", "tr", "ro", "et", "lv"}
"""Languages that write 31.12.2024; the others here write 31/12/2024."""
