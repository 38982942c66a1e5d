"""Codes put where their words went: tags around the words that their words became, marks behind the word they stood at.

Codes of a block form a tree, since pairs nest. A tree stays a tree whatever an alignment says, so that what is written
is as well-formed as what was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from weitblick.files.blocks import Block, Code
from weitblick.files.flows import Stretch
from weitblick.translation.alignment import Alignment

Spans = dict[tuple[int, int], tuple[int, int]]
"""Spans of a sentence, and those of its translation that they have become."""


@dataclass
class Node:
    """A code, or a pair with what is inside it: [start, end) in the source, [first, last) in the target."""

    code: Code
    start: int
    end: int
    close: Code | None = None
    inside: list[Node] = field(default_factory=list)
    first: int = 0
    last: int = 0
    fixed: bool = False  # a word or break: where it is in the target is known
    edge: int = 0  # a mark that comes before (-1) or behind (1) everything else
    placed: bool = False  # by a person: others make room for it

    def holds_fixed(self, low: int, high: int) -> bool:
        """Whether a word or break of it, or what a person has placed in it, stands in [low, high)."""
        return any(low <= n.first < high if n.fixed or n.placed else n.holds_fixed(low, high) for n in self.inside)


def tree_of(codes: Sequence[Code]) -> list[Node]:
    """The codes of a block as a tree, in which pairs hold what is inside them."""
    top: list[Node] = []
    levels = [top]
    for code in codes:
        if code.kind == "close":
            levels.pop()
            node = levels[-1][-1]
            node.close, node.end = code, code.at
            continue
        node = Node(code, code.at, code.at + code.width)
        levels[-1].append(node)
        if code.kind == "open":
            levels.append(node.inside)
    return top


@dataclass(frozen=True)
class PlacedStretch:
    """A sentence, where its translation starts in the target's flow, how long that is, and how the two are aligned
    (both counted from their starts). `placed`: where a person has put what is around a span of the sentence."""

    stretch: Stretch
    start: int
    length: int
    alignment: Alignment | None
    placed: Spans = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Where the translation ends in the target's flow."""
        return self.start + self.length


class Mapping:
    """Places of a source flow to places of its target flow."""

    def __init__(self, source: str, stretches: Sequence[PlacedStretch], fixed: dict[int, int]) -> None:
        self.source, self.stretches = source, stretches
        self.fixed = fixed  # words and breaks: place in the source -> place in the target

    def _stretch(self, place: int) -> PlacedStretch | None:
        return next((s for s in self.stretches if s.stretch.start < place < s.stretch.end), None)

    def point(self, place: int) -> int:
        """Where a mark goes: behind the translation of the word it clings to, else before that of the next."""
        one = self._stretch(place)
        if one is None:
            return self._between(place)
        if one.alignment is None:
            return one.start + min(place - one.stretch.start, one.length)
        clings = not self.source[place - 1].isspace()
        words = one.alignment.source
        own = place - one.stretch.start
        before = [span for span in words if span[1] <= own]
        behind = [span for span in words if span[0] >= own]
        if before and (clings or not behind):
            found = one.alignment.target_span(*before[-1])
            return one.start + (one.alignment.target[found[1] - 1][1] if found else one.length)
        found = one.alignment.target_span(*behind[0]) if behind else None
        return one.start + (one.alignment.target[found[0]][0] if found else one.length)

    def _between(self, place: int) -> int:
        """A place outside sentences, or on the edge of one, moves as what is around it has moved."""
        shift = 0
        for one in self.stretches:
            if place <= one.stretch.start:
                break
            shift = one.end - one.stretch.end
        return place + shift

    def pair(self, start: int, end: int) -> tuple[int, int]:
        """Where a pair around [start, end) of the source goes in the target."""
        first, last = self._stretch(start), self._stretch(end)
        own = next((s for s in self.stretches if s.stretch.start <= start and end <= s.stretch.end), None)
        if own is not None and (first or last):
            return self._within(own, start, end)
        begin = self._between(start) if first is None else self._within(first, start, first.stretch.end)[0]
        stop = self._between(end) if last is None else self._within(last, last.stretch.start, end)[1]
        return begin, max(begin, stop)

    def is_placed(self, start: int, end: int) -> bool:
        """Whether a person has said where a pair around [start, end) of the source goes."""
        return any((start - s.stretch.start, end - s.stretch.start) in s.placed for s in self.stretches)

    def _within(self, one: PlacedStretch, start: int, end: int) -> tuple[int, int]:
        low, high = start - one.stretch.start, end - one.stretch.start
        if (low, high) in one.placed:
            first, last = one.placed[low, high]
            return one.start + first, one.start + last
        if one.alignment is None:
            return one.start + min(low, one.length), one.start + min(high, one.length)
        found = one.alignment.target_span(low, high)
        if found is None:
            place = self.point(start)
            return place, place
        return one.start + one.alignment.target[found[0]][0], one.start + one.alignment.target[found[1] - 1][1]


