"""What happens at the workbench: documents fill with translations, and what is confirmed improves the rest."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from weitblick.documents.document import Document, Sentence
from weitblick.formats.pairs import veiled_pair
from weitblick.server.consistency import Vocabulary
from weitblick.server.engine import Steps, Work
from weitblick.server.errors import Refused
from weitblick.server.events import Hub
from weitblick.server.reasons import Reasons
from weitblick.server.records import Segment, State
from weitblick.server.store import Store
from weitblick.server.veiling import VeiledMemory, Veils
from weitblick.translation.job import NewPair
from weitblick.translation.options import TranslationOptions

if TYPE_CHECKING:
    from weitblick.server.service import Service

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
        self._lock = threading.Lock()  # of these
        self._focus: dict[str, int] = {}
        self._vocabulary = Vocabulary(service.languages.source)
        self._target_vocabulary = Vocabulary(service.languages.target)
        self.veils = Veils(self.store, service.languages.source)

    def add(self, project: str, name: str, sentences: Sequence[Sentence], file: bytes) -> str:
        document = self.store.add_document(project, name, sentences, file)
        if any(sentence.status == "locked" for sentence in sentences):
            self.service.memories.reload(project)
        self.fill(document)
        return document

    def fill(self, document: str) -> None:
        """Translates the rows that are empty, unless that is going on already."""
        running = self._filling.get(document)
        empty = any(segment.state == "empty" for segment in self.store.segments(document))
        if empty and (running is None or running.result.done()):
            self._filling[document] = self.service.engine.run(self._fill(document))

    def focus(self, document: str, position: int | None) -> None:
        """The row under the cursor, which the model leaves alone."""
        if position is None:
            self._focus.pop(document, None)
        else:
            self._focus[document] = position

    def edit(self, document: str, position: int, target: str, state: State) -> Segment:
        """A human's change. A confirmed row makes the drafts anew; one that is opened again leaves the memory."""
        before = self.store.segment(document, position)
        if before.target == target and before.state == state and before.change is None:
            return before
        if state == "confirmed" and not target.strip():
            raise Refused(409, "an empty translation cannot be confirmed")
        segment, edit = self.store.edit(document, position, target, state)
        self._tell(document, segment)
        project = self.store.document(document).project
        if state == "confirmed":
            self.service.memories.confirm(project, document, position, segment.source, target)
            veil = self.veils.of(document)
            new = NewPair(veil.row(segment).source, veil.text(position, target), position, veil.row(before).target)
            self._improve(document, edit, [new])
        elif before.state == "confirmed":
            self.service.memories.reopen(project, document, position)
        return segment

    def approve_term(self, document: str, source: str, target: str) -> int:
        """A word and its translation, for the whole project; drafts of this document are made anew with it."""
        project = self.store.document(document).project
        (pair,) = self.store.add_pairs(project, "term", [(source, target)], "approved term")
        self.service.memories.reload(project)
        self._improve(document, -pair, [self._imported(source, target)])
        return pair

    def refresh(self, project: str, imported: Sequence[tuple[str, str]]) -> None:
        """Drafts of all documents are made anew where imported pairs change them."""
        new = [self._imported(*pair) for pair in imported]
        for document in self.store.documents(project):
            self._improve(document.id, 0, new, urgent=False)

    def _imported(self, source: str, target: str) -> NewPair:
        pair = veiled_pair(source, target, self.service.languages.source)
        return NewPair(pair.source, pair.target)

    def keep(self, document: str, positions: Iterable[int]) -> list[Segment]:
        """Changed drafts become again what they were, and are a human's choice from now on."""
        kept = [self.store.keep(document, position, "edited") for position in positions]
        for segment in kept:
            self._tell(document, segment)
        return kept

    def undo(self, document: str) -> list[Segment]:
        """All changes that nobody has seen to yet are taken back; what is still being made anew is left."""
        self._stop_improving(document)
        changed = [segment.position for segment in self.store.segments(document) if segment.change is not None]
        undone = [self.store.keep(document, position, "draft") for position in changed]
        for segment in undone:
            self._tell(document, segment)
        return undone

    def delete_document(self, document: str) -> None:
        project = self.store.document(document).project
        self._stop(document)
        self.store.delete_document(document)
        self.service.memories.reload(project)

    def delete_project(self, project: str) -> None:
        for document in self.store.documents(project):
            self._stop(document.id)
        self.store.delete_project(project)
        self.service.memories.reload(project)

    def as_document(self, document: str, segments: Sequence[Segment]) -> Document:
        """For the model: confirmed rows are locked, drafts and edited ones are drafts."""
        veil = self.veils.of(document)
        return Document(document, tuple(as_sentence(veil.row(segment)) for segment in segments))

    def memory_of(self, document: str) -> VeiledMemory | None:
        """What the model reads of the project's memory when it translates this document."""
        project = self.store.document(document).project
        memory = self.service.memory_of(project)
        if memory is None:
            return None
        rows = self.service.memories.rows(project, document)
        veiled = VeiledMemory(memory, self.veils.of(document), rows, self.service.languages.source)
        self.service.engine.translator.approvals.trust(veiled)
        return veiled

    def alternatives(self, document: str, position: int) -> Generator[None, None, list[str]]:
        """Steps to other translations of one row than the one that stands there."""
        segments = self.store.segments(document)
        if not 0 <= position < len(segments):
            raise Refused(404, "no such segment")
        current = segments[position]
        open_row = replace(current, state="empty", target="")
        whole = self.as_document(document, [open_row if s.position == position else s for s in segments])
        options = replace(self._options(document), beam=BEAM, n_best=BEAM)
        found: list[str] = []
        for finished in self.service.engine.document_steps(whole, options, [position]):
            for translation in finished.get(position, ()):
                found += self._lifted(document, {position: translation.text}, options).values()
            yield
        return [text for text in dict.fromkeys(found) if text != current.target][:ALTERNATIVES]

    # In the engine's thread

    def _fill(self, document: str) -> Steps:
        self._take_over(document)
        yield
        segments = self.store.segments(document)
        empty = [segment.position for segment in segments if segment.state == "empty"]
        yield from self._translate(document, segments, empty, None)

    def _take_over(self, document: str) -> None:
        """Empty rows whose very source has been approved in the project become drafts that say the same."""
        approved = self.service.memories.approved(self.store.document(document).project)
        for segment in self.store.segments(document) if approved else ():
            target = approved.get(segment.source)
            if segment.state == "empty" and target is not None:
                taken = self.store.translate(document, segment.position, target, segment)
                if taken is not None:
                    self._tell(document, taken)

    def _improve(self, document: str, cause: int, new: Sequence[NewPair], *, urgent: bool = True) -> None:
        """Drafts are translated again where something new changes them; what was begun for an earlier confirmation is
        part of this. A model that reads neither approved translations nor those of other rows would say the same again,
        and is not asked."""
        if not self.service.learns:
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
        focus = self._focus.get(document)
        drafts = [segment for segment in segments if segment.state == "draft" and segment.position != focus]
        concerned = None
        if told and self._vocabulary.knows_function_words:
            concerned = concerned_by([pair.source for pair in told], drafts, told[-1].index, self._vocabulary)
        order = list(dict.fromkeys([*(concerned or ()), *(draft.position for draft in drafts)]))
        yield from self._translate(document, segments, order, cause, told, concerned)
        with self._lock:
            self._new[document] = [pair for pair in self._new[document] if pair not in news]

    def _translate(
        self,
        document: str,
        segments: Sequence[Segment],
        order: list[int],
        cause: int | None,
        news: Sequence[NewPair] = (),
        concerned: Sequence[int] | None = None,
    ) -> Steps:
        """`cause`: the edit for which drafts are translated again, where that may change them; None: they are empty."""
        whole = self.as_document(document, segments)
        done, changed = 0, 0
        engine, options = self.service.engine, self._options(document)
        kind = "progress" if cause is None else "improving"
        reasons = self._reasons(news)
        new = news if reasons is None else reasons.telling
        steps = engine.document_steps(
            whole, options, order, pulled_only=cause is not None, new=new, concerned=concerned
        )
        for finished in steps:
            said = {position: translations[0].text for position, translations in finished.items() if translations}
            shown = self._lifted(document, said, options)
            if reasons is not None:
                shown = self._mended(segments, shown, reasons)
            for position, translations in finished.items():
                before = segments[position]
                target = shown.get(position, before.target or before.source)
                if cause is not None and (not translations or self._focus.get(document) == position):
                    continue
                segment = self.store.translate(document, position, target, before, cause)
                if segment is not None and segment != before:
                    changed += 1
                    self._tell(document, segment)
            done += len(finished)
            self.hub.publish(document, kind, {"done": done, "total": len(order), "changed": changed, "cause": cause})
            yield

    def _reasons(self, news: Sequence[NewPair]) -> Reasons | None:
        """What may change a draft because of these pairs. None: anything may, since nothing is new, or too much, or
        since the model reads context for every word."""
        model = self.service.engine.translator.model
        if not news or (model.reads_translations and model.decides is None):
            return None
        pronouns = frozenset(model.section.decides) if model.decides is not None else frozenset[str]()
        return Reasons(news, self._vocabulary, self._target_vocabulary, pronouns)

    def _mended(self, segments: Sequence[Segment], shown: dict[int, str], reasons: Reasons) -> dict[int, str]:
        """Drafts that have just been translated again, with those changes only that have a reason."""
        changed = [p for p, text in shown.items() if segments[p].target.strip() and text != segments[p].target]
        pairs = [(segments[position].source, shown[position]) for position in changed]
        alignments = self.service.engine.translator.align(pairs) if pairs else []
        mended = {
            position: reasons.mended(segments[position].source, segments[position].target, shown[position], alignment)
            for position, alignment in zip(changed, alignments, strict=True)
        }
        return {**shown, **mended}

    def _lifted(self, document: str, said: dict[int, str], options: TranslationOptions) -> dict[int, str]:
        """What the model says for some rows as people read it."""
        engine, again = self.service.engine, replace(options, n_best=1)
        align = engine.translator.align
        return self.veils.of(document).lifted(said, align, lambda lost: engine.translated(lost, again))

    def _options(self, document: str) -> TranslationOptions:
        return TranslationOptions(memory=self.memory_of(document))

    def _tell(self, document: str, segment: Segment) -> None:
        self.hub.publish(document, "segment", segment_json(segment))

    def _stop(self, document: str) -> None:
        self._stop_improving(document)
        running = self._filling.pop(document, None)
        if running is not None:
            running.cancel()
        self._focus.pop(document, None)
        self.veils.forget(document)

    def _stop_improving(self, document: str) -> None:
        with self._lock:
            running = self._improving.pop(document, None)
            self._new.pop(document, None)
        if running is not None:
            running.cancel()


def as_sentence(segment: Segment) -> Sentence:
    if segment.state == "confirmed":
        return Sentence(segment.source, segment.target, "locked")
    if segment.state == "empty" or not segment.target.strip():
        return Sentence(segment.source)
    return Sentence(segment.source, segment.target, "draft")


def segment_json(segment: Segment) -> dict[str, Any]:
    return asdict(segment)


def concerned_by(
    sources: Sequence[str], drafts: Sequence[Segment], position: int | None, vocabulary: Vocabulary
) -> list[int]:
    """The drafts that have a telling word of newly approved sources: those that share most of them first, the rarer the
    word the more, of equal ones the nearest to a position."""
    words = {draft.position: vocabulary.terms(draft.source) for draft in drafts}
    spread = Counter(word for own in words.values() for word in own)
    wanted = {word for source in sources for word in vocabulary.terms(source)}

    def concern(draft: Segment) -> tuple[float, int]:
        shared = sum(1 / spread[word] for word in wanted & words[draft.position])
        return -shared, abs(draft.position - position) if position is not None else draft.position

    concerned = [draft for draft in drafts if wanted & words[draft.position]]
    return [draft.position for draft in sorted(concerned, key=concern)]
