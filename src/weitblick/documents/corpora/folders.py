"""A corpus in a folder: which files are its train, dev or test part."""

from __future__ import annotations

from pathlib import Path

COMPRESSIONS = ("", ".gz", ".xz")
WHOLE = ("jsonl", "tsv", "tmx")
"""Endings of files that hold both sides."""


def files_of_part(folder: str | Path, part: str, languages: tuple[str, str]) -> list[str]:
    """`train.en train.de`, or one file of both sides such as `train.tsv`, or what `data split` calls them without
    knowing languages. If there is none of these, the first, for the message that it is missing."""
    choices = [
        [f".{language}" for language in languages],
        *([f".{ending}"] for ending in WHOLE),
        [".source", ".target"],
    ]
    for endings in choices:
        paths = [_with_compression(f"{folder}/{part}{ending}") for ending in endings]
        if all(Path(path).is_file() for path in paths):
            return paths
    return [f"{folder}/{part}{ending}" for ending in choices[0]]


def _with_compression(path: str) -> str:
    return next((path + ending for ending in COMPRESSIONS if Path(path + ending).is_file()), path)
