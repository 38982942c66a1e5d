"""Schedules requests to the engine: places in the queue, identical requests, clients that leave, limits of time."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest

from weitblick.documents.document import Document
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import TranslatedDocument
from weitblick.workbench.engine import Engine, Work, tokens_of
from weitblick.workbench.errors import ClientGone, Refused
from weitblick.workbench.requests import Limits

Answer = TypeVar("Answer")
LONG_TEXT = 2000
"""Characters that take no longer to read than a thread to be asked."""


class Places:
    """Places for so many tokens, first come, first served. Who is larger than all of them may come in alone."""

    def __init__(self, tokens: int, patience: float) -> None:
        self.tokens, self.patience = tokens, patience
        self.taken = 0
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, tokens: int) -> None:
        if not self._queue and self._fits(tokens):
            self.taken += tokens
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((tokens, turn))
        try:
            await asyncio.wait_for(asyncio.shield(turn), self.patience)
        except (TimeoutError, asyncio.CancelledError) as reason:
            if turn.done():  # its turn came in the same moment
                self.leave(tokens)
            else:
                self._queue.remove((tokens, turn))
                turn.cancel()
            if isinstance(reason, TimeoutError):
                raise Refused(429, "the server has more work than it can do now", retry_after=30) from None
            raise

    def leave(self, tokens: int) -> None:
        self.taken -= tokens
        while self._queue and self._fits(self._queue[0][0]):
            size, turn = self._queue.popleft()
            self.taken += size
            turn.set_result(None)

    def _fits(self, tokens: int) -> bool:
        return not self.taken or self.taken + tokens <= self.tokens


class RequestScheduler:
    """Takes requests to the engine and brings the answers back. Used on one event loop."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        self.engine, self.limits = engine, limits
        self.places = Places(limits.waiting_tokens, limits.patience)
        self._in_flight: dict[str, _SharedAnswer] = {}

    async def translate(
        self, documents: Sequence[Document], options: TranslationOptions, *, linger: float = 0.0
    ) -> list[TranslatedDocument]:
        """The documents translated. A request that is the same as one in flight waits for that one's answer. For so
        many seconds (`linger`) the work of clients that have left goes on and its answer is kept: for clients that hang
        up and send the same again, who would never get an answer otherwise."""
        if sum(len(text) for document in documents for text in document.sources) > self.limits.characters:
            raise Refused(413, f"more than {self.limits.characters:,} characters in one request")
        key = _key(documents, options)
        shared = self._in_flight.get(key)
        if shared is None:
            task = asyncio.ensure_future(self._translate(documents, options))
            shared = _SharedAnswer(task, linger, lambda: self._in_flight.pop(key, None))
            self._in_flight[key] = shared
        answer: list[TranslatedDocument] = await shared.answer()
        return answer

    async def call(self, function: Callable[[], Answer]) -> Answer:
        """A function that needs the model."""
        return await self.wait(self.engine.call(function))

    async def run(self, steps: Generator[Any, None, Answer]) -> Answer:
        """Work in steps that somebody waits for."""
        return await self.wait(self.engine.run(steps, urgent=True))

    async def _translate(self, documents: Sequence[Document], options: TranslationOptions) -> list[TranslatedDocument]:
        tokens = tokens_of(documents)
        await self.places.take(tokens)
        try:
            return await self.wait(self.engine.translate(documents, options))
        finally:
            self.places.leave(tokens)

    async def wait(self, work: Work) -> Any:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(work.result), self.limits.seconds)
        except TimeoutError:
            raise Refused(503, f"not done within {self.limits.seconds:g} seconds", retry_after=60) from None
        finally:
            work.cancel()


class _SharedAnswer:
    """An answer that several wait for. When the last of them has gone, the work is given up, unless somebody comes
    within `linger` seconds; `forget` is called when nobody can join any more."""

    def __init__(self, task: asyncio.Future[Any], linger: float, forget: Callable[[], Any]) -> None:
        self.task, self.linger, self.waiting = task, linger, 0
        self._forget = forget
        task.add_done_callback(self._done)

    async def answer(self) -> Any:
        self.waiting += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self.waiting -= 1
            if not self.waiting and not self.task.done():
                self._later(self._give_up)

    def _done(self, task: asyncio.Future[Any]) -> None:
        if task.cancelled() or task.exception() is not None or self.waiting:
            self._forget()
        else:  # nobody is there to take it
            self._later(self._forget)

    def _give_up(self) -> None:
        if not self.waiting:
            self.task.cancel()

    def _later(self, act: Callable[[], Any]) -> None:
        if self.linger:
            asyncio.get_running_loop().call_later(self.linger, act)
        else:
            act()


def _key(documents: Sequence[Document], options: TranslationOptions) -> str:
    sentences = [[[s.source, s.target, s.status] for s in document.sentences] for document in documents]
    text = json.dumps([sentences, [document.id for document in documents], options.settings()])
    return hashlib.sha256(text.encode()).hexdigest()


async def aside_if_long(characters: int, function: Callable[[], Answer]) -> Answer:
    """What reads texts of so many characters: long ones in a thread, so that others are answered meanwhile."""
    return await run_in_threadpool(function) if characters > LONG_TEXT else function()


async def unless_gone(request: HttpRequest, answer: Awaitable[Answer]) -> Answer:
    """The answer, or `ClientGone` as soon as the client has left; the work is given up then."""
    task = asyncio.ensure_future(answer)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()


async def _disconnected(request: HttpRequest) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
