"""Places in the queue, identical requests, clients that leave."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from weitblick.documents.document import Document, Sentence
from weitblick.translation.options import TranslationOptions
from weitblick.workbench.errors import ClientGone, Refused
from weitblick.workbench.requests import Limits
from weitblick.workbench.scheduler import Places, RequestScheduler, unless_gone

OPTIONS = TranslationOptions()
DOCUMENT = Document("1", (Sentence("One two three."),))


class Recorded:
    """An engine that does nothing until it is told to."""

    def __init__(self) -> None:
        self.works: list[Any] = []

    def translate(self, documents: Any, options: Any) -> Any:
        work = type("Work", (), {"result": Future(), "cancelled": False})()
        work.cancel = lambda: setattr(work, "cancelled", work.result.cancelled() or not work.result.done())
        self.works.append(work)
        return work


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_identical_requests_in_flight_are_computed_once() -> None:
    async def story() -> None:
        engine = Recorded()
        scheduler = RequestScheduler(engine, Limits())  # type: ignore[arg-type]
        answers = [asyncio.ensure_future(scheduler.translate([DOCUMENT], OPTIONS)) for _ in range(3)]
        other = asyncio.ensure_future(scheduler.translate([DOCUMENT], TranslationOptions(beam=1)))
        await settle()
        assert len(engine.works) == 2
        answers[0].cancel()  # one of the three goes: the others still get the answer
        await settle()
        assert not engine.works[0].cancelled
        for work in engine.works:
            work.result.set_result(["done"])
        assert await asyncio.gather(*answers[1:], other) == [["done"]] * 3
        last = asyncio.ensure_future(scheduler.translate([DOCUMENT], OPTIONS))
        await settle()
        assert not last.done()
        assert len(engine.works) == 3  # it is in flight no more
        assert scheduler.places.taken > 0

    asyncio.run(story())


def test_work_is_given_up_when_the_last_client_has_gone() -> None:
    async def story() -> None:
        engine = Recorded()
        scheduler = RequestScheduler(engine, Limits())  # type: ignore[arg-type]
        waiting = asyncio.ensure_future(scheduler.translate([DOCUMENT], OPTIONS))
        await settle()
        waiting.cancel()
        await settle()
        assert engine.works[0].cancelled
        assert scheduler.places.taken == 0

    asyncio.run(story())


def test_a_full_queue_is_waited_for_and_then_refused() -> None:
    async def story() -> None:
        places = Places(10, patience=0.05)
        await places.take(100)  # larger than all of them, but alone
        patient = asyncio.ensure_future(places.take(4))
        await settle()
        places.leave(100)
        await patient
        await places.take(6)
        with pytest.raises(Refused) as refused:
            await places.take(1)
        assert refused.value.status == 429
        assert refused.value.retry_after
        places.leave(4)
        await places.take(1)
        assert places.taken == 7

    asyncio.run(story())


def test_first_come_first_served() -> None:
    async def story() -> None:
        places, served = Places(10, patience=5), []
        await places.take(10)

        async def come(name: str, tokens: int) -> None:
            await places.take(tokens)
            served.append(name)

        tasks = [asyncio.ensure_future(come(name, tokens)) for name, tokens in (("large", 9), ("small", 1))]
        await settle()
        assert served == []
        places.leave(10)
        await asyncio.gather(*tasks)
        assert served == ["large", "small"]

    asyncio.run(story())


def test_a_client_that_leaves_ends_the_wait() -> None:
    async def story() -> None:
        class Leaves:
            async def receive(self) -> dict[str, str]:
                return {"type": "http.disconnect"}

        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with pytest.raises(ClientGone):
            await unless_gone(Leaves(), never)  # type: ignore[arg-type]
        assert never.cancelled()

    asyncio.run(story())


def test_work_has_a_limit_of_time() -> None:
    async def story() -> None:
        engine = Recorded()
        scheduler = RequestScheduler(engine, Limits(seconds=0.02))  # type: ignore[arg-type]
        with pytest.raises(Refused) as refused:
            await scheduler.translate([DOCUMENT], OPTIONS)
        assert refused.value.status == 503
        assert engine.works[0].cancelled

    asyncio.run(story())


def test_work_goes_on_for_those_who_hang_up_and_come_again() -> None:
    """As DeepL's client does after ten seconds: the second request finds the work of the first, or its answer."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        now = [loop.time()]
        loop.time = lambda: now[0]  # type: ignore[method-assign]  # it passes when it is told to
        engine = Recorded()
        scheduler = RequestScheduler(engine, Limits())  # type: ignore[arg-type]

        async def ask_and_leave() -> None:
            waiting = asyncio.ensure_future(scheduler.translate([DOCUMENT], OPTIONS, linger=0.1))
            await settle()
            waiting.cancel()
            await settle()

        await ask_and_leave()
        again = asyncio.ensure_future(scheduler.translate([DOCUMENT], OPTIONS, linger=0.1))
        await settle()
        assert len(engine.works) == 1
        again.cancel()
        engine.works[0].result.set_result(["done"])
        await settle()
        assert await scheduler.translate([DOCUMENT], OPTIONS, linger=0.1) == ["done"]  # kept until it is asked for
        assert len(engine.works) == 1
        now[0] += 0.2
        await settle()
        await ask_and_leave()
        assert len(engine.works) == 2
        assert not engine.works[1].cancelled
        now[0] += 0.2
        await settle()
        assert engine.works[1].cancelled  # nobody came again
        assert scheduler.places.taken == 0

    asyncio.run(story())
