"""Glossaries as the checks want them: which terms of a source are not in its translation."""

from __future__ import annotations

from weitblick.documents.document import Document, Sentence
from weitblick.files.checks.findings import MissedTerms
from weitblick.memory.glossary import Glossary


def missed_terms(glossary: Glossary) -> MissedTerms:
    """A function from a source and its translation to the terms that are missing in it, inflected forms accepted."""

    def missed(source: str, target: str) -> list[tuple[str, str]]:
        _, found = glossary.check(Document("1", (Sentence(source, target),)))
        return [(miss.term.source, miss.term.target) for miss in found]

    return missed
