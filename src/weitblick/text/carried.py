"""What in a text is not language and is carried through a translation unchanged.

`carried_spans` finds what is known by its form, whatever the model: addresses, placeholders, code, times, signs.
`unreadable_spans` finds symbols of any kind (emoji, mathematics, sub- and superscripts) and the words that a model's
vocabulary cannot spell. Files, the workbench, the three APIs and the command line all ask here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from weitblick.text.base import NUMBERS, SPANS, TextPipeline

CARRIED = re.compile(
    r"""
      (?:https?|ftp|file|mailto|tel|git|ssh|data)://?[^\s<>"'“”„]*[^\s<>"'“”„.,;:!?()\[\]{}]   # addresses
    | \bwww\.[^\s<>"'“”„]*[^\s<>"'“”„.,;:!?()\[\]{}]
    | [\w.+%-]+@[\w-]+(?:\.[\w-]+)+                                       # e-mail
    | \$\{[^{}\s]*\} | \{\{[^{}]*\}\} | \#\{[^{}\s]*\} | %\{[^{}\s]*\}    # ${name} {{ name }} #{name} %{name}
    | ⟦\#?\d+⟧                                                            # what has no text, as we show it
    | \$t\([^()]*\)                                                       # $t(key)
    | \{[\w.\[\]!:,%+<>^$\#-]*\} | \{[\w.]+,\s*[\w,.:/ \#]+\}             # {name} {0:.2f} {} {when, date, long}
    | %\([\w.]+\)[-\#0+]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa]                  # %(name)s
    | %(?:\d+\$)?[-\#0+']*\d*(?:\.\d+)?(?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGcrsap@](?![\w%]) # %s %2$s %-5.2lf
    | %[A-Z_]{2,}% | %%                                                   # %NAME%
    | </?[A-Za-z][\w.:-]*(?:\s[^<>]*)?/?>                                 # tags in messages
    | &(?:[A-Za-z]+|\#\d+|\#x[\da-fA-F]+);                                # entities in messages
    | `[^`\n]+`                                                           # code between back-quotes
    | \\[ntr"\\]                                                          # escapes spelled out
    | \b[\w-]+(?:\.[\w-]+)*\.(?:py|js|ts|css|html?|xml|json|ya?ml|toml|txt|md|rst|csv|tsv|pdf|docx?|xlsx?|odt|png|jpe?g
        |gif|svg|mp[34]|zip|gz|exe|dll|so|sh|conf|cfg|ini|log|c|h|cpp|java|rb|go|rs|com|org|net|eu|de)\b  # files
    | (?<![\w/])(?:~|\.{1,2})?(?:/[\w.+-]+){2,}/? | \b[A-Za-z]:\\[\w\\.+-]*[\w\\]     # paths
    | (?<![\w-])--[a-zA-Z]\w*(?:-\w+)*(?:=\S+)? | (?<![\w-])-[a-z](?![\w-])          # --options
    | \b\w+(?:::\w+|->\w+)+(?:\(\))? | \b\w+\(\)                           # a::b, a->b, f()
    | \b\w+_\w+\b | (?<!\w)_+(?![A-Z][a-z])\w+                             # snake_case
    | \b[a-z]+[A-Z]\w*\b | \b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b                # camelCase, CamelCase
    | \b(?!\d+(?:st|nd|rd|th|s|am|pm|k|m|km|kg|g|cm|mm|l|h)\b)                           # A5-0123/2003
        (?=\w*[A-Za-z])(?=\w*\d)\w+(?:[-/.]\w*\d\w*)*\b
    | \b\w+(?:[&@+\#]+\w+|\+\+|\#)(?!\w) | (?<!\w)[@\#]\w+                 # R&D, C++, #topic
    | \b\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?\b | \b\d{1,2}:\d{2}(?::\d{2})?\b                # dates, times
    | \+\d[\d ()/-]{5,}\d                                                                # telephones
    | [$€£¥]\s?\d(?:[\d.,]*\d)? | \d(?:[\d.,]*\d)?\s?(?:[€£¥$]|°[CF]?|[kdcmµ]?m[²³]) | §+\s?\d+\w*   # amounts, articles
    | \b[A-Za-z]\ ?(?:[<>=!]=?|[≤≥≈≠])\ ?\w{1,6}\b                                       # E = mc2, a < b
    | '[{}|\#]+'                                                                         # quoted in ICU messages
    | \d+(?:\.\d+)?(?:\s*[*+=×÷<>≤≥]\s*\d+(?:\.\d+)?(?:\s?[kdcmµ]?m[²³])?)+              # 5 * 3 = 15
    | \bv?\d+(?:\.\d+){2,}\b                                                             # versions
    | [\U000f0000-\U0010ffff]+                                                           # of private use
    | (?!(?<=[a-z]\ )&\ [a-z])[&<>*=\#~^\\@+_{}©®™→←↑↓↔⇒×÷±≤≥≈≠✓✔✗★☆§°½¼¾²³]+         # what is no language
    """,
    re.VERBOSE,
)
HINT = re.compile(r"[^\w\s,.;:!?'\"’()“”„–…-]|[\d_½¼¾²³]|[a-z][A-Z]|\w\.\w|(?<![\w-])-+[a-zA-Z]|\(\)|::")
"""Something of it is in everything that `CARRIED` finds: most text has none, which saves two thirds of the time."""
NAMES = re.compile(r"(?:Mc|Mac|De|La|Le|Di|Van|O)[A-Z][a-z]+|[A-Z]?[a-z]+[A-Z]s?")
"""Names of people and plurals (McDonald, CDs), which look like identifiers and are not."""
SIGNS = re.compile(r"[&<>*=#~^\\@+_{}©®™→←↑↓↔⇒×÷±≤≥≈≠✓✔✗★☆§°½¼¾²³]+")
"""Signs that are carried wherever they stand."""

_PICTURES = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f¬¶¦¤¹"  # control characters, signs
    "\u20a0-\u20ab\u20ad-\u20cf\u2100-\u2bff"  # currencies but €, letter-like, arrows, mathematics, shapes, dingbats
    "\u3030\u303d\u3297\u3299\ue000-\uf8ff\ufff9-\uffff"
    "\U0001d000-\U0001fbff\U000e0000-\U000e0fff"  # mathematical letters, emoji, tags of flags
)
_JOINERS = "\u200d\ufe00-\ufe0f\u20d0-\u20ff\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
_SCRIPTS = "\u2070\u2071\u2074-\u209c"  # superscripts and subscripts
SYMBOLS = re.compile(
    rf"""(?:[{_PICTURES}]|[0-9\#*]\ufe0f?\u20e3)[{_JOINERS}{_PICTURES}]*   # emoji with what modifies and joins them
    | (?<!\w)[A-Za-z0-9()]*[\u2080-\u209c][\w()⁺⁻{_SCRIPTS}]*              # H₂O, C₆H₁₂O₆
    | (?<!\w)\w{{1,3}}[{_SCRIPTS}]+(?!\w)                                  # x⁵, 10⁻⁶
    | [{_SCRIPTS}]+""",
    re.VERBOSE,
)
PRIVATE = re.compile("[\U000f0000-\U0010ffff]+")
CARRIED_WORD = "\U000f0000"
"""Holds the place of a carried span in text that code works on."""
WORD_OR_SIGN = re.compile(r"\w[\w\u0300-\u036f]*|[^\w\s]")
INVISIBLE = "\xad\u200b\u200c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\ufeff"
"""Characters that only steer how text is laid out: left out of what a model reads, and not carried."""
FAMILIAR = str.maketrans("—“”‟«»[]\u00a0\n", '–"""""()  ')
"""Signs that models have hardly seen, and those that they have seen in their place."""
SIMILAR = {
    **dict.fromkeys("‘’‚‛′´", "'"),
    **dict.fromkeys("„″", '"'),
    **dict.fromkeys("‐‑‒", "-"),
    **dict.fromkeys("–―", "-"),
    **dict.fromkeys("\u2002\u2003\u2007\u2008\u2009\u200a\u202f\u205f", " "),
    "…": "...",
    "ﬁ": "fi",
    "ﬂ": "fl",
    "ﬀ": "ff",
    "ﬃ": "ffi",
    "ﬄ": "ffl",
}
"""What a model reads for signs that are not in its vocabulary but have a plain twin."""

COUNT = re.compile(
    r"""\# | %(?:\d+\$)?[-+0\s]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?[diuf] | %\(\w+\)[-+0]*\d*(?:\.\d+)?[dif]
    | \{\w*:[\d,.+]*[dfn]\} | [$%]?\{{1,2}\s*(?:n|num|number|count|total|\w*[cC]ount|num_\w+|n_\w+)\s*\}{1,2}
    | [$€£¥]\s?\d.* | \d.*[€£¥$]""",
    re.VERBOSE,
)
FOREIGN = re.compile(
    r"[\u0370-\u1dff\u1f00-\u1fff\u2c00-\u2c5f\u2c80-\u2dff\u3040-\ud7ff\uf900-\ufaff\ufb1d-\ufdcf\ufe70-\ufefc]"
)
"""A letter of another script than Latin."""
FOREIGN_WORDS = re.compile(rf"{FOREIGN.pattern}+(?:[ \u3000-\u303f]+{FOREIGN.pattern}+)*")
NUMBER = re.compile(r"\d+(?:[.,:'’\u00a0\u202f ]\d{3})*(?:[.,]\d+)?")
MOST_WORDS = 100_000  # of which an alphabet remembers whether it can spell them

Span = tuple[int, int]


def carried_spans(text: str) -> Iterator[Span]:
    """[start, end) of everything in a text that is carried because of its form."""
    if not HINT.search(text):
        return
    yield from (found.span() for found in CARRIED.finditer(text) if not NAMES.fullmatch(found[0]))


def foreign_spans(text: str) -> list[Span]:
    """[start, end) of words in other scripts, in a text in Latin letters; letters inside a symbol (xπ⁴) are part of
    that."""
    if not FOREIGN.search(text) or not is_latin(text):
        return []
    symbols = [found.span() for found in SYMBOLS.finditer(text)]
    spans, position = [], 0
    while found := FOREIGN_WORDS.search(text, position):
        inside = next((end for start, end in symbols if start <= found.start() < end), None)
        position = found.end() if inside is None else inside
        if inside is None:
            spans.append(found.span())
    return spans


def is_latin(text: str) -> bool:
    """Whether a text is written in Latin letters, apart from a few words."""
    foreign = len(FOREIGN.findall(text))
    return foreign == 0 or 2 * foreign < sum(map(str.isalpha, text))


class Alphabet:
    """What a model's vocabulary can spell."""

    def __init__(self, pipeline: TextPipeline) -> None:
        self._pipeline = pipeline
        self._spelled: dict[str, bool] = {}
        vocabularies = (pipeline.source_vocabulary, pipeline.target_vocabulary)
        self.has_symbols = all(name in vocabulary for vocabulary in vocabularies for name in (*SPANS, *NUMBERS))
        """Whether the model has learned to copy symbols that stand for carried spans."""
        similar = {sign: plain for sign, plain in SIMILAR.items() if not self.spells(sign) and self.spells(plain)}
        self.familiar: dict[int, str | int] = {
            **FAMILIAR,
            **{ord(sign): plain for sign, plain in similar.items()},
            **dict.fromkeys(map(ord, INVISIBLE), ""),
        }
        """What the model reads for single characters, as `str.translate` wants it."""

    def spells(self, word: str) -> bool:
        """Whether a word (or a sign) is made of pieces of the vocabulary, none of them unknown or a bare byte.

        ASCII always is: a vocabulary without it has no use for names of carried spans either.
        """
        if word.isascii():
            return True
        known = self._spelled.get(word)
        if known is None:
            if len(self._spelled) >= MOST_WORDS:
                self._spelled.clear()
            known = self._spelled[word] = not self._pipeline.is_spelled_out(self._pipeline.encode([word], "source")[0])
        return known


def unreadable_spans(text: str, alphabet: Alphabet | None = None) -> list[Span]:
    """[start, end) of symbols and, if a model's alphabet is given, of the words that it cannot spell."""
    if text.isascii() and not any(map(_is_control, text)):
        return []
    spans = [found.span() for found in SYMBOLS.finditer(text)]
    if alphabet is None:
        return spans
    taken = 0
    for found in WORD_OR_SIGN.finditer(text):
        if found[0].isascii():
            continue
        while taken < len(spans) and spans[taken][1] <= found.start():
            taken += 1
        overlaps = taken < len(spans) and spans[taken][0] < found.end()
        if not overlaps and not PRIVATE.match(found[0]) and not alphabet.spells(found[0].translate(alphabet.familiar)):
            spans.insert(taken, found.span())
            taken += 1
    return spans


def _is_control(letter: str) -> bool:
    return (letter < " " and letter not in "\t\n\v\f\r\x1c\x1d\x1e\x1f") or letter == "\x7f"


def sentence_spans(text: str, alphabet: Alphabet | None = None) -> list[Span]:
    """[start, end) of everything that is carried in a sentence that belongs to no file, in order."""
    return _apart([*carried_spans(text), *foreign_spans(text), *unreadable_spans(text, alphabet)])


def corpus_spans(text: str, alphabet: Alphabet) -> list[Span]:
    """[start, end) of what is carried in a line of a corpus: only what the model could not read at all."""
    private = [found.span() for found in PRIVATE.finditer(text)]
    return _apart([*unreadable_spans(text, alphabet), *private])


def _apart(spans: list[Span]) -> list[Span]:
    """Spans in order; of two that overlap the one that begins first, the longer one where both do."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def is_count(carried: str) -> bool:
    """Whether something stands for a number: a model should read one, which decides the forms of words around it."""
    return COUNT.fullmatch(carried) is not None


def digits(number: str) -> str:
    """1,234.50 and 1.234,50 are the same number."""
    return "".join(filter(str.isdigit, number))


def lost_numbers(source: str, target: str) -> list[str]:
    """The numbers of a source that its translation does not have, in whatever notation. One digit may be a word."""
    there = Counter(digits(found[0]) for found in NUMBER.finditer(target))
    lost = []
    for found in NUMBER.finditer(source):
        value = digits(found[0])
        if there[value]:
            there[value] -= 1
        elif len(value) > 1 and value not in digits(target):
            lost.append(found[0])
    return lost
