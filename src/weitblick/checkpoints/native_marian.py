"""Models as Marian itself writes them (.npz or .bin, vocabularies, decoder.yml), read as those of transformers."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
import yaml
from torch import Tensor

from weitblick.checkpoints.marian_binary import read_binary
from weitblick.checkpoints.marian_folder import SPECIAL, MarianFolder, Tensors, check_vocabularies
from weitblick.checkpoints.marian_weights import SILENT
from weitblick.common.errors import UserError
from weitblick.common.recipe import GenerationSection
from weitblick.text.marian_pipeline import MODEL_FILES, sentencepiece_model

# A whole YAML parser would drop words that mean something to it: ~, yes, 12, and any that stands there twice.
ENTRY = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|.+?):[ \t]+(\d+)""")
LONG_KEY, LONG_VALUE = "? ", ": "


def read_vocabulary(path: Path) -> dict[str, int]:
    """Word -> number."""
    if path.suffix == ".spm":
        processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(path))
        return {processor.id_to_piece(number): number for number in range(processor.get_piece_size())}
    if not path.is_file():
        raise UserError("no such file", where=path, remedy="copy the whole folder again")
    try:
        text = path.read_text(encoding="utf-8")
    except ValueError:
        raise UserError("is not text in UTF-8", where=path, remedy="copy it again") from None
    found: dict[str, int] = {}
    key: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        if not line or line in ("---", "{}"):
            continue
        if line.startswith(LONG_KEY):
            key = line.removeprefix(LONG_KEY)
            continue
        entry = ENTRY.fullmatch(line if key is None else f"{key}{line}")
        if entry is None:
            raise UserError("is not a word and its number", where=path, line=number, remedy="copy it again")
        found[_word(entry[1])] = int(entry[2])
        key = None
    if len(set(found.values())) != len(found):
        raise UserError("does not give every word a number of its own", where=path, remedy="copy it again")
    return found


def _word(written: str) -> str:
    if written[0] == "'" and written[-1] == "'" and len(written) > 1:
        return written[1:-1].replace("''", "'")
    if written[0] != '"':
        return written
    try:
        return str(yaml.safe_load(written))
    except yaml.YAMLError:
        return written[1:-1]


# Files that Marian itself writes (`.npz` or `.bin`, vocabularies, decoder.yml), read as what transformers would make
# of them: models of OPUS-MT, and the small ones of Firefox, whose decoders have recurrent units.
#
# A decoder of Marian starts from an embedding of zeros. Here that is <pad>, one word more, which is never said.

DECODER, CONFIGS = "decoder.yml", "config*.yml"  # of Marian, of Firefox
SETTINGS = "special:model.yml"  # the array of an .npz that holds what the model was trained with
LONGEST = 512  # words of a sentence: Marian stores no bound

# What must be so, for a model to be computed here: options of Marian, and its value where an older version has none.
EXPECTED: dict[str, tuple[Any, Any]] = {
    "type": ("transformer", None),
    "transformer-no-projection": (False, False),
    "transformer-train-position-embeddings": (False, False),
    "transformer-postprocess-emb": ("d", "d"),
    "transformer-ffn-depth": (2, 2),
    "transformer-tied-layers": ([], []),
    "lemma-dim-emb": (0, 0),
}
NO_MODELS = ("lex", "qualityModel", "pytorch_model")  # how other .bin files begin
AUTOREGRESSION = "transformer-decoder-autoreg"
EXPECTED_OF_UNITS: dict[str, tuple[Any, Any]] = {
    "dec-cell": ("ssru", None),
    "layer-normalization": (False, False),
    "transformer-rnn-projection": (False, False),
}
NORMS = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}  # before, behind and above the layers
ACTIVATIONS = ("relu", "swish")  # Marian's gelu is another function than everybody's

TOP = "postprocess-top"
ATTENTION = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}