def place(
    nodes: list[Node],
    mapping: Mapping,
    source: tuple[int, int],
    target: tuple[int, int],
    block: tuple[int, int] | None = None,
) -> None:
    """Gives every node its place in the target, children inside their parents, in the order in which they now stand.
    A parent reaches as far as what a person has placed inside it, within the target of the whole `block`."""
    low, high = target
    block = block or target
    for node in nodes:
        if node.code.width:
            _fix(node, mapping)
        elif node.close is not None:
            whole = (node.start, node.end) == source
            node.first, node.last = target if whole else mapping.pair(node.start, node.end)
            node.placed = not whole and mapping.is_placed(node.start, node.end)
        else:
            node.edge = -1 if node.start == source[0] else 1 if node.start == source[1] else 0
            node.first = node.last = (low, mapping.point(node.start), high)[node.edge + 1]
        if not node.fixed:
            least, most = block if node.placed else target
            node.first = min(max(node.first, least), most)
            node.last = min(max(node.last, node.first), most)
    _order([node for node in nodes if node.code.ordered])
    for node in list(nodes):
        if node.close is not None:
            nodes += _outside(node, mapping, node.first, node.last) if node.placed else []
            place(node.inside, mapping, (node.start, node.end), (node.first, node.last), block)
            fixed = list(_fixed(node.inside))
            node.first = min([node.first, *(n.first for n in fixed)])
            node.last = max([node.last, *(n.last for n in fixed)])
    _separate(nodes)


def _fix(node: Node, mapping: Mapping) -> Node:
    """A word or break, where it is in the target."""
    node.first, node.fixed = mapping.fixed[node.start], True
    node.last = node.first + 1
    return node


def _outside(node: Node, mapping: Mapping, low: int, high: int) -> list[Node]:
    """The words and breaks that were inside a node and are not where somebody has placed it: they leave it."""
    words = [one for one in node.inside if one.code.width and not low <= mapping.fixed[one.start] < high]
    node.inside = [one for one in node.inside if one not in words]
    found = [_fix(one, mapping) for one in words]
    for child in node.inside:
        found += _outside(child, mapping, low, high)
    return found


def _order(nodes: Sequence[Node]) -> None:
    """Marks that never change places have the places that they have together, in the order of the source."""
    for node, at in zip(nodes, sorted(node.first for node in nodes), strict=True):
        node.first = node.last = at


def _fixed(nodes: Sequence[Node]) -> list[Node]:
    return [n for node in nodes for n in ([node] if node.fixed or node.placed else _fixed(node.inside))]


def _separate(nodes: list[Node]) -> None:
    """No two neighbours overlap: the second begins where the first ends or, if it cannot, becomes part of it."""
    nodes.sort(key=lambda node: (node.first, node.edge, not node.placed, node.start, node.last))
    kept: list[Node] = []
    for node in nodes:
        reaching = list(takewhile(lambda one: one.last > node.first, reversed(kept)))[::-1]  # noqa: B023
        if not reaching:
            kept.append(node)
        elif node.placed and not any(_stays(one, node.first) for one in reaching):
            _clip(reaching, node.first)
            kept.append(node)
        elif not (node.fixed or node.placed or node.holds_fixed(node.first, reaching[-1].last)):
            _move(node, reaching[-1].last)
            kept.append(node)
        elif home := next((one for one in reaching if _takes(one, node.first)), None):
            home.inside.append(node)
            home.first, home.last = min(home.first, node.first), max(home.last, node.last)
            _clip(list(takewhile(lambda one: one is not home, reaching)), home.first)
            _separate(home.inside)
            for one in kept[kept.index(home) + 1 :]:
                _move(one, home.last)
        else:
            for one in reaching:
                _clip([one], node.first)
            kept.append(node)
    nodes[:] = kept


def _stays(node: Node, place: int) -> bool:
    """Whether a node that reaches beyond a place cannot end there."""
    return node.placed or node.fixed or node.holds_fixed(place, node.last)


def _takes(node: Node, place: int) -> bool:
    """Whether what must stand at a place goes inside a node that reaches beyond it, because that cannot end there."""
    return node.placed or node.fixed or node.first == place or node.holds_fixed(place, node.last)


def _move(node: Node, low: int) -> None:
    """A node begins no earlier than `low`."""
    node.first = max(node.first, low)
    node.last = max(node.first, node.last)
    _raise(node.inside, low)


def _clip(nodes: Sequence[Node], high: int) -> None:
    for node in nodes:
        node.first, node.last = min(node.first, high), min(node.last, high)
        _clip(node.inside, high)


def _raise(nodes: Sequence[Node], low: int) -> None:
    for node in nodes:
        node.first, node.last = max(node.first, low), max(node.last, low)
        _raise(node.inside, low)


def written(block: Block, text: str, nodes: Sequence[Node], low: int, high: int, style: str | None = None) -> str:
    """Text [low, high) of the target flow with its codes, as the block's file writes them."""
    out: list[str] = []
    pending, position = "", low

    def flush() -> None:
        nonlocal pending
        if pending:
            out.append(block.write(pending, style))
        pending = ""

    for node in nodes:
        pending += text[position : max(position, node.first)]
        code = node.code
        if node.close is None and code.raw is None:
            pending += code.shown
        else:
            flush()
            out.append(_raw(block, code, style))
        if node.close is not None:
            inner = style if code.style is None else code.style
            out += [written(block, text, node.inside, node.first, node.last, inner), _raw(block, node.close, style)]
        position = max(position, node.last)
    pending += text[position : max(position, high)]
    flush()
    return "".join(out)


def _raw(block: Block, code: Code, style: str | None) -> str:
    return block.write(code.shown, style) if code.raw is None else code.raw
