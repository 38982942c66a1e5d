"""The one thread that has the model, and the queue before it.

What it promises:
- A request that comes alone is begun at once; requests that wait together go through the model together. Clients that
  were answered together have a moment to come again together: else they would fall into two halves, of which one
  always waits for the other.
- Work of many steps (a long document) takes turns with requests and with other such work: nobody waits for the end of
  a document, only for the end of a step.
- What comes out does not depend on what else was in the batch.
- Work that nobody wants any more is not done: not begun, or left after its present step.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from weitblick.common.errors import UserError
from weitblick.common.process import release_free_memory
from weitblick.documents.document import Document
from weitblick.translation.document_job import DocumentJob, Finished
from weitblick.translation.kept_states import KeptStates
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import TranslatedDocument
from weitblick.translation.translator import Translator
from weitblick.workbench.errors import Closed, Refused, log_failure
from weitblick.workbench.retranslation import NewlyApproved, retranslation_steps

WINDOW_TOKENS = 1024
"""Source tokens of requests that are translated together; a request of more is done in steps."""

REGROUPING = 1 / 8
"""Of the time that a window took: how long those who were answered have to come again before others are begun without
them."""

GIVE_BACK_SECONDS = 30.0
"""After so long, free memory is given back to the system."""

Steps = Generator[Any, None, Any]


class Work:
    """Something handed in: its result, and a way to say that nobody waits for it any more."""

    def __init__(self) -> None:
        self.result: Future[Any] = Future()
        self.unwanted = False

    def cancel(self) -> None:
        self.unwanted = True
        self.result.cancel()

    def begin(self) -> bool:
        """Whether it is still wanted; from here on its result is certain to come, unless it is cancelled."""
        return not self.unwanted and (self.result.running() or self.result.set_running_or_notify_cancel())

    def fail(self, error: BaseException) -> None:
        if self.result.running() or self.result.set_running_or_notify_cancel():
            self.result.set_exception(error)


class Request(Work):
    """Documents to translate at once."""

    def __init__(self, documents: Sequence[Document], options: TranslationOptions) -> None:
        super().__init__()
        self.documents, self.options = documents, options
        self.tokens = tokens_of(documents)


class Task(Work):
    """Work in steps: a generator that does some of it at each turn and returns the result."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self.steps = steps


@dataclass
class Done:
    """What has been done since the start."""

    sentences: int = 0
    tokens: int = 0
    windows: int = 0


@dataclass
class _Queues:
    requests: deque[Request] = field(default_factory=deque)
    urgent: deque[Task] = field(default_factory=deque)
    patient: deque[Task] = field(default_factory=deque)

    def all(self) -> list[Work]:
        return [*self.requests, *self.urgent, *self.patient]


class RegroupingDelay:
    """How long the next window waits for clients that were answered together and may come again."""

    def __init__(self) -> None:
        self._requests, self._until = 0, 0.0

    def start(self, requests: int, seconds: float) -> None:
        """After a window that took so many seconds; with all who may come again so many requests will wait."""
        self._requests, self._until = requests, monotonic() + REGROUPING * seconds

    def seconds_left(self, waiting: int) -> float:
        """Nothing if so many wait as may come."""
        return self._until - monotonic() if waiting < self._requests else 0.0