def native_model(path: Path) -> Path | None:
    """The .npz or .bin that is meant by a file or folder without config.json; None if there is none."""
    if path.suffix in (".npz", ".bin"):
        return path
    if not path.is_dir() or (path / "config.json").exists():
        return None
    decoder = _decoder(path)
    if decoder.get("models"):
        return path / str(decoder["models"][0])
    found = sorted(
        p
        for p in (*path.glob("*.npz"), *path.glob("*.bin"))
        if not p.name.endswith((".optimizer.npz", ".orig.npz")) and not p.name.startswith(NO_MODELS)
    )
    if len(found) > 1:
        raise UserError(
            f"has {len(found)} models: {', '.join(p.name for p in found)}", where=path, remedy="name one of them"
        )
    return found[0] if found else None


def read_native_model(model: Path) -> MarianFolder:
    arrays, folder = _load(model), model.parent
    settings = _settings(arrays, model)
    recurrent = settings.get(AUTOREGRESSION) == "rnn"
    decoder = _decoder(folder)
    files = _vocabulary_files(folder, decoder, model)
    pieces = _sentencepiece_file(folder, "source", files[0]), _sentencepiece_file(folder, "target", files[1])
    first = read_vocabulary(files[0])
    vocabularies = first, first if files[0].resolve() == files[1].resolve() else read_vocabulary(files[1])
    names = _Names(arrays, model)
    sizes = tuple(_embeddings(names, side).shape[0] for side in ("encoder", "decoder"))
    source, target = ({**v, SPECIAL["pad_token"]: size} for v, size in zip(vocabularies, sizes, strict=True))
    _check_counts(vocabularies, sizes, files)
    one = vocabularies[0] is vocabularies[1] and ("Wemb" in arrays or _one_table(arrays))
    config = {
        **_sizes(settings),
        "norm": _norm(settings, model),
        "vocab_size": sizes[0] + 1,
        "decoder_vocab_size": sizes[1] + 1,
        "share_encoder_decoder_embeddings": one,
        "tie_word_embeddings": "decoder_ff_logit_out_W" not in arrays,
        "scale_embedding": True,
        "max_position_embeddings": LONGEST,
        "pad_token_id": sizes[1],
        "decoder_start_token_id": sizes[1],
        "eos_token_id": target.get(SPECIAL["eos_token"]),
        "dropout": settings.get("transformer-dropout", 0.1),
        "attention_dropout": settings.get("transformer-dropout-attention", 0.0),
    }
    found = MarianFolder(
        path=folder,
        config=config,
        generation=_generation(decoder, target, recurrent),
        # The target's SentencePiece model puts translations together.
        tokenizer={"separate_vocabs": True, **_languages(model)},
        vocabularies=(target, target) if one else (source, target),
        special=dict(SPECIAL),
        sentencepiece=pieces,
        tensors=Tensors(model, names.all(config["norm"] == "pre")),
        architecture="ssru" if recurrent else "transformer",
        positions="tensor2tensor",
    )
    check_vocabularies(found)
    return found


# Files


