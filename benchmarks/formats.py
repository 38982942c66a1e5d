"""What reading and writing a long Word file costs beside translating it: at most 5% is the aim.

    python benchmarks/formats.py [TEXT] [--pages 300] [--translated 2000] [--clock cpu]

TEXT is a file of sentences, a line each (a discourse corpus is generated if it is not named). A Word file of so many
pages (300 words each) is made of it, with bold words. Translating is measured on the first sentences
and counted up; reading, aligning and writing on all of it, with a translation of the right length.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import docx

from weitblick.documents.document import Document
from weitblick.files.formats import read_file
from weitblick.translation.translator import Translator

WORDS_A_PAGE = 300
SENTENCES_A_PARAGRAPH = 5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="?")
    parser.add_argument("--pages", type=int, default=30)
    parser.add_argument("--translated", type=int, default=300, help="sentences that are really translated")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu where others use the machine")
    options = parser.parse_args()
    now = time.process_time if options.clock == "cpu" else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.docx"
        words = _write(_sentences(options.text), path, options.pages)
        translator = Translator.load()
        start = now()
        file = read_file(path)
        veiled = file.veiled()
        reading = now() - start
        part = replace(veiled, sentences=veiled.sentences[: options.translated])
        start = now()
        translated = translator.translate(part)
        share = _words(part) / _words(veiled)
        translating = (now() - start) / share
        start = now()
        document, _ = file.unveiled(_filled(veiled, translated), translator.align)
        data, _ = file.rendered(document, translator.align)
        writing = now() - start
    print(f"{options.pages} pages, {words:,} words, {len(veiled.sentences):,} sentences, {len(data):,} bytes")
    print(f"reading     {reading:8.2f} s")
    print(f"translating {translating:8.2f} s ({words / translating:,.0f} words/s, of {share:.0%} of the text)")
    print(f"writing     {writing:8.2f} s (with alignments)")
    print(f"reading and writing are {(reading + writing) / translating:.1%} of translating")


def _sentences(text: str | None) -> list[str]:
    if text is not None:
        return [line for line in Path(text).read_text(encoding="utf-8").splitlines() if line.strip()]
    from weitblick.documents.discourse.generator import generate

    documents = generate("rich", 40, 1).train
    return [sentence.source for document in documents for sentence in document.sentences]


def _write(sentences: list[str], path: Path, pages: int) -> int:
    """A Word file of some pages; how many words it has."""
    document, words, number = docx.Document(), 0, 0
    while words < pages * WORDS_A_PAGE:
        paragraph = document.add_paragraph()
        for _ in range(SENTENCES_A_PARAGRAPH):
            sentence = sentences[number % len(sentences)]
            number += 1
            middle = sentence.split()
            words += len(middle)
            cut = len(middle) // 2
            paragraph.add_run(" ".join(middle[:cut]) + " ")
            run = paragraph.add_run(" ".join(middle[cut : cut + 1]))
            if number % 3 == 0:
                run.bold = True
            paragraph.add_run(" " + " ".join(middle[cut + 1 :]) + " ")
    document.save(str(path))
    return words


def _words(document: Document) -> int:
    return sum(len(source.split()) for source in document.sources)


def _filled(document: Document, translated: Document) -> Document:
    """The whole document with targets: those that there are, in turn, so that lengths are right."""
    targets = [sentence.target for sentence in translated.sentences]
    sentences = [replace(s, target=targets[n % len(targets)]) for n, s in enumerate(document.sentences)]
    return replace(document, sentences=tuple(sentences))


if __name__ == "__main__":
    main()
