"""Figures, tables and corpus statistics made from explanations."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from synthetic_explanation import build

from weitblick.common.characters import latex_text
from weitblick.common.errors import UserError
from weitblick.explanation.corpus import gather, write_plots
from weitblick.explanation.figure import choose, latex_table, write_figure

NASTY = [(r"100% of $x_1 & {y}^2 #3~ \end{table} <script>", "„Zeile“ -- 'a'", None)] * 3


def test_the_table_lists_sentences_in_decreasing_mass_with_the_papers_colours() -> None:
    explanation = build(heads=8)
    table = latex_table(explanation, choose(explanation, 7, 11, [1]))
    masses = [float(mass) for mass in re.findall(r"\$s\^\{j[-+]\d+\}\$ \(([\d.]+)\\%\)", table)]
    assert len(masses) > 1
    assert masses == sorted(masses, reverse=True)
    weights = [float(weight) for weight in re.findall(r"\\colorbox\{magenta!([\d.]+)\}", table)]
    assert weights
    assert min(weights) >= 1.4
    assert r"\textbf{it} shines" in table


def test_the_table_prints_any_text_as_it_is() -> None:
    explanation = build(story=NASTY, sentences=3)
    table = latex_table(explanation, choose(explanation, 1, 0))
    assert table.count(r"\end{table}") == 1
    unescaped = re.sub(r"\\[%$&#_{}]|\\[a-zA-Z]+(\{\})?", "", table.partition("\n")[2])
    assert not re.search(r"[%&#~<>]", unescaped)
    assert latex_text("a_b\x00\x1b") == r"a\_b"
    balance = re.sub(r"\\[{}]", "", table)
    assert balance.count("{") == balance.count("}")


@pytest.mark.parametrize(
    ("sentence", "word", "heads", "message"),
    [(99, 0, [], "no sentence 100"), (1, 99, [], "choose from 1 to 7: 1:It 2:was"), (1, 0, [9], "heads from 1 to 4")],
)
def test_a_place_that_does_not_exist_is_named_with_those_that_do(
    sentence: int, word: int, heads: list[int], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        choose(build(), sentence, word, heads)


def test_there_is_nothing_to_choose_without_attention() -> None:
    with pytest.raises(UserError, match="nothing to draw"):
        choose(build(kind="none"), 1, 0)
    with pytest.raises(UserError, match="document is empty"):
        choose(build(0), 0, 0)


def test_figures_are_written_and_hold_all_text_inert(tmp_path) -> None:
    explanation = build(story=NASTY, sentences=3)
    choice = choose(explanation, 1, 0, [0, 1])
    write_figure(tmp_path / "figure.png", explanation, choice)
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    write_figure(tmp_path / "figure.svg", explanation, choice)
    tree = ElementTree.parse(tmp_path / "figure.svg")
    assert not [node for node in tree.iter() if node.tag.endswith("script")]


def test_corpus_statistics_add_up(tmp_path) -> None:
    documents = [build(14), build(30, seed=2), build(4, seed=3)]
    statistics = gather(documents).statistics()
    assert statistics["documents"] == 3
    assert statistics["words"] == sum(len(s.source) for document in documents for s in document.sentences)
    assert sum(statistics["all_heads"]["mass_by_distance"].values()) == pytest.approx(1.0)
    assert "0" not in statistics["all_heads"]["mass_by_distance"]
    assert [entry["length"] for entry in statistics["by_document_length"]] == ["1-5", "11-20", "21-40"]
    assert len(statistics["heads"]) == 4
    write_plots(tmp_path / "plots.svg", statistics)
    assert (tmp_path / "plots.svg").stat().st_size > 1000


def test_online_attention_is_all_in_the_past() -> None:
    statistics = gather([build(20, direction="online")]).statistics()
    assert statistics["all_heads"]["past"] == pytest.approx(1.0)


def test_corpora_without_attention_or_of_several_models_are_refused(tmp_path) -> None:
    with pytest.raises(UserError, match="no attention to plot"):
        write_plots(tmp_path / "plots.png", gather([build(kind="none")]).statistics())
    with pytest.raises(UserError, match="do not mix models"):
        gather([build(4, heads=4), build(4, heads=2)])
