"""What a GPU would do for one document, counted by dispatch on the CPU: few launches, and hardly any waiting."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_attention import states
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from weitblick.model.batch import Layout
from weitblick.model.context_attention import ContextAttention, HierarchicalAttention, SentenceAttention, WordAttention
from weitblick.model.sparsemax import normalise, normalise_entries
from weitblick.model.tuning import TUNING

SENTENCES, D, H = 120, 12, 2
TUNING_OF_CPU = TUNING["cpu"]
VIEWS = (
    "view",
    "slice",
    "select",
    "unsqueeze",
    "squeeze",
    "expand",
    "transpose",
    "permute",
    "detach",
    "alias",
    "split",
)
WAITING = {"cpu", "tolist", "item", "numpy", "__bool__", "__int__", "__float__", "__index__", "nonzero", "bincount"}
WAITING |= {"equal", "masked_select", "unique", "unique_consecutive"}


class LaunchCounter(TorchDispatchMode):
    """Counts operations that compute: views and empty memory launch nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::").split(".")[0].lstrip("_")
        if not name.startswith(VIEWS) and not name.startswith(("empty", "new_empty")):
            self.count += 1
        return func(*args, **(kwargs or {}))


class Waits(TorchFunctionMode):
    """Counts what makes the host wait for a GPU: numbers read, and results whose size is not known before."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        chosen = args[1] if name in ("__getitem__", "__setitem__") else ()
        chosen = chosen if isinstance(chosen, tuple) else (chosen,)
        masked = any(isinstance(index, Tensor) and index.dtype == torch.bool for index in chosen)
        unsized = name == "repeat_interleave" and isinstance((*args, 0)[-2 if len(args) == 1 else 1], Tensor)
        if name in WAITING or masked or (unsized and "output_size" not in kwargs):
            self.count += 1
        return func(*args, **kwargs)


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TUNING, "cpu", TUNING["cuda"])


def counted(module: ContextAttention) -> tuple[int, int]:
    """LaunchCounter and waits of reading a talk of 120 sentences once, forward and backward."""
    places = Layout.of([8 + 7 * i % 27 for i in range(SENTENCES)], [0] * SENTENCES, list(range(SENTENCES)))
    torch.manual_seed(1)
    x = (torch.randn(places.tokens, D) * 3).requires_grad_()
    with LaunchCounter() as launches, Waits() as waits:
        module(x, places, module.prepare(x, x, places)).output.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    return launches.count, waits.count


MODULES = {
    "sentence": lambda: SentenceAttention(D, H, sentence_attention="soft", dropout=0.1),
    "word": lambda: WordAttention(D, H, dropout=0.1),
    "sparse-soft, dense": lambda: HierarchicalAttention(D, H, path="dense", dropout=0.1),
    "sparse-soft, routed": lambda: HierarchicalAttention(D, H, path="routed", dropout=0.1),
    "sparse-sparse, auto": lambda: HierarchicalAttention(D, H, word_attention="sparse", dropout=0.1),
    "sparse-soft, online": lambda: HierarchicalAttention(D, H, direction="online", dropout=0.1),
}


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("kind", MODULES)
def test_a_talk_takes_few_launches_and_hardly_waits(kind: str) -> None:
    launches, waits = counted(MODULES[kind]())
    assert launches <= 400
    assert waits <= 24


def test_what_fits_a_cache_would_be_many_launches() -> None:
    launches, waits = counted(MODULES["sparse-soft, dense"]())
    assert launches > 1000
    assert waits > 30


@pytest.mark.usefixtures("as_on_a_gpu")
def test_a_gpu_reads_what_a_processor_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    places = Layout.of([3 + i % 9 for i in range(70)], [i // 35 for i in range(70)], [i % 35 for i in range(70)])
    x = states(places.tokens)
    for path in ("dense", "routed"):
        torch.manual_seed(1)
        module = HierarchicalAttention(D, H, word_attention="sparse", path=path).double()
        on_gpu = module(x, places, module.prepare(x, x, places))
        with monkeypatch.context() as patch:
            patch.setitem(TUNING, "cpu", TUNING_OF_CPU)
            on_cpu = module(x, places, module.prepare(x, x, places))
        torch.testing.assert_close(on_gpu.output, on_cpu.output, atol=1e-12, rtol=1e-10)
        assert torch.equal(on_gpu.support, on_cpu.support)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_sorting_finds_the_same_thresholds(dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.randn(9, 40, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    scores[2:, 5:, 3] = -torch.inf
    scores[:, :, 4] = -torch.inf
    rounds, entries = normalise(scores.clone(), "sparse", dim), normalise_entries(scores.clone(), "sparse")
    monkeypatch.setitem(TUNING, "cpu", TUNING["cuda"])
    torch.testing.assert_close(normalise(scores.clone(), "sparse", dim), rounds)
    by_sorting = normalise_entries(scores.clone(), "sparse")
    assert len(by_sorting.weights) == len(entries.weights)
