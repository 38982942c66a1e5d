"""Plain prose: one document a file. Sentences are split by pysbd; what stands between them is kept as their metadata,
so that paragraphs, indents and spacing come back around the translation."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

from weitblick.common.characters import base_language
from weitblick.common.errors import UserError
from weitblick.documents.corpora.lines import sides_of
from weitblick.documents.corpora.reading import Inputs, LineSource, Located, refuse_second_side
from weitblick.documents.document import Document, Sentence

PARAGRAPH, TRAILING, LEADING = "paragraph", "trailing", "leading"
NARROWEST_WRAPPED = 40  # characters: shorter lines are lists and verse rather than wrapped text
PIECE = 4000  # characters given to pysbd at once, whose time grows faster than the text


class ProseSentence(NamedTuple):
    line: int
    paragraph: int
    text: str
    trailing: str


def read_prose(inputs: Inputs) -> Iterator[Located]:
    """Paragraphs of sentences. A blank line ends a paragraph; so does every line end, unless the text is wrapped."""
    languages = inputs.languages or ("en", "en")
    sides = [_sentences(source, language) for source, language in zip(inputs.sources, languages, strict=False)]
    (leading, sentences), *others = sides
    targets: list[str] | None = None
    if others:
        _check_parallel(inputs, sentences, others[0][1])
        targets = [sentence.text for sentence in others[0][1]]
    if not sentences:
        return
    name = Path(inputs.sources[0].path).name.split(".")[0] or "1"
    document = Document(
        "1" if name == "-" else name,
        tuple(
            Sentence(
                sentence.text,
                targets[position] if targets else None,
                metadata={PARAGRAPH: sentence.paragraph, TRAILING: sentence.trailing},
            )
            for position, sentence in enumerate(sentences)
        ),
        {LEADING: leading} if leading else {},
    )
    yield Located(document, tuple(sentence.line for sentence in sentences))


def _check_parallel(inputs: Inputs, sources: list[ProseSentence], targets: list[ProseSentence]) -> None:
    for source, target in zip(sources, targets, strict=False):
        if source.paragraph != target.paragraph:
            break
    else:
        if len(sources) == len(targets):
            return
        source, target = sources[-1], targets[-1]
    raise UserError(
        f"the sides do not have the same sentences: paragraph {source.paragraph} of {inputs.sources[0].path} "
        f"(line {source.line}) and paragraph {target.paragraph} here differ in length",
        where=inputs.sources[1].path,
        line=target.line,
        remedy="align the two sides sentence by sentence and give them as text",
    )


def _sentences(source: LineSource, language: str) -> tuple[str, list[ProseSentence]]:
    """The white space before the first sentence, and all sentences of the file."""
    split = sentence_splitter(language)
    leading = ""
    sentences: list[ProseSentence] = []
    paragraph = 0
    for block, first_line, space_after in _blocks(source):
        if not block:
            leading = space_after
            continue
        for line, text, ending in _paragraphs(block, first_line, space_after):
            paragraph += 1
            for text_of_sentence, trailing in split_exactly(text, split):
                if not text_of_sentence:  # an indent, which belongs behind the sentence before
                    if sentences:
                        last = sentences[-1]
                        sentences[-1] = last._replace(trailing=last.trailing + trailing)
                    else:
                        leading += trailing
                    continue
                sentences.append(ProseSentence(line, paragraph, text_of_sentence, trailing))
            last = sentences[-1]
            sentences[-1] = last._replace(trailing=last.trailing + ending)
    return leading, sentences


def _blocks(source: LineSource) -> Iterator[tuple[list[str], int, str]]:
    """Runs of lines that are not blank, the line each starts on, and the white space up to the next run."""
    block: list[str] = []
    space = ""
    first_line = 1
    for line in source:
        if not line.strip():
            space += line + "\n"
            continue
        if space:
            yield block, first_line, space
            block, space = [], ""
        if not block:
            first_line = source.count
        block.append(line)
    if block:
        yield block, first_line, space


def _paragraphs(block: list[str], first_line: int, space_after: str) -> Iterator[tuple[int, str, str]]:
    """First line, text and ending of each paragraph in a run of lines."""
    if _is_wrapped(block):
        text = "\n".join([block[0].rstrip(), *(line.strip() for line in block[1:])])
        yield first_line, text, "\n" + space_after
        return
    for offset, line in enumerate(block):
        yield first_line + offset, line, "\n" + (space_after if offset == len(block) - 1 else "")


def _is_wrapped(lines: list[str]) -> bool:
    """Lines are wrapped if none but the last could have taken the next line's first word as well."""
    width = max(len(line.rstrip()) for line in lines)
    return width >= NARROWEST_WRAPPED and all(
        len(line.rstrip()) + 1 + len(following.split()[0]) > width for line, following in pairwise(lines)
    )


