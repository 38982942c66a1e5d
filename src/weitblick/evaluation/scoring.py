"""Teacher-forced scoring of given translations in their documents: with the document's own context, with none, and with
that of a random other document. Each document is encoded once, whatever the number of translations scored in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from weitblick.common.errors import UserError
from weitblick.model.batch import Batch, pack_pairs, pack_target, runs
from weitblick.model.concatenation import Concatenation, reads_documents
from weitblick.model.context import Context, Sources
from weitblick.model.document_model import DocumentModel
from weitblick.training.update import ContextSums

ContextMode = Literal["own", "removed", "random"]
CONTEXT_MODES: tuple[ContextMode, ...] = ("own", "removed", "random")
BATCH_TOKENS = 8192
"""Tokens of documents, and then of candidates with their sources, that go through the model at a time."""

Ids = Sequence[int]
Progress = Callable[[int], None]


@dataclass(frozen=True)
class ScoringDocument:
    """Word ids of a document. `targets` are its context for models that read target sentences; no words where a
    sentence has none."""

    sources: Sequence[Ids]
    targets: Sequence[Ids] | None = None


@dataclass(frozen=True)
class Candidate:
    """A translation to score: word ids, for one sentence of one of the documents."""

    document: int
    sentence: int
    target: Ids


@dataclass(frozen=True)
class Scores:
    """For each candidate its summed log-probability [N] and the tokens that it sums over, `</s>` included [N].

    gate, support: the mean share of the context in the gate and the mean number of sentences attended, over all words
    that read any context; None where none did.
    """

    log_probabilities: np.ndarray
    tokens: np.ndarray
    gate: float | None = None
    support: float | None = None


@dataclass
class _Run:
    """Documents scored together, the documents that they read, and their candidates (by number)."""

    documents: list[int]
    candidates: list[int]
    last_read: int | None
    """In random mode, the document that the last one reads; every other reads the one after it in the run."""


@torch.no_grad()
def score_candidates(
    model: DocumentModel,
    documents: Sequence[ScoringDocument],
    candidates: Sequence[Candidate],
    context: ContextMode = "own",
    *,
    seed: int = 1,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
) -> Scores:
    """The log-probability of every candidate. The seed decides who reads whose context in random mode, for all
    documents at once: a batch or its size never does."""
    if not reads_documents(model):
        context = "removed"
    model.eval()
    tokens = np.array([len(candidate.target) + 1 for candidate in candidates], dtype=np.int64)
    order = reading_order(len(documents), seed) if context == "random" else sorted({c.document for c in candidates})
    concatenation = Concatenation.of(model.section)
    if concatenation is not None:
        read = dict(zip(order, [*order[1:], order[0]], strict=True)) if context == "random" else None
        joined = _concatenated(concatenation, documents, candidates, context, read)
        return Scores(_score_joined(model, joined, batch_tokens, progress), tokens)
    sums, reads = np.zeros(len(candidates)), list[ContextSums]()
    for run in _runs(documents, candidates, order, context, batch_tokens):
        sums[run.candidates] = _score_run(model, documents, candidates, run, context, batch_tokens, reads)
        if progress is not None:
            progress(len(run.candidates))
    read_in_all = sum(reads, ContextSums())
    if not read_in_all.queries:
        return Scores(sums, tokens)
    return Scores(sums, tokens, read_in_all.mean_share, read_in_all.mean_support)


def reading_order(count: int, seed: int) -> list[int]:
    """A random circle of all documents: each reads the one that follows, so none reads itself."""
    if count < 2:
        raise UserError(
            "the context of a random other document needs another document, and there is only one",
            remedy="score several documents together",
        )
    return np.random.default_rng([seed, 5]).permutation(count).tolist()


def _runs(
    documents: Sequence[ScoringDocument],
    candidates: Sequence[Candidate],
    order: Sequence[int],
    context: ContextMode,
    batch_tokens: int,
) -> Iterator[_Run]:
    """Documents with candidates in runs under the budget; a larger document is a run of its own."""
    members: dict[int, list[int]] = {}
    for number, candidate in enumerate(candidates):
        members.setdefault(candidate.document, []).append(number)
    sizes = (
        sum(len(ids) + 1 for ids in (*documents[number].sources, *(documents[number].targets or ())))
        for number in order
    )
    for run in runs(sizes, batch_tokens):
        own = [order[place] for place in run]
        read = order[run.stop % len(order)] if context == "random" else None
        yield _Run(own, [number for document in own for number in members.get(document, ())], read)


def _score_run(
    model: DocumentModel,
    documents: Sequence[ScoringDocument],
    candidates: Sequence[Candidate],
    run: _Run,
    context: ContextMode,
    batch_tokens: int,
    reads: list[ContextSums],
) -> np.ndarray:
    """[N] log-probabilities of the run's candidates."""
    if not run.candidates:
        return np.zeros(0)
    chosen = [candidates[number] for number in run.candidates]
    place = {document: index for index, document in enumerate(run.documents)}
    tested = sorted({(place[candidate.document], candidate.sentence) for candidate in chosen})
    # In random mode the document read stands right behind one's own.
    shift = int(context == "random")
    current = Sources(
        [documents[run.documents[document]].sources[sentence] for document, sentence in tested],
        [document + shift for document, _ in tested],
        [sentence for _, sentence in tested],
        next(model.parameters()).device,
    )
    if context == "removed":
        offered, encoder_states = None, current.encode(model.sentence)
    else:
        read = run.documents + ([] if run.last_read is None else [run.last_read])
        offered, encoder_states = _context(model, [documents[document] for document in read], tested)
        encoder_states, result = model.encode(current.pack(range(len(current))), offered, states=encoder_states)
        reads += [] if result is None else [ContextSums.of(result)]
    row = {key: index for index, key in enumerate(tested)}
    rows = [row[place[candidate.document], candidate.sentence] for candidate in chosen]
    targets = [candidate.target for candidate in chosen]
    return _decode(model, current, encoder_states, offered, rows, targets, batch_tokens, reads)


