"""From a prepared corpus to batches: which sentences go together, decided before anything is read.

A plan depends on the corpus, the seed and the epoch alone. An update takes `group` batches (processes x accumulation),
of which each process takes its own; so any number of processes sees the same global batches, nothing lost or doubled,
and a run resumes anywhere by skipping plans, not data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weitblick.model.batch import Batch, Pairs, pack_pairs, runs
from weitblick.training.store import CorpusStore

POOL_BATCHES = 50  # sentences of so many batches are sorted by length together: little padding, still random


@dataclass(frozen=True)
class Part:
    """Sentences first..last (exclusive) of a document of one of the stores, with so many target tokens; the whole
    document is their context, with its translation by a model in place of the reference if `translated`."""

    store: int
    document: int
    first: int
    last: int
    translated: bool
    tokens: int


@dataclass(frozen=True)
class DocumentPlan:
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class SentencePlan:
    sentences: np.ndarray


def _random(*keys: int) -> np.random.Generator:
    return np.random.default_rng(list(keys))


def sentence_plans(store: CorpusStore, batch_tokens: int, seed: int, epoch: int) -> list[SentencePlan]:
    """Batches of sentences of similar length; no context. About `batch_tokens` target tokens each: a
    batch ends with the sentence that reaches them."""
    random = _random(seed, epoch, 1)
    source, target = store.lengths("source"), store.lengths("target") + 1
    order = random.permutation(len(target))
    pool = max(1, round(POOL_BATCHES * batch_tokens / max(1.0, float(target.mean()))))
    plans: list[SentencePlan] = []
    for start in range(0, len(order), pool):
        chosen = order[start : start + pool]
        chosen = chosen[np.lexsort((source[chosen], target[chosen]))]
        batch = np.concatenate([[0], np.cumsum(target[chosen])])[:-1] // batch_tokens
        cuts = np.flatnonzero(np.diff(batch)) + 1
        plans += [SentencePlan(part) for part in np.split(chosen, cuts)]
    return [plans[i] for i in random.permutation(len(plans))]


def document_plans(
    stores: Sequence[CorpusStore],
    batch_tokens: int,
    seed: int,
    epoch: int,
    *,
    batch_documents: int | None = None,
    mix_share: float = 0.0,
    translated_share: float = 0.0,
) -> list[DocumentPlan]:
    """Batches of whole documents of similar size under the budget; a larger document is cut into parts.

    `stores` is the corpus and, where documents are mixed in, a second one that makes up `mix_share` of the documents.
    `translated_share` of all documents, others in each epoch, read translations as context.
    """
    random, draw = _random(seed, epoch, 2), _random(seed, epoch, 4)
    parts: list[Part] = []
    for number, store in enumerate(stores):
        documents = np.arange(len(store))
        if number == 1:
            wanted = round(len(stores[0]) * mix_share / (1 - mix_share))
            documents = np.sort(np.resize(random.permutation(documents), wanted))
        parts += _parts(store, number, documents, draw.random(len(store)) < translated_share, batch_tokens)
    order = random.permutation(len(parts))
    costs = np.array([part.tokens for part in parts])
    pool = max(1, round(POOL_BATCHES * batch_tokens / max(1.0, float(np.mean(costs)))))
    order = np.concatenate(
        [c[np.argsort(costs[c], kind="stable")] for c in np.split(order, range(pool, len(order), pool))]
    )
    plans = _fill([parts[index] for index in order.tolist()], batch_tokens, batch_documents)
    return [DocumentPlan(tuple(plans[i])) for i in random.permutation(len(plans))]


def _parts(
    store: CorpusStore, number: int, documents: np.ndarray, translated: np.ndarray, batch_tokens: int
) -> Iterator[Part]:
    """Documents of a store, whole if they are within the budget, otherwise cut into parts that are."""
    sizes = store.lengths("target") + 1
    starts = np.asarray(store.documents)
    for document in documents.tolist():
        own = sizes[starts[document] : starts[document + 1]]
        whole = own.sum() <= batch_tokens
        for run in [range(len(own))] if whole else runs(own.tolist(), batch_tokens):
            tokens = int(own[run.start : run.stop].sum())
            yield Part(number, document, run.start, run.stop, bool(translated[document]), tokens)


def _fill(parts: Sequence[Part], batch_tokens: int, batch_documents: int | None) -> list[list[Part]]:
    """Parts in batches of at most so many tokens and documents, in order."""
    plans: list[list[Part]] = []
    filled = 0
    for part in parts:
        if not plans or filled + part.tokens > batch_tokens or len(plans[-1]) == batch_documents:
            plans.append([])
            filled = 0
        plans[-1].append(part)
        filled += part.tokens
    return plans


def load_batch(
    stores: Sequence[CorpusStore], plan: SentencePlan | DocumentPlan, translated: Sequence[CorpusStore] | None = None
) -> Batch:
    """Reads what a plan names. `translated` stores hold other targets of the same documents, to be their context."""
    if isinstance(plan, SentencePlan):
        store, chosen = stores[0], plan.sentences.tolist()
        pairs = pack_pairs([store.sentence("source", i) for i in chosen], [store.sentence("target", i) for i in chosen])
        return Batch(pairs, name=f"sentences {chosen[0]}... of {store.folder}")
    current, context, rest = _Rows(), _Rows(), _Rows()
    cut = others = False
    for index, part in enumerate(plan.parts):
        store = stores[part.store]
        other = translated[part.store] if part.translated and translated is not None else store
        numbers = store.document(part.document)
        cut = cut or part.last - part.first < len(numbers)
        others = others or other is not store
        for position, number in enumerate(numbers):
            source, target = store.sentence("source", number), store.sentence("target", number)
            context.add(source, other.sentence("target", number), index, position)
            (current if part.first <= position < part.last else rest).add(source, target, index, position)
    documents = ", ".join(str(part.document) for part in plan.parts[:8])
    name = f"documents {documents}{'...' if len(plan.parts) > 8 else ''} of {stores[0].folder}"
    if not cut and not others:
        return Batch(current.pack(), name=name)
    return Batch(current.pack(), context.pack(), name, None if others else rest.pack())


def load_documents(store: CorpusStore, documents: Sequence[int]) -> Pairs:
    """These documents, whole and in this order."""
    rows = _Rows()
    for index, document in enumerate(documents):
        for position, number in enumerate(store.document(document)):
            rows.add(store.sentence("source", number), store.sentence("target", number), index, position)
    return rows.pack()


class _Rows:
    """Sentence pairs that are to be packed, with their documents and positions."""

    def __init__(self) -> None:
        self.sources: list[np.ndarray] = []
        self.targets: list[np.ndarray] = []
        self.documents: list[int] = []
        self.positions: list[int] = []

    def add(self, source: np.ndarray, target: np.ndarray, document: int, position: int) -> None:
        self.sources.append(source)
        self.targets.append(target)
        self.documents.append(document)
        self.positions.append(position)

    def pack(self) -> Pairs:
        return pack_pairs(self.sources, self.targets, self.documents, self.positions)
