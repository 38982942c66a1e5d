"""The study file: corpora, rows, seeds, metrics and suites, as typed models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from weitblick.config.load import find_packaged, load_recipe, merge, parse_override, read_with_bases, validate
from weitblick.config.recipe import DataSection, Recipe, Section, as_files
from weitblick.documents.corpora.folders import files_of_part
from weitblick.errors import UserError
from weitblick.metrics.metrics import METRICS, default_metrics

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
    dev: list[str] | None = Field(None, description="development corpus")
    test: list[str] | None = Field(None, description="test corpus, with references")
    format: str | None = Field(None, description="format of the corpora; guessed from their names if not given")
    suites: dict[str, str] = Field(default_factory=dict, description="contrastive suites: a name and a file each")
    documents: str | None = Field(None, description="document files of an original ContraPro suite")

    _files = field_validator("train", "dev", "test", mode="before")(as_files)

    @model_validator(mode="after")
    def _check(self) -> CorpusSection:
        if self.discourse is None and self.dir is None and not (self.train and self.dev and self.test):
            raise ValueError("needs discourse, or dir, or all of train, dev and test")
        return self


class RowSection(Section):
    name: str = Field(description="label of the row; encoder/decoder and offline/online come from its recipe")
    recipe: str = Field(description="recipe file, relative to the study file")
    overrides: list[str] = Field(default_factory=list, description="key=value changes to the recipe")


class Study(Section):
    name: str = Field(description="names the folder of the study")
    output: str | None = Field(None, description="folder of the study; runs/studies/NAME if not given")
    corpora: dict[str, CorpusSection] = Field(min_length=1, description="by name")
    rows: list[RowSection] = Field(min_length=1, description="models to be compared")
    baseline: str = Field("Transformer", description="row that all others are tested against")
    overrides: list[str] = Field(default_factory=list, description="key=value changes to every recipe")
    seeds: list[int] = Field([1], min_length=1, description="one run of every row for each")
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

    @property
    def sentence_level(self) -> bool:
        return self.recipe.stage == "sentence" or self.recipe.context.kind == "none"

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
    row = Row("", section.name, recipe)
    parts = [section.name, *(part for part in (row.integration, row.direction) if part)]
    return Row(slug(" ".join(parts)), section.name, recipe)


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
