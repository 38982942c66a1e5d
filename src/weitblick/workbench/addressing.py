"""The form of address of a project: new drafts and completions follow it, and drafts that address people in the other
way are translated again when it is set. Setting it back makes them again what they were, as long as nobody has seen to
them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from weitblick.text.address import Form, forms_of_address
from weitblick.translation.options import Formality
from weitblick.workbench.filling import may_change
from weitblick.workbench.schema import FORMALITY, Segment

if TYPE_CHECKING:
    from weitblick.workbench.engine import Steps, Work
    from weitblick.workbench.workbench import Workbench


class Addressing:
    """Sets how people are addressed in the documents of projects."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._running: dict[str, Work] = {}  # by document
        self._lock = threading.Lock()

    def of(self, project: str) -> Formality:
        """What drafts of a project are asked for: what is set, if this model can be asked for it."""
        return self._workbench.store.formality(project) if self._workbench.service.knows_formality else "auto"

    def set(self, project: str, formality: Formality) -> None:
        """Sets the form of address. Drafts that were changed for the one before, and that nobody has seen to, are as
        before; those that address people in another way than is set now are translated again."""
        workbench = self._workbench
        workbench.service.check_formality(formality)
        if workbench.store.formality(project) == formality:
            return
        workbench.store.set_formality(project, formality)
        for document in workbench.store.documents(project):
            self.stop(document.id)
            changed = [row for row in workbench.store.segments(document.id) if _is_changed(row)]
            if changed:
                workbench.undo_changes(document.id, {row.position: row.version for row in changed})
            if formality != "auto":
                with self._lock:
                    self._running[document.id] = workbench.service.engine.run(self._steps(document.id, formality))

    def stop(self, document: str) -> None:
        """Drafts that have not been translated again yet stay as they are."""
        with self._lock:
            running = self._running.pop(document, None)
        if running is not None:
            running.cancel()

    # In the engine's thread

    def _steps(self, document: str, form: Form) -> Steps:
        workbench, segments = self._workbench, self._workbench.store.segments(document)
        order = [row.position for row in segments if may_change(row) and self._shows_other(row, form)]
        whole, options = workbench.as_document(document, segments), workbench.options(document)
        done, changed = 0, 0
        for finished in workbench.service.engine.document_steps(whole, options, order) if order else ():
            said = {position: found[0].text for position, found in finished.items() if found}
            for position, target in workbench.unmasked(document, said, options).items():
                before = segments[position]
                if position in workbench.presence.under_cursor(document) or not self._shows(before, target, form):
                    continue
                row = workbench.store.translate(document, position, target, before, FORMALITY)
                if row is not None and row != before:
                    changed += 1
                    workbench.tell(document, row)
            done += len(finished)
            told = {"done": done, "total": len(order), "changed": changed, "cause": FORMALITY}
            workbench.hub.publish(document, "improving", told)
            yield

    def _shows_other(self, row: Segment, form: Form) -> bool:
        """Whether a draft addresses somebody, and not only in this form."""
        shown = forms_of_address(row.source, row.target, self._workbench.service.languages.target)
        return bool(shown) and shown != {form}

    def _shows(self, row: Segment, target: str, form: Form) -> bool:
        """Whether a new draft is what was asked for: it does not address anybody in the other form."""
        return forms_of_address(row.source, target, self._workbench.service.languages.target) <= {form}


def _is_changed(row: Segment) -> bool:
    return row.before is not None and row.cause == FORMALITY
