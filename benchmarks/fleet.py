"""Many replicas of the API, simulated: how long requests wait, what a million words cost, when to add a replica.

    python benchmarks/fleet.py TEXT [-m MODEL] [--replicas 10 100 1000 10000] [--price 0.04] [--patience 2.0]

*measured*: seconds of one core for windows of 1 to 32 sentences of TEXT, as the engine translates them for requests
without context, and a line through them: so much for a window, so much for a token. *room*: how much of what the fleet
could do at best may be asked of it before the 99th of 100 requests waits longer than `--patience` seconds. *day*: a
day whose busiest hours have about seven times the load of the quietest, once with as many replicas all day as they
need, once with as many as each three hours need.

The simulated scheduler is the engine's: a replica takes what waits for it together, up to a budget of tokens. Requests
come at random and go to the less busy of two replicas, as Ray Serve sends them. No network, no failures, no replicas
that are just starting.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import resource
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from tools.ours import Seconds, begin
from tools.turns import report, text_parser

from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.document import Document, Sentence
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator
from weitblick.workbench.engine import WINDOW_TOKENS, tokens_of

SENTENCES_A_REQUEST = 4
"""On average; one is the most frequent."""
REQUESTS_A_REPLICA, FEWEST_REQUESTS = 10, 20_000
"""Simulated for each part of a day and each load; the first third, in which queues fill, does not count."""
HOURS = 3
SHARES = [0.15 + 0.85 * max(0.0, math.sin(math.pi * (hour - 6) / 14)) for hour in range(1, 24, HOURS)]
"""The load of each part of a day, of so many hours, as a share of the most: an office's day."""
LOADS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Service:
    """What a core needs: seconds for each window and each token in it. `sentences` has tokens and words of each."""

    window: float
    token: float
    sentences: list[tuple[int, int]]

    def seconds(self, tokens: int) -> float:
        return self.window + self.token * tokens

    @property
    def most(self) -> float:
        """Tokens a second of a replica whose windows are always full."""
        return WINDOW_TOKENS / self.seconds(WINDOW_TOKENS)

    @property
    def words_a_token(self) -> float:
        return sum(words for _, words in self.sentences) / sum(tokens for tokens, _ in self.sentences)


def main() -> None:
    options = parse_options()
    started = begin(options)
    service, measured = measure(options)
    rows = measured + room(service, options) + day(service, options)
    report("A fleet of replicas: one core measured, the rest simulated", rows, started, options.json)


def measure(options: argparse.Namespace) -> tuple[Service, list[dict[str, Any]]]:
    translator = Translator.load(options.model, quantize=options.int8)
    texts = (s.source for d in read_documents([options.text]) for s in d.sentences if s.source.strip())
    documents = [Document(str(n), (Sentence(text),)) for n, text in enumerate(islice(texts, options.sentences))]
    one_pass = TranslationOptions(passes=1)  # as the engine translates sentences without context
    translator.translate_window(documents[:8], one_pass)  # warm
    points: list[tuple[int, float]] = []
    rows = []
    for count in (1, 2, 4, 8, 16, 32):
        windows = [documents[at : at + count] for at in range(0, len(documents) - count + 1, count)][: options.windows]
        total = 0.0
        for window in windows:
            with Seconds(options) as seconds:
                translator.translate_window(window, one_pass)
            total += seconds.passed
            points.append((tokens_of(window), seconds.passed))
        words = sum(len(one.sources[0].split()) for window in windows for one in window)
        rows.append({"part": "measured", "sentences": count, "ms_a_window": 1000 * total / len(windows),
                     "words_a_second": words / total})  # fmt: skip
    tokens, times = np.array(points).T
    token, window = np.polyfit(tokens, times, 1)
    sentences = [(tokens_of([one]), len(one.sources[0].split())) for one in documents]
    service = Service(max(0.0, float(window)), float(token), sentences)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    fit = {"ms_a_window": 1000 * service.window, "ms_a_token": 1000 * service.token}
    rows.append({"part": "measured: the line", **fit, "words_a_second": service.most * service.words_a_token,
                 "megabytes": megabytes})  # fmt: skip
    return service, rows