def tokens_of(documents: Sequence[Document]) -> int:
    """About how many tokens a model will see: a token is four characters, and every sentence has an end."""
    return sum(len(sentence.source) // 4 + 2 for document in documents for sentence in document.sentences)


class Engine:
    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self.done = Done()
        self._queues = _Queues()
        self.kept = KeptStates()
        self._regrouping = RegroupingDelay()
        self._changed = threading.Condition()
        self._closing = False
        self._gave_back = monotonic()
        self._thread = threading.Thread(target=self._run, name="weitblick-engine", daemon=True)
        self._thread.start()

    def translate(self, documents: Sequence[Document], options: TranslationOptions) -> Work:
        """Documents to translate; the result is a list of `TranslatedDocument`."""
        request = Request(documents, options)
        if request.tokens > WINDOW_TOKENS:
            return self.run(self._in_steps(request))
        self._put(self._queues.requests, request)
        return request

    def run(self, steps: Steps, *, urgent: bool = False) -> Work:
        """Work in steps. Urgent work takes its turns apart from the patient kind."""
        task = Task(steps)
        self._put(self._queues.urgent if urgent else self._queues.patient, task)
        return task

    def call(self, function: Callable[[], Any]) -> Work:
        """A function that needs the model, run when its turn comes."""

        def steps() -> Steps:
            return function()
            yield

        return self.run(steps(), urgent=True)

    def document_steps(
        self,
        document: Document,
        options: TranslationOptions,
        order: Sequence[int] | None = None,
        approved: NewlyApproved | None = None,
    ) -> Generator[Finished, None, None]:
        """The sentences of a document as they are finished: to be gone through in steps of `run`. order: as of
        `DocumentJob`; approved: only drafts that these pairs are a reason to translate again."""
        job = DocumentJob(self.translator, document, options, order, self.kept)
        for finished in job.steps() if approved is None else retranslation_steps(job, approved):
            sentences = tuple(document.sentences[index] for index in finished if finished[index])
            self.done.sentences += len(sentences)
            self.done.tokens += tokens_of([replace(document, sentences=sentences)])
            yield finished

    def translated(self, document: Document, options: TranslationOptions) -> Document:
        """A few sentences at once, for work that has its turn: in the engine's thread only."""
        return self.translator.translate_window([document], options)[0].document

    def close(self) -> None:
        """Ends after the present step; what is left is answered with `Closed`."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        for work in self._queues.all():
            work.fail(Closed("the server is going down"))

    def _put(self, queue: deque[Any], work: Work) -> None:
        with self._changed:
            if self._closing:
                raise Closed("the server is going down")
            queue.append(work)
            self._changed.notify()

    def _in_steps(self, request: Request) -> Generator[None, None, list[TranslatedDocument]]:
        """A long request, document after document."""
        results = []
        for document in request.documents:
            found: Finished = {}
            for finished in self.document_steps(document, request.options):
                found |= finished
                yield
            results.append(translated_document(document, found))
        return results

    # The thread

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._queues.all() or self._closing):
                    self._changed.wait()
                self._wait_to_regroup()
                if self._closing:
                    return
                window = self._take_window()
                turns = [(queue, queue.popleft()) for queue in (self._queues.urgent, self._queues.patient) if queue]
            self._translate(window)
            for queue, task in turns:
                if _advance(task):
                    with self._changed:
                        queue.append(task)
            if monotonic() - self._gave_back > GIVE_BACK_SECONDS:
                release_free_memory()
                self._gave_back = monotonic()

    def _wait_to_regroup(self) -> None:
        """Those who have just been answered come again, or a moment passes. Work in steps is done meanwhile instead."""
        while not (self._closing or self._queues.urgent or self._queues.patient):
            left = self._regrouping.seconds_left(len(self._queues.requests))
            if left <= 0:
                return
            self._changed.wait(left)

    def _take_window(self) -> list[Request]:
        """The first request, and all others that can go with it, up to a window."""
        window: list[Request] = []
        kept: list[Request] = []
        for request in self._queues.requests:
            tokens = sum(other.tokens for other in window) + request.tokens
            if request.unwanted:
                continue
            fits = not window or (tokens <= WINDOW_TOKENS and request.options == window[0].options)
            (window if fits else kept).append(request)
        self._queues.requests.clear()  # not a new queue: somebody may be about to join this one
        self._queues.requests.extend(kept)
        return window

    def _translate(self, window: Sequence[Request]) -> None:
        window = [request for request in window if request.begin()]
        if not window:
            return
        start = monotonic()
        try:
            results = self._translated(window)
        except Exception as error:
            if len(window) == 1:
                window[0].fail(error)
            else:  # one of them is at fault: each alone, so that the others are answered
                for request in window:
                    self._translate([request])
            return
        with self._changed:
            self._regrouping.start(len(window) + len(self._queues.requests), monotonic() - start)
        for request, result in zip(window, results, strict=True):
            request.result.set_result(result)

    def _translated(self, window: Sequence[Request]) -> list[list[TranslatedDocument]]:
        documents = [document for request in window for document in request.documents]
        options = window[0].options
        if self._nothing_to_read(documents):
            options = replace(options, passes=1)
        translated = iter(self.translator.translate_window(documents, options))
        self.done.windows += 1
        self.done.sentences += sum(len(document.sentences) for document in documents)
        self.done.tokens += tokens_of(documents)
        return [[next(translated) for _ in request.documents] for request in window]

    def _nothing_to_read(self, documents: Sequence[Document]) -> bool:
        """Whether a second pass would find no translations but each sentence's own, which is no context. (With frozen
        context states the first pass is another model's, and drafts are read in the second.)"""
        if self.translator.model.frozen is not None:
            return False
        if any(len(document.sentences) > 1 for document in documents):
            return False
        sentences = [sentence for document in documents for sentence in document.sentences]
        split = self.translator.pipeline.split_long
        return all(sentence.status is None and len(split(sentence.source)) == 1 for sentence in sentences)


def _advance(task: Task) -> bool:
    """One step; whether there are more."""
    if not task.begin():
        task.steps.close()
        return False
    try:
        next(task.steps)
    except StopIteration as end:
        task.result.set_result(end.value)
    except Exception as error:
        if not isinstance(error, UserError | Refused):
            log_failure("work in steps", error)  # perhaps nobody waits for it who would say so
        task.fail(error)
    else:
        return True
    return False


def translated_document(document: Document, found: Finished) -> TranslatedDocument:
    """A document with what a job has found for its sentences."""
    return TranslatedDocument.of(document, [found.get(index, ()) for index in range(len(document.sentences))])
