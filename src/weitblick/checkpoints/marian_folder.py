"""A Marian model in a folder of transformers, read without transformers: configuration, vocabularies, tensors."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from weitblick.common.errors import UserError
from weitblick.common.files import read_json
from weitblick.text.base import BOS, PAD, TextPipeline
from weitblick.text.marian_pipeline import MODEL_FILES


@dataclass(frozen=True)
class Rows:
    """tokens: the ordinary ones, in our order; origins: for each of our ids the row of the original, or None;
    silent: our ids that stand for no word that the original can say."""

    tokens: list[str]
    origins: list[int | None]
    silent: list[int]

    def table(self, original: Tensor) -> Tensor:
        """[V, d] of the original -> [V', d]"""
        index = torch.tensor([-1 if row is None else row for row in self.origins])
        rows: Tensor = original[index.clamp_min(0)]
        rows[index < 0] = 0
        return rows


def arrange(vocabulary: dict[str, int], size: int, pad: int, end: int, unknown: int, start: int) -> Rows:
    """Our order of a vocabulary of `size` words. What the decoder starts from, usually <pad>, is our <s>."""
    special: list[int | None] = [None, pad, end, unknown] if start == pad else [pad, start, end, unknown]
    names = {number: token for token, number in vocabulary.items()}
    ordinary = [number for number in range(size) if number not in (pad, end, unknown)]
    tokens = [names.get(number, f"<unused {number}>") for number in ordinary]
    # A row that two of our ids share has its probability once.
    said = {end, unknown, *ordinary}
    silent = [number for number in (PAD, BOS) if special[number] is None or special[number] in said]
    return Rows(tokens, [*special, *ordinary], silent)


# A folder of transformers with a Marian model, read without transformers: configuration, vocabularies, tensors.

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
SAFE_WEIGHTS, PICKLED_WEIGHTS = "model.safetensors", "pytorch_model.bin"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SPECIAL = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}

# Marian models of other shapes than transformers (and we) can compute.
UNKNOWN_SHAPES = ("normalize_before", "normalize_embedding", "add_final_layer_norm")


