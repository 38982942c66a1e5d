"""What people corrected in a document, as terms, and the drafts that say a refused word again: offered, not applied."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from weitblick.memory.corrections import terms_of_corrections
from weitblick.memory.terms import Term, Terms
from weitblick.translation.document_job import DocumentJob
from weitblick.workbench.filling import may_change
from weitblick.workbench.retranslation import (
    NewlyApproved,
    NewPair,
    OfferedCorrection,
    corrections_in,
    offered_corrections,
)
from weitblick.workbench.schema import Edit, Segment
from weitblick.workbench.workbench import Workbench


@dataclass(frozen=True)
class Corrected:
    """A word that people put in the place of another, for some source words; rows: others whose sources have these."""

    source: str
    refused: str
    target: str
    origin: str
    rows: list[int]


@dataclass(frozen=True)
class Offers:
    """What was corrected, and the drafts that would change, each with its reason."""

    corrected: list[Corrected]
    drafts: list[OfferedCorrection]


def offers(workbench: Workbench, document: str, position: int | None = None) -> Generator[None, None, Offers]:
    """Steps to what the corrections of a document have to offer, in the engine's thread. position: only what was
    corrected in this row; no drafts are looked at then."""
    segments, translator = workbench.store.segments(document), workbench.service.engine.translator
    pairs = _corrected_rows(workbench, document, [row for row in segments if position in (None, row.position)])
    languages = (translator.pipeline.source_language, translator.pipeline.target_language)
    terms = terms_of_corrections(corrections_in(pairs), translator.align, languages) if pairs else []
    yield
    if not terms or position is not None:
        return Offers([_corrected(term, segments, languages) for term in terms], [])
    drafts = [row.position for row in segments if may_change(row)]
    job = DocumentJob(translator, workbench.as_document(document, segments), workbench.options(document), drafts)
    for _ in job.prepare():
        yield
    found = offered_corrections(job, NewlyApproved(pairs, *workbench.vocabularies))
    return Offers([_corrected(term, segments, languages) for term in terms], found)


def _corrected_rows(workbench: Workbench, document: str, segments: list[Segment]) -> list[NewPair]:
    """Confirmed rows that were drafts and say something else now."""
    mask = workbench.masks.of(document)
    found = []
    for row in segments:
        before = _draft_before(workbench.store.edits(document, row.position)) if row.state == "confirmed" else ""
        if before and before != row.target:
            position = row.position
            source, target = mask.row(row).source, mask.text(position, row.target)
            found.append(NewPair(source, target, position, mask.text(position, before)))
    return found


def _draft_before(edits: list[Edit]) -> str:
    """What the model had said before a person wrote in the row; nothing if nobody has changed it."""
    return next((edit.before for edit in reversed(edits) if edit.state_before == "draft"), "")


def _corrected(term: Term, segments: list[Segment], languages: tuple[str, str]) -> Corrected:
    index = Terms([term], *languages)
    rows = [row.position for row in segments if row.state != "confirmed" and index.occurrences(row.source)]
    return Corrected(term.source, term.refused, term.target, term.origin, rows)
