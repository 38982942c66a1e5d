"""The text pipeline of Marian models, as transformers' `MarianTokenizer` has it: a SentencePiece model for each side,
and vocabularies whose ids are not SentencePiece's.

Text is handed to SentencePiece as it is: what normalisation there is lies in its model. Two things differ on purpose:
`</s>` and the like, typed by a user, are text; and a translation is always on one line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import sentencepiece
from sacremoses import MosesPunctNormalizer

from weitblick.common.errors import UserError
from weitblick.common.files import read_json
from weitblick.text.base import UNK, Settings, Side, TextPipeline, Vocabulary, clean, without_surrogates

MODEL_FILES = {"source": "source.spm", "target": "target.spm"}
SETTINGS_FILE = "marian.json"
SPACE = "▁"
CODE = (">>", "<<")  # around a language, at the head of a source sentence of a multilingual model

# What transformers calls `clean_up_tokenization_spaces`.
_SPACES_TO_CLEAN_UP = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


@dataclass(frozen=True)
class MarianSettings:
    """code: the `>>xx<<` put before every source sentence that has none; decodes_with: whose SentencePiece model puts
    translations together; normalize_punctuation: Moses', on source sentences; clean_up_spaces: before punctuation."""

    code: str | None = None
    decodes_with: Literal["source", "target"] = "target"
    normalize_punctuation: bool = False
    clean_up_spaces: bool = False


class MarianPipeline(TextPipeline):
    kind = "marian"

    def __init__(
        self,
        models: tuple[bytes, bytes],
        languages: tuple[str, str],
        vocabularies: tuple[Vocabulary, Vocabulary],
        longest_sentence: int,
        settings: MarianSettings,
    ) -> None:
        super().__init__(languages, vocabularies, longest_sentence)
        self.models = {"source": models[0], "target": models[1]}
        self.settings = settings
        self._processors = {
            side: sentencepiece.SentencePieceProcessor(model_proto=model) for side, model in self.models.items()
        }
        self._normalize = MosesPunctNormalizer(languages[0]).normalize if settings.normalize_punctuation else None

    def encode(self, sentences: Sequence[str], side: Side) -> list[list[int]]:
        vocabulary = self.vocabulary(side)
        parts = [self._split(sentence, side) for sentence in sentences]
        encoded: list[list[str]] = self._processors[side].encode([text for _, text in parts], out_type=str)
        return [
            [vocabulary.id(piece) for piece in (*code, *pieces)] if pieces else []
            for (code, _), pieces in zip(parts, encoded, strict=True)
        ]

    def _split(self, sentence: str, side: Side) -> tuple[tuple[str, ...], str]:
        """A sentence's language code, its own or the pipeline's, and its text."""
        text = without_surrogates(sentence)
        own: tuple[str, ...] = ()
        if text.startswith(CODE[0]) and (end := text.find(CODE[1])) != -1:
            end += len(CODE[1])
            own, text = (text[:end],), text[end:]
        if side == "target":
            return own, text
        if self._normalize is not None and text:
            text = self._normalize(text)
        return own or (() if self.settings.code is None else (self.settings.code,)), text

    def decode(self, ids: Sequence[Sequence[int]], side: Side, sources: Sequence[str] | None = None) -> list[str]:
        which: Side = "source" if side == "source" else self.settings.decodes_with
        vocabulary, processor = self.vocabulary(side), self._processors[which]
        texts = []
        for sentence in ids:
            pieces = [vocabulary.token(number) for number in sentence if number > UNK]
            text = processor.decode_pieces(pieces).replace(SPACE, " ").strip() if pieces else ""
            if self.settings.clean_up_spaces:
                for spaced, joined in _SPACES_TO_CLEAN_UP:
                    text = text.replace(spaced, joined)
            texts.append(clean(text) if "\t" in text or len(text.splitlines()) > 1 else text)
        return texts

    def words(self, ids: Sequence[int], side: Side) -> list[tuple[int, int, str]]:
        pieces = self.pieces(ids, side)
        starts = [
            place
            for place, (number, piece) in enumerate(zip(ids, pieces, strict=True))
            if place == 0
            or number <= UNK
            or ids[place - 1] <= UNK
            or piece.startswith((SPACE, CODE[0]))
            or pieces[place - 1].endswith(CODE[1])
        ]
        ends = [*starts[1:], len(ids)][: len(starts)]
        return [
            (start, end, "".join(pieces[start:end]).replace(SPACE, " ").strip())
            for start, end in zip(starts, ends, strict=True)
        ]

    def _files(self) -> dict[str, bytes]:
        settings = json.dumps(asdict(self.settings), indent=1).encode()
        return {**{MODEL_FILES[side]: model for side, model in self.models.items()}, SETTINGS_FILE: settings}

    @classmethod
    def _restore(cls, folder: Path, settings: Settings) -> MarianPipeline:
        try:
            own = MarianSettings(**read_json(folder / SETTINGS_FILE))
        except TypeError as error:
            raise UserError(f"is damaged ({error})", where=folder / SETTINGS_FILE, remedy="import it anew") from None
        source, target = (sentencepiece_model(folder / name) for name in MODEL_FILES.values())
        return cls((source, target), *settings, own)


def sentencepiece_model(path: Path) -> bytes:
    """The bytes of a SentencePiece model, which it is checked to be."""
    try:
        model = path.read_bytes()
        sentencepiece.SentencePieceProcessor(model_proto=model)
    except FileNotFoundError:
        raise UserError("no such file", where=path, remedy="copy the whole folder again") from None
    except (OSError, RuntimeError) as error:
        raise UserError(f"is not a SentencePiece model ({error})", where=path, remedy="copy it again") from None
    return model