def simulate(service: Service, replicas: int, load: float, requests: int, rng: random.Random) -> np.ndarray:
    """Seconds from asking to the answer, of requests that ask for this share of what so many replicas can do."""
    tokens_each = sum(tokens for tokens, _ in service.sentences) / len(service.sentences) * SENTENCES_A_REQUEST
    rate = load * replicas * service.most / tokens_each
    queues: list[deque[tuple[float, int]]] = [deque() for _ in range(replicas)]
    working: list[list[float]] = [[] for _ in range(replicas)]  # when what is being translated was asked for
    ends: list[tuple[float, int]] = []
    waits: list[tuple[float, float]] = []
    sizes = [tokens for tokens, _ in service.sentences]

    def start(replica: int, now: float) -> None:
        queue, total = queues[replica], 0
        while queue and (not total or total + queue[0][1] <= WINDOW_TOKENS):
            asked, tokens = queue.popleft()
            working[replica].append(asked)
            total += tokens
        heapq.heappush(ends, (now + service.seconds(total), replica))

    def finish() -> None:
        now, replica = heapq.heappop(ends)
        waits.extend((asked, now - asked) for asked in working[replica])
        working[replica].clear()
        if queues[replica]:
            start(replica, now)

    now = 0.0
    for _ in range(requests):
        now += rng.expovariate(rate)
        while ends and ends[0][0] <= now:
            finish()
        count = 1 + int(math.log(1 - rng.random()) / math.log(1 - 1 / SENTENCES_A_REQUEST))  # geometric
        one, other = rng.randrange(replicas), rng.randrange(replicas)
        if len(queues[other]) + len(working[other]) < len(queues[one]) + len(working[one]):
            one = other
        queues[one].append((now, sum(rng.choices(sizes, k=count))))
        if not working[one]:
            start(one, now)
    while ends:
        finish()
    return np.array([wait for asked, wait in waits if asked > now / 3])


def room(service: Service, options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for replicas in options.replicas:
        rng = random.Random(options.seed)
        row: dict[str, Any] = {"part": "room", "replicas": replicas}
        best = 0.0
        for load in LOADS:
            waits = simulate(service, replicas, load, _requests(replicas), rng)
            p50, p99 = np.percentile(waits, (50, 99))
            row[f"p99_at_{load:.0%}"] = p99
            if p99 <= options.patience:
                best, row["p50"], row["p99"] = load, p50, p99
        rows.append({**row, "highest_load": best})
    return rows


def day(service: Service, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Fleets that do `--fill` of what they can in the busiest hours, as large all day, or as each part of it needs."""
    rows = []
    words_a_second = service.most * service.words_a_token
    for most in options.replicas:
        for way in ("all day", "by the load"):
            rng = random.Random(options.seed)
            waits, hours, words = [], 0, 0.0
            for share in SHARES:
                replicas = most if way == "all day" else max(2, math.ceil(most * share))
                load = options.fill * most * share / replicas
                found = simulate(service, replicas, load, _requests(replicas), rng)
                waits.append(rng.choices(found.tolist(), k=round(20_000 * share)))  # more of them where more is asked
                hours += HOURS * replicas
                words += 3600 * HOURS * load * replicas * words_a_second
            p50, p99 = np.percentile(np.concatenate([np.array(some) for some in waits]), (50, 99))
            millions = words / 1e6
            row = {"part": f"day: {way}", "replicas": most, "p50": p50, "p99": p99, "replica_hours": hours}
            rows.append({**row, "million_words": millions, "cost_of_a_million": options.price * hours / millions})
    return rows


def _requests(replicas: int) -> int:
    return max(FEWEST_REQUESTS, REQUESTS_A_REPLICA * replicas)


def parse_options() -> argparse.Namespace:
    parser = text_parser(__doc__, rounds=1)
    parser.add_argument("--replicas", type=int, nargs="+", default=[10, 100, 1000, 10_000])
    parser.add_argument("--sentences", type=int, default=320, help="of TEXT that are measured")
    parser.add_argument("--windows", type=int, default=40, help="of each size that are measured")
    parser.add_argument("--fill", type=float, default=0.7, help="share of what is possible in the busiest hours")
    parser.add_argument("--patience", type=float, default=2.0, help="seconds for 99 of 100 requests")
    parser.add_argument("--price", type=float, default=0.04, help="of an hour of a replica (one core)")
    parser.set_defaults(threads=1, clock="cpu")
    return parser.parse_args()


if __name__ == "__main__":
    main()
