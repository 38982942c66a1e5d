"""What must come out of a translation as it went in: addresses, placeholders, identifiers, numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

PROTECTED = re.compile(
    r"""
      (?:https?|ftp|file|mailto|tel|git|ssh|data)://?[^\s<>"'“”„]*[^\s<>"'“”„.,;:!?()\[\]{}]   # addresses
    | \bwww\.[^\s<>"'“”„]*[^\s<>"'“”„.,;:!?()\[\]{}]
    | [\w.+%-]+@[\w-]+(?:\.[\w-]+)+                                       # e-mail
    | \$\{[^{}\s]*\} | \{\{[^{}]*\}\} | \#\{[^{}\s]*\} | %\{[^{}\s]*\}    # ${name} {{ name }} #{name} %{name}
    | ⟦\d+⟧                                                               # what has no text, as we show it
    | \$t\([^()]*\)                                                       # $t(key)
    | \{[\w.\[\]!:,%+<>^$\#-]*\} | \{[\w.]+,\s*[\w,.:/ \#]+\}             # {name} {0:.2f} {} {when, date, long}
    | %\([\w.]+\)[-\#0+]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa]                  # %(name)s
    | %(?:\d+\$)?[-\#0+']*\d*(?:\.\d+)?(?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGcrsap@](?![\w%]) # %s %2$s %-5.2lf
    | %[A-Z_]{2,}% | %%                                                   # %NAME%
    | </?[A-Za-z][\w.:-]*(?:\s[^<>]*)?/?>                                 # tags in messages
    | &(?:[A-Za-z]+|\#\d+|\#x[\da-fA-F]+);                                # entities in messages
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
SYMBOLS = re.compile(r"[&<>*=#~^\\@+_{}©®™→←↑↓↔⇒×÷±≤≥≈≠✓✔✗★☆§°½¼¾²³]+")
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
HINT = re.compile(r"[^\w\s,.;:!?'\"’()“”„–…-]|[\d_½¼¾²³]|[a-z][A-Z]|\w\.\w|(?<![\w-])-+[a-zA-Z]|\(\)|::")
"""What is in everything that is protected: most text has nothing of it, which saves two thirds of the time."""
COMMON = re.compile(r"(?:Mc|Mac|De|La|Le|Di|Van|O)[A-Z][a-z]+|[A-Z]?[a-z]+[A-Z]s?")  # names that look like identifiers
NUMBER = re.compile(r"\d+(?:[.,:'’\u00a0\u202f ]\d{3})*(?:[.,]\d+)?")


def protected_spans(text: str) -> Iterator[tuple[int, int]]:
    """[start, end) of everything in a text that no model shall touch."""
    if not HINT.search(text):
        return
    yield from (found.span() for found in PROTECTED.finditer(text) if not COMMON.fullmatch(found[0]))


def foreign_spans(text: str) -> list[tuple[int, int]]:
    """[start, end) of words in other scripts, in a text in Latin letters."""
    return [found.span() for found in FOREIGN_WORDS.finditer(text)] if FOREIGN.search(text) and is_latin(text) else []


def is_latin(text: str) -> bool:
    """Whether a text is written in Latin letters, a few words in others left aside: a model of its language has never
    seen these."""
    foreign = len(FOREIGN.findall(text))
    return foreign == 0 or 2 * foreign < sum(map(str.isalpha, text))


def is_count(protected: str) -> bool:
    """Whether something stands for a number: a model should read one, which decides the forms of words around it."""
    return COUNT.fullmatch(protected) is not None


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