def _load(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise UserError("no such file", where=path, remedy="copy the whole folder again")
    if path.suffix == ".bin":
        return read_binary(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"is not a model of Marian ({reason})", where=path, remedy="copy it again") from None


def _settings(arrays: dict[str, np.ndarray], path: Path) -> dict[str, Any]:
    if SETTINGS not in arrays:
        raise UserError(f"has no {SETTINGS}", where=path, remedy="name the file that Marian wrote")
    settings = _yaml(arrays[SETTINGS].tobytes().rstrip(b"\0"), path)
    how = settings.get(AUTOREGRESSION, "self-attention")
    if how not in ("self-attention", "rnn"):
        raise UserError(f"{AUTOREGRESSION} is {how!r}; known: self-attention, rnn", where=path)
    for option, (expected, default) in (EXPECTED | (EXPECTED_OF_UNITS if how == "rnn" else {})).items():
        value = settings.get(option, default)
        if value != expected:
            raise UserError(f"{option} is {value!r}, only {expected!r} is known here", where=path)
    if settings.get("transformer-ffn-activation") not in ACTIVATIONS:
        value = settings.get("transformer-ffn-activation")
        raise UserError(f"transformer-ffn-activation is {value!r}; known: {', '.join(ACTIVATIONS)}", where=path)
    return settings


def _decoder(folder: Path) -> dict[str, Any]:
    path = next((p for p in (folder / DECODER, *sorted(folder.glob(CONFIGS))) if p.is_file()), None)
    return {} if path is None else _yaml(path.read_bytes(), path)


def _languages(model: Path) -> dict[str, str]:
    """What the name of a file of Firefox says, such as model.ende.intgemm.alphas.bin."""
    named = re.search(r"\.([a-z]{2})([a-z]{2})\.", model.name)
    return {"source_lang": named[1], "target_lang": named[2]} if named else {}


def _yaml(text: bytes, path: Path) -> dict[str, Any]:
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise UserError("holds settings that are no YAML", where=path, remedy="copy it again") from None
    if not isinstance(value, dict):
        raise UserError("holds no settings", where=path, remedy="copy it again")
    return value


def _vocabulary_files(folder: Path, decoder: dict[str, Any], model: Path) -> tuple[Path, Path]:
    """Of source and target; decoder.yml names them, or there is no choice."""
    named = [folder / str(name) for name in decoder.get("vocabs") or []]
    paths = named or sorted(p for p in folder.iterdir() if "vocab" in p.name and p.suffix in (".yml", ".yaml", ".spm"))
    if len(paths) not in (1, 2):
        raise UserError(
            f"{len(paths)} vocabularies for {model.name}", where=folder, remedy=f"name two in {DECODER}, under vocabs"
        )
    return paths[0], paths[-1]


def _check_counts(
    vocabularies: tuple[dict[str, int], dict[str, int]], sizes: tuple[int, ...], files: tuple[Path, Path]
) -> None:
    """A SentencePiece model that is the vocabulary has a piece for every row of its table."""
    for vocabulary, size, path in zip(vocabularies, sizes, files, strict=True):
        if path.suffix == ".spm" and len(vocabulary) != size:
            raise UserError(
                f"has {len(vocabulary)} pieces, but the model has {size} words",
                where=path,
                remedy="vocabulary and model do not belong together",
            )


def _sentencepiece_file(folder: Path, side: str, vocabulary: Path) -> Path:
    """Of one side: the vocabulary itself may be one."""
    path = vocabulary if vocabulary.suffix == ".spm" else folder / MODEL_FILES[side]
    if not path.is_file():
        raise UserError(
            f"no such file: it cuts {side} sentences into pieces", where=path, remedy="only SentencePiece is known here"
        )
    return path


# Configuration


def _sizes(settings: dict[str, Any]) -> dict[str, Any]:
    """As transformers calls them; what is missing or no number is said where it is asked for."""
    feed_forward = settings.get("transformer-dim-ffn")
    return {
        "d_model": settings.get("dim-emb"),
        "encoder_layers": settings.get("enc-depth"),
        "decoder_layers": settings.get("dec-depth"),
        "encoder_attention_heads": settings.get("transformer-heads"),
        "decoder_attention_heads": settings.get("transformer-heads"),
        "encoder_ffn_dim": feed_forward,
        "decoder_ffn_dim": settings.get("transformer-decoder-dim-ffn") or feed_forward,
        "activation_function": settings["transformer-ffn-activation"],
    }


def _generation(decoder: dict[str, Any], target: dict[str, int], recurrent: bool) -> dict[str, Any]:
    """Marian never says <unk> unless it is told to. Models with recurrent units are made for greedy search."""
    unknown = target.get(SPECIAL["unk_token"])
    return {
        "num_beams": decoder.get("beam-size", 1 if recurrent else GenerationSection().beam),
        "length_penalty": decoder.get("normalize"),
        "bad_words_ids": [] if unknown is None else [[unknown]],
    }


def _norm(settings: dict[str, Any], path: Path) -> str:
    order = tuple(str(settings.get(f"transformer-{place}") or "") for place in ("preprocess", "postprocess", TOP))
    if order not in NORMS:
        raise UserError(f"transformer-preprocess, -postprocess and -{TOP} are {order}: no such model here", where=path)
    return NORMS[order]


# Weights


def _one_table(arrays: dict[str, np.ndarray]) -> bool:
    """Some versions store the one table of both sides under each of its names."""
    source, target = arrays.get("encoder_Wemb"), arrays.get("decoder_Wemb")
    return source is not None and target is not None and np.array_equal(source, target)


def _embeddings(names: _Names, side: str) -> np.ndarray:
    return names.first(f"{side}_Wemb", "Wemb", *(["decoder_ff_logit_out_Wt"] if side == "decoder" else []))


class _Names:
    """Marian's arrays under the names of transformers. Matrices lie the other way there."""

    def __init__(self, arrays: dict[str, np.ndarray], path: Path) -> None:
        self.arrays, self.path = arrays, path

    def first(self, *names: str) -> np.ndarray:
        found = next((self.arrays[name] for name in names if name in self.arrays), None)
        if found is None or found.ndim != 2:
            raise UserError(f"weight {names[0]!r} is missing", where=self.path, remedy="copy it again")
        return found

    def all(self, pre_norm: bool) -> dict[str, Tensor]:
        tensors: dict[str, np.ndarray] = {}
        for side in ("encoder", "decoder"):
            tensors[f"model.{side}.embed_tokens.weight"] = _with_row(_embeddings(self, side), 0.0)
            for number in range(self._layers(side)):
                tensors |= self._layer(side, number)
            if pre_norm:
                tensors |= self._norm(f"{side}_top", f"model.{side}.layer_norm")
        if "decoder_ff_logit_out_W" in self.arrays:
            tensors["lm_head.weight"] = _with_row(self.first("decoder_ff_logit_out_W").T, 0.0)
        bias = self.first("decoder_ff_logit_out_b")
        tensors["final_logits_bias"] = _with_row(bias.T, SILENT).T
        return {name: torch.from_numpy(np.array(array, dtype=np.float32)) for name, array in tensors.items()}

    def _layers(self, side: str) -> int:
        count = 0
        while any(f"{side}_l{count + 1}_{part}" in self.arrays for part in ("self_Wq", "rnn_W")):
            count += 1
        return count

    def _layer(self, side: str, number: int) -> dict[str, np.ndarray]:
        ours, theirs = f"model.{side}.layers.{number}.", f"{side}_l{number + 1}_"
        if f"{theirs}rnn_W" in self.arrays:
            found = self._recurrent_unit(f"{theirs}rnn", f"{ours}rnn")
        else:
            found = self._attention(f"{theirs}self", f"{ours}self_attn")
        if side == "decoder":
            found |= self._attention(f"{theirs}context", f"{ours}encoder_attn")
        for part in "12":
            found |= self._linear(f"{theirs}ffn", part, f"{ours}fc{part}")
        return found | self._norm(f"{theirs}ffn_ffn", f"{ours}final_layer_norm")

    def _attention(self, theirs: str, ours: str) -> dict[str, np.ndarray]:
        found = self._norm(f"{theirs}_Wo", f"{ours}_layer_norm")
        for part, name in ATTENTION.items():
            found |= self._linear(theirs, part, f"{ours}.{name}")
        return found

    def _recurrent_unit(self, theirs: str, ours: str) -> dict[str, np.ndarray]:
        found = self._norm(f"{theirs}_ffn", f"{ours}_layer_norm")
        found |= self._linear(theirs, "f", f"{ours}.forget")
        return found | {f"{ours}.value.weight": self.first(f"{theirs}_W").T}

    def _linear(self, theirs: str, part: str, ours: str) -> dict[str, np.ndarray]:
        weight, bias = self.first(f"{theirs}_W{part}"), self.first(f"{theirs}_b{part}")
        return {f"{ours}.weight": weight.T, f"{ours}.bias": bias.ravel()}

    def _norm(self, theirs: str, ours: str) -> dict[str, np.ndarray]:
        """In front of a layer's parts they are called so."""
        return {
            f"{ours}.{name}": self.first(f"{theirs}_ln_{part}_pre", f"{theirs}_ln_{part}").ravel()
            for part, name in (("scale", "weight"), ("bias", "bias"))
        }


def _with_row(table: np.ndarray, value: float) -> np.ndarray:
    """[V, d] -> [V + 1, d]: the row of <pad>"""
    return np.concatenate([table, np.full((1, table.shape[1]), value, dtype=table.dtype)])