def _context(
    model: DocumentModel, documents: Sequence[ScoringDocument], tested: Sequence[tuple[int, int]]
) -> tuple[Context | None, Tensor]:
    """What the documents offer to read, and the sentence model's own states of the tested sentences [T, d]."""
    places = [(number, index) for number, document in enumerate(documents) for index in range(len(document.sources))]
    sources = Sources(
        [ids for document in documents for ids in document.sources],
        [number for number, _ in places],
        [index for _, index in places],
        next(model.parameters()).device,
    )
    encoder_states = sources.encode(model.sentence)
    targets = [ids for document in documents for ids in _targets(document)] if model.reads_translations else None
    context = model.context_of(sources, encoder_states, targets)
    index = {key: number for number, key in enumerate(places)}
    return context, encoder_states.index_select(0, sources.rows([index[key] for key in tested]))


def _targets(document: ScoringDocument) -> Sequence[Ids]:
    if document.targets is None:
        raise UserError("this model reads target sentences as context, and a document has none")
    return document.targets


def _decode(
    model: DocumentModel,
    current: Sources,
    encoder_states: Tensor,
    context: Context | None,
    rows: Sequence[int],
    targets: Sequence[Ids],
    batch_tokens: int,
    reads: list[ContextSums],
) -> np.ndarray:
    """[N] log-probabilities of the targets; `rows` [N] says which sentence of `current` each translates."""
    lengths = current.lengths[rows] + np.array([len(target) + 1 for target in targets])
    sums = []
    for part in runs(lengths.tolist(), batch_tokens):
        of_part = [rows[number] for number in part]
        source = current.pack(of_part)
        own = encoder_states.index_select(0, current.rows(of_part))
        layout = source.layout
        packed, labels = pack_target(
            [targets[number] for number in part], layout.documents.tolist(), layout.positions.tolist()
        )
        target = packed.to(current.device)
        output = model.decode(target, own, layout, context)
        reads += [] if output.context is None else [ContextSums.of(output.context)]
        tokens = output.words.log_probabilities(labels.to(current.device))
        total = tokens.new_zeros(len(part), dtype=torch.float64)
        sums.append(total.index_add_(0, target.layout.sentence, tokens.double()).cpu().numpy())
    return np.concatenate(sums)


# Models that read the sentences before as part of the current one


@dataclass(frozen=True)
class _Joined:
    """A candidate behind what is read before it; only its own `scored` last tokens count, `</s>` included."""

    source: list[int]
    target: list[int]
    scored: int


def _concatenated(
    concatenation: Concatenation,
    documents: Sequence[ScoringDocument],
    candidates: Sequence[Candidate],
    context: ContextMode,
    read: Mapping[int, int] | None,
) -> list[_Joined]:
    """Each candidate behind the sentences before it: of its own document, of the document that it reads, or none."""
    joined = []
    for candidate in candidates:
        own = documents[candidate.document]
        other = own if read is None else documents[read[candidate.document]]
        last = candidate.sentence if context != "removed" else 0
        sources = [ids for ids in other.sources[:last] if len(ids)]
        targets = [ids for ids in _targets(other)[:last] if len(ids)] if concatenation.both_sides else []
        if concatenation.both_sides and len(sources) != len(targets):
            sources, targets = [], []  # a sentence before has no translation: nothing can be read
        joined.append(
            _Joined(
                concatenation.source(sources, own.sources[candidate.sentence]),
                concatenation.target(targets, candidate.target),
                len(candidate.target) + 1,
            )
        )
    return joined


def _score_joined(
    model: DocumentModel, joined: Sequence[_Joined], batch_tokens: int, progress: Progress | None
) -> np.ndarray:
    """[N] log-probabilities of what counts of each, in batches of like length."""
    sizes = np.array([len(one.source) + len(one.target) + 2 for one in joined])
    order = np.argsort(sizes, kind="stable")
    sums = np.zeros(len(joined))
    device = next(model.parameters()).device
    for run in runs(sizes[order].tolist(), batch_tokens):
        part = order[run.start : run.stop]
        chosen = [joined[number] for number in part.tolist()]
        pairs = pack_pairs([one.source for one in chosen], [one.target for one in chosen]).to(device)
        tokens = model(Batch(pairs)).words.log_probabilities(pairs.labels).double()
        layout = pairs.target.layout
        scored = torch.tensor([one.scored for one in chosen], device=device)
        ends = layout.starts + layout.lengths
        place = torch.arange(len(tokens), device=device)
        counts = place >= (ends - scored)[layout.sentence]
        total = tokens.new_zeros(len(chosen)).index_add_(0, layout.sentence, tokens * counts)
        sums[part] = total.cpu().numpy()
        if progress is not None:
            progress(len(part))
    return sums
