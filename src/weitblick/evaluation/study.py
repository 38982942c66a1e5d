"""The study file: corpora, rows, seeds, metrics and suites, as typed models."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from weitblick.common.errors import UserError
from weitblick.common.recipe import DataSection, Recipe, Section, as_files
from weitblick.common.recipe_files import find_packaged, load_recipe, merge, parse_override, read_with_bases, validate
from weitblick.documents.corpora.reading import files_of_part
from weitblick.evaluation.metrics import METRICS, default_metrics

SPLITS = ("train", "dev", "test")


class DiscourseSection(Section):
    preset: str = Field("small", description="preset of weitblick data discourse")
    documents: int = Field(3000, gt=0, description="training documents")
    seed: int = Field(1, description="of the generator")


class CorpusSection(Section):
    discourse: DiscourseSection | None = Field(None, description="a corpus that the study generates itself")
    dir: str | None = Field(
        None, description="folder with {train,dev,test}.{source,target language}, or one file of both sides for each"
    )
    train: list[str] | None = Field(None, description="training corpus: SOURCE TARGET files or one file of both")
    stage1_train: list[str] | None = Field(None, description="training corpus of stage 1, if another than of stage 2")
    dev: list[str] | None = Field(None, description="development corpus")
    test: list[str] | None = Field(None, description="test corpus, with references")
    format: str | None = Field(None, description="format of the corpora; guessed from their names if not given")
    suites: dict[str, str] = Field(default_factory=dict, description="contrastive suites: a name and a file each")
    suite_items: dict[str, int] = Field(
        default_factory=dict,
        description="suites of which a random sample of so many items counts",
    )
    documents: str | None = Field(None, description="document files of an original ContraPro suite")

    _files = field_validator("train", "stage1_train", "dev", "test", mode="before")(as_files)

    @model_validator(mode="after")
    def _check(self) -> CorpusSection:
        if self.discourse is None and self.dir is None and not (self.train and self.dev and self.test):
            raise ValueError("needs discourse, or dir, or all of train, dev and test")
        for name, count in self.suite_items.items():
            if name not in self.suites or count < 1:
                raise ValueError(f"suite_items: {name} = {count} is not a number of items of one of the suites")
        return self


class RowSection(Section):
    name: str = Field(description="label of the row; encoder/decoder and offline/online come from its recipe")
    recipe: str = Field(description="recipe file, relative to the study file")
    overrides: list[str] = Field(default_factory=list, description="key=value changes to the recipe")
    continued: bool = Field(
        False, description="train the sentence model on as stage 2 does, without context: same text, updates, optimiser"
    )


class Study(Section):
    name: str = Field(description="names the folder of the study")
    output: str | None = Field(None, description="folder of the study; runs/studies/NAME if not given")
    corpora: dict[str, CorpusSection] = Field(min_length=1, description="by name")
    rows: list[RowSection] = Field(min_length=1, description="models to be compared")
    baseline: str = Field("Transformer", description="row that all others are tested against")
    baselines: dict[str, str] = Field(
        default_factory=dict,
        description="further rows that those of the same integration are tested against, and the mark of being better",
    )
    test_by: Literal["document", "sentence"] = Field(
        "document", description="what significance tests exchange between systems"
    )
    overrides: list[str] = Field(default_factory=list, description="key=value changes to every recipe")
    stage1: dict[Literal["transformer", "ssru", "rnnsearch"], str] = Field(
        default_factory=dict, description="trained models whose sentence models are stage 1, by architecture"
    )
    seeds: list[int] = Field([1], min_length=1, description="one run of every row for each")
    first: list[str] = Field(
        default_factory=list, description="rows whose further seeds come before those of other rows"
    )
    judged_on: list[Literal["dev", "test"]] = Field(
        ["test"], min_length=1, description="parts of the corpora that are translated and scored"
    )
    context_use: bool = Field(False, description="measure on dev what own, removed and random context are worth")
    metrics: list[str] = Field(["bleu", "meteor"], min_length=1, description="metrics of weitblick score")
    beam: int = Field(4, gt=0, description="of translation")
    trials: int = Field(10_000, gt=0, description="of significance tests")
    speed_rounds: int = Field(5, ge=0, description="rounds of the speed measurement; 0: parameters alone")
    threads: int | None = Field(None, gt=0, description="threads of PyTorch; all cores if not given")
    device: str = Field("auto", description="auto, cpu, cuda, ...")

    @model_validator(mode="after")
    def _check(self) -> Study:
        for metric in self.metrics:
            if metric not in METRICS:
                raise ValueError(f"unknown metric {metric!r}; one or more of {', '.join(METRICS)}")
        return self


@dataclass(frozen=True)
class Row:
    """A row with its recipe: the model's name in tables, where context enters it, and which context it sees."""

    id: str
    name: str
    recipe: Recipe
    continued: bool = False

    @property
    def sentence_level(self) -> bool:
        return self.recipe.context.kind == "none"

    @property
    def integration(self) -> str | None:
        return None if self.sentence_level else self.recipe.context.integration

    @property
    def direction(self) -> str | None:
        return None if self.sentence_level else self.recipe.context.direction


