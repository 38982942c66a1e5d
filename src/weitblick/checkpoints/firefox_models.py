"""Firefox's translation models from Mozilla's server, Remote Settings: which there are, and one of them installed.

A record is a file: its languages, what it is (model, lex, vocab, srcvocab, trgvocab), its architecture and version, and
an attachment with location, size and sha256; packed ones have these of their content, too.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weitblick.checkpoints.downloads import (
    Advance,
    Download,
    NotFound,
    discarded_if_refused,
    download_all,
    get_json,
    unpack,
)
from weitblick.checkpoints.folder import CONFIG, TEXT
from weitblick.checkpoints.hub import check_output_folder
from weitblick.checkpoints.import_marian import Finish, TextOptions, import_marian
from weitblick.common.errors import UserError

PREFIX = "firefox:"
SERVER = "https://firefox.settings.services.mozilla.com"
COLLECTIONS = {  # how a collection calls the two languages; the newer one first
    "translations-models-v2": ("sourceLanguage", "targetLanguage"),
    "translations-models": ("fromLang", "toLang"),
}
ARCHITECTURES = ("base", "base-memory", "tiny", "")  # the better ones first
LICENSE = "mpl-2.0"
LICENSE_TEXT = """{name}, version {version}, architecture {architecture}

Made by Mozilla for the translations of Firefox, and under the Mozilla Public License 2.0: https://mozilla.org/MPL/2.0/
Where they are made and listed: https://github.com/mozilla/translations
Taken from {server}
"""


@dataclass(frozen=True)
class FirefoxModel:
    """All files of one model: what each is (`model`, `lex`, ...), and its record."""

    source: str
    target: str
    architecture: str
    version: str
    released: bool
    collection: str
    files: dict[str, dict[str, Any]] = field(repr=False)

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.source}-{self.target}"

    @property
    def size(self) -> int:
        return sum(int(record["attachment"]["size"]) for record in self.files.values())

    @property
    def complete(self) -> bool:
        return "model" in self.files and ("vocab" in self.files or {"srcvocab", "trgvocab"} <= self.files.keys())

    @property
    def rank(self) -> tuple[Any, ...]:
        """The best has the highest: what all users of Firefox get, the newest, the largest."""
        numbers = tuple(int(number) for number in re.findall(r"\d+", self.version))
        known = self.architecture in ARCHITECTURES
        place = ARCHITECTURES.index(self.architecture) if known else len(ARCHITECTURES)
        return self.released and "a" not in self.version, list(COLLECTIONS).index(self.collection) == 0, numbers, -place


def firefox_models(server: str | None = None) -> list[FirefoxModel]:
    """Every model that is there, the best of each pair of languages first."""
    found: dict[tuple[str, ...], FirefoxModel] = {}
    for collection, keys in COLLECTIONS.items():
        for record in _records(server or SERVER, collection):
            try:
                source, target = (str(record[key]) for key in keys)
                architecture, version = str(record.get("architecture") or ""), str(record["version"])
                released, kind = not record.get("filter_expression"), str(record["fileType"])
                str(record["attachment"]["location"]), int(record["attachment"]["size"])
            except (KeyError, TypeError, ValueError):
                continue  # a record of another kind
            where = (collection, source, target, architecture, version, str(released))
            model = FirefoxModel(source, target, architecture, version, released, collection, {})
            found.setdefault(where, model).files[kind] = record
    complete = [model for model in found.values() if model.complete]
    return sorted(complete, key=lambda model: model.rank, reverse=True)


def _records(server: str, collection: str) -> Iterator[dict[str, Any]]:
    url = f"{server}/v1/buckets/main/collections/{collection}/records"
    try:
        answer = get_json(url)
    except NotFound:
        return
    if not isinstance(answer, dict) or not isinstance(answer.get("data"), list):
        raise UserError("answered with no list of records", where=url, remedy="try again later")
    yield from (record for record in answer["data"] if isinstance(record, dict))


def choose_firefox_model(wanted: str, server: str | None = None) -> FirefoxModel:
    """The best model that `en-de` or, for a certain architecture, `en-de/tiny` names."""
    pair, _, architecture = wanted.partition("/")
    models = firefox_models(server)
    fitting = [model for model in models if f"{model.source}-{model.target}" == pair]
    chosen = [model for model in fitting if architecture in ("", model.architecture)]
    if chosen:
        return chosen[0]
    where = server or SERVER
    if fitting:
        known = ", ".join(dict.fromkeys(model.architecture for model in fitting))
        raise UserError(f"{PREFIX}{pair} has no architecture {architecture!r}; there are: {known}", where=where)
    source = pair.partition("-")[0]
    others = ", ".join(sorted({model.target for model in models if model.source == source}))
    what = f"from {source} there are: {others}" if others else f"nothing is translated from {source!r}"
    raise UserError(
        f"Firefox has no model {pair!r}; {what}", where=where, remedy=f"see weitblick fetch --list {source or 'en'}"
    )


def install(
    model: FirefoxModel, folder: Path, advance: Advance, server: str | None = None, finish: Finish = lambda own: own
) -> None:
    """Downloads, unpacks, imports and finishes a model in a folder, complete or not at all."""
    check_output_folder(folder, [CONFIG, TEXT])
    base = _attachments(server or SERVER)
    pair = f"{model.source}-{model.target}"
    work = folder.parent / ".downloads" / f"firefox-{pair}-{model.architecture or 'plain'}-{model.version}"
    names = {kind: _file_name(kind, model) for kind in model.files if _file_name(kind, model)}
    downloads = [_download(model.files[kind], f"{name}.packed", base) for kind, name in names.items()]
    download_all(downloads, work, advance)
    for kind, name in names.items():
        record = model.files[kind]
        size = record.get("decompressedSize")
        unpack(
            work / f"{name}.packed", work / name, None if size is None else int(size), record.get("decompressedHash")
        )
    with discarded_if_refused(work):
        imported = import_marian(work / names["model"], TextOptions(model.source, model.target))
    facts = {
        **imported.facts,
        "imported_from": model.name,
        "license": LICENSE,
        "version": model.version,
        "architecture": model.architecture,
    }
    said = {"name": model.name, "version": model.version, "architecture": model.architecture or "not said"}
    text = LICENSE_TEXT.format(**said, server=server or SERVER)
    attachments = {**imported.attachments, "LICENSE": text.encode()}
    finish(replace(imported, facts=facts, attachments=attachments)).save(folder)
    shutil.rmtree(work, ignore_errors=True)


def _file_name(kind: str, model: FirefoxModel) -> str:
    """As the importer expects them; empty for what it does not need. What a record calls its file is not trusted."""
    languages = re.sub(r"\W", "", f"{model.source}{model.target}")
    shapes = {
        "model": "model.{}.bin",
        "lex": "lex.{}.bin",
        "vocab": "vocab.{}.spm",
        "srcvocab": "srcvocab.{}.spm",
        "trgvocab": "trgvocab.{}.spm",
    }
    return shapes.get(kind, "").format(languages)


def _download(record: dict[str, Any], name: str, base: str) -> Download:
    attachment = record["attachment"]
    url = f"{base.rstrip('/')}/{str(attachment['location']).lstrip('/')}"
    return Download(url, name, int(attachment["size"]), str(attachment.get("hash") or ""))


def _attachments(server: str) -> str:
    """Where attachments lie, as the server itself says."""
    answer = get_json(f"{server}/v1/")
    try:
        return str(answer["capabilities"]["attachments"]["base_url"])
    except (KeyError, TypeError):
        raise UserError("does not say where its attachments are", where=server, remedy="try again later") from None