@dataclass(frozen=True)
class MarianFolder:
    """vocabularies: token -> id, of source and target, the same object where there is one; special: names of tokens;
    sentencepiece: the files that cut source and target sentences; architecture: as our recipes call it; positions: the
    kind of sinusoids, None where transformers' own are meant or stored; rows: our order of both vocabularies, where it
    is not that of Marian; pipeline: the text pipeline, where it is one of ours."""

    path: Path
    config: dict[str, Any]
    generation: dict[str, Any] | None
    tokenizer: dict[str, Any]
    vocabularies: tuple[dict[str, int], dict[str, int]]
    special: dict[str, str]
    sentencepiece: tuple[Path, Path]
    tensors: Tensors
    architecture: Literal["transformer", "ssru"] = "transformer"
    positions: Literal["marian", "tensor2tensor"] | None = None
    rows: tuple[Rows, Rows] | None = None
    pipeline: TextPipeline | None = None

    @property
    def shared(self) -> bool:
        return bool(self.config.get("share_encoder_decoder_embeddings", True))

    @property
    def card(self) -> dict[str, Any]:
        """Licence and datasets, if a model card says them."""
        path = self.path / "README.md"
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        found = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
        try:
            values = yaml.safe_load(found[1]) if found else None
        except (yaml.YAMLError, ValueError, RecursionError):
            return {}
        return (
            {key: values[key] for key in ("license", "datasets") if values.get(key)} if isinstance(values, dict) else {}
        )

    def number(self, key: str, default: int | None = None) -> int:
        """A whole number of the configuration."""
        value = self.config.get(key, default)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, int) or isinstance(value, bool):
            what = "is missing" if value is None else f"is {value!r}, not a number"
            raise UserError(f"{key} {what}", where=self.path / CONFIG, remedy="copy the whole folder again")
        return value

    def token(self, key: str) -> int:
        """The number of a special token: what `generate` goes by, where both files say one."""
        said = (self.generation or {}).get(key)
        value = self.number(key) if said is None else said
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < self.sizes[1]:
            where = self.path / (CONFIG if said is None else GENERATION)
            raise UserError(f"{key} is {value!r}, not one of {self.sizes[1]} words", where=where)
        return value

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of the source and target tables."""
        source = self.number("vocab_size")
        return source, source if self.shared else self.number("decoder_vocab_size", source)


def read_marian_folder(path: Path) -> MarianFolder:
    if not path.is_dir():
        raise UserError("no such folder", where=path, remedy="name a folder with a Marian model of transformers")
    config = _read(path / CONFIG)
    kind = config.get("model_type")
    if kind != "marian":
        named = f"{kind} ({', '.join(map(str, config.get('architectures') or ['?']))})" if kind else "of no known type"
        raise UserError(f"the model is {named}, not marian", where=path / CONFIG, remedy="name a Marian model")
    for key in UNKNOWN_SHAPES:
        if config.get(key):
            raise UserError(f"{key} is true: no such Marian model is known", where=path / CONFIG)
    tokenizer = _read(path / TOKENIZER) if (path / TOKENIZER).exists() else {}
    generation = _read(path / GENERATION) if (path / GENERATION).exists() else None
    source = _read_vocabulary(path / VOCABULARY)
    target = source
    if tokenizer.get("separate_vocabs") or (path / TARGET_VOCABULARY).exists():
        target = _read_vocabulary(path / TARGET_VOCABULARY)
    special = {name: _token(tokenizer.get(name, usual)) for name, usual in SPECIAL.items()}
    pieces = (path / MODEL_FILES["source"], path / MODEL_FILES["target"])
    folder = MarianFolder(path, config, generation, tokenizer, (source, target), special, pieces, Tensors.of(path))
    check_vocabularies(folder)
    return folder


def _token(value: Any) -> str:
    return str(value["content"]) if isinstance(value, dict) else str(value)


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError("no such file", where=path, remedy="copy the whole folder again")
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError("holds no keys and values", where=path, remedy="copy the whole folder again")
    return value


def _read_vocabulary(path: Path) -> dict[str, int]:
    value = _read(path)
    numbers = list(value.values())
    if not all(isinstance(number, int) and number >= 0 for number in numbers) or len(set(numbers)) != len(numbers):
        raise UserError("does not give every token a number of its own", where=path, remedy="copy it again")
    return value


def check_vocabularies(folder: MarianFolder) -> None:
    for name, vocabulary, size in zip((VOCABULARY, TARGET_VOCABULARY), folder.vocabularies, folder.sizes, strict=True):
        highest = max(vocabulary.values(), default=-1)
        if highest >= size:
            raise UserError(
                f"has a token of number {highest}, but the model has {size} words",
                where=folder.path / (name if folder.vocabularies[0] is not folder.vocabularies[1] else VOCABULARY),
                remedy="vocabulary and model do not belong together",
            )
        for token in ("eos_token", "unk_token"):
            if folder.special[token] not in vocabulary:
                raise UserError(f"has no token {folder.special[token]!r}", where=folder.path / name)


@dataclass(frozen=True)
class Tensors:
    """The weights in a file, each asked for with the shape that the configuration promises."""

    path: Path
    tensors: dict[str, Tensor]

    @classmethod
    def of(cls, folder: Path) -> Tensors:
        path = next((p for name in (SAFE_WEIGHTS, PICKLED_WEIGHTS) if (p := folder / name).is_file()), None)
        if path is None:
            raise UserError(f"has no {SAFE_WEIGHTS} and no {PICKLED_WEIGHTS}", where=folder, remedy="copy it again")
        return cls(path, _load(path))

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def take(self, shape: tuple[int, ...], *names: str) -> Tensor:
        """The first of these that is there, as 32-bit floats: tied tables are stored under one of their names."""
        found = next((name for name in names if name in self.tensors), None)
        if found is None:
            raise UserError(f"weight {names[0]!r} is missing", where=self.path, remedy="copy the whole folder again")
        tensor = self.tensors[found]
        if tuple(tensor.shape) != shape:
            raise UserError(
                f"weight {found!r} has shape {tuple(tensor.shape)}, the configuration asks for {shape}",
                where=self.path,
                remedy="weights and configuration do not belong together",
            )
        if not torch.isfinite(tensor).all():
            raise UserError(f"weight {found!r} is not finite", where=self.path, remedy="copy the file again")
        return tensor.float()


def _load(path: Path) -> dict[str, Tensor]:
    try:
        if path.name == SAFE_WEIGHTS:
            return load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except SafetensorError as error:
        raise UserError(f"damaged or cut short ({error})", where=path, remedy="copy the file again") from None
    except pickle.UnpicklingError:
        raise UserError(
            "is a pickle that asks for more than tensors, and is not opened", where=path, remedy=f"use a {SAFE_WEIGHTS}"
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        raise UserError(
            f"damaged or cut short ({str(error).splitlines()[0]})", where=path, remedy="copy the file again"
        ) from None
    if not isinstance(loaded, dict) or not all(isinstance(tensor, Tensor) for tensor in loaded.values()):
        raise UserError("holds no table of tensors", where=path, remedy=f"use a {SAFE_WEIGHTS}")
    return loaded
