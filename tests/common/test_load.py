"""Recipes: inheritance, overrides, and errors that name the nearest key."""

from pathlib import Path

import pytest

from weitblick.common.errors import UserError
from weitblick.common.recipe_files import as_markdown, load_recipe, rows

RECIPES = sorted(Path(__file__).parents[2].glob("recipes/**/*.yaml"))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_base_is_overlaid_section_by_section(tmp_path):
    write(tmp_path / "base.yaml", "seed: 3\nmodel: {dimension: 64, heads: 2}\n")
    child = write(tmp_path / "child.yaml", "base: base.yaml\nmodel: {heads: 4}\n")
    recipe = load_recipe(child)
    assert (recipe.seed, recipe.model.dimension, recipe.model.heads) == (3, 64, 4)


def test_overrides_win_and_numbers_may_have_exponents(tmp_path):
    path = write(tmp_path / "r.yaml", "sentence_stage: {learning_rate: 1e-3}\n")
    assert load_recipe(path).sentence_stage.learning_rate == 1e-3
    recipe = load_recipe(path, ["sentence_stage.learning_rate=2e-4", "context.kind=word", "data.dev=[a, b]"])
    assert recipe.sentence_stage.learning_rate == 2e-4
    assert recipe.context.kind == "word"
    assert recipe.data.dev == ["a", "b"]


def test_text_stays_as_it_was_written(tmp_path):
    path = write(tmp_path / "r.yaml", "text: {target_language: no}\nmodel: {attention_biases: yes}\n")
    recipe = load_recipe(path, ["text.source_language=no", "output=2024", "data.dir=007", "data.train=a.tsv"])
    assert (recipe.text.source_language, recipe.text.target_language) == ("no", "no")
    assert (recipe.output, recipe.data.dir, recipe.data.train) == ("2024", "007", ["a.tsv"])
    assert recipe.model.attention_biases is True
    assert load_recipe(path, ["stage1=null"]).stage1 is load_recipe(path, ["stage1="]).stage1 is None


def test_words_that_begin_like_truths_are_words(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("output: trueruns\ndata: {dir: falsehood}\n")
    recipe = load_recipe(path)
    assert (recipe.output, recipe.data.dir) == ("trueruns", "falsehood")
    path.write_text("trued: 1\n")
    with pytest.raises(UserError, match="trued"):
        load_recipe(path)
    for value in ("!!bool x", "!!timestamp x", "!!int x"):
        path.write_text(f"output: {value}\n")
        with pytest.raises(UserError, match="not YAML"):
            load_recipe(path)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("context.knd=word", "did you mean 'context.kind'"),
        ("contxt.kind=word", "did you mean 'context'"),
        ("learning_rate=1", "learning_rate'"),
        ("context.kind=wrd", "context.kind = 'wrd'"),
        ("model.heads=3", "not a multiple of heads 3"),
        ("seed", "write key=value"),
    ],
)
def test_wrong_overrides_are_named(tmp_path, override, said):
    path = write(tmp_path / "r.yaml", "seed: 1\n")
    with pytest.raises(UserError) as caught:
        load_recipe(path, [override])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_circles_and_bad_yaml_are_errors(tmp_path):
    write(tmp_path / "a.yaml", "base: b.yaml\n")
    b = write(tmp_path / "b.yaml", "base: a.yaml\n")
    with pytest.raises(UserError, match="circle"):
        load_recipe(b)
    with pytest.raises(UserError, match=r"bad.yaml:2: not YAML"):
        load_recipe(write(tmp_path / "bad.yaml", "a: 1\n b: [\n"))
    with pytest.raises(UserError, match="no such file"):
        load_recipe(tmp_path / "none.yaml")


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: str(p.relative_to(p.parents[2])))
def test_every_recipe_of_ours_loads(path):
    load_recipe(path)


def test_the_reference_is_up_to_date():
    assert (Path(__file__).parents[2] / "docs" / "recipe-reference.md").read_text(encoding="utf-8") == as_markdown()
    assert all(meaning for _, _, _, meaning in rows()), "every key says what it means"
