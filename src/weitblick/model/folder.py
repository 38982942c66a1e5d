"""A model on disk: a folder with weights, configuration, the text pipeline and a model card. Never pickle."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from pydantic import BaseModel, ConfigDict, Field
from torch.overrides import TorchFunctionMode

from weitblick import __version__
from weitblick.config.recipe import ContextSection, MemorySection, ModelSection
from weitblick.errors import UserError
from weitblick.files import atomic_folder, check_files, check_plain, read_json, settled_folder, sha256, write_json
from weitblick.model.build import build
from weitblick.model.document_model import DocumentModel
from weitblick.model.weights import load_weights, read_weights, save_tensors, weights_of
from weitblick.text.base import PIPELINE_FILE
from weitblick.text.pipeline import TextPipeline, load_pipeline
from weitblick.validation import parse_value

FORMAT_VERSION: Literal[1] = 1
WEIGHTS, CONFIG, CARD, TEXT = "model.safetensors", "config.json", "README.md", "text"
CHECKSUM = "checksum"  # of config.json itself


class ModelConfig(BaseModel):
    """config.json: what the model is, how large its vocabularies are, and the checksums of the other files."""

    model_config = ConfigDict(protected_namespaces=())

    format_version: Literal[1] = FORMAT_VERSION
    weitblick: str = __version__
    model: ModelSection
    context: ContextSection
    memory: MemorySection = Field(default_factory=MemorySection)
    source_vocabulary: int = Field(gt=0)
    target_vocabulary: int = Field(gt=0)
    facts: dict[str, Any] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class LoadedModel:
    model: DocumentModel
    pipeline: TextPipeline
    model_section: ModelSection
    context_section: ContextSection
    facts: dict[str, Any] = field(default_factory=dict)


def save_model(
    folder: str | Path,
    model: DocumentModel,
    pipeline: TextPipeline,
    model_section: ModelSection,
    facts: dict[str, Any],
    *,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Writes a model folder, complete or not at all. `facts` (training, figures, licence) go into the model card."""
    with atomic_folder(folder) as temporary:
        save_tensors(temporary / WEIGHTS, weights_of(model, dtype))
        pipeline.save(temporary / TEXT)
        config = ModelConfig(
            model=model_section,
            context=model.section,
            memory=MemorySection() if model.pointer is None else model.pointer.section,
            source_vocabulary=len(pipeline.source_vocabulary),
            target_vocabulary=len(pipeline.target_vocabulary),
            facts=facts,
            files={name: sha256(temporary / name) for name in (WEIGHTS, f"{TEXT}/{PIPELINE_FILE}")},
        )
        values = config.model_dump(mode="json")
        write_json(temporary / CONFIG, {**values, CHECKSUM: checksum(values)})
        languages = (pipeline.source_language, pipeline.target_language)
        (temporary / CARD).write_text(model_card(config, languages), encoding="utf-8")


def read_config(folder: Path) -> ModelConfig:
    """A changed digit may be another valid model: what was saved is known by its checksum."""
    path = folder / CONFIG
    check_plain(path)
    values = read_json(path)
    expected = values.pop(CHECKSUM, None) if isinstance(values, dict) else None
    if expected is not None and expected != checksum(values):
        remedy = f"restore it; if you changed it on purpose, delete the line {CHECKSUM!r}"
        raise UserError("is not the file that was saved", where=path, remedy=remedy)
    return parse_value(ModelConfig, values, path, remedy="restore it from the run that wrote it")


def checksum(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def load_model(folder: str | Path, device: torch.device | str = "cpu") -> LoadedModel:
    """Reads a model folder. What is missing or damaged is named."""
    folder = settled_folder(folder)
    if not folder.is_dir():
        raise UserError("no such model folder", where=folder, remedy="name a folder that weitblick train wrote")
    for name in (CONFIG, WEIGHTS, TEXT):
        if not (folder / name).exists():
            raise UserError("missing from the model folder", where=folder / name, remedy="copy the whole folder again")
    config = read_config(folder)
    check_files(folder, config.files, folder / CONFIG)
    pipeline = load_pipeline(folder / TEXT)
    sizes = (len(pipeline.source_vocabulary), len(pipeline.target_vocabulary))
    stored = (config.source_vocabulary, config.target_vocabulary)
    if sizes != stored:
        raise UserError(f"vocabularies of {sizes} do not fit the model's {stored}", where=folder / TEXT)
    try:
        with _Uninitialised():
            model = build(config.model, config.context, *sizes, config.memory)
    except ValueError as error:
        raise UserError(str(error), where=folder / CONFIG, remedy="restore it from the run that wrote it") from None
    load_weights(model, read_weights(folder / WEIGHTS), folder / WEIGHTS)
    model.decide_between(pipeline.single_pieces(config.context.decides, "target", "context.decides"))
    model.eval().to(device)
    return LoadedModel(model, pipeline, config.model, config.context, config.facts)


class _Uninitialised(TorchFunctionMode):
    """Builds modules without random start values, since all weights come from a file."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        named = named or {}
        if getattr(function, "__module__", None) == "torch.nn.init":
            return named["tensor"] if "tensor" in named else arguments[0]
        return function(*arguments, **named)


def model_card(config: ModelConfig, languages: tuple[str, str]) -> str:
    """The card: what the model is and everything known about how it came to be; in front of it, for the hub, the same
    in YAML."""
    context = config.context
    kind = (
        "sentence-level"
        if context.kind == "none"
        else f"{context.kind} context, {context.integration} integration, {context.direction}"
    )
    if config.memory.kind != "none":
        kind += ", with a pointer to approved translations"
    lines = [
        "---",
        yaml.safe_dump(_hub_card(config, languages), sort_keys=False, allow_unicode=True).strip(),
        "---",
        "# A Weitblick model",
        "",
        f"- {config.model.architecture}, {kind}",
        f"- written by weitblick {config.weitblick}",
    ]
    lines += [f"- {key.replace('_', ' ')}: {value}" for key, value in config.facts.items()]
    lines += ["", "Translate with `weitblick translate -m FOLDER DOCUMENT`.", ""]
    return "\n".join(lines)


def _hub_card(config: ModelConfig, languages: tuple[str, str]) -> dict[str, Any]:
    facts = config.facts
    card: dict[str, Any] = {
        "language": list(dict.fromkeys(languages)),
        "license": facts.get("license", "other"),
        "library_name": "weitblick",
        "pipeline_tag": "translation",
        "tags": ["document-level" if config.context.kind != "none" else "sentence-level"],
    }
    if "datasets" in facts:
        card["datasets"] = facts["datasets"]
    if re.fullmatch(r"[\w.-]+/[\w.-]+", str(facts.get("imported_from", ""))):  # a name on the hub
        card["base_model"] = facts["imported_from"]
    if "dev_perplexity" in facts:
        figure = {"type": "perplexity", "name": "dev perplexity", "value": facts["dev_perplexity"]}
        dev = {"name": "development set", "type": "development"}
        result = {"task": {"type": "translation"}, "dataset": dev, "metrics": [figure]}
        card["model-index"] = [{"name": f"weitblick-{'-'.join(languages)}", "results": [result]}]
    return card
