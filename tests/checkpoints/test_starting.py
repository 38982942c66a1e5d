"""A model that starts from another one, though its vocabulary is larger and it has more layers."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from weitblick.checkpoints.folder import LoadedModel, build
from weitblick.checkpoints.starting import spellings, start_from
from weitblick.common.errors import UserError
from weitblick.common.recipe import ContextSection, ModelSection, TextSection
from weitblick.model.batch import pack_pairs
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import SPECIAL_TOKENS, TextPipeline
from weitblick.text.pipeline import learn_pipeline

SECTION = ModelSection(
    dimension=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=1, norm="pre", tied_embeddings="all"
)
TEXT = (["the house is near the old bank", "the bank is old"], ["das Haus ist nahe der alten Bank", "die Bank ist alt"])


def pipeline(pieces: int, symbols: tuple[str, ...] = ()) -> TextPipeline:
    section = TextSection(kind="sentencepiece", merges=pieces, joint_vocabulary=True, symbols=list(symbols))
    return learn_pipeline(TEXT, section)


def new_model(section: ModelSection, text: TextPipeline) -> DocumentModel:
    torch.manual_seed(3)
    return build(section, ContextSection(), len(text.source_vocabulary), len(text.target_vocabulary)).eval()


@pytest.fixture(scope="module")
def other() -> LoadedModel:
    text = pipeline(285)
    return LoadedModel(new_model(SECTION, text), text, SECTION, ContextSection())


def test_every_piece_is_spelled_by_pieces_of_the_other_vocabulary(other: LoadedModel) -> None:
    larger = pipeline(310, ("⟦1⟧",))
    known = other.pipeline.target_vocabulary
    found = spellings(larger, other.pipeline, "target")
    assert len(found) == len(larger.target_vocabulary)
    for number, ids in enumerate(found[len(SPECIAL_TOKENS) :], len(SPECIAL_TOKENS)):
        piece = larger.target_vocabulary.token(number)
        assert "".join(map(known.token, ids)) == ("" if piece == "⟦1⟧" else piece)
    assert max(map(len, found)) > 1  # some pieces are new


def test_with_the_same_vocabulary_more_layers_change_nothing(other: LoadedModel) -> None:
    grown = new_model(SECTION.model_copy(update={"encoder_layers": 3, "decoder_layers": 2}), other.pipeline)
    pairs = pack_pairs(other.pipeline.encode(TEXT[0], "source"), other.pipeline.encode(TEXT[1], "target"))

    def states(model: DocumentModel) -> torch.Tensor:
        encoded = model.sentence.encode(pairs.source.tokens, pairs.source.layout)
        return model.sentence.decode(pairs.target.tokens, pairs.target.layout, encoded, pairs.source.layout).final

    before = states(grown)
    start_from(grown.sentence, other.pipeline, other)
    assert_close(states(grown), states(other.model))
    assert not torch.allclose(before, states(other.model))


def test_new_pieces_are_the_mean_of_what_spells_them(other: LoadedModel) -> None:
    larger = pipeline(310)
    model = new_model(SECTION, larger)
    start_from(model.sentence, larger, other)
    table, known = (m.sentence.target_table.weight for m in (model, other.model))
    for number, ids in enumerate(spellings(larger, other.pipeline, "target")):
        assert_close(table[number], known[torch.tensor(ids)].mean(0))


def test_other_dimensions_are_refused(other: LoadedModel) -> None:
    wide = new_model(SECTION.model_copy(update={"dimension": 32}), other.pipeline)
    with pytest.raises(UserError, match="has shape"):
        start_from(wide.sentence, other.pipeline, other)
