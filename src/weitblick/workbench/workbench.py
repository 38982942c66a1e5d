"""What happens at the workbench: documents fill with translations, and what is confirmed improves the rest."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from weitblick.documents.document import Document, Sentence
from weitblick.files.masked_document import mask_pair
from weitblick.files.translatable_file import TranslatableFile
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import Translation
from weitblick.workbench.addressing import Addressing
from weitblick.workbench.checks import Checks
from weitblick.workbench.completing import Completing
from weitblick.workbench.consistency import Vocabulary
from weitblick.workbench.domain import DomainJudge
from weitblick.workbench.engine import Steps, Work
from weitblick.workbench.errors import Changed, Refused
from weitblick.workbench.events import Hub
from weitblick.workbench.filling import Filling, may_change
from weitblick.workbench.placeholders import MaskedMemory, RowMasks
from weitblick.workbench.presence import Presence
from weitblick.workbench.previews import PreviewPages
from weitblick.workbench.retranslation import NewlyApproved, NewPair
from weitblick.workbench.row_acts import RowActs
from weitblick.workbench.schema import APPROVED, Segment, Write, Written
from weitblick.workbench.searching import Replacement, Searching, replace_targets
from weitblick.workbench.store import Store
from weitblick.workbench.terms import BY_KEY, ProjectTerms, checked_term

if TYPE_CHECKING:
    from weitblick.workbench.service import Service

BEAM = 4  # hypotheses among which alternatives are found
ALTERNATIVES = 3
MOST_NEW = 1000


class Workbench:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.store: Store = service.store
        self.hub = Hub()
        self._filling: dict[str, Work] = {}
        self._improving: dict[str, Work] = {}
        self._new: defaultdict[str, list[NewPair]] = defaultdict(list)  # approved, and not yet seen by all drafts
        self._expected: Work | None = None  # the row that is being made ready for typing
        self._lock = threading.Lock()  # of these
        self.presence = Presence(self.hub)
        self.previews = PreviewPages()
        self._vocabulary = Vocabulary(service.languages.source)
        self._target_vocabulary = Vocabulary(service.languages.target)
        self.masks = RowMasks(self.store, service.languages.source, service.alphabet)
        self.checks = Checks(self.store, self.masks, service.languages)
        self.searching = Searching()
        self.terms = ProjectTerms(self.store, service.languages)
        self.acts = RowActs(self)
        self.addressing = Addressing(self)
        self.completing = Completing(self)
        self.domain = DomainJudge(self)
        self.filling = Filling(self, self.tell, self.unmasked)

    def add(self, project: str, name: str, read: TranslatableFile, file: bytes) -> str:
        """A new document of a file, which begins to fill with translations."""
        document = self.store.add_document(project, name, read.document.sentences, file, read.notes_of())
        self.masks.remember(document, read)
        self.fill(document)
        return document

    def fill(self, document: str) -> None:
        """Translates the rows that are empty, unless that is going on already."""
        running = self._filling.get(document)
        empty = any(segment.state == "empty" for segment in self.store.segments(document))
        if empty and (running is None or running.result.done()):
            self._filling[document] = self.service.engine.run(self.filling.steps(document))

    def expect_typing(self, document: str, position: int) -> None:
        """Somebody has come to a row and may type in it: it is made ready to be completed."""
        with self._lock:
            expected, self._expected = self._expected, None
        if expected is not None:
            expected.cancel()
        expected = self.service.engine.run(self.completing.prepare(document, position), urgent=True)
        with self._lock:
            self._expected = expected

    def edit(self, document: str, position: int, write: Write) -> Segment:
        """A person's change. A confirmed row makes the drafts anew; one that is opened again leaves the memory. All
        tabs are told, also when it is refused because the row has been written elsewhere since it was seen."""
        if write.state in APPROVED and not write.target.strip():
            raise Refused(409, f"an empty translation cannot be {write.state}")
        self.checks.refuse_unholdable(document, position, write.target)
        try:
            written = self.store.edit(document, position, write)
        except Changed:
            self.hub.publish(document, "refused", {"position": position, "writer": write.writer})
            raise
        if written.edit is not None:
            self.tell(document, written.after)
            self.learn(document, [written])
        return written.after

    def learn(self, document: str, written: Sequence[Written]) -> None:
        """Drafts are made anew with what has just been approved in other rows."""
        mask, new, edit = self.masks.of(document), [], 0
        for one in written:
            before, after = one.before, one.after
            if after.is_approved and not (before.is_approved and before.target == after.target):
                pair = mask.source(after.position), mask.text(after.position, after.target)
                new.append(NewPair(*pair, after.position, mask.row(before).target))
                edit = one.edit or edit
                if one.edit is not None:
                    self._repeat(document, after, one.edit)
        if new:
            self._improve(document, edit, new)

    def _repeat(self, document: str, confirmed: Segment, cause: int) -> None:
        """Drafts of the very same source say what was confirmed; each of them can be taken back by itself."""
        held = self.presence.under_cursor(document)
        for row in self.store.segments(document):
            same = row.source == confirmed.source and row.position != confirmed.position
            if same and row.target != confirmed.target and row.position not in held and may_change(row):
                repeated = self.store.translate(
                    document, row.position, confirmed.target, row, cause, "repetition", 100, confirmed.source
                )
                if repeated is not None:
                    self.tell(document, repeated)

    def approve_term(self, document: str, source: str, target: str) -> int:
        """A word and its translation, for the whole project; drafts of this document are made anew with it."""
        project, term = self.store.document(document).project, checked_term(source, target)
        (pair,) = self.store.add_pairs(project, "term", [(term.source, term.target)], BY_KEY)
        self._improve(document, -pair, [replace(self._imported(term.source, term.target), term=term)])
        return pair

    def withdraw_term(self, document: str, pair: int) -> list[Segment]:
        """A term is none any more; drafts that changed because of it, and that nobody has seen to, are as before."""
        self.store.remove_pair(self.store.document(document).project, pair)
        rows = [row for row in self.store.segments(document) if row.before is not None and row.cause == -pair]
        undone, _ = self.undo_changes(document, {row.position: row.version for row in rows})
        return undone

    def refresh(self, project: str, imported: Sequence[tuple[str, str]]) -> None:
        """Drafts of all documents are made anew where imported pairs change them."""
        new = [self._imported(*pair) for pair in imported]
        for document in self.store.documents(project):
            self._improve(document.id, 0, new, urgent=False)

    def _imported(self, source: str, target: str) -> NewPair:
        pair = mask_pair(source, target, self.service.languages.source, self.service.alphabet)
        return NewPair(pair.source, pair.target)

    def keep(self, document: str, position: int, version: int, by: Write | None = None) -> Segment:
        """A changed draft becomes again what it was, and is a person's choice from now on."""
        kept = self.store.keep(document, position, version, by)
        self.tell(document, kept)
        return kept

    def accept(self, document: str, position: int, version: int) -> Segment:
        """A changed draft stays as it is, and counts as seen to."""
        accepted = self.store.accept(document, position, version)
        self.tell(document, accepted)
        return accepted

    def undo_changes(
        self, document: str, seen: Mapping[int, int], by: Write | None = None
    ) -> tuple[list[Segment], list[Segment]]:
        """Changes that nobody has seen to are taken back; what is still being made anew is left. The second list has
        the rows that are something else by now than what was seen."""
        self.stop_improving(document)
        undone, left = self.store.undo_changes(document, seen, by)
        self.tell(document, *undone)
        return undone, left

    def accept_changes(self, document: str, seen: Mapping[int, int]) -> tuple[list[Segment], list[Segment]]:
        """Changes that nobody has seen to stay, as `undo_changes` has it."""
        accepted, left = self.store.accept_changes(document, seen)
        self.tell(document, *accepted)
        return accepted, left

    def replace_targets(
        self,
        document: str,
        found: Sequence[Replacement],
        seen: Mapping[int, int],
        *,
        confirmed: bool,
        writer: str | None = None,
        person: str | None = None,
    ) -> tuple[list[Segment], list[Segment]]:
        """What replacing makes of rows is written as one step, which `undo_changes` takes back. The second list has the
        rows that are something else by now than what was seen, or that somebody types in, and are left."""
        held = self.presence.held_by_others(document, writer, seen)
        after = {one.row.position: one.after for one in found if one.row.position not in held}
        for position in after.keys() & seen.keys():
            self.checks.refuse_unholdable(document, position, after[position])
        done, left = replace_targets(self.store, document, after, seen, confirmed, writer, person)
        self.tell(document, *done)
        return done, left

    def delete_document(self, document: str) -> None:
        self._stop(document)
        self.store.delete_document(document)

    def delete_project(self, project: str) -> None:
        for document in self.store.documents(project):
            self._stop(document.id)
        self.store.delete_project(project)

    def as_document(self, document: str, segments: Sequence[Segment]) -> Document:
        """For the model: confirmed rows are locked, drafts and edited ones are drafts."""
        mask = self.masks.of(document)
        return Document(document, tuple(as_sentence(mask.row(segment)) for segment in segments))

    def memory_of(self, document: str) -> MaskedMemory | None:
        """What the model reads of the project's memory when it translates this document."""
        project = self.store.document(document).project
        memory = self.service.memory_of(project)
        if memory is None:
            return None
        rows = self.service.memories.rows(project, document)
        masked = MaskedMemory(
            memory, self.masks.of(document), rows, self.service.languages.source, self.service.alphabet
        )
        self.service.engine.translator.approvals.trust(masked)
        return masked

    def alternatives(self, document: str, position: int) -> Generator[None, None, list[str]]:
        """Steps to other translations of one row than the one that stands there."""
        segments = self.store.segments(document)
        if not 0 <= position < len(segments):
            raise Refused(404, "no such segment")
        current = segments[position]
        open_row = replace(current, state="empty", target="")
        whole = self.as_document(document, [open_row if s.position == position else s for s in segments])
        options = replace(self.options(document), beam=BEAM, n_best=BEAM)
        found: list[str] = []
        for finished in self.service.engine.document_steps(whole, options, [position]):
            for translation in finished.get(position, ()):
                found += self.unmasked(document, {position: translation.text}, options).values()
            yield
        return [text for text in dict.fromkeys(found) if text != current.target][:ALTERNATIVES]

    # In the engine's thread

    def _improve(self, document: str, cause: int, new: Sequence[NewPair], *, urgent: bool = True) -> None:
        """Drafts are translated again where something new changes them; what was begun for an earlier confirmation is
        part of this. A model that reads neither approved translations nor those of other rows would say the same again,
        and is not asked."""
        if not self.service.learns and not any(pair.term for pair in new):
            return
        with self._lock:
            running = self._improving.pop(document, None)
            if running is not None:
                running.cancel()
            self._new[document] += new
            steps = self._improvement(document, cause)
            self._improving[document] = self.service.engine.run(steps, urgent=urgent)

    def _improvement(self, document: str, cause: int) -> Steps:
        news = tuple(self._new[document])
        told = news if len(news) <= MOST_NEW else ()  # of so much that is new all drafts have some words
        segments = self.store.segments(document)
        under_cursor = self.presence.under_cursor(document)
        confirmed = {row.source: row.target for row in segments if row.state == "confirmed"}
        free = (row for row in segments if may_change(row) and confirmed.get(row.source) != row.target)
        drafts = [row.position for row in free if row.position not in under_cursor]
        model = self.service.engine.translator.model
        approved = NewlyApproved.of(told, model, self._vocabulary, self._target_vocabulary)
        yield from self._translate(document, segments, drafts, cause, approved)
        with self._lock:
            self._new[document] = [pair for pair in self._new[document] if pair not in news]

    def _translate(
        self,
        document: str,
        segments: Sequence[Segment],
        order: list[int],
        cause: int,
        approved: NewlyApproved,
    ) -> Steps:
        """`cause`: the edit for which drafts are translated again, where what it `approved` may change them."""
        whole = self.as_document(document, segments)
        done, changed = 0, 0
        engine, options = self.service.engine, self.options(document)
        for finished in engine.document_steps(whole, options, order, approved):
            said = {position: translations[0].text for position, translations in finished.items() if translations}
            shown = self.unmasked(document, said, options)
            if approved.changes_some_words:
                kept = {p for p, found in finished.items() if found and _keeps_new_term(found[0], approved)}
                merged = self._merged(segments, {p: text for p, text in shown.items() if p not in kept}, approved)
                shown = {**shown, **merged}
            for position, translations in finished.items():
                before = segments[position]
                target = shown.get(position, before.target or before.source)
                if not translations or position in self.presence.under_cursor(document):
                    continue
                segment = self.store.translate(document, position, target, before, cause)
                if segment is not None and segment != before:
                    changed += 1
                    self.tell(document, segment)
            done += len(finished)
            told = {"done": done, "total": len(order), "changed": changed, "cause": cause}
            self.hub.publish(document, "improving", told)
            yield

    def _merged(self, segments: Sequence[Segment], shown: dict[int, str], approved: NewlyApproved) -> dict[int, str]:
        """Drafts that have just been translated again, with those changes only that have a reason."""
        changed = [p for p, text in shown.items() if segments[p].target.strip() and text != segments[p].target]
        pairs = [(segments[position].source, shown[position]) for position in changed]
        alignments = self.service.engine.translator.align(pairs) if pairs else []
        merged = {
            position: approved.merge(segments[position].source, segments[position].target, shown[position], alignment)
            for position, alignment in zip(changed, alignments, strict=True)
        }
        return {**shown, **merged}

    def unmasked(self, document: str, said: dict[int, str], options: TranslationOptions) -> dict[int, str]:
        """What the model says for some rows as people read it."""
        engine, again = self.service.engine, replace(options, n_best=1)
        align = engine.translator.align
        return self.masks.of(document).unmask(said, align, lambda lost: engine.translated(lost, again))

    def options(self, document: str) -> TranslationOptions:
        """How the rows of a document are translated: with the memory, the terms and the form of address of its
        project."""
        project = self.store.document(document).project
        terms, formality = self.terms.of(project), self.addressing.of(project)
        return TranslationOptions(memory=self.memory_of(document), terms=terms, formality=formality)

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The words of both languages."""
        return self._vocabulary, self._target_vocabulary

    def tell(self, document: str, *segments: Segment) -> None:
        """Tells all tabs what rows are now."""
        for segment in segments:
            self.hub.publish(document, "segment", segment_json(segment))

    def _stop(self, document: str) -> None:
        self.stop_improving(document)
        self.addressing.stop(document)
        if (running := self._filling.pop(document, None)) is not None:
            running.cancel()
        self.presence.forget(document)
        self.previews.forget(document)
        self.masks.forget(document)
        self.filling.forget(document)

    def stop_improving(self, document: str) -> None:
        """Drafts that have not been made anew yet stay as they are."""
        with self._lock:
            running = self._improving.pop(document, None)
            self._new.pop(document, None)
        if running is not None:
            running.cancel()


def _keeps_new_term(translation: Translation, approved: NewlyApproved) -> bool:
    """Whether a draft has changed for the sake of a term that is new, and of nothing else."""
    return any(use.changed and use.term in approved.terms for use in translation.terms)


def as_sentence(segment: Segment) -> Sentence:
    if segment.is_approved:
        return Sentence(segment.source, segment.target, "locked")
    if segment.state == "empty" or not segment.target.strip():
        return Sentence(segment.source)
    return Sentence(segment.source, segment.target, "draft")


def segment_json(segment: Segment) -> dict[str, Any]:
    return asdict(segment)
