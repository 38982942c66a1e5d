"""Model folders: weights, configuration, text pipeline and card, saved and loaded; models built from recipes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import yaml
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.overrides import TorchFunctionMode

from weitblick import __version__
from weitblick.common.errors import UserError, parse_value
from weitblick.common.files import (
    atomic_folder,
    atomic_path,
    check_files,
    check_regular_file,
    read_json,
    recovered_folder,
    sha256,
    write_json,
)
from weitblick.common.recipe import ContextSection, MemorySection, ModelSection
from weitblick.fast import register_doubles
from weitblick.memory.pointer import MemoryPointer
from weitblick.model.context_module import ContextModule
from weitblick.model.document_model import DocumentModel
from weitblick.model.sentence_model import SentenceModel
from weitblick.text.base import PIPELINE_FILE, TextPipeline, load_pipeline

CHECKSUM = "sha256"
RESTORE = "copy the file again or train anew"


def weights_of(model: torch.nn.Module, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """Every distinct parameter once: tied tables are stored under their first name."""
    seen: set[int] = set()
    weights = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.data_ptr() not in seen:
            seen.add(parameter.data_ptr())
            weights[name] = parameter.detach().to("cpu", dtype or parameter.dtype).contiguous()
    return weights


def load_weights(model: torch.nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Copies weights into a model; a missing, surplus or misshapen one is the wrong architecture, and is named."""
    own = weights_of(model)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name in sorted(own.keys() ^ weights.keys()):
        what = "is missing" if name in own else "is not part of this architecture"
        raise UserError(f"weight {name!r} {what}", where=path, remedy="the weights belong to another configuration")
    with torch.no_grad():
        for name, value in weights.items():
            if parameters[name].shape != value.shape:
                raise UserError(
                    f"weight {name!r} has shape {tuple(value.shape)}, the configuration asks for "
                    f"{tuple(parameters[name].shape)}",
                    where=path,
                    remedy="the weights belong to another configuration",
                )
            parameters[name].copy_(value)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """A file that appears complete, and carries the checksum of its tensors."""
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with atomic_path(path) as temporary:
        save_tensors(temporary, plain, {CHECKSUM: _checksum(plain)})


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise UserError(f"cannot be written ({error})", where=path, remedy="free some space") from None


def read_weights(path: Path) -> dict[str, Tensor]:
    """All tensors of a file. Damage is named: a file cut short, a checksum that differs, a value that is no number."""
    check_regular_file(path)
    try:
        with safe_open(path, "pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"damaged or cut short ({error})", where=path, remedy=RESTORE) from None
    if CHECKSUM in metadata and metadata[CHECKSUM] != _checksum(tensors):
        raise UserError("damaged: the weights are not those that were saved", where=path, remedy=RESTORE)
    for name, value in tensors.items():
        if value.is_floating_point() and not _is_finite(value):
            raise UserError(
                f"weight {name!r} holds values that are not finite (NaN or inf)", where=path, remedy=RESTORE
            )
    return tensors


def _is_finite(value: Tensor) -> bool:
    """Whether all values are numbers. Their sum says so at once, unless it is too large itself."""
    return bool(torch.isfinite(value.sum())) or bool(torch.isfinite(value).all())


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


# Any row of the paper's tables, from its configuration.

SENTENCE_MODELS = {
    "transformer": "transformer:Transformer",
    "ssru": "ssru:RecurrentTransformer",
    "rnnsearch": "rnnsearch:RNNSearch",
}
CONTEXT_MODULES = {
    "sentence": "context_layer:ContextLayer",
    "word": "context_layer:ContextLayer",
    "hierarchical": "context_layer:ContextLayer",
    "han": "han:HierarchicalNetwork",
    "zhang": "zhang:ZhangContext",
}
"""The module of `weitblick.model` and the class in it, imported when a model is of that kind."""


def _class(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"weitblick.model.{module}"), name)


def build_sentence_model(model: ModelSection, source_size: int, target_size: int) -> SentenceModel:
    sentence: SentenceModel = _class(SENTENCE_MODELS[model.architecture])(model, source_size, target_size)
    return sentence


def build(
    model: ModelSection,
    context: ContextSection,
    source_size: int,
    target_size: int,
    memory: MemorySection | None = None,
) -> DocumentModel:
    """The model that a configuration describes, freshly initialised, with the fast doubles of what it computes."""
    register_doubles()
    sentence = build_sentence_model(model, source_size, target_size)
    pointer = MemoryPointer(memory, sentence.dimension) if memory is not None and memory.kind != "none" else None
    if context.kind in ("none", "concatenation"):
        return DocumentModel(sentence, None, context, pointer=pointer)
    # The module is as wide as the states it reads.
    width = sentence.encoder_dimension if context.integration == "encoder" else sentence.dimension
    module: ContextModule = _class(CONTEXT_MODULES[context.kind])(
        context, model.model_copy(update={"dimension": width})
    )
    # What a module with its own encoder reads, the embedding, never changes in stage 2: no copy is needed.
    keep = context.states == "frozen" and not module.own_encoder
    frozen = build_sentence_model(model, source_size, target_size) if keep else None
    return DocumentModel(sentence, module, context, frozen, pointer)


# A model on disk: a folder with weights, configuration, the text pipeline and a model card. Never pickle.

FORMAT_VERSION: Literal[1] = 1
WEIGHTS, CONFIG, CARD, TEXT = "model.safetensors", "config.json", "README.md", "text"
CONFIG_CHECKSUM = "checksum"  # of config.json itself


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
    attachments: Mapping[str, bytes] | None = None,
) -> None:
    """Writes a model folder, complete or not at all. `facts` (training, figures, licence) go into the model card;
    `attachments` are files that lie beside the model, such as its licence."""
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
        write_json(temporary / CONFIG, {**values, CONFIG_CHECKSUM: checksum(values)})
        for name, content in (attachments or {}).items():
            (temporary / name).write_bytes(content)
        languages = (pipeline.source_language, pipeline.target_language)
        (temporary / CARD).write_text(model_card(config, languages), encoding="utf-8")


def read_config(folder: Path) -> ModelConfig:
    """The checked contents of config.json: a changed digit may be another valid model, so its checksum is compared."""
    path = folder / CONFIG
    check_regular_file(path)
    values = read_json(path)
    expected = values.pop(CONFIG_CHECKSUM, None) if isinstance(values, dict) else None
    if expected is not None and expected != checksum(values):
        remedy = f"restore it; if you changed it on purpose, delete the line {CONFIG_CHECKSUM!r}"
        raise UserError("is not the file that was saved", where=path, remedy=remedy)
    return parse_value(ModelConfig, values, path, remedy="restore it from the run that wrote it")


def checksum(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def load_model(folder: str | Path, device: torch.device | str = "cpu") -> LoadedModel:
    """Reads a model folder. What is missing or damaged is named."""
    folder = recovered_folder(folder)
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
    model.decide_between([pipeline.single_pieces(words, "context.decides") for words in config.context.decides])
    model.eval().to(device)
    return LoadedModel(model, pipeline, config.model, config.context, config.facts)


class _Uninitialised(TorchFunctionMode):
    """Builds modules without random start values, since all weights come from a file."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        named = named or {}
        if getattr(function, "__module__", None) == "torch.nn.init" or function in (Tensor.uniform_, Tensor.normal_):
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


def as_array(tensor: Tensor) -> np.ndarray:
    """A weight as other programs take it: 32-bit floats in rows, on the CPU."""
    return tensor.detach().float().cpu().contiguous().numpy()
