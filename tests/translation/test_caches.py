"""Decoding step by step with caches equals decoding whole sentences, for every model there is."""

from __future__ import annotations

import pytest
import torch
from tiny_models import VARIANTS, name, random_ids, tiny_model

from weitblick.model.batch import Layout, pack_source, pack_target
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import BOS

DOCUMENTS, POSITIONS = [0, 0, 0, 1, 2, 2], [0, 1, 3, 0, 0, 1]
WORDS = [4, 7, 3, 5, 2, 6]
LENGTHS = [5, 2, 6, 4, 3, 6]  # of the targets; sentences leave the batch at different times
HYPOTHESES = 3


def check(model: DocumentModel, parents: tuple[int, ...] = (2, 0, 1)) -> None:
    """The K hypotheses of every sentence change places at each step, or branch and die, as `parents` says; all states
    are those of teacher-forced decoding."""
    source = pack_source(random_ids(WORDS), DOCUMENTS, POSITIONS)
    context, _ = pack_target(random_ids([6, 3, 4, 5, 2, 7], seed=9), DOCUMENTS, POSITIONS)
    targets = [random_ids(LENGTHS, seed=k) for k in range(HYPOTHESES)]
    bank = None if model.context is None else model.offer(source, context)
    memory, _ = model.encode(source, bank)
    expected = []
    for ids in targets:
        packed, _ = pack_target(ids, DOCUMENTS, POSITIONS)
        expected.append(packed.layout.pad(model.decode(packed, memory, source.layout, bank).states))

    cache = model.sentence.start(memory, source.layout)
    rows = torch.arange(len(LENGTHS))
    place = torch.arange(HYPOTHESES).expand(len(LENGTHS), -1)  # [S, K] which target stands where
    for step in range(max(LENGTHS) + 1):
        tokens = torch.tensor(
            [[targets[k][s][step - 1] if step else BOS for k in place[i]] for i, s in enumerate(rows.tolist())]
        )
        documents = torch.tensor(DOCUMENTS)[rows].repeat_interleave(HYPOTHESES)
        positions = torch.tensor(POSITIONS)[rows].repeat_interleave(HYPOTHESES)
        layout = Layout(torch.ones_like(documents), documents, positions)
        states = model.step(tokens.flatten(), cache, layout, bank).states.view(len(rows), HYPOTHESES, -1)
        for i, s in enumerate(rows.tolist()):
            for k in range(HYPOTHESES):
                torch.testing.assert_close(states[i, k], expected[place[i, k]][s, step], atol=1e-5, rtol=1e-4)
        staying = torch.tensor([i for i, s in enumerate(rows.tolist()) if LENGTHS[s] > step])
        if not len(staying):
            break
        order = torch.tensor(parents)
        cache.select_sentences(staying)
        cache.select_hypotheses((staying[:, None] * HYPOTHESES + order).flatten())
        rows, place = rows[staying], place[staying][:, order]


@pytest.mark.parametrize("variant", VARIANTS, ids=name)
@torch.no_grad()
def test_cached_decoding_equals_full_recomputation(variant: dict[str, str]) -> None:
    check(tiny_model(variant))


OTHERS = [
    {"norm": "pre"},
    {"architecture": "ssru"},
    {"architecture": "ssru", "norm": "pre"},
    {"architecture": "rnnsearch"},
]


@pytest.mark.parametrize("model", OTHERS, ids=name)
@pytest.mark.parametrize("integration", ["encoder", "decoder"])
@torch.no_grad()
def test_of_other_sentence_models(model: dict[str, str], integration: str) -> None:
    check(tiny_model({"kind": "hierarchical", "integration": integration}, **model))


@pytest.mark.parametrize("parents", [(2, 0, 1), (1, 2, 2), (1, 0, 0)], ids=["all live", "one branches", "two go on"])
@torch.no_grad()
def test_what_no_hypothesis_sees_is_forgotten(parents: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("layers", "transformer"):
        monkeypatch.setattr(f"weitblick.model.{module}.PAST_ROOM", 4)
    check(tiny_model({"kind": "none"}), parents)


@pytest.mark.parametrize("parents", [(2, 0, 1), (1, 2, 2), (1, 0, 0)], ids=["all live", "one branches", "two go on"])
@pytest.mark.parametrize("kind", ["none", "zhang"])
@torch.no_grad()
def test_of_recurrent_units(kind: str, parents: tuple[int, ...]) -> None:
    check(tiny_model({"kind": kind, "direction": "online"}, architecture="ssru"), parents)
