"""The rows of files: of a source and its translation in any format, or of one file that holds both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.files.blocks import WORD, Block, Code
from weitblick.files.checks.findings import Limits, Row
from weitblick.files.checks.rules import TAG
from weitblick.files.formats import FILE_FORMATS, format_of, read_file
from weitblick.files.translatable_file import COPY, REFERENCE, TranslatableFile
from weitblick.memory.reading import is_table, table_rows

SUBTITLES = ("srt", "vtt", "ass")
CUE_TAG = re.compile(r"<[^<>]*>|\{[^{}]*\}")
XLIFF_LANGUAGES = re.compile(
    r"<(?:\w+:)?(?:file|xliff)\b[^>]*?\s(?:source-language|srcLang)\s*=\s*[\"']([\w-]+)[\"']"
    r"(?:[^>]*?\s(?:target-language|trgLang)\s*=\s*[\"']([\w-]+)[\"'])?"
)
HTML_TAG = re.compile(r"^<(/?(?:a|abbr|b|em|i|img|span|strong|code|q|cite|sub|sup|u|s|small))\b[^<>]*>$")
"""Tags of web pages, whose attributes (title, href) may be others in another language."""
UNSHOWN = re.compile("[\ufdd0-\ufdef]")  # what readers put before marks
PO_LANGUAGE = re.compile(r"^\"Language:\s*([A-Za-z_-]+)", re.MULTILINE)


@dataclass(frozen=True)
class CheckedFile:
    """The rows of a file, and the languages that it says it is in, if it does."""

    rows: list[Row]
    source_language: str | None = None
    target_language: str | None = None


def rows_of_pair(source: str | Path, target: str | Path, format: str | None = None) -> CheckedFile:
    """The rows of a source and its translation. Blocks (paragraphs, cues, messages) belong together by their names or,
    where they have none, by their order."""
    kinds = [format if format in FILE_FORMATS else format_of(path) for path in (source, target)]
    if None in kinds:
        return CheckedFile(list(_corpus_rows([Path(source), Path(target)])))
    if kinds[0] != kinds[1]:
        raise UserError(f"is {kinds[1]}, and the source is {kinds[0]}", where=target, remedy="name two of one format")
    ours, theirs = read_file(source, kinds[0]), read_file(target, kinds[1])
    return CheckedFile(list(_paired(ours, theirs)))


def rows_of_bilingual(path: str | Path, languages: tuple[str, str], format: str | None = None) -> CheckedFile:
    """The rows of a file that holds sources and translations: XLIFF, PO, CSV, TMX, TSV, JSONL."""
    path = Path(path)
    kind = format if format in FILE_FORMATS else format_of(path) if format is None else None
    if kind not in ("xliff", "po", "csv"):
        return CheckedFile(list(_bilingual_corpus(path, kind, languages)), *languages)
    file = read_file(path, kind)
    blocks = [block for block in file.content.blocks if block.part != COPY]
    rows = [_bilingual_row(number, block) for number, block in enumerate(blocks, 1)]
    if not any(block.bilingual for block in blocks):
        raise UserError("holds no translations", where=path, remedy="name the source and its translation: two files")
    return CheckedFile(rows, *_declared(kind, file.content.parts[""]))


def _bilingual_row(number: int, block: Block) -> Row:
    given = block.given or ("", ())
    target = _reads(*given)
    tagged = bool(block.given)
    return Row(
        number,
        _reads(block.text, block.codes),
        target,
        block.id,
        _tags(block.codes) if tagged else None,
        _tags(given[1]) if tagged else None,
    )


def _declared(kind: str, text: str) -> tuple[str | None, str | None]:
    if kind == "xliff" and (found := XLIFF_LANGUAGES.search(text)):
        return found[1], found[2]
    if kind == "po" and (named := PO_LANGUAGE.search(text)):
        return None, named[1].replace("_", "-")
    return None, None


def _bilingual_corpus(path: Path, kind: str | None, languages: tuple[str, str]) -> Iterator[Row]:
    if kind is not None and not is_table(path):
        raise UserError(
            "holds no translations", where=path, remedy="name the source and its translation: weitblick check A B"
        )
    if is_table(path):
        for number, (source, target, _) in enumerate(table_rows(path, languages), 1):
            yield Row(number, source, target or "")
        return
    yield from _corpus_rows([path], languages)


def _corpus_rows(paths: Sequence[Path], languages: tuple[str, str] | None = None) -> Iterator[Row]:
    from weitblick.documents.corpora.formats import read_documents

    number = 0
    for document in read_documents(paths, languages=languages):
        for sentence in document.sentences:
            number += 1
            if sentence.target is None:
                raise UserError("holds no translations", where=paths[0], remedy="name the translation as well")
            yield Row(number, sentence.source, sentence.target, sentence.id)


def _paired(ours: TranslatableFile, theirs: TranslatableFile) -> Iterator[Row]:
    mine, others = _spoken(ours), _spoken(theirs)
    names = [block.id for block in mine]
    named = all(names) and len(set(names)) == len(names)
    by_name = {block.id: block for block in others} if named else {}
    if not named and len(mine) != len(others):
        raise UserError(
            f"has {len(others)} texts, and the source has {len(mine)}",
            where=theirs.path,
            remedy="name the translation of this very file",
        )
    raw = theirs.content.parts
    for number, block in enumerate(mine, 1):
        other = by_name.get(block.id) if named else others[number - 1]
        limits = None
        if other is not None and theirs.format in SUBTITLES:
            lines = CUE_TAG.sub("", raw[other.part][other.start : other.end]).replace("\\N", "\n").split("\n")
            limits = Limits(seconds=other.seconds, lines=tuple(line.strip() for line in lines))
        target = "" if other is None else _reads(other.text, other.codes)
        tags = None if other is None else _tags(other.codes)
        own_tags = None if tags is None else _tags(block.codes)
        yield Row(number, _reads(block.text, block.codes), target, block.id, own_tags, tags, limits)


def _spoken(file: TranslatableFile) -> list[Block]:
    return [block for block in file.content.blocks if block.part != COPY and block.reads.strip()]


def _reads(text: str, codes: Sequence[Code]) -> str:
    """A text as people read it; a code that has no text to show is its tag."""
    words = (code for code in codes if code.kind == "word")
    shown = iter(code.raw if code.raw and _stands_for_itself(code) else code.shown for code in words)
    return " ".join("".join(next(shown) if letter == WORD else letter for letter in text).split("\n"))


def _tags(codes: Sequence[Code]) -> tuple[str, ...]:
    """The inline codes of a file that do not stand in its text, without what may differ between two languages."""
    raw = (code.raw for code in codes if code.raw and code.kind not in ("break", "word"))
    return tuple(HTML_TAG.sub(r"<\1>", UNSHOWN.sub("", REFERENCE.sub("", one))) for one in raw)


def _stands_for_itself(code: Code) -> bool:
    return code.shown.startswith("⟦") and TAG.fullmatch(code.raw or "") is not None
