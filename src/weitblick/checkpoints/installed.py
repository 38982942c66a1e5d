"""Model folders that are installed: those in the models folder, and the one that comes with Weitblick."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weitblick.checkpoints.folder import CONFIG, TEXT, read_config
from weitblick.common.errors import UserError
from weitblick.common.files import read_json
from weitblick.common.system import SYSTEM
from weitblick.text.base import PIPELINE_FILE

DEFAULT_MODEL = Path(__file__).parent.parent / "shipped"
"""The model that comes with Weitblick."""
VARIABLE = "WEITBLICK_MODELS"
SHIPPED = "shipped"


@dataclass(frozen=True)
class InstalledModel:
    name: str
    folder: Path
    source_language: str
    target_language: str
    kind: str

    @property
    def languages(self) -> tuple[str, str]:
        return self.source_language, self.target_language


def models_folder() -> Path:
    """Where fetched models go: $WEITBLICK_MODELS, or a folder of the user's data."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return SYSTEM.data_folder() / "models"


def installed_models(warn: Callable[[str], None] | None = None) -> list[InstalledModel]:
    """Every model in the models folder, by name; the shipped one last. One that cannot be read is said to `warn`."""
    folder, models = models_folder(), []
    for path in sorted(path.parent for path in folder.glob(f"**/{CONFIG}") if (path.parent / TEXT).is_dir()):
        try:
            models.append(read_model(path, str(path.relative_to(folder))))
        except UserError as error:
            if warn is not None:
                warn(str(error))
    return [*models, *([read_model(DEFAULT_MODEL, SHIPPED)] if DEFAULT_MODEL.is_dir() else [])]


def read_model(folder: Path, name: str) -> InstalledModel:
    """What a model folder says of itself, without its weights."""
    config = read_config(folder)
    path = folder / TEXT / PIPELINE_FILE
    text = read_json(path)
    try:
        languages = str(text["source_language"]), str(text["target_language"])
    except (KeyError, TypeError):
        raise UserError("does not say its languages", where=path, remedy="copy the whole folder again") from None
    context = config.context
    kind = "sentences" if context.kind == "none" else f"{context.kind}, {context.integration}, {context.direction}"
    return InstalledModel(name, folder, *languages, kind)


def choose_model(name: str | None, source: str | None, target: str | None) -> Path | None:
    """The folder of the model that is named, by its path or as it is installed; or the one of these languages. None
    if nothing is asked for: the shipped model."""
    wanted = (source, target)
    if name is not None:
        path = Path(name)
        if not path.exists() and (models_folder() / name / CONFIG).is_file():
            path = models_folder() / name
        if any(wanted) and (path / CONFIG).is_file():
            _check_languages(read_model(path, name), wanted)
        return path
    if not any(wanted):
        return None
    fitting = [model for model in installed_models() if _speaks(model, wanted)]
    others = [model for model in fitting if model.name != SHIPPED] or fitting
    if len(others) == 1:
        return others[0].folder
    asked = f"from {source or 'any language'} to {target or 'any language'}"
    if not others:
        raise UserError(f"no model {asked} is installed", remedy="see weitblick models; or name one with -m")
    names = ", ".join(model.name for model in others)
    raise UserError(f"several models {asked} are installed: {names}", remedy="name one with -m")


def _speaks(model: InstalledModel, wanted: tuple[str | None, str | None]) -> bool:
    return all(wish is None or wish == language for wish, language in zip(wanted, model.languages, strict=True))


def _check_languages(model: InstalledModel, wanted: tuple[str | None, str | None]) -> None:
    if not _speaks(model, wanted):
        raise UserError(
            f"translates from {model.source_language} to {model.target_language}",
            where=model.folder,
            remedy="name another model, or leave the languages out",
        )


def default_model() -> Path:
    """The folder of the model that comes with Weitblick."""
    if not DEFAULT_MODEL.is_dir():
        raise UserError(
            "no model is named, and none comes with this installation",
            remedy="name a model folder, as in: weitblick translate -m RUN/best DOCUMENT",
        )
    return DEFAULT_MODEL
