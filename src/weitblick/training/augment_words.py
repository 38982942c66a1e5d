"""Words that translate each other, tags around them, and codes and titles that can only be copied."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from random import Random

from weitblick.text.base import SPANS
from weitblick.training.augment_looks import MEN, WOMEN, WORDS, made_up_name
from weitblick.training.augment_spans import CODE, common_spans

WORD = re.compile(r"[^\W\d_]{3,}")
MOST_WORDS = 10  # of a sentence that is counted: in long ones everything stands beside everything
FEWEST_TOGETHER = 6
LEAST_DICE = 0.45

Lexicon = dict[str, frozenset[str]]


def learn_lexicon(pairs: Iterable[tuple[str, str]]) -> Lexicon:
    """Target words of each source word, in lower case, by the Dice coefficient of their sentences."""
    ours: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for source, target in pairs:
        left, right = words_of(source), words_of(target)
        if not left or not right or max(len(left), len(right)) > MOST_WORDS:
            continue
        ours.update(left)
        theirs.update(right)
        together.update((one, other) for one in left for other in right)
    found: dict[str, set[str]] = {}
    for (one, other), count in together.items():
        if count >= FEWEST_TOGETHER and 2 * count / (ours[one] + theirs[other]) >= LEAST_DICE:
            found.setdefault(one, set()).add(other)
    return {word: frozenset(others) for word, others in found.items()}


def words_of(text: str) -> set[str]:
    return set(WORD.findall(text.lower()))


def linked_words(source: str, target: str, lexicon: Lexicon) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Places of words that translate each other, where both sides have just one candidate, in the source's order."""
    ours, theirs = list(WORD.finditer(source)), list(WORD.finditer(target))
    counts = Counter(word[0].lower() for word in ours)
    linked: list[tuple[tuple[int, int], tuple[int, int]]] = []
    taken: set[int] = set()
    for word in ours:
        others = lexicon.get(word[0].lower())
        if others is None or counts[word[0].lower()] > 1:
            continue
        places = [place for place, other in enumerate(theirs) if other[0].lower() in others]
        if len(places) == 1 and places[0] not in taken:
            taken.add(places[0])
            linked.append((word.span(), theirs[places[0]].span()))
    return linked


# Tags around words, as in bold or linked text: two symbols around a span and around what it became.

MOST_TAGGED = 3
QUOTED = (re.compile(r"[\"“]([^\"“”]+)[\"”]"), re.compile(r"[\"„»]([^\"„“”»«]+)[\"“”«]"))
BRACKETED = re.compile(r"\(([^()]+)\)")
LABEL = re.compile(r"^([^:⟦]{2,30}):(?= \S)")


def tagged(source: str, target: str, lexicon: Lexicon, random: Random) -> tuple[str, str] | None:
    """The pair with tags around one to three spans that correspond; None where none are known for sure."""
    if "⟦" in source:
        return None
    spans = [*_marked(source, target), *linked_words(source, target, lexicon)]
    random.shuffle(spans)
    chosen: list[tuple[tuple[int, int], tuple[int, int]]] = []
    wanted = random.choice((1, 1, 1, 2, MOST_TAGGED))
    for span in spans:
        if len(chosen) < wanted and all(_apart(span[side], other[side]) for other in chosen for side in (0, 1)):
            chosen.append(span)
    if not chosen:
        return None
    chosen.sort()
    for place in range(len(chosen) - 1, -1, -1):
        first, last = SPANS[2 * place], SPANS[2 * place + 1]
        (start, end), _ = chosen[place]
        source = f"{source[:start]}{first}{source[start:end]}{last}{source[end:]}"
    for place, (_, (start, end)) in sorted(enumerate(chosen), key=lambda entry: entry[1][1], reverse=True):
        first, last = SPANS[2 * place], SPANS[2 * place + 1]
        target = f"{target[:start]}{first}{target[start:end]}{last}{target[end:]}"
    return source, target


def _apart(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


def _marked(source: str, target: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """What both sides have once: words in quotation marks, in brackets, before a colon."""
    spans = []
    for ours, theirs in (QUOTED, (BRACKETED, BRACKETED), (LABEL, LABEL)):
        left, right = list(ours.finditer(source)), list(theirs.finditer(target))
        if len(left) == len(right) == 1:
            spans.append((left[0].span(1), right[0].span(1)))
    return spans


# Codes, addresses, file names that nobody has seen, so that they can only be copied.

ENDINGS, TOP_LEVEL, COMMANDS = WORDS["file_endings"], WORDS["top_level"], WORDS["commands"]
TITLED, TITLE_STARTS, TITLE_WORDS = WORDS["titled"], WORDS["title_starts"], WORDS["title_words"]


def code(random: Random) -> str:
    """A code, a name in a program, a file, an address or a version."""
    name, other = made_up_name(random).lower(), made_up_name(random).lower()
    letters = "".join(random.choice("ABCDEFGHKLMNPRSTVWXZ") for _ in range(random.choice((1, 2, 2, 3))))
    number = random.randrange(10 ** random.choice((2, 3, 4, 5)))
    return random.choice((
        f"{letters}{number}", f"{letters}-{number}", f"{letters}-{number}-{random.choice('ABCX')}", f"{name}_{other}",
        f"{name}{other.capitalize()}", f"{name.capitalize()}{other.capitalize()}()", f"{name}.{random.choice(ENDINGS)}",
        f"/{name}/{other}", f"--{name}-{other}", f"${{{name}}}", f"{{{name}}}", f"%{name}%",
        f"v{number % 20}.{number % 7}.{number % 11}", address(random), f"#{number}", f"@{name}{number % 100}",
        f"{name}.{other}@{made_up_name(random).lower()}.{random.choice(TOP_LEVEL)}",
    ))  # fmt: skip


def address(random: Random) -> str:
    name, other = made_up_name(random).lower(), made_up_name(random).lower()
    start = random.choice(("https://", "https://www.", "http://", "www."))
    return f"{start}{name}.{random.choice(TOP_LEVEL)}" + random.choice(
        ("", f"/{other}", f"/{other}?id={random.randrange(999)}")
    )


def other_codes(source: str, target: str, random: Random) -> tuple[str, str] | None:
    """The pair with another code where both sides have the same one; None where they have none."""
    spans = [s for s in common_spans(source, target) if not s.number and CODE.match(source[slice(*s.source)])]
    if not spans:
        return None
    span, new = random.choice(spans), code(random)
    return (
        source[: span.source[0]] + new + source[span.source[1] :],
        target[: span.target[0]] + new + target[span.target[1] :],
    )


def stays_english(random: Random) -> tuple[str, str]:
    """A pair in which something stays as it is: a command, a code alone, an English title in quotation marks."""
    kind = random.randrange(4)
    if kind == 0:
        line = random.choice(COMMANDS).format(
            name=made_up_name(random).lower(), file=code(random), address=address(random)
        )
        return line, line
    if kind == 1:
        name = random.choice((code(random), f"{random.choice((*MEN, *WOMEN))} {made_up_name(random)}"))
        return name, name
    title = f"{random.choice(TITLE_STARTS)} {' '.join(random.sample(TITLE_WORDS, random.choice((1, 2, 2))))}"
    english, german = random.choice(TITLED)
    year = random.randrange(1920, 2026)
    return english.format(title=title, year=year), german.format(title=title, year=year)
