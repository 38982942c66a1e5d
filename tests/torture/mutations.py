"""What can happen to a file: cut, flipped, doubled, mixed with others, filled with what no parser likes."""

from __future__ import annotations

import random
from collections.abc import Sequence

NASTY: tuple[bytes, ...] = (
    b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\r", b"\r\n", b"\n\n\n", b"\t", b"\x1b[31m",
    b"\xe2\x80\xa8", b"\xc2\x85", b"\xe2\x80\xae", b"\x0b\x0c", b"<", b">", b"&", b"&#99999999999999999999;",
    b"&#0;", b"&#xD800;", b"&x;", b"<![CDATA[", b"]]>", b"<!--", b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"<?", b"</", b"/>",
    b"<d>", b" ||| ", b"|||", b"{", b"}", b"[", b"]", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b":", b",", b"-",
    b"-1", b"0", b"1e999", b"-1e999", b"NaN", b"Infinity", b"null", b"true", b"9" * 30, b"9" * 5000, b"1_0",
    b"*a", b"&a", b"!!python/object:os.system x", b"<<: *a", b"2020-01-01", b"0x10", b"%s%n", b"${x}", b"../../x",
    b"\xf0\x9f\x8f\xb4\xf3\xa0\x81\xa7\xf3\xa0\x81\xa2", b"a\xcc\x80" * 50, b" " * 3000, b"a" * 20000,
    b"-->", b"00:00:00,000 --> 99:99:99,999", b"{\\", b"msgid", b"msgstr[9]", b'xml:lang="x"',
)  # fmt: skip


def mutate(data: bytes, dice: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """One to four things that happen to a file."""
    for _ in range(dice.choice((1, 1, 1, 2, 3, 4))):
        data = dice.choice(_WAYS)(data, dice)
        if others and dice.random() < 0.05:
            other = dice.choice(others)
            data = data[: _place(data, dice)] + other[_place(other, dice) :]
    return data[:400_000]


def _place(data: bytes, dice: random.Random) -> int:
    return dice.randrange(len(data) + 1)


def _cut(data: bytes, dice: random.Random) -> bytes:
    return data[: _place(data, dice)]


def _flip(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8))):
        if changed:
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def _insert(data: bytes, dice: random.Random) -> bytes:
    at, what = _place(data, dice), dice.choice(NASTY)
    return data[:at] + what * dice.choice((1, 1, 1, 2, 3)) + data[at:]


def _replace(data: bytes, dice: random.Random) -> bytes:
    at = _place(data, dice)
    return data[:at] + dice.choice(NASTY) + data[at + dice.randrange(1, 12) :]


def _remove(data: bytes, dice: random.Random) -> bytes:
    at = _place(data, dice)
    return data[:at] + data[at + dice.randrange(1, 40) :]


def _double(data: bytes, dice: random.Random) -> bytes:
    start, end = sorted((_place(data, dice), _place(data, dice)))
    times = dice.choice((2, 3, 10, 100, 2000))
    piece = data[start:end][: max(1, 200_000 // times)]
    return data[:start] + piece * times + data[end:]


def _deepen(data: bytes, dice: random.Random) -> bytes:
    """Nested far more deeply than anybody writes."""
    opening = dice.choice((b"[", b"{", b'{"a":', b"<a>", b"<b ", b"- ", b"> ", b"(", b"*", b"_", b"- - "))
    at = _place(data, dice)
    return data[:at] + opening * dice.choice((50, 1000, 20000)) + data[at:]


def _shuffle_lines(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    dice.shuffle(lines)
    return b"".join(lines)


def _empty(data: bytes, dice: random.Random) -> bytes:
    return dice.choice((b"", b"\n", b" ", b"\n" * 1000, b"\0" * 100))


def _recode(data: bytes, dice: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(dice.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "cp037")), "replace")


_WAYS = (
    _cut, _flip, _flip, _insert, _insert, _insert, _replace, _replace, _remove, _double, _deepen, _shuffle_lines,
    _empty, _recode,
)  # fmt: skip
