"""`check` finds what was put wrong on purpose, where it was put, and leaves sound sentences alone."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from weitblick.documents.checking import Finding, cleaned, examine, line_counts_differ, line_shift, shared_sentences
from weitblick.documents.corpora.formats import Corpus, read_documents, write_documents
from weitblick.documents.document import Document, Sentence

ENGLISH = "the house of our old friend stands near that river and we often walk there with her children in spring"
GERMAN = "das Haus unseres alten Freundes steht nahe dem Fluss und wir gehen dort oft mit ihren Kindern im Frühling"


def sound_corpus(documents: int = 12, sentences: int = 10) -> list[Document]:
    """Aligned word for word, so that lengths agree, and varied, so that they differ between sentences."""
    rng = random.Random(5)
    pairs = list(zip(ENGLISH.split(), GERMAN.split(), strict=False))

    def sentence() -> Sentence:
        words = rng.choices(pairs, k=rng.randint(4, 30))
        return Sentence(" ".join(w[0] for w in words), " ".join(w[1] for w in words))

    return [Document(str(n), tuple(sentence() for _ in range(sentences))) for n in range(1, documents + 1)]


def findings(documents: list[Document], held_out: set[bytes] | None = None) -> list[Finding]:
    write_documents(documents, ["c.en", "c.de"], "d-lines")
    return [finding for _, found in examine(Corpus(["c.en", "c.de"], lenient=True), held_out) for finding in found]


def with_sentence(documents: list[Document], document: int, sentence: int, **changes: str) -> list[Document]:
    sentences = list(documents[document].sentences)
    sentences[sentence] = replace(sentences[sentence], **changes)  # type: ignore[arg-type]
    changed = list(documents)
    changed[document] = replace(documents[document], sentences=tuple(sentences))
    return changed


def test_a_sound_corpus_passes() -> None:
    assert findings(sound_corpus()) == []


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("empty", {"target": ""}),
        ("empty", {"source": " "}),
        ("copied", {"source": GERMAN[:60], "target": GERMAN[:60]}),
        ("wrong-language", {"target": ENGLISH, "source": ENGLISH[:-10] + "summer"}),
        ("wrong-language", {"source": GERMAN, "target": GERMAN[:-8] + "Herbst"}),
        ("length-ratio", {"source": "the house", "target": GERMAN}),
    ],
)
def test_a_fault_is_found_on_its_line(kind: str, changes: dict[str, str]) -> None:
    found = findings(with_sentence(sound_corpus(), 3, 4, **changes))
    # Three documents of ten sentences and four `<d>` lines come before it.
    assert [(f.kind, f.line, f.document, f.sentence) for f in found] == [(kind, 39, "4", 5)]


def test_a_shifted_translation_and_a_repeated_document_are_found() -> None:
    documents = sound_corpus()
    targets = documents[2].targets
    torn = zip(documents[2].sentences, [targets[-1], *targets[:-1]], strict=True)
    documents[2] = replace(documents[2], sentences=tuple(replace(s, target=t) for s, t in torn))
    documents[5] = replace(documents[4], id="6")
    assert line_shift(documents[2]) == 1
    whole = [(f.kind, f.document) for f in findings(documents) if f.sentence is None]
    assert whole == [("misaligned", "3"), ("duplicate", "6")]


def test_held_out_documents_are_found_and_shared_formulas_left() -> None:
    """Also where the held-out text is tokenised; a document with one sentence of it stays whole."""
    documents = sound_corpus()
    tokenised = [replace(s, source=f"{s.source.replace(' ', '  ')} .") for s in documents[3].sentences]
    write_documents([replace(documents[3], sentences=tuple(tokenised))], ["h.en", "h.de"], "d-lines")
    held_out = shared_sentences([Corpus(["h.en", "h.de"])])
    long = next(s for s in documents[3].sentences if len(s.source.split()) >= 8)
    formula = with_sentence(documents, 7, 2, source=long.source, target=long.target or "")
    write_documents(formula, ["c.en", "c.de"], "d-lines")
    found = list(examine(Corpus(["c.en", "c.de"], lenient=True), held_out, by_document=True))
    assert [(f.kind, f.document, f.sentence) for _, own in found for f in own] == [("held-out", "4", None)]
    assert [cleaned(*pair) is None for pair in found].index(True) == 3


def test_held_out_sentences_are_found() -> None:
    documents = sound_corpus()
    leaked = next(n for n, s in enumerate(documents[7].sentences) if len(s.source.split()) >= 8)
    write_documents([Document("x", (Sentence(documents[7].sources[leaked].upper()),))], ["test.en"])
    found = findings(documents, shared_sentences([Corpus(["test.en"])]))
    assert [(f.kind, f.document, f.sentence) for f in found] == [("held-out", "8", leaked + 1)]


def test_files_of_different_length_are_read_to_the_end_and_named() -> None:
    documents = sound_corpus()
    write_documents(documents, ["c.en", "c.de"])
    lines = Path("c.de").read_text().splitlines()
    Path("c.de").write_text("\n".join(lines[:-3]) + "\n")
    corpus = Corpus(["c.en", "c.de"], lenient=True)
    found = [finding for _, of_document in examine(corpus) for finding in of_document]
    assert [(f.kind, f.line) for f in found] == [("empty", len(lines) - n) for n in (2, 1, 0)]
    misaligned = line_counts_differ(corpus)
    assert misaligned is not None
    assert misaligned.line == len(lines) - 2


@pytest.mark.parametrize("format", ["text", "d-lines"])
def test_cleaning_leaves_the_sound_rest(format: str) -> None:
    documents = with_sentence(sound_corpus(), 1, 0, target="x")
    write_documents(documents, ["c.en", "c.de"], format)
    kept = (cleaned(*examined) for examined in examine(Corpus(["c.en", "c.de"], lenient=True)))
    write_documents((d for d in kept if d), ["o.en", "o.de"], format)
    sources = [d.sources for d in read_documents(["o.en", "o.de"])]
    assert sources == [d.sources[1:] if n == 1 else d.sources for n, d in enumerate(documents)]
