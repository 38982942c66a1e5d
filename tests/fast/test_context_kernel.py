"""The compiled context attention of a step: as the definition says, to 1e-5; a query the same alone and in a batch."""

import pytest
import torch
from torch import Tensor

from weitblick.fast import kernels as library
from weitblick.fast.kernels import Kernels
from weitblick.model.batch import Layout
from weitblick.model.context_attention import ContextAttention, HierarchicalAttention, WordAttention

D, H = 64, 2
# Document 1 has no sentence, 3 one without words, 4 a single sentence; sentence 2 of document 0 has no words.
OFFERED = Layout.of(
    [5, 3, 1, 9, 2, 26, 4, 4, 2, 1, 6, 3, 3, 12],
    [5, 5, 5, 0, 0, 0, 0, 2, 2, 3, 4, 0, 0, 2],
    [1, 0, 2, 0, 1, 4, 5, 0, 1, 0, 0, 2, 3, 2],
)
READERS = [(0, 0), (0, 3), (0, 9), (5, 1), (5, 2), (2, 0), (2, 2), (1, 0), (3, 0), (4, 0), (7, 1), (0, 3)]


def readers(chosen: list[tuple[int, int]]) -> Layout:
    documents, positions = zip(*chosen, strict=True)
    return Layout.of([1] * len(chosen), list(documents), list(positions))


def numbers(rows: int, seed: int) -> Tensor:
    return torch.randn(rows, D, generator=torch.Generator().manual_seed(seed)) * 1.5


def attention(kind: type[ContextAttention], kinds: tuple[str, str], direction: str, order: bool) -> ContextAttention:
    torch.manual_seed(7)
    module = kind(D, H, sentence_attention=kinds[0], word_attention=kinds[1], direction=direction, order=order)
    with torch.no_grad():
        for parameter in module.parameters():
            if not parameter.any():  # of order, which starts at zero
                parameter.normal_(0, 0.3)
    return module


@pytest.mark.parametrize("order", [False, True], ids=["plain", "ordered"])
@pytest.mark.parametrize("direction", ["offline", "online"])
@pytest.mark.parametrize("kinds", [("sparse", "soft"), ("sparse", "sparse"), ("soft", "soft")], ids="-".join)
@pytest.mark.parametrize("kind", [HierarchicalAttention, WordAttention])
def test_a_step_reads_what_the_definition_says(
    kind: type[ContextAttention],
    kinds: tuple[str, str],
    direction: str,
    order: bool,
    compiled: Kernels,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(library, "kernels", lambda: compiled)
    module = attention(kind, kinds, direction, order)
    queries = numbers(len(READERS), 3)
    with torch.no_grad():
        bank = module.prepare(numbers(OFFERED.tokens, 1), numbers(OFFERED.tokens, 2), OFFERED)
        read = module(queries, readers(READERS), bank)
        defined = module(queries, readers(READERS), bank, need_weights=True)
        assert "cells" not in vars(bank)  # by the kernel, not by cells
    torch.testing.assert_close(read.output, defined.output, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(read.support, defined.support)
    assert torch.equal(read.present, defined.present)
    batch, _ = bank.reader(*asked(module, queries), readers(READERS))
    assert torch.equal(batch, each_alone(module, queries, bank))


LONG = [2 + (7 * sentence) % 31 for sentence in range(90)]  # words and end of each sentence: some tiles of words
MANY = [(sentence * 5 % 4 // 3, sentence) for sentence in range(0, 94, 3)]  # some read a document that is not there


@pytest.mark.parametrize("strength", [0.3, 6.0], ids=["flat", "peaked"])
@pytest.mark.parametrize("direction", ["offline", "online"])
def test_long_documents_are_read_as_the_definition_says(
    direction: str, strength: float, compiled: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tile by tile; peaked: many words are so far behind the best that they are left out."""
    monkeypatch.setattr(library, "kernels", lambda: compiled)
    module = attention(WordAttention, ("sparse", "soft"), direction, True)
    offered = Layout.of(LONG, [0] * len(LONG), list(range(len(LONG))))
    queries = numbers(len(MANY), 3) * strength
    with torch.no_grad():
        bank = module.prepare(numbers(offered.tokens, 1), numbers(offered.tokens, 2), offered)
        read = module(queries, readers(MANY), bank)
        defined = module(queries, readers(MANY), bank, need_weights=True)
    assert defined.weights is not None
    weights = defined.weights.word_weights
    assert weights is not None
    left_out = ((weights > 0) & (weights < 1e-12)).sum() / (weights > 0).sum()
    assert left_out > 0.3 if strength > 1 else left_out == 0
    torch.testing.assert_close(read.output, defined.output, atol=1e-5 * max(1, strength), rtol=1e-5)
    torch.testing.assert_close(read.support, defined.weights.visible.sum(1).float())  # softmax leaves none out
    batch, _ = bank.reader(*asked(module, queries, MANY), readers(MANY))
    assert torch.equal(batch, each_alone(module, queries, bank, MANY))


Places = list[tuple[int, int]]


def asked(module: ContextAttention, queries: Tensor, places: Places = READERS) -> tuple[Tensor | None, Tensor]:
    with torch.no_grad():
        rows = module._queries(queries, readers(places))
    return rows.get("sentence_queries"), rows["word_queries"]


def each_alone(module: ContextAttention, queries: Tensor, bank, places: Places = READERS) -> Tensor:  # type: ignore[no-untyped-def]
    sentence_queries, word_queries = asked(module, queries, places)
    parts = []
    for i, place in enumerate(places):
        own = None if sentence_queries is None else sentence_queries[i : i + 1]
        parts.append(bank.reader(own, word_queries[i : i + 1], readers([place]))[0])
    return torch.cat(parts)


def test_other_kinds_of_weights_are_read_without(compiled: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "kernels", lambda: compiled)
    module = attention(HierarchicalAttention, ("entmax15", "soft"), "offline", False)
    with torch.no_grad():
        bank = module.prepare(numbers(OFFERED.tokens, 1), numbers(OFFERED.tokens, 2), OFFERED)
        module(numbers(len(READERS), 3), readers(READERS), bank)
    assert bank.reader is None
