"""What a target word of the context says: the state that predicted it, or the word itself."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.batch import Batch, pack_pairs
from weitblick.model.document_model import DocumentModel

MODEL = ModelSection(dimension=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=1)
SOURCES = [[5, 6, 7], [8, 9], [10, 5, 6]]
TARGETS = [[11, 12], [13, 14, 15], [16, 17]]


def model_of(values: str, **more: str) -> DocumentModel:
    torch.manual_seed(3)
    section = ContextSection(kind="hierarchical", integration="decoder", values=values, **more)  # type: ignore[arg-type]
    return build(MODEL, section, 30, 30).eval()


def states(model: DocumentModel, last_words: tuple[int, int, int]) -> torch.Tensor:
    """[T, d] of the first sentence, the others of its document ending with these words."""
    targets = [[*words[:-1], last] for words, last in zip(TARGETS, last_words, strict=True)]
    pairs = pack_pairs(SOURCES, targets, [0, 0, 0], [0, 1, 2])
    with torch.no_grad():
        return model(Batch(pairs)).states[: len(TARGETS[0])]  # not the step behind its last word


@pytest.mark.parametrize("frozen", ["live", "frozen"])
def test_the_last_word_of_a_context_sentence_counts_only_as_a_word(frozen: str) -> None:
    """No state has read the last word when it is predicted: states cannot tell what was said there, words can."""
    for values, told in (("states", False), ("words", True)):
        model = model_of(values, states=frozen)
        same = torch.allclose(states(model, (12, 15, 17)), states(model, (12, 20, 21)), atol=1e-6)
        assert same is not told
    # Never what a sentence is about to say itself: that would be reading the answer.
    model = model_of("words", states=frozen)
    torch.testing.assert_close(states(model, (12, 15, 17)), states(model, (22, 15, 17)), atol=1e-6, rtol=0)


def test_the_pass_itself_as_context_equals_a_bank_of_it() -> None:
    model = model_of("words")
    pairs = pack_pairs(SOURCES, TARGETS, [0, 0, 0], [0, 1, 2])
    with torch.no_grad():
        live = model(Batch(pairs)).states
        apart = model(Batch(pairs), context=model.offer(pairs.source, pairs.target)).states
    torch.testing.assert_close(live, apart, atol=1e-6, rtol=0)


@pytest.mark.parametrize("wish", [{"integration": "encoder"}, {"integration": "decoder", "kind": "han"}])
def test_words_need_target_sentences(wish: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="values: words needs integration: decoder"):
        ContextSection(**{"kind": "hierarchical", **wish}, values="words")  # type: ignore[arg-type]
