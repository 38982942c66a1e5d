"""Marian's vocabularies: a line of YAML for each word, or a SentencePiece model whose numbers are used."""

from __future__ import annotations

import re
from pathlib import Path

import sentencepiece
import yaml

from weitblick.errors import UserError
from weitblick.text.marian_pipeline import sentencepiece_model

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
