"""How large models are: parameters by part, counted without allocating any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from weitblick.checkpoints.folder import CONFIG, FORMAT_VERSION, build
from weitblick.common.errors import UserError
from weitblick.common.files import check_format_version, read_json
from weitblick.common.recipe import ContextSection, ContextStageSection, ModelSection, Recipe
from weitblick.common.recipe_files import load_recipe, validate
from weitblick.model.document_model import DocumentModel

PAPER_SOURCE, PAPER_TARGET = 19_270, 21_000
"""Vocabulary sizes that give the paper's totals."""


@dataclass(frozen=True)
class ModelPlan:
    """A model to be measured: its name, what it is built from, and the folder of its weights if it has been trained."""

    name: str
    model: ModelSection
    context: ContextSection
    source_size: int
    target_size: int
    stage: ContextStageSection
    folder: Path | None = None

    def build(self) -> DocumentModel:
        try:
            return build(self.model, self.context, self.source_size, self.target_size)
        except ValueError as error:
            raise UserError(str(error), where=self.name) from None


@dataclass(frozen=True)
class Size:
    """Parameters in all and by part. `frozen` counts the copy of the stage-1 model that frozen context states come
    from: it is neither trained nor part of the total."""

    model: str
    parameters: int
    parts: dict[str, int]
    frozen: int = 0

    def as_row(self) -> dict[str, Any]:
        return {"model": self.model, "parameters": self.parameters, "parts": self.parts, "frozen": self.frozen}


def measure_size(candidate: ModelPlan) -> Size:
    with torch.device("meta"):
        model = candidate.build()
    parts: dict[str, int] = {}
    seen: set[int] = set()
    for name, parameter in model.sentence.named_parameters(remove_duplicate=False):
        if id(parameter) not in seen:
            seen.add(id(parameter))
            part = _part_of(name)
            parts[part] = parts.get(part, 0) + parameter.numel()
    if model.context is not None:
        parts["context"] = count(model.context)
    frozen = 0 if model.provider is model.sentence else count(model.provider)
    return Size(candidate.name, sum(parts.values()), parts, frozen)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _part_of(name: str) -> str:
    """`decoder.0.attention.input.weight` -> decoder; tables are named for what they embed."""
    first = name.split(".")[0]
    tables = {"source_embedding": "source_table", "target_embedding": "target_table"}
    return {
        "source_table": "source embedding",
        "target_table": "target embedding",
        "output_table": "output projection",
        "output_bias": "output bias",
        "encoder_norm": "encoder",
        "decoder_norm": "decoder",
    }.get(tables.get(first, first), first)


PAPER_ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Transformer": ({}, {}),
    "RNNSearch": ({"architecture": "rnnsearch"}, {}),
    "Attention, sentence": ({}, {"kind": "sentence", "sentence_attention": "soft"}),
    "Attention, word": ({}, {"kind": "word"}),
    "H-Attention, sparse-soft": ({}, {"kind": "hierarchical"}),
    "H-Attention, sparse-sparse": ({}, {"kind": "hierarchical", "word_attention": "sparse"}),
    "Zhang:18": ({}, {"kind": "zhang"}),
    "HAN (Miculicich:18)": ({}, {"kind": "han"}),
}
"""The models of the paper's Table 4 and those beside them: changes to the model and to the context section."""


def paper_candidates(source_size: int | None, target_size: int | None) -> list[ModelPlan]:
    """The rows of the paper at its sizes, encoder integration."""
    sizes = (source_size or PAPER_SOURCE, target_size or PAPER_TARGET)
    return [
        ModelPlan(name, ModelSection(**model), ContextSection(**context), *sizes, ContextStageSection())
        for name, (model, context) in PAPER_ROWS.items()
    ]


def read_candidate(
    path: str | Path, overrides: Sequence[str] = (), source_size: int | None = None, target_size: int | None = None
) -> ModelPlan:
    """A recipe file or a model folder. Without sizes a recipe gets the paper's vocabularies, or, where it has a joint
    one, as many types as it has merges."""
    path = Path(path)
    if path.is_dir():
        if overrides or source_size or target_size:
            what = overrides[0] if overrides else "a vocabulary size"
            raise UserError(f"{what!r} cannot change a trained model", where=path, remedy="name its recipe instead")
        return _read_folder(path)
    recipe = load_recipe(path, overrides)
    sizes = _vocabulary_sizes(recipe, source_size, target_size)
    context = ContextSection() if recipe.stage == "sentence" else recipe.context
    return ModelPlan(path.stem, recipe.model, context, *sizes, recipe.context_stage)


def _vocabulary_sizes(recipe: Recipe, source: int | None, target: int | None) -> tuple[int, int]:
    if not recipe.text.joint_vocabulary:
        return source or PAPER_SOURCE, target or PAPER_TARGET
    if source and target and source != target:
        raise UserError(
            f"one vocabulary for both sides cannot have {source} and {target} types",
            remedy="give one size, or set text.joint_vocabulary=false",
        )
    size = source or target or recipe.text.merges
    return size, size


def _read_folder(folder: Path) -> ModelPlan:
    if not (folder / CONFIG).exists():
        remedy = f"name {folder / 'best'}" if (folder / "best" / CONFIG).exists() else "name a recipe or a model folder"
        raise UserError("is not a model folder", where=folder, remedy=remedy)
    config = read_json(folder / CONFIG)
    check_format_version(config, FORMAT_VERSION, folder / CONFIG)
    return ModelPlan(
        str(folder),
        validate(ModelSection, config["model"], str(folder / CONFIG)),
        validate(ContextSection, config["context"], str(folder / CONFIG)),
        config["source_vocabulary"],
        config["target_vocabulary"],
        ContextStageSection(),
        folder,
    )
