"""Marian models of transformers from the Hugging Face hub, such as OPUS-MT's: downloaded, imported, installed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from weitblick.checkpoints.downloads import Advance, Download, discarded_if_refused, download_all, get_json
from weitblick.checkpoints.folder import CONFIG as OUR_CONFIG
from weitblick.checkpoints.folder import TEXT
from weitblick.checkpoints.hub import check_output_folder
from weitblick.checkpoints.import_marian import Finish, TextOptions, import_marian
from weitblick.checkpoints.marian_folder import (
    CONFIG,
    GENERATION,
    PICKLED_WEIGHTS,
    SAFE_WEIGHTS,
    TARGET_VOCABULARY,
    TOKENIZER,
    VOCABULARY,
)
from weitblick.common.errors import UserError
from weitblick.common.files import read_json
from weitblick.text.base import PIPELINE_FILE
from weitblick.text.marian_pipeline import MODEL_FILES

HUB = "https://huggingface.co"
CARD = "README.md"
LICENSES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE")
FILES = (CARD, CONFIG, GENERATION, TOKENIZER, VOCABULARY, TARGET_VOCABULARY, *MODEL_FILES.values(), *LICENSES)


@dataclass(frozen=True)
class HubModel:
    """A model on the hub: its files by name, and at which commit."""

    name: str
    hub: str
    commit: str
    files: dict[str, dict[str, Any]]
    license: str

    @property
    def ours(self) -> bool:
        """Whether it is a Weitblick model."""
        return f"{TEXT}/{PIPELINE_FILE}" in self.files

    def download(self, file: str) -> Download:
        entry = self.files[file]
        large = entry.get("lfs") or {}
        url = f"{self.hub}/{self.name}/resolve/{self.commit}/{quote(file)}"
        try:
            if large:
                return Download(url, file, int(large["size"]), str(large.get("sha256") or large["oid"]))
            return Download(url, file, int(entry["size"]), str(entry["blobId"]), "git")
        except (KeyError, TypeError, ValueError):
            raise UserError(f"the hub tells no checksum of {file}", where=url, remedy="try again later") from None


def hub_model(name: str, hub: str | None = None) -> HubModel:
    """What the hub says of a model."""
    address = (hub or HUB).rstrip("/")
    url = f"{address}/api/models/{quote(name)}?blobs=true"
    answer = get_json(url)
    try:
        files = {str(entry["rfilename"]): dict(entry) for entry in answer["siblings"]}
        commit, card = str(answer["sha"]), answer.get("cardData") or {}
        tags = [str(tag) for tag in answer.get("tags") or []]
    except (KeyError, TypeError):
        raise UserError("answered with no description of a model", where=url, remedy="check the name") from None
    tagged = next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), "")
    return HubModel(name, address, commit, files, str(card.get("license") or tagged or "not said"))


def install(
    model: HubModel,
    folder: Path,
    advance: Advance,
    options: TextOptions = TextOptions(),
    finish: Finish = lambda own: own,
) -> None:
    """Downloads, imports and finishes a Marian model in a folder, complete or not at all."""
    check_output_folder(folder, [OUR_CONFIG, TEXT])
    work = (
        folder.parent
        / ".downloads"
        / f"{model.name.replace('/', '--')}-{model.commit[:12]}"
        / model.name.split("/")[-1]
    )
    _check_kind(model, work)
    weights = next((name for name in (SAFE_WEIGHTS, PICKLED_WEIGHTS) if name in model.files), None)
    if weights is None:
        raise UserError(f"{model.name} has no {SAFE_WEIGHTS} and no {PICKLED_WEIGHTS}", where=model.hub)
    names = [name for name in FILES if name in model.files] + [weights]
    download_all([model.download(name) for name in names], work, advance)
    with discarded_if_refused(work.parent):
        imported = import_marian(work, options)
    facts = {"license": model.license, **imported.facts, "imported_from": model.name, "commit": model.commit}
    attachments = {**imported.attachments, **_license(model, work)}
    finish(replace(imported, facts=facts, attachments=attachments)).save(folder)
    shutil.rmtree(work.parent, ignore_errors=True)


def _check_kind(model: HubModel, work: Path) -> None:
    """Looks at the configuration before anything large is asked for."""
    kind = None
    if CONFIG in model.files:
        download_all([model.download(CONFIG)], work, lambda count: None)
        config = read_json(work / CONFIG)
        kind = config.get("model_type") if isinstance(config, dict) else None
    if kind != "marian":
        said = f"of type {kind}" if kind else "of no known type"
        raise UserError(
            f"{model.name} is {said}: only Weitblick models and Marian models (OPUS-MT) are read here",
            where=model.hub,
            remedy="see weitblick fetch --list en",
        )


def _license(model: HubModel, work: Path) -> dict[str, bytes]:
    """The licence as it came with the model, or what its card says."""
    own = next((work / name for name in LICENSES if (work / name).is_file()), None)
    if own is not None:
        return {"LICENSE": own.read_bytes()}
    return {"LICENSE": f"{model.license}\n\nAs said by {model.hub}/{model.name} at {model.commit}\n".encode()}


def opus_models(language: str, hub: str | None = None) -> list[str]:
    """Names of OPUS-MT's models that translate from or into a language."""
    address = (hub or HUB).rstrip("/")
    found: set[str] = set()
    answer = get_json(f"{address}/api/models?author=Helsinki-NLP&search=opus-mt&limit=3000")
    for entry in answer if isinstance(answer, list) else []:
        name = str(entry.get("id", "")) if isinstance(entry, dict) else ""
        if language in name.rpartition("/")[2].removeprefix("opus-mt-").split("-"):
            found.add(name)
    return sorted(found)
