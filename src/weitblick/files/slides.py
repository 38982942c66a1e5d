"""PowerPoint (.pptx): slides in the order in which they are shown, each with its tables, charts, SmartArt and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.files.blocks import Block
from weitblick.files.drawing import Drawing, changed_strings, chart_blocks, with_strings
from weitblick.files.markup import tokens_of
from weitblick.files.office import Package
from weitblick.files.ooxml import Parts, Texts
from weitblick.files.sheets import with_cells
from weitblick.files.translatable_file import Content

LEFT = {"ftr", "dt", "sldNum", "hdr", "sldImg"}  # footers, dates, numbers: the same on every slide, and mostly fields


def read_pptx(data: bytes, path: Path) -> Content:
    """The content of a PowerPoint file."""
    deck = _Deck(Parts(Package(data, path)))
    blocks = list(deck.blocks())
    return deck.parts.content(blocks, deck.complete, deck.notes)


class _Deck:
    """A presentation: its slides, and what must change with the texts of their charts and SmartArt."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.main = parts.main("presentation", "PowerPoint presentation", ".pptx")
        self.charts: dict[str, str | None] = {}  # by part: the part that is the chart's workbook
        self.pictures: dict[str, str] = {}  # of SmartArt: the part with its data to the one with its drawing
        self.notes: list[str] = []

    def blocks(self) -> Iterator[Block]:
        """The texts of all slides."""
        seen: set[str] = set()
        for slide in self._slides():
            if slide not in seen:
                seen.add(slide)
                yield from self._slide(slide)

    def _slides(self) -> Iterator[str]:
        """The slides in the order of the presentation, hidden ones as well."""
        targets = {one.id: one.target for one in self.parts.relations(self.main) if one.kind == "slide"}
        for token in tokens_of(self.parts.text(self.main)):
            if token.name.rpartition(":")[2] == "sldId":
                id = next((value for name, value in token.attributes.items() if name.endswith(":id")), "")
                if id in targets:
                    yield targets[id]

    def _slide(self, slide: str) -> Iterator[Block]:
        yield from self._drawing(slide)
        drawn = {one.id: one.target for one in self.parts.relations(slide) if one.kind == "diagramDrawing"}
        for one in self.parts.related(slide, "chart", "diagramData"):
            if one.target in self.charts or one.target in self.pictures:
                continue
            if one.kind == "chart":
                yield from self._chart(one.target)
            else:
                text = self.parts.text(one.target)
                self.pictures[one.target] = next((part for id, part in drawn.items() if f'"{id}"' in text), "")
                yield from Drawing(one.target, text).blocks()
        for one in self.parts.related(slide, "notesSlide"):
            yield from self._drawing(one.target)

    def _drawing(self, part: str) -> Iterator[Block]:
        return Drawing(part, self.parts.text(part), LEFT).blocks()

    def _chart(self, chart: str) -> Iterator[Block]:
        workbook = next((one.target for one in self.parts.relations(chart) if one.kind == "package"), None)
        self.charts[chart] = workbook
        if workbook is not None:
            try:
                with_cells(self.parts.package.read(workbook), self.parts.package.path, {})
            except (UserError, RecursionError):
                self.charts[chart] = None
                self.notes.append(f"{workbook} cannot be read: it keeps the texts of its chart in the source language")
        yield from chart_blocks(chart, self.parts.text(chart), only_own=False)
        for one in self.parts.related(chart, "chartUserShapes"):
            yield from Drawing(one.target, self.parts.text(one.target)).blocks()

    def complete(self, new: Texts) -> tuple[Texts, Mapping[str, bytes]]:
        """All parts that change: also copies of strings in charts, their workbooks, and drawings of SmartArt."""
        texts, data = dict(new), dict[str, bytes]()
        for chart, workbook in self.charts.items():
            old = self.parts.text(chart)
            strings = changed_strings(old, new[chart]) if chart in new else {}
            if strings:
                texts[chart] = with_strings(old, new[chart], strings)
            if strings and workbook is not None:
                raw = data.get(workbook) or self.parts.package.read(workbook)
                data[workbook] = with_cells(raw, self.parts.package.path, strings)
        for source, picture in self.pictures.items():
            if picture and source in new:
                before, after = Drawing(source, self.parts.text(source)), Drawing(source, new[source])
                both = zip(before.paragraphs(), after.paragraphs(), strict=True)
                changed = {before.plain_text(old): after.plain_text(now) for old, now in both}
                texts[picture] = Drawing(picture, self.parts.text(picture)).with_texts(changed)
        return texts, data
