"""One flow of text with the translations of its sentences, written block by block."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from weitblick.files.blocks import BREAK, Block, Code, cut
from weitblick.files.flows import Flow, Stretch
from weitblick.files.masking import Mask, Reading, is_word, number_words
from weitblick.files.placement import Mapping, Node, PlacedStretch, Spans, place, tree_of, written
from weitblick.translation.alignment import Alignment


@dataclass(frozen=True)
class FlowSentence:
    """A sentence of the document: the number of its flow, where it stands there, and its mask."""

    flow: int
    stretch: Stretch
    mask: Mask

    @property
    def source(self) -> str:
        """As inner text."""
        return self.mask.source


def sentences_of(number: int, flow: Flow, reading: Reading) -> list[FlowSentence]:
    """The sentences of the flow of this number."""
    units = []
    for stretch in flow.stretches:
        shown = [code.shown for code in flow.words_in(stretch)]
        source = number_words(flow.text[stretch.start : stretch.end])
        units.append(FlowSentence(number, stretch, Mask.of(source, shown, reading)))
    return units


class TranslatedFlow:
    """The target's text of a flow, and for each word and break of the source where it is in the target."""

    def __init__(
        self,
        flow: Flow,
        rows: Sequence[tuple[FlowSentence, str | None, Alignment | None]],
        confirmed: Sequence[bool] | None = None,
        placed: Sequence[Spans] | None = None,
    ) -> None:
        """`rows`: every sentence of the flow, its target as inner text (None: it stays as it is), the alignment of
        the two. `confirmed`: whether a human has confirmed each; then no word of it is written twice, and no sign of
        the source is put into it. `placed`: where somebody has put the formatting of each, as spans of inner text."""
        self.flow = flow
        self.text, position = "", 0
        self._fixed: dict[int, int] = {}
        self._left_out: set[int] = set()
        self._signs_left_out: set[int] = set()
        stretches: list[PlacedStretch] = []
        stand, by_hand = confirmed or [False] * len(rows), placed or [{}] * len(rows)
        for (unit, inside, alignment), stands, spans in zip(rows, stand, by_hand, strict=True):
            self._keep(position, unit.stretch.start)
            target = unit.source if inside is None else self._cut(unit, inside, alignment, stands)
            if stands and inside is not None:
                self._signs_left_out |= {code.at for code in flow.signs_in(unit.stretch)}
            if stretches and position == unit.stretch.start and self.text[-1:].isascii() and target[:1].isascii():
                self.text += " "  # no space between sentences in the source's script, but in the target's
            stretches.append(PlacedStretch(unit.stretch, len(self.text), len(target), alignment, spans))
            self._add(unit, target)
            position = unit.stretch.end
        self._keep(position, len(flow.text))
        self._mapping = Mapping(flow.text, stretches, self._fixed)

    def _keep(self, start: int, end: int) -> None:
        """Text between sentences stays, and with it the words and breaks in it."""
        for at in range(start, end):
            self._fixed[at] = len(self.text) + at - start
        self.text += self.flow.text[start:end]

    def _add(self, unit: FlowSentence, target: str) -> None:
        breaks = iter([at for at, letter in enumerate(target) if letter == BREAK])
        for at, letter in enumerate(unit.source if unit.mask.shown or BREAK in unit.source else ""):
            if letter == BREAK:
                self._fixed[unit.stretch.start + at] = len(self.text) + next(breaks)
            elif is_word(letter) and letter in target:
                self._fixed[unit.stretch.start + at] = len(self.text) + target.index(letter)
            elif is_word(letter):  # left out by whoever confirmed the translation
                self._left_out.add(unit.stretch.start + at)
        self.text += target

    def _cut(self, unit: FlowSentence, inside: str, alignment: Alignment | None, stands: bool) -> str:
        """The target with a break for each break of the source, never less. What is said in too few words is seen once
        more, rather than nothing, unless a human has confirmed it as it `stands`."""
        breaks = [at for at, letter in enumerate(unit.source) if letter == BREAK]
        if not breaks:
            return inside
        wrapped = self.flow.blocks[0].wrapped
        places = cut(inside, None if wrapped else alignment, breaks, self._shares(unit, breaks))
        edges = [-1, *(at for at in places if at < len(inside)), len(inside)]
        segments = [inside[first + 1 : last] for first, last in pairwise(edges)]
        while len(segments) <= len(breaks):
            segments.append("" if stands else unit.mask.show(segments[-1]))
        return BREAK.join(segments)

    def _shares(self, unit: FlowSentence, breaks: Sequence[int]) -> list[float]:
        """How much of a sentence each segment should have: as much as in the source and, of cues, as can be read."""
        edges = [0, *breaks, len(unit.source)]
        lengths = [float(last - first) for first, last in pairwise(edges)]
        owners = [bisect_right(self.flow.starts, unit.stretch.start + at) - 1 for at in (0, *(b + 1 for b in breaks))]
        seconds = [self.flow.blocks[owner].seconds for owner in owners]
        if len(set(owners)) < len(owners) or not all(seconds):
            return [length / max(1.0, sum(lengths)) for length in lengths]
        durations = [second or 0.0 for second in seconds]
        return [
            (length / max(1.0, sum(lengths)) + duration / sum(durations)) / 2
            for length, duration in zip(lengths, durations, strict=True)
        ]

    def blocks(self) -> list[tuple[Block, str, str]]:
        """Each block, what is written for it, and its text as people read it."""
        borders = [self._fixed[start - 1] for start in self.flow.starts[1:]]
        ranges = list(zip([0, *(border + 1 for border in borders)], [*borders, len(self.text)], strict=True))
        nodes: list[list[Node]] = [[] for _ in ranges]
        for number, (block, start) in enumerate(zip(self.flow.blocks, self.flow.starts, strict=True)):
            codes = [replace(code, at=code.at + start) for code in block.codes]
            for node in tree_of([code for code in codes if not self._is_left_out(code)]):
                self._house(node, number, ranges, nodes)
        return [self._block(number, range_, nodes[number]) for number, range_ in enumerate(ranges)]

    def _is_left_out(self, code: Code) -> bool:
        """Whether whoever confirmed a translation did not type this word or sign of its source."""
        return code.at in (self._left_out if code.kind == "word" else self._signs_left_out if code.is_sign else ())

    def _house(self, node: Node, own: int, ranges: Sequence[tuple[int, int]], nodes: list[list[Node]]) -> None:
        """A code goes to the block that its words went to, which is its own as a rule."""
        home = own
        if len(ranges) > 1:
            block, start = self.flow.blocks[own], self.flow.starts[own]
            if node.code.width:
                home = _block_of(self._fixed[node.start], ranges)
            elif node.close is not None and (node.start, node.end) != (start, start + len(block.text)):
                home = _most_of(self._mapping.pair(node.start, node.end), ranges, own)
            for stray in [n for n in node.inside if n.code.width and _block_of(self._fixed[n.start], ranges) != home]:
                node.inside.remove(stray)
                self._house(stray, own, ranges, nodes)
        nodes[home].append(node)

    def _block(self, number: int, target: tuple[int, int], nodes: list[Node]) -> tuple[Block, str, str]:
        block, start, text, (low, high) = self.flow.blocks[number], self.flow.starts[number], self.text, target
        if block.fit is not None:
            text = text[:low] + block.fit(text[low:high]) + text[high:]
        place(nodes, self._mapping, (start, start + len(block.text)), target)
        raw = written(block, text, nodes, low, high)
        return block, block.finish(raw) if block.finish else raw, text[low:high]


def _block_of(at: int, ranges: Sequence[tuple[int, int]]) -> int:
    return bisect_right([low for low, _ in ranges], at) - 1


def _most_of(span: tuple[int, int], ranges: Sequence[tuple[int, int]], own: int) -> int:
    """The block that most of a span lies in; its own if there is a part of it."""
    overlaps = [min(high, span[1]) - max(low, span[0]) for low, high in ranges]
    return own if overlaps[own] > 0 else max(range(len(ranges)), key=overlaps.__getitem__)