def load_study(path: str | Path, overrides: Sequence[str] = ()) -> tuple[Study, list[Row]]:
    """A study file (which may have a base) and its rows, every recipe read and checked."""
    path = find_packaged(path, "studies")
    values = read_with_bases(path)
    for override in overrides:
        merge(values, parse_override(override, Study))
    _check_parts(values, path)
    study = validate(Study, values, str(path))
    rows = [_row(study, row, path) for row in study.rows]
    _check_rows(study, rows, path)
    if "metrics" not in study.model_fields_set:
        known = default_metrics(rows[0].recipe.text.target_language)
        study.metrics = [metric for metric in study.metrics if metric in known]
    return study, rows


def _check_parts(values: dict[str, Any], path: Path) -> None:
    """Rows and corpora one by one, so that a wrong key is compared with the right ones."""
    rows, corpora = values.get("rows"), values.get("corpora")
    for number, row in enumerate(rows if isinstance(rows, list) else [], 1):
        if isinstance(row, dict):
            validate(RowSection, row, f"{path}: row {number}")
    for name, corpus in (corpora if isinstance(corpora, dict) else {}).items():
        if isinstance(corpus, dict):
            validate(CorpusSection, corpus, f"{path}: corpus {name}")


def _row(study: Study, section: RowSection, path: Path) -> Row:
    changes = [_from_study(change, path) for change in (*study.overrides, *section.overrides)]
    recipe = load_recipe(path.parent / section.recipe, changes)
    row = Row("", section.name, recipe, section.continued)
    _check_row(row, path)
    parts = [section.name, *(part for part in (row.integration, row.direction) if part)]
    return replace(row, id=slug(" ".join(parts)))


def _check_row(row: Row, path: Path) -> None:
    """Refuses a row whose recipe says one thing and whose place in the study another."""
    where, kind, stage = f"{path}: row {row.name!r}", row.recipe.context.kind, row.recipe.stage
    if row.continued and (kind != "none" or stage == "sentence"):
        found = f"context.kind = {kind}" if kind != "none" else "stage = sentence"
        raise UserError(f"continued: true, but {found}", where=where, remedy="train on with context.kind=none alone")
    if stage == "sentence" and kind != "none":
        remedy = "set context.kind=none, or stage=both"
        raise UserError(f"trains stage 1 alone, but has context.kind = {kind}", where=where, remedy=remedy)
    if stage != "sentence" and kind == "none" and not row.continued:
        remedy = "set stage=sentence for stage 1 alone, or continued: true for as many updates as stage 2 has"
        raise UserError(f"has no context, but stage = {stage}", where=where, remedy=remedy)
    if stage in ("decision", "memory"):
        raise UserError(f"stage = {stage} is no part of a study", where=where, remedy="set stage=both")


def _from_study(override: str, path: Path) -> str:
    """`base=FILE` names a file relative to the study, as every recipe does."""
    key, _, value = override.partition("=")
    return f"base={path.parent / value}" if key.strip() == "base" else override


def _check_rows(study: Study, rows: Sequence[Row], path: Path) -> None:
    ids = [row.id for row in rows]
    for row in rows:
        if ids.count(row.id) > 1:
            raise UserError(f"two rows are {row.id!r}", where=path, remedy="give one of them another name")
    if not any(row.name == study.baseline for row in rows):
        names = ", ".join(dict.fromkeys(row.name for row in rows))
        raise UserError(f"baseline = {study.baseline!r} is no row", where=path, remedy=f"name one of {names}")
    for key, wanted in (("first", study.first), ("baselines", list(study.baselines))):
        for name in wanted:
            if not any(row.name == name for row in rows):
                raise UserError(f"{key}: {name!r} is no row", where=path, remedy="name rows as they are named below")


def select_rows(
    study: Study, rows: Sequence[Row], names: Sequence[str], seeds: Sequence[int]
) -> tuple[Study, list[Row]]:
    """The study with some of its rows, by name or id, and some of its seeds. The baseline stays: rows are tested
    against it. What is chosen has the same steps as in the whole study, which finds them done."""
    known = {key: None for row in rows for key in (row.name, row.id)}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            remedy = f"did you mean {near[0]!r}?" if near else "name one as it is named in the study file"
            raise UserError(f"no row {name!r}", where="--rows", remedy=remedy)
    for seed in seeds:
        if seed not in study.seeds:
            raise UserError(f"no seed {seed}", where="--seeds", remedy=f"one of {', '.join(map(str, study.seeds))}")
    kept = [row for row in rows if not names or {row.name, row.id} & {*names, study.baseline}]
    left = {row.name for row in kept}
    changed = {
        "seeds": [seed for seed in study.seeds if not seeds or seed in seeds],
        "first": [name for name in study.first if name in left],
        "baselines": {name: mark for name, mark in study.baselines.items() if name in left},
    }
    return study.model_copy(update=changed), kept


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def data_of(corpus: CorpusSection, generated: Path, languages: tuple[str, str]) -> DataSection:
    """The files of a corpus as a recipe names them; those of a generated one are in `generated`."""
    folder = str(generated) if corpus.discourse is not None else corpus.dir
    data = DataSection(dir=folder, format=corpus.format)
    for split in SPLITS:
        given = getattr(corpus, split)
        setattr(data, split, given or files_of_part(str(folder), split, languages))
    return data


def suites_of(corpus: CorpusSection, generated: Path) -> dict[str, str]:
    own = {"discourse": str(generated / "contrast.jsonl")} if corpus.discourse is not None else {}
    return {**own, **corpus.suites}
