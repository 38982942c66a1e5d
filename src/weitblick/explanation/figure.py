"""A figure for a paper: one query word, the context sentences of chosen heads, their words tinted by attention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weitblick.explanation.choice import Choice, place
from weitblick.explanation.schema import Explanation, Words
from weitblick.extras import extra
from weitblick.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure
    from matplotlib.text import Text

WIDTH = 6.3  # inches: the text width of an A4 article
LINE = 0.23
MARGIN = 0.15
DOTS = 200
INDENT = 0.95  # room for the name and mass of a sentence
SPACE = 0.04
COLOUR = "#1b5a9c"
LEAST = 0.014  # lighter words stay white, as in the paper
FULL_TINT = 0.35  # the weight from which a word has the darkest tint
UNDERLINED = 0.05  # from here on words are underlined too, for readers and printers without colour


def write_figure(path: str | Path, explanation: Explanation, choice: Choice, kind: str | None = None) -> None:
    """PNG, SVG or PDF, by `kind` or by the file's name."""
    figure = draw(explanation, choice)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=kind or Path(path).suffix.lstrip(".") or "png", dpi=DOTS)


def draw(explanation: Explanation, choice: Choice) -> Figure:
    """A figure as high as its text. It is laid out twice: once to count the lines, then for real."""
    with extra("plots"):
        from matplotlib import rc_context

    settings: dict[Any, Any] = {
        "font.family": "serif",
        "font.size": 9,
        "svg.hashsalt": "weitblick",
        "text.parse_math": False,
    }
    with rc_context(settings):
        height = _Drawing(4.0).fill(explanation, choice)
        drawing = _Drawing(height)
        drawing.fill(explanation, choice)
    return drawing.figure


class _Drawing:
    """Text set word by word, in inches from the top left corner."""

    def __init__(self, height: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(WIDTH, height), dpi=DOTS)  # measured as it is printed: hinting depends on it
        canvas = FigureCanvasAgg(self.figure)
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, WIDTH)
        self.axes.set_ylim(height, 0)
        self.axes.axis("off")
        self.renderer: RendererBase = canvas.get_renderer()
        self.down = MARGIN + LINE

    def fill(self, explanation: Explanation, choice: Choice) -> float:
        """Draws everything; the height it took."""
        sentence = explanation.sentences[choice.sentence]
        encoder = explanation.model.integration == "encoder"
        marked = np.zeros(len(explanation.query_words(choice.sentence)))
        marked[choice.word] = -1.0
        self._sentence("source", sentence.source, marked if encoder else None)
        self._sentence("without", sentence.target_without, None)
        self._sentence("with", sentence.target, None if encoder else marked)
        for name, row in zip(choice.names, choice.rows, strict=True):
            self.down += LINE * 0.35
            self._rule()
            title = f"{name}: {row.attended:.3g} of {len(explanation.sentences) - 1} sentences attended"
            self._put(title, MARGIN, weight="bold")
            self.down += LINE * 1.25
            for entry in row.entries:
                words = explanation.sentences[entry.sentence].context_words
                label = f"{place(entry.sentence, choice.sentence)}   {entry.mass * 100:.0f}%"
                self._sentence(label, words, entry.words)
        return self.down - LINE * 0.6 + MARGIN

    def _rule(self) -> None:
        self.axes.plot([MARGIN, WIDTH - MARGIN], [self.down - LINE] * 2, color="#999999", linewidth=0.5)
        self.down += LINE * 0.35

    def _put(self, text: str, x: float, **style: object) -> Text:
        return self.axes.text(x, self.down, text, va="baseline", parse_math=False, **style)  # type: ignore[arg-type]

    def _sentence(self, label: str, words: Words, weights: np.ndarray | None) -> None:
        """A labelled sentence, wrapped. A negative weight is the query word itself, set in bold."""
        self._put(label, MARGIN, color="#555555", fontsize=8)
        x = MARGIN + INDENT
        for group in _unbroken(words):
            shares = [float(weights[i]) if weights is not None and i < len(weights) else 0.0 for i in group]
            bold = ["bold" if share < 0 else "normal" for share in shares]
            texts = [self._put(words[i].text, 0, fontweight=face) for i, face in zip(group, bold, strict=True)]
            wide = [text.get_window_extent(self.renderer).width / DOTS for text in texts]
            if x + SPACE + sum(wide) > WIDTH - MARGIN and x > MARGIN + INDENT:
                self.down += LINE
                x = MARGIN + INDENT
            x += SPACE if x > MARGIN + INDENT else 0.0
            for text, width, share in zip(texts, wide, shares, strict=True):
                text.set_position((x, self.down))
                if share > LEAST:
                    self._tint(x, width, share)
                x += width
        self.down += LINE * 1.1

    def _tint(self, x: float, wide: float, weight: float) -> None:
        from matplotlib.patches import Rectangle

        share = min(1.0, weight / FULL_TINT)
        box = Rectangle((x, self.down - 0.135), wide, 0.18, color=COLOUR, alpha=0.6 * share, linewidth=0)
        line = Rectangle((x, self.down + 0.045), wide, 0.025 * share, color="#0d2f55", linewidth=0)
        self.axes.add_patch(box)
        if weight >= UNDERLINED:
            self.axes.add_patch(line)


def _unbroken(words: Words) -> list[list[int]]:
    """Indices of words that stay together on a line: a word and what is glued to it."""
    groups: list[list[int]] = []
    for index, word in enumerate(words):
        if word.space or not groups:
            groups.append([index])
        else:
            groups[-1].append(index)
    return groups
