"""`weitblick import`: whose files they are, and the importer that reads them."""

from __future__ import annotations

from pathlib import Path

from weitblick.checkpoints.argos import is_package, unpacked
from weitblick.checkpoints.ctranslate2_folder import ctranslate2_folder, read_ctranslate2_folder
from weitblick.checkpoints.import_marian import Imported, TextOptions, import_folder, import_marian


def import_model(path: str | Path, options: TextOptions = TextOptions()) -> Imported:
    """A model of CTranslate2, Argos Translate, transformers, Marian or Firefox as one of ours."""
    if is_package(Path(path)):
        with unpacked(Path(path)) as folder:
            return import_model(folder, options)
    found = ctranslate2_folder(Path(path))
    if found is not None:
        return import_folder(read_ctranslate2_folder(found), options)
    return import_marian(path, options)
