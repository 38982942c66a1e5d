"""One query word and some heads, drawn: a figure for a paper, and the paper's coloured tables in LaTeX.

Both show the context sentences in decreasing mass, their words tinted by attention before rescaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weitblick.common.characters import latex_text
from weitblick.common.errors import UserError
from weitblick.common.files import atomic_path
from weitblick.common.imports import optional_package
from weitblick.explanation.attention import AttentionRow
from weitblick.explanation.influence import influence
from weitblick.explanation.schema import Explanation, Word, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure
    from matplotlib.text import Text


@dataclass(frozen=True, slots=True)
class Choice:
    """`rows` holds one row for each chosen head, or the average alone; `names` says which ("Head 3", "All heads")."""

    sentence: int
    word: int
    query: Word
    names: tuple[str, ...]
    rows: tuple[AttentionRow, ...]


def choose(
    explanation: Explanation, sentence: int, word: int, heads: Sequence[int] = (), most: int = 5, least: float = 0.0
) -> Choice:
    """A query word by its place (0-based), with the given heads (0-based) or their average.

    Of each row at most the `most` heaviest sentences stay, and none lighter than `least`.
    """
    _check_place(explanation, sentence, word)
    attention = explanation.sentences[sentence].attention
    if attention is None:
        raise UserError(
            f"sentence {sentence + 1} of {explanation.document} attended to nothing, so there is nothing to draw",
            remedy="choose another sentence, or a model with a context layer",
        )
    for head in heads:
        if not 0 <= head < attention.heads:
            raise UserError(f"no head {head + 1}", remedy=f"choose heads from 1 to {attention.heads}")
    rows = [attention.row(word, head) for head in heads] if heads else [attention.average(word)]
    names = [f"Head {head + 1}" for head in heads] if heads else ["All heads"]
    return Choice(
        sentence,
        word,
        explanation.query_words(sentence)[word],
        tuple(names),
        tuple(_heaviest(row, most, least) for row in rows),
    )


def _heaviest(row: AttentionRow, most: int, least: float) -> AttentionRow:
    kept = tuple(entry for entry in row.entries[:most] if entry.mass >= least)
    return AttentionRow(kept, row.attended, row.rest + sum(entry.mass for entry in row.entries[len(kept) :]))


def _check_place(explanation: Explanation, sentence: int, word: int) -> None:
    count = len(explanation.sentences)
    if not 0 <= sentence < count:
        raise UserError(
            f"no sentence {sentence + 1} in {explanation.document}",
            remedy=f"choose from 1 to {count}" if count else "the document is empty",
        )
    words = explanation.query_words(sentence)
    if not 0 <= word < len(words):
        side = "source" if explanation.model.integration == "encoder" else "target"
        raise UserError(
            f"no {side} word {word + 1} in sentence {sentence + 1} of {explanation.document}",
            remedy=f"choose from 1 to {len(words)}: {numbered(words)}" if words else "the sentence is empty",
        )


def numbered(words: Words) -> str:
    return " ".join(f"{index + 1}:{word.text}" for index, word in enumerate(words))


def place(other: int, current: int, minus: str = "−") -> str:
    """The paper's name of a context sentence: j-2, j+1."""
    return f"j{minus if other < current else '+'}{abs(other - current)}"


def most_influenced(explanation: Explanation, only: int | None = None) -> tuple[int, int] | None:
    """The query word behind the target word that context changed most, of the whole document or of sentence `only`
    (from 1); None if there is none."""
    for entry in influence(explanation):
        sentence = explanation.sentences[entry.sentence]
        if sentence.attention is None or only not in (None, entry.sentence + 1):
            continue
        if explanation.model.integration == "decoder":
            return entry.sentence, entry.word
        if entry.word < len(sentence.alignment) and sentence.alignment[entry.word]:
            return entry.sentence, sentence.alignment[entry.word][0][0]
    return None


# A figure for a paper: one query word, the context sentences of chosen heads, their words tinted by attention.

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
    with optional_package("plots"):
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


# The paper's coloured tables: context sentences in decreasing mass, words tinted by attention before rescaling.


LEAST_TINTED = 0.014
"""Attention to a word, in the paper's tables: one with less stays white."""


def latex_table(explanation: Explanation, choice: Choice) -> str:
    """A table in the form of the paper's Tables 5 and 6."""
    sentence = explanation.sentences[choice.sentence]
    encoder = explanation.model.integration == "encoder"
    bold = {choice.word}
    lines = [
        r"% needs \usepackage{xcolor,array,textcomp} and, for these quotes, \usepackage[T1]{fontenc}",
        r"\begin{table}[t]",
        r"\centering",
        r"{\small\setlength{\fboxsep}{1.5pt}\begin{tabular}{|p{\columnwidth}|}",
        r"\hline",
        f"Src: {_plain(sentence.source, bold if encoder else set())}" + r"\\",
        r"\hline",
        f"Without context: {_plain(sentence.target_without, set())}" + r"\\",
        f"With context: {_plain(sentence.target, set() if encoder else bold)}" + r"\\",
        r"\hline",
    ]
    for name, row in zip(choice.names, choice.rows, strict=True):
        lines += _head(explanation, choice, name, row)
    lines += [
        r"\end{tabular}}",
        rf"\caption{{Context of \emph{{{latex_text(choice.query.text)}}}, sentence {choice.sentence + 1} of "
        rf"{latex_text(explanation.document)}, in decreasing probability mass. The intensity of colour is the "
        r"attention to a word before rescaling.}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _head(explanation: Explanation, choice: Choice, name: str, row: AttentionRow) -> list[str]:
    attended = f"{row.attended:.3g}"
    lines = [rf"{name}: attends to {attended} of {len(explanation.sentences) - 1} sentences\\"]
    for entry in row.entries:
        words = explanation.sentences[entry.sentence].context_words
        text = _tinted(words, entry.words)
        sentence = place(entry.sentence, choice.sentence, "-")
        lines.append(rf"$s^{{{sentence}}}$ ({entry.mass * 100:.1f}\%): {text}\\")
    return [*lines, r"\hline"]


def _tinted(words: Words, weights: np.ndarray) -> str:
    parts = []
    for index, word in enumerate(words):
        weight = float(weights[index]) if index < len(weights) else 0.0
        text = latex_text(word.text)
        if weight >= LEAST_TINTED:
            text = rf"\colorbox{{magenta!{weight * 100:.1f}}}{{{text}}}"
        parts.append((" " if word.space and index else "") + text)
    return "".join(parts)


def _plain(words: Words, bold: set[int]) -> str:
    return "".join(
        (" " if word.space and index else "")
        + (rf"\textbf{{{latex_text(word.text)}}}" if index in bold else latex_text(word.text))
        for index, word in enumerate(words)
    )
