"""Model folders sent to the Hugging Face hub and taken from it, and which folders commands may write."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weitblick.checkpoints.folder import CARD, CONFIG, TEXT, WEIGHTS, load_model, model_card, read_config
from weitblick.common.errors import UserError
from weitblick.common.files import atomic_folder
from weitblick.common.imports import optional_package


def check_output_folder(path: str | Path, marks: Sequence[str], source: str | Path | None = None) -> Path:
    """The folder may be written: it is not there, or empty, or holds the files that mark what we write; and it is not
    the one that is read."""
    folder = Path(path)
    if source is not None:
        ours, theirs = folder.resolve(), Path(source).resolve()
        if ours == theirs or ours in theirs.parents:
            raise UserError("holds the model that is read, and is not written over", where=folder)
    if folder.exists() and not folder.is_dir():
        raise UserError("is a file, not a folder", where=folder, remedy="name another output")
    if folder.is_dir() and any(folder.iterdir()) and not all((folder / name).exists() for name in marks):
        raise UserError(
            "holds other things than a model, and is not written over", where=folder, remedy="name another output"
        )
    return folder


# Model folders of ours on the Hugging Face hub, or on a server that speaks its language. Nothing but weights in
# safetensors and text files is sent or taken.

FILES = (CARD, CONFIG, WEIGHTS, "LICENSE", f"{TEXT}/*")
MARKS = (CONFIG, TEXT)


@dataclass(frozen=True)
class CardDetails:
    """What only the owner of a model knows."""

    license: str | None = None
    datasets: tuple[str, ...] = ()


def publish(
    folder: Path, name: str, card: CardDetails = CardDetails(), *, private: bool = False, hub: str | None = None
) -> str:
    """Sends a model folder to the hub as NAME (owner/model), in one commit; gives its address."""
    loaded = load_model(folder)  # whole, and every file as it was saved
    facts = {**loaded.facts, **{key: value for key, value in asdict(card).items() if value}}
    config = read_config(folder).model_copy(update={"facts": facts})
    languages = (loaded.pipeline.source_language, loaded.pipeline.target_language)
    contents: dict[str, Path | bytes] = {
        str(path.relative_to(folder)): path for pattern in FILES for path in sorted(folder.glob(pattern))
    }
    contents[CARD] = model_card(config, languages).encode()
    with _hub_errors(name, hub):
        library = _library()
        api = library.HfApi(endpoint=hub, library_name="weitblick")
        url = api.create_repo(name, private=private, exist_ok=True)
        parts = [library.CommitOperationAdd(place, content) for place, content in contents.items()]
        api.create_commit(name, parts, commit_message="Written by weitblick publish")
    return str(url)


def fetch(name: str, folder: Path, *, hub: str | None = None) -> None:
    """Takes the model NAME (owner/model) from the hub into a folder, complete or not at all."""
    check_output_folder(folder, MARKS)
    with tempfile.TemporaryDirectory(prefix="weitblick-fetch-") as temporary:
        with _hub_errors(name, hub):
            _library().snapshot_download(
                name, local_dir=temporary, allow_patterns=list(FILES), endpoint=hub, library_name="weitblick"
            )
        taken = Path(temporary)
        if not all((taken / mark).exists() for mark in (*MARKS, WEIGHTS)):
            raise UserError(
                f"{name} is not a Weitblick model with weights in safetensors",
                remedy="a Marian model is taken over with weitblick import",
            )
        load_model(taken)
        with atomic_folder(folder) as place:
            for file in sorted(taken.rglob("*")):
                kept = file.relative_to(taken)
                if file.is_file() and not any(part.startswith(".") for part in kept.parts):
                    (place / kept).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, place / kept)


def _library() -> Any:
    with optional_package("hub"):
        import huggingface_hub
        from huggingface_hub.utils.tqdm import disable_progress_bars
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    disable_progress_bars()
    return huggingface_hub


@contextmanager
def _hub_errors(name: str, hub: str | None) -> Iterator[None]:
    """Whatever a network and a server can answer, in one line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        # huggingface_hub raises errors of its own, of its HTTP library and of the system.
        where, status = hub or "huggingface.co", _status(error)
        if status in (401, 403, 404):
            remedy = "check the name; for a private model, log in (hf auth login)"
            raise UserError(
                f"{name} is not there, or not for everybody ({status})", where=where, remedy=remedy
            ) from None
        text = " ".join(str(error).split())[:300] or type(error).__name__
        remedy = "check the name, the network and that you are logged in (hf auth login)"
        raise UserError(f"{name}: {text}", where=where, remedy=remedy) from None


def _status(error: BaseException | None) -> int | None:
    """What a server answered, if it did, by an error or by what led to it."""
    while error is not None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
        error = error.__cause__ or error.__context__
    return None
