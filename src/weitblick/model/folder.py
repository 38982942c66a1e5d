"""A model on disk: a folder with weights, configuration, the text pipeline and a model card. Never pickle."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.overrides import TorchFunctionMode

from weitblick import __version__
from weitblick.config.load import validate
from weitblick.config.recipe import ContextSection, ModelSection
from weitblick.errors import UserError
from weitblick.files import atomic_folder, check_format_version, read_json, settled_folder, write_json
from weitblick.model.build import build
from weitblick.model.document_model import DocumentModel
from weitblick.text.pipeline import TextPipeline, load_pipeline

FORMAT_VERSION = 1
WEIGHTS, CONFIG, CARD, TEXT = "model.safetensors", "config.json", "README.md", "text"


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
        save_file(weights_of(model, dtype), temporary / WEIGHTS)
        config = {
            "format_version": FORMAT_VERSION,
            "weitblick": __version__,
            "model": model_section.model_dump(mode="json"),
            "context": model.section.model_dump(mode="json"),
            "source_vocabulary": len(pipeline.source_vocabulary),
            "target_vocabulary": len(pipeline.target_vocabulary),
            "facts": facts,
        }
        write_json(temporary / CONFIG, config)
        pipeline.save(temporary / TEXT)
        (temporary / CARD).write_text(model_card(config), encoding="utf-8")


def weights_of(model: torch.nn.Module, dtype: torch.dtype | None = None) -> dict[str, torch.Tensor]:
    """Every distinct parameter once: tied tables are stored under their first name."""
    seen: set[int] = set()
    weights = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.data_ptr() not in seen:
            seen.add(parameter.data_ptr())
            weights[name] = parameter.detach().to("cpu", dtype or parameter.dtype).contiguous()
    return weights


def load_weights(model: torch.nn.Module, weights: dict[str, torch.Tensor], path: Path) -> None:
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


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    if not path.is_file():
        raise UserError("missing from the model folder", where=path, remedy="copy the whole folder again")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise UserError(
            f"damaged or cut short ({error})", where=path, remedy="copy the file again or train anew"
        ) from None


def load_model(folder: str | Path, device: torch.device | str = "cpu") -> LoadedModel:
    """Reads a model folder. What is missing or damaged is named."""
    folder = settled_folder(folder)
    if not folder.is_dir():
        raise UserError("no such model folder", where=folder, remedy="name a folder that weitblick train wrote")
    for name in (CONFIG, WEIGHTS, TEXT):
        if not (folder / name).exists():
            raise UserError("missing from the model folder", where=folder / name, remedy="copy the whole folder again")
    config = read_json(folder / CONFIG)
    check_format_version(config, FORMAT_VERSION, folder / CONFIG)
    where = str(folder / CONFIG)
    model_section = validate(ModelSection, config["model"], where)
    context_section = validate(ContextSection, config["context"], where)
    pipeline = load_pipeline(folder / TEXT)
    sizes = (len(pipeline.source_vocabulary), len(pipeline.target_vocabulary))
    stored = (config["source_vocabulary"], config["target_vocabulary"])
    if sizes != stored:
        raise UserError(f"vocabularies of {sizes} do not fit the model's {stored}", where=folder / TEXT)
    with _Uninitialised():
        model = build(model_section, context_section, *sizes)
    load_weights(model, read_weights(folder / WEIGHTS), folder / WEIGHTS)
    model.eval().to(device)
    return LoadedModel(model, pipeline, model_section, context_section, config.get("facts", {}))


class _Uninitialised(TorchFunctionMode):
    """Builds modules without random start values, since all weights come from a file."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        named = named or {}
        if getattr(function, "__module__", None) == "torch.nn.init":
            return named["tensor"] if "tensor" in named else arguments[0]
        return function(*arguments, **named)


def model_card(config: dict[str, Any]) -> str:
    """The card: what the model is and everything known about how it came to be."""
    context, model = config["context"], config["model"]
    kind = (
        "sentence-level"
        if context["kind"] == "none"
        else (f"{context['kind']} context, {context['integration']} integration, {context['direction']}")
    )
    lines = [
        "# A Weitblick model",
        "",
        f"- {model['architecture']}, {kind}",
        f"- written by weitblick {config['weitblick']}",
    ]
    for key, value in config["facts"].items():
        lines.append(f"- {key.replace('_', ' ')}: {value}")
    lines += ["", "Translate with `weitblick translate FOLDER DOCUMENT`.", ""]
    return "\n".join(lines)
