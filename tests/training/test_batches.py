"""Stores and batches: nothing lost or doubled, deterministic, whole documents with their context."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest
import torch

from weitblick.common.errors import UserError
from weitblick.common.logs import read_log
from weitblick.common.recipe import Recipe, TextSection
from weitblick.documents.document import Document, Sentence
from weitblick.model.batch import pack_pairs
from weitblick.text.base import BOS, EOS
from weitblick.text.pipeline import learn_pipeline
from weitblick.training.batching import document_plans, load_batch, sentence_plans
from weitblick.training.run import _open_run
from weitblick.training.store import CorpusStore, prepare_store


def make_documents(count=40, seed=0):
    random = np.random.default_rng(seed)
    words = ["the", "a", "house", "tree", "sees", "finds", "green", "old", "small", "river", "bank", "goes"]
    documents = []
    for number in range(count):
        sentences = []
        for _ in range(random.integers(1, 15)):
            text = " ".join(random.choice(words, random.integers(1, 12)))
            sentences.append(Sentence(text, text[::-1]))
        documents.append(Document(str(number), tuple(sentences)))
    return documents


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    documents = make_documents()
    section = TextSection(kind="sentencepiece", merges=200, joint_vocabulary=True)
    pipeline = learn_pipeline(documents, section)
    return prepare_store(documents, pipeline, tmp_path_factory.mktemp("store") / "s"), documents, pipeline


def test_the_store_gives_back_every_sentence_and_document(store):
    prepared, documents, pipeline = store
    again = CorpusStore(prepared.folder)
    assert len(again) == len(documents)
    for index, document in enumerate(documents):
        numbers = again.document(index)
        assert [list(again.sentence("source", n)) for n in numbers] == pipeline.encode_source(document.sources)
        assert [list(again.sentence("target", n)) for n in numbers] == pipeline.encode_target(document.targets)


def test_empty_and_overlong_pairs_are_left_out_and_counted(store, tmp_path):
    _, _, pipeline = store
    pipeline_limit = pipeline.longest_sentence
    document = Document(
        "d", (Sentence("a house", ""), Sentence("a tree", "x"), Sentence("a " * pipeline_limit * 2, "x"))
    )
    prepared = prepare_store([document], pipeline, tmp_path / "s")
    assert prepared.sentences == 1
    assert prepared.facts.sentences_left_out == 2
    with pytest.raises(UserError, match="no sentence pair"):
        prepare_store([Document("d", (Sentence("", ""),))], pipeline, tmp_path / "t")


def test_a_damaged_store_is_named(store, tmp_path):
    _, documents, pipeline = store
    broken = prepare_store(documents, pipeline, tmp_path / "b")
    (broken.folder / "source.ids.npy").write_bytes(b"nonsense")
    with pytest.raises(UserError, match=r"source\.ids\.npy"):
        CorpusStore(broken.folder)


def test_the_size_in_a_damaged_store_is_not_allocated(store, tmp_path):
    _, documents, pipeline = store
    path = prepare_store(documents, pipeline, tmp_path / "b").folder / "source.ids.npy"
    content = bytearray(path.read_bytes())
    content[6] ^= 2  # of another version, in which the header's length has four bytes
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(UserError, match=r"source\.ids\.npy: cannot be opened \(a header of \d+ bytes"):
        CorpusStore(path.parent)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_an_endless_file_in_a_run_is_named(tmp_path):
    for name in ("log.jsonl", "manifest.json"):
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"log\.jsonl: is not a plain file"):
        read_log(tmp_path / "log.jsonl")
    with pytest.raises(UserError, match=r"manifest\.json: is not a plain file"):
        _open_run(tmp_path, Recipe.model_construct(), {})


@pytest.mark.parametrize("budget", [30, 120, 4000])
def test_document_plans_lose_and_double_nothing(store, budget):
    prepared, _, _ = store
    plans = document_plans([prepared], budget, seed=1, epoch=0)
    seen = Counter((p.document, i) for plan in plans for p in plan.parts for i in range(p.first, p.last))
    assert set(seen.values()) == {1}
    assert len(seen) == prepared.sentences
    sizes = prepared.lengths("target") + 1
    for plan in plans:
        tokens = sum(int(sizes[prepared.document(p.document)[i]]) for p in plan.parts for i in range(p.first, p.last))
        sentences = sum(p.last - p.first for p in plan.parts)
        assert tokens <= budget or sentences == 1


def test_a_document_over_the_budget_keeps_its_whole_context(store):
    prepared, _, _ = store
    plan = next(p for p in document_plans([prepared], 30, 1, 0) if p.parts[0].last - p.parts[0].first > 1)
    batch = load_batch([prepared], plan)
    assert batch.context is not None
    assert batch.context.sentences == sum(len(prepared.document(p.document)) for p in plan.parts)
    assert batch.current.sentences == sum(p.last - p.first for p in plan.parts)


def test_sentence_plans_lose_and_double_nothing(store):
    prepared, _, _ = store
    plans = sentence_plans(prepared, 60, seed=1, epoch=0)
    assert sorted(np.concatenate([p.sentences for p in plans]).tolist()) == list(range(prepared.sentences))


def test_plans_depend_on_seed_and_epoch_alone(store):
    prepared, _, _ = store
    assert document_plans([prepared], 100, 1, 0) == document_plans([prepared], 100, 1, 0)
    assert document_plans([prepared], 100, 1, 0) != document_plans([prepared], 100, 1, 1)
    assert document_plans([prepared], 100, 1, 0) != document_plans([prepared], 100, 2, 0)


def test_mixed_in_documents_have_their_share(store):
    prepared, _, _ = store
    plans = document_plans([prepared, prepared], 4000, 1, 0, mix_share=0.25)
    parts = Counter(p.store for plan in plans for p in plan.parts)
    assert parts[0] == len(prepared)
    assert parts[1] == round(len(prepared) / 3)


def test_packing_adds_what_the_decoder_reads_and_predicts():
    pairs = pack_pairs([[5, 6], [7]], [[8], [9, 10]], [0, 0], [0, 1])
    assert pairs.source.tokens.tolist() == [5, 6, EOS, 7, EOS]
    assert pairs.target.tokens.tolist() == [BOS, 8, BOS, 9, 10]
    assert pairs.labels.tolist() == [8, EOS, 9, 10, EOS]
    assert pairs.source.layout.is_word.tolist() == [True, True, False, True, False]


def test_grids_pad_and_pack_without_loss():
    pairs = pack_pairs([[5] * n for n in (1, 9, 2, 30, 1, 3)], [[8]] * 6)
    layout = pairs.source.layout
    x = torch.randn(layout.tokens, 4, requires_grad=True)
    assert len(layout.grid.groups) > 1
    assert torch.equal(layout.grid.pack(layout.grid.pad(x)), x)
    assert torch.equal(layout.pack(layout.pad(x)), x)
    (layout.grid.pack(layout.grid.pad(x)) * 3).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 3))
