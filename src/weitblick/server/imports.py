"""Memories and glossaries that are brought along: TMX, JSONL, or tables with columns of source and target."""

from __future__ import annotations

from weitblick.memory.reading import read_pairs as read_memory
from weitblick.server.files import ENDING, own_folder


def read_pairs(name: str, content: bytes, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Source and target of every pair of a file."""
    ending = ENDING.search(name.lower())
    with own_folder(name) as folder:
        path = folder / f"memory{ending.group() if ending else '.tsv'}"
        path.write_bytes(content)
        return [(source, target) for source, target, _ in read_memory(path, languages)]