Splitter = Callable[[str], list[str]]
WHITE = re.compile(r"\s*")
ONE_SENTENCE = re.compile(r"[^\W\d_]+(?:[ ,'’-]+[^\W\d_]+)*[.!?]?")
"""Words and commas, at most one mark and that at the end: where pysbd, which takes milliseconds for any text, would not
cut either."""


@cache
def sentence_splitter(language: str) -> Splitter:
    """pysbd's rules for a language; English ones where it has none."""
    import pysbd
    from pysbd.languages import LANGUAGE_CODES
    from pysbd.utils import TextSpan

    class Segmenter(pysbd.Segmenter):  # type: ignore[misc]
        """pysbd's, without a regular expression for every sentence: compiling those took most of its time."""

        def sentences_with_char_spans(self, sentences: list[str]) -> list[TextSpan]:
            text: str = self.original_text
            return [TextSpan(text[start:end], start, end) for start, end in places_of(sentences, text)]

    code = base_language(language)
    own = threading.local()  # a segmenter for each thread: it keeps the text that it is at

    def segment(text: str) -> list[str]:
        if not hasattr(own, "segmenter"):
            own.segmenter = Segmenter(language=code if code in LANGUAGE_CODES else "en", clean=False)
        segments: list[str] = own.segmenter.segment(text)
        return segments

    def split(text: str) -> list[str]:
        if ONE_SENTENCE.fullmatch(text):
            return [text]
        segments: list[str] = []
        carried, position = "", 0
        while position < len(text):
            end = text.find(" ", position + max(PIECE, len(carried)))
            end = len(text) if end < 0 else end
            segments += segment(carried + text[position:end])
            position = end
            if position < len(text):  # the last sentence of a piece may go on in the next
                carried = segments.pop() if segments else ""
        return segments

    return split


def places_of(sentences: Iterable[str], text: str) -> Iterator[tuple[int, int]]:
    """The places of sentences, each with the white space behind it: the first that ends behind the one before. What is
    not in the text has none."""
    last = 0
    for sentence in sentences:
        start = text.find(sentence)
        while start >= 0:
            white = WHITE.match(text, start + len(sentence))
            assert white is not None  # it may be empty
            end = white.end()
            if end > last:
                yield start, end
                last = end
                break
            start = text.find(sentence, max(end, start + 1))


def split_exactly(text: str, split: Splitter) -> Iterator[tuple[str, str]]:
    """Sentences and the white space behind each, which together are the text (white space first if it leads), but
    for line ends inside a sentence.

    The splitter only proposes: a segment that it changed is not found in the text, and then no cut is made there.
    """
    unwrapped = text.replace("\n", " ")
    start = len(text) - len(text.lstrip())
    if start:
        yield "", text[:start]
    end = start
    ends: list[int] = []
    for segment in split(unwrapped):
        segment = segment.strip()
        # A segment that was changed is skipped; one far ahead would only be another sentence of the same words.
        found = unwrapped.find(segment, end, end + 3 * len(segment) + 200) if segment else -1
        if found >= 0:
            end = found + len(segment)
            ends.append(end)
    length = len(text.rstrip())
    for end in [*ends[:-1], length]:
        if end <= start or (end < length and not text[end].isspace()):
            continue  # nothing left, or a cut inside a word
        space = len(text) - len(text[end:].lstrip()) if end < length else len(text)
        yield unwrapped[start:end], text[end:space]
        start = space


def write_prose(documents: Iterable[Document], streams: Sequence[IO[str]], paths: Sequence[str | Path]) -> None:
    """The documents as running text, with the white space that they were read with."""
    sides = sides_of(streams, paths, "prose")
    for number, document in enumerate(documents):
        if number:
            raise sides[0][0].refuse(f"a second document ({document.id!r})", "write one file for each document")
        if len(sides) == 1:
            refuse_second_side(document, sides[0][0])
        for writer, side in sides:
            writer.stream.write(document.metadata.get(LEADING, ""))
            for position, sentence in enumerate(document.sentences):
                text = side(sentence, writer, document)
                writer.check(text)
                following = document.sentences[position + 1] if position + 1 < len(document.sentences) else None
                trailing = sentence.metadata.get(TRAILING, _usual_space(sentence, following))
                writer.stream.write(text + trailing)
                writer.count += trailing.count("\n")


def _usual_space(sentence: Sentence, following: Sentence | None) -> str:
    if following is None:
        return "\n"
    return " " if sentence.metadata.get(PARAGRAPH) == following.metadata.get(PARAGRAPH) else "\n\n"
