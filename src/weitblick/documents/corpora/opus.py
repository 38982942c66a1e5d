"""Europarl as OPUS has it: an xces file of sentence links, and a folder of XML documents for each language.

A speaker's turn is a document (SPEAKER is the delimiter), as in the paper, which kept those longer than 5 sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.documents.corpora.evaluation_sets import events
from weitblick.documents.corpora.reading import Inputs, LineSource, Located
from weitblick.documents.document import Document, Sentence

LONGER_THAN = 5


@dataclass(frozen=True)
class _Spoken:
    text: str
    turn: int
    speaker: str | None


@dataclass
class _Group:
    """The links between two files."""

    line: int
    files: tuple[str, str]
    links: list[tuple[int, list[str], list[str]]]


def read_opus(inputs: Inputs) -> Iterator[Located]:
    """The xces links, and (if it is not the folder of the links) the folder that their file names start from."""
    links = inputs.sources[0]
    root = Path(inputs.sources[1].path) if len(inputs.sources) > 1 else Path(links.path).parent
    for group in _groups(links):
        swap = inputs.languages is not None and _language(group.files[0]) == inputs.languages[1] != inputs.languages[0]
        order = (1, 0) if swap else (0, 1)
        sides = [_spoken(_find(root, group.files[side], links, group.line)) for side in order]
        for located in _turns(group, sides, order, links):
            if len(located.document.sentences) > LONGER_THAN:
                yield located


def _groups(links: LineSource) -> Iterator[_Group]:
    group: _Group | None = None
    for kind, name, line, attributes in events(links):
        if name == "linkgrp" and kind == "start":
            group = _Group(line, (attributes.get("fromdoc", ""), attributes.get("todoc", "")), [])
        elif name == "linkgrp" and group is not None:
            yield group
            group = None
        elif name == "link" and kind == "start" and group is not None:
            sides = attributes.get("xtargets", "").split(";")
            if len(sides) != 2:
                raise UserError(
                    f"xtargets {attributes.get('xtargets')!r} is not two lists of sentence ids",
                    where=links.path,
                    line=line,
                )
            group.links.append((line, sides[0].split(), sides[1].split()))
    if group is not None:
        raise UserError("ends inside a <linkGrp>", where=links.path, line=links.count, remedy="fetch the file again")


def _language(file: str) -> str:
    return Path(file).parts[0] if file else ""


def _find(root: Path, file: str, links: LineSource, line: int) -> Path:
    plain = file.removesuffix(".gz")
    if Path(plain).is_absolute() or ".." in Path(plain).parts or not plain:
        raise UserError(f"{file!r} is not a file name below the corpus", where=links.path, line=line)
    for folder in (root, root / "xml", root / "raw", root / "Europarl" / "xml", root / "Europarl" / "raw"):
        for name in (plain, plain + ".gz", plain + ".xz"):
            if (folder / name).is_file():
                return folder / name
    raise UserError(f"{file} is not below {root}", where=links.path, line=line, remedy="name the corpus folder second")


def _spoken(path: Path) -> dict[str, _Spoken]:
    """All sentences of a file by id. Sentences outside of any turn (agenda, headings) get turns of their own."""
    sentences: dict[str, _Spoken] = {}
    turn, speaker, inside = 0, None, False
    id: str | None = None
    text: list[str] = []
    for kind, name, _, attributes in events(LineSource(path)):
        if kind == "text":
            text.append(name)
        elif name in ("speaker", "chapter") and (kind == "start" or inside):
            # SPEAKER either encloses a turn or is an empty element before it: it closes only what it encloses.
            turn, inside = turn + 1, False
            speaker = attributes.get("name") if name == "speaker" else None
        elif name == "s" and kind == "start":
            id, text, inside = attributes.get("id", str(len(sentences) + 1)), [], True
        elif name == "s" and id is not None:
            sentences[id] = _Spoken(" ".join("".join(text).split()), turn, speaker)
            id = None
        elif name == "w" and kind == "end":
            text.append(" ")
    return sentences


def _turns(
    group: _Group, sides: list[dict[str, _Spoken]], order: tuple[int, int], links: LineSource
) -> Iterator[Located]:
    """Linked sentences, joined where a link has several, in documents by the turn of the source side."""
    turn: int | None = None
    speaker: str | None = None
    sentences: list[Sentence] = []
    lines: list[int] = []
    stem = Path(group.files[0]).name.split(".")[0]

    def finished() -> Iterator[Located]:
        if sentences:
            metadata = {"speaker": speaker} if speaker else {}
            yield Located(Document(f"{stem}:{turn}", tuple(sentences), metadata), tuple(lines))

    for line, *ids in group.links:
        if not ids[0] or not ids[1]:
            continue  # a sentence without a translation
        try:
            spoken = [[side[id] for id in ids[which]] for side, which in zip(sides, order, strict=True)]
        except KeyError as error:
            raise UserError(
                f"links sentence {error}, which is in neither {group.files[0]} nor {group.files[1]}",
                where=links.path,
                line=line,
                remedy="use the links that belong to these files",
            ) from None
        first = spoken[0][0]
        if first.turn != turn:
            yield from finished()
            turn, speaker, sentences, lines = first.turn, first.speaker, [], []
        source, target = (" ".join(sentence.text for sentence in side) for side in spoken)
        sentences.append(Sentence(source, target))
        lines.append(line)
    yield from finished()
