"""Tokens and their ids."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from weitblick.errors import UserError
from weitblick.files import check_format_version, read_json, write_json
from weitblick.text.special import SPECIAL_TOKENS, UNK

FORMAT_VERSION = 1


class Vocabulary:
    """Ordinary tokens numbered from 4 on, behind the special ids.

    Looking up text never gives a special id other than UNK: a user may type `</s>`, and it may even be an ordinary
    token of its own.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens: tuple[str, ...] = (*SPECIAL_TOKENS, *tokens)
        first = len(SPECIAL_TOKENS)
        self._ids = {token: number for number, token in enumerate(self.tokens[first:], first)}
        if len(self._ids) != len(self.tokens) - first:
            raise ValueError("a vocabulary with the same token twice")

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"

    def id(self, token: str) -> int:
        return self._ids.get(token, UNK)

    def token(self, number: int) -> str:
        return self.tokens[number]

    def save(self, path: str | Path) -> None:
        write_json(path, {"format_version": FORMAT_VERSION, "tokens": self.tokens[len(SPECIAL_TOKENS) :]})

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        value = read_json(path)
        check_format_version(value, FORMAT_VERSION, path)
        tokens = value.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise UserError("has no list of tokens", where=path, remedy="restore the file from the run that wrote it")
        if len(set(tokens)) != len(tokens):
            raise UserError(
                "holds the same token twice", where=path, remedy="restore the file from the run that wrote it"
            )
        return cls(tokens)
