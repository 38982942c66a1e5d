"""The paper's coloured tables: context sentences in decreasing mass, words tinted by attention before rescaling."""

from __future__ import annotations

import numpy as np

from weitblick.escaping import latex_text
from weitblick.explanation.attention import AttentionRow
from weitblick.explanation.choice import Choice, place
from weitblick.explanation.schema import Explanation, Words


def latex_table(explanation: Explanation, choice: Choice, least: float = 0.014, width: str = r"\columnwidth") -> str:
    """A table in the form of the paper's Tables 5 and 6; words lighter than `least` stay white, as there."""
    sentence = explanation.sentences[choice.sentence]
    encoder = explanation.model.integration == "encoder"
    bold = {choice.word}
    lines = [
        r"% needs \usepackage{xcolor,array,textcomp} and, for these quotes, \usepackage[T1]{fontenc}",
        r"\begin{table}[t]",
        r"\centering",
        rf"{{\small\setlength{{\fboxsep}}{{1.5pt}}\begin{{tabular}}{{|p{{{width}}}|}}",
        r"\hline",
        f"Src: {_plain(sentence.source, bold if encoder else set())}" + r"\\",
        r"\hline",
        f"Without context: {_plain(sentence.target_without, set())}" + r"\\",
        f"With context: {_plain(sentence.target, set() if encoder else bold)}" + r"\\",
        r"\hline",
    ]
    for name, row in zip(choice.names, choice.rows, strict=True):
        lines += _head(explanation, choice, name, row, least)
    lines += [
        r"\end{tabular}}",
        rf"\caption{{Context of \emph{{{latex_text(choice.query.text)}}}, sentence {choice.sentence + 1} of "
        rf"{latex_text(explanation.document)}, in decreasing probability mass. The intensity of colour is the "
        r"attention to a word before rescaling.}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _head(explanation: Explanation, choice: Choice, name: str, row: AttentionRow, least: float) -> list[str]:
    attended = f"{row.attended:.3g}"
    lines = [rf"{name}: attends to {attended} of {len(explanation.sentences) - 1} sentences\\"]
    for entry in row.entries:
        words = explanation.sentences[entry.sentence].context_words
        text = _tinted(words, entry.words, least)
        sentence = place(entry.sentence, choice.sentence, "-")
        lines.append(rf"$s^{{{sentence}}}$ ({entry.mass * 100:.1f}\%): {text}\\")
    return [*lines, r"\hline"]


def _tinted(words: Words, weights: np.ndarray, least: float) -> str:
    parts = []
    for index, word in enumerate(words):
        weight = float(weights[index]) if index < len(weights) else 0.0
        text = latex_text(word.text)
        if weight >= least:
            text = rf"\colorbox{{magenta!{weight * 100:.1f}}}{{{text}}}"
        parts.append((" " if word.space and index else "") + text)
    return "".join(parts)


def _plain(words: Words, bold: set[int]) -> str:
    return "".join(
        (" " if word.space and index else "")
        + (rf"\textbf{{{latex_text(word.text)}}}" if index in bold else latex_text(word.text))
        for index, word in enumerate(words)
    )
