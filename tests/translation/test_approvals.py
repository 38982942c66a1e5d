"""Approved translations in the decoder: nothing approved changes nothing, what is approved is pointed at, alone or in a
batch, cached or recomputed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tiny_models import SOURCES, TARGETS, name, tiny_pipeline, tiny_translation_model

from weitblick.checkpoints.folder import load_model, save_model
from weitblick.common.errors import UserError
from weitblick.common.recipe import MemorySection
from weitblick.documents.document import Document, Sentence
from weitblick.memory.approvals import ApprovedPair, Origin
from weitblick.memory.pointer import MemoryPointer
from weitblick.memory.store import Memory
from weitblick.model.batch import pack_source, pack_target
from weitblick.model.context import Context
from weitblick.text.units import Unit, split_documents
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator

NONE = {"kind": "none"}
VARIANTS = [
    NONE,
    {"kind": "hierarchical", "integration": "encoder"},
    {"kind": "hierarchical", "integration": "decoder", "direction": "online"},
]
SENTENCES = ["The report was read.", "Mr. Smith is wrong.", "It costs more!", "Where is the house?", "It is near."]
SAME_WORDS = ["The report was read.", "Was the report read?", "Read was the report!"]
SAID = ["Der Bericht wurde verlesen.", "Wurde der Bericht verlesen?", "Verlesen wurde der Bericht!"]
"""Each of these has all words of the others: every word that one was approved with may be taken by all."""
QUICK = {"beam": 3, "length_penalty": 0.0}


def translator(variant: dict[str, str] = NONE, share: float | None = 0.0, **memory) -> Translator:
    """`share`: the bias of the pointer's share; None: no pointer."""
    model = tiny_translation_model(variant, end=2.5)
    if share is not None:
        torch.manual_seed(3)
        pointer = MemoryPointer(MemorySection(kind="pointer", dimension=8, candidates=3, **memory), 16).eval()
        torch.nn.init.constant_(pointer.share[-1].bias, share)
        model.pointer = pointer
    return Translator(model, tiny_pipeline())


def approved(*more: tuple[str, str]) -> Memory:
    memory = Memory()
    for source, target in (*zip(SOURCES, TARGETS, strict=True), *more):
        memory.add(source, target)
    return memory


def document(sentences: list[str] = SENTENCES, id: str = "1") -> Document:
    return Document(id, tuple(Sentence(sentence) for sentence in sentences))


def figures(ours: Translator, documents: list[Document], **wishes) -> list[list[tuple[str, float]]]:
    translated = ours.translations(documents, **QUICK, **wishes)
    return [[(t[0].text, t[0].log_probability) for t in one.translations if t] for one in translated]


@pytest.mark.parametrize("variant", VARIANTS, ids=name)
def test_nothing_approved_is_the_model_without_a_pointer(variant):
    plain, pointing = translator(variant, None), translator(variant)
    assert figures(pointing, [document()]) == figures(plain, [document()])
    assert figures(pointing, [document()], memory=Memory()) == figures(plain, [document()])


@pytest.mark.parametrize("variant", VARIANTS, ids=name)
def test_what_is_approved_changes_translations_until_it_is_taken_out(variant):
    ours = translator(variant)
    before = figures(ours, [document()])
    memory = Memory()
    ids = [memory.add(source, target) for source, target in zip(SOURCES, TARGETS, strict=True)]
    assert figures(ours, [document()], memory=memory) != before
    for id in ids:
        memory.remove(id)
    assert figures(ours, [document()], memory=memory) == before


@pytest.mark.parametrize("variant", VARIANTS, ids=name)
@pytest.mark.parametrize("attention", ["sparse", "none"])
def test_a_document_with_a_memory_alone_or_in_a_batch(variant, attention):
    ours = translator(variant, sentence_attention=attention)
    memory = approved(*zip(SAME_WORDS[1:], SAID[1:], strict=True))
    locked = replace(
        document(id="b"), sentences=(Sentence("It is old.", "Es ist alt.", "locked"), *document().sentences)
    )
    documents = [document(SENTENCES[:2], "a"), locked, document(SENTENCES[::-1], "c")]
    together = figures(ours, documents, memory=memory)
    for one, expected in zip(documents, together, strict=True):
        (alone,) = figures(ours, [one], memory=memory)
        assert [text for text, _ in alone] == [text for text, _ in expected]
        assert [score for _, score in alone] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_search_agrees_with_forced_decoding():
    """The log-probabilities of a search with caches are those of one pass over the whole translation, of sentences
    that have all words of what is approved, which point at every step, and of others."""
    ours = translator()
    units = split_documents([document([*SAME_WORDS, *SENTENCES[1:]])], ours.pipeline, ours.warn)
    memory = approved(*zip(SAME_WORDS, SAID, strict=True))
    options = TranslationOptions(beam=3, length_penalty=0.0, memory=memory)
    pointer = ours.pointer_for(units, options)
    found = translate_units(ours.model, units, options, pointer=pointer)
    positions = [unit.position for unit in units]
    source = pack_source([unit.source for unit in units], [0] * len(units), positions)
    target, labels = pack_target([hypotheses[0].ids for hypotheses in found], [0] * len(units), positions)
    with torch.no_grad():
        states = ours.model.sentence.encode(source.tokens, source.layout)
        words = ours.model.decode(target, states, source.layout, Context(pointer=pointer)).words
    assert words.pointed is not None
    pointing = torch.tensor([unit.sentence < len(SAME_WORDS) for unit in units])[target.layout.sentence]
    assert float(words.pointed.share[pointing].min()) > 0
    tokens = words.log_probabilities(labels)
    sums = torch.zeros(len(units)).index_add_(0, target.layout.sentence, tokens)
    torch.testing.assert_close(sums, torch.tensor([h[0].log_probability for h in found]), atol=1e-4, rtol=1e-4)
    table = words.table(slice(0, len(labels)))
    torch.testing.assert_close(table.exp().sum(-1), torch.ones(len(labels)), atol=1e-4, rtol=1e-4)


def units(ours: Translator, *sources: str) -> list[Unit]:
    ids = ours.pipeline.encode_source(list(sources))
    return [Unit(0, n, n, text, own) for n, (text, own) in enumerate(zip(sources, ids, strict=True))]


def point(ours: Translator, candidates: list[ApprovedPair], sentence: str = "The report was read."):
    pointer = ours.approvals.pointer_to(units(ours, sentence), [candidates])
    ids = (
        ours.pipeline.encode_source([sentence]),
        ours.pipeline.encode_target(["Der Bericht wurde verlesen."]),
    )
    source, (target, _) = pack_source(ids[0], [0], [0]), pack_target(ids[1], [0], [0])
    with torch.no_grad():
        states = ours.model.sentence.encode(source.tokens, source.layout)
        words = ours.model.decode(target, states, source.layout, Context(pointer=pointer)).words
    assert pointer is not None
    assert words.pointed is not None
    return pointer, words.pointed


def candidate(number: int, distance: float) -> ApprovedPair:
    pair = SOURCES[number], TARGETS[number]
    return ApprovedPair(Origin(*pair, pair=number), distance)


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_translations_of_a_sentence_the_nearest_is_taken(first):
    source, targets = "The report was read.", ("Der Bericht wurde verlesen.", "Der Rapport wurde verlesen.")
    far, near = (
        ApprovedPair(Origin(source, target), distance) for target, distance in zip(targets, (9.0, 2.0), strict=True)
    )
    pointer, _ = point(translator(), [far, near, candidate(2, 1.0)] if first else [near, far, candidate(2, 1.0)])
    assert [origin.target for origin in pointer.origins] == [targets[1], TARGETS[2]]


def test_of_conflicting_approvals_the_nearest_counts_more():
    ours = translator(sentence_attention="none")
    one, other = (
        ApprovedPair(Origin(source, target), distance)
        for source, target, distance in (
            ("The report was read.", "Der Bericht wurde verlesen.", 0.0),
            ("The report was read!", "Der Bericht wurde verlesen!", 9.0),
        )
    )
    pointer, pointed = point(ours, [other, one])
    assert pointed.places is not None
    nearest = 0.0
    for weights, places in zip(pointed.weights, pointed.places, strict=True):
        numbers = [pointer.origin(0, 0, int(place))[0] for place in places]
        nearest += sum(float(w) for w, n in zip(weights, numbers, strict=True) if n == 1)
    assert nearest > 0.55 * len(pointed.weights)


def test_a_fetched_word_tells_where_it_comes_from():
    ours = translator()
    pairs = [Origin(source, target) for source, target in zip(SAME_WORDS[1:], SAID[1:], strict=True)]
    pointer, pointed = point(ours, [ApprovedPair(pair, float(n)) for n, pair in enumerate(pairs)])
    assert pointed.places is not None
    assert float(pointed.share.min()) > 0
    for ids, places, weights in zip(pointed.ids, pointed.places, pointed.weights, strict=True):
        for id, place, weight in zip(ids.tolist(), places.tolist(), weights.tolist(), strict=True):
            if weight > 0:
                number, word = pointer.origin(0, 0, place)
                target = ours.pipeline.encode_target([pointer.origins[number].target])[0][
                    : ours.pipeline.longest_sentence
                ]
                assert [*target, 2][word] == id


def test_what_a_document_has_approved_is_told_from_a_memory():
    """And decides: the same pair has another share as the document's own."""
    ours = translator()
    locked = Document("1", (Sentence(SAME_WORDS[0], SAID[0], "locked"), *map(Sentence, SAME_WORDS[1:])))
    memory = approved((SAME_WORDS[2], SAID[2]))
    pointer = ours.pointer_for(split_documents([locked], ours.pipeline, ours.warn), TranslationOptions(memory=memory))
    assert pointer is not None
    for reader in pointer.readers.values():
        of_document = {pointer.origins[n].target for n, own in zip(reader.numbers, reader.own, strict=True) if own}
        assert of_document == {SAID[0]}
        assert len(reader.own) > 1
    pair = SAME_WORDS[1], SAID[1]
    pairs = [ApprovedPair(Origin(*pair, sentence=sentence), 0.0) for sentence in (None, 0)]
    shares = [point(ours, [one])[1].share for one in pairs]
    assert not torch.allclose(*shares)


@pytest.mark.parametrize(
    ("sentence", "own", "all_open"),
    [
        (SAME_WORDS[0], ApprovedPair(Origin(SAME_WORDS[1], SAID[1]), 0.0), True),
        ("Mr. Smith said that.", candidate(1, 0.0), False),
    ],
)
def test_candidates_of_others_do_not_matter(sentence, own, all_open):
    """A sentence with fewer candidates than another one in its batch points as if it were alone, be all places open to
    it or some."""
    ours = translator()
    pointer, alone = point(ours, [own], sentence)
    (opened,) = pointer.readers[0, 0].open
    assert opened.any()
    assert opened.all() == all_open
    both = units(ours, sentence, "It is near.")
    pointer = ours.approvals.pointer_to(both, [[own], [candidate(n, n) for n in (0, 2, 3)]])
    ids = (
        ours.pipeline.encode_source([sentence]),
        ours.pipeline.encode_target(["Der Bericht wurde verlesen."]),
    )
    source = pack_source([*ids[0], ours.pipeline.encode_source(["It is near."])[0]], [0, 0], [0, 1])
    target, _ = pack_target([*ids[1], ours.pipeline.encode_target(["Es ist nah."])[0]], [0, 0], [0, 1])
    with torch.no_grad():
        states = ours.model.sentence.encode(source.tokens, source.layout)
        words = ours.model.decode(target, states, source.layout, Context(pointer=pointer)).words
    assert words.pointed is not None
    count = len(ids[1][0]) + 1
    torch.testing.assert_close(words.pointed.share[:count], alone.share, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(words.pointed.weights[:count], alone.weights, atol=1e-5, rtol=1e-4)


def test_keys_kept_in_a_folder_say_the_same(tmp_path):
    with Memory.open(tmp_path / "memory") as memory:
        for source, target in zip(SOURCES, TARGETS, strict=True):
            memory.add(source, target)
        first = figures(translator(), [document()], memory=memory)
        assert len(memory.keys([pair.id for pair in memory], translator().approvals.fingerprint)) == len(SOURCES)
        again = figures(translator(), [document()], memory=memory)
    for one, other in zip(first[0], again[0], strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], abs=0.02)  # kept in half precision


def test_locked_sentences_are_approved():
    ours = translator()
    free = document(SAME_WORDS[1:]).sentences
    with_lock = Document("1", (Sentence(SAME_WORDS[0], SAID[0], "locked"), *free))
    draft = Document("1", (Sentence(SAME_WORDS[0], SAID[0], "draft"), *free))
    assert figures(ours, [with_lock])[0] != figures(ours, [draft])[0][1:]


def test_a_stream_follows_what_is_confirmed():
    ours, untold = (translator().stream(**QUICK) for _ in range(2))
    for stream in (ours, untold):
        stream.translate(SAME_WORDS[0])
    ours.confirm(0, SAID[0])
    assert ours.translations(SAME_WORDS[1])[0].log_probability != untold.translations(SAME_WORDS[1])[0].log_probability
    with pytest.raises(IndexError):
        ours.confirm(7, "Nein.")
    ours.end_document()
    untold.end_document()
    assert ours.translations(SENTENCES[1]) == untold.translations(SENTENCES[1])


def test_a_model_without_a_pointer_says_how_to_train_one():
    ours = translator(share=None)
    ours.borrows = False
    with pytest.raises(UserError, match=r"no pointer.*weitblick train"):
        ours.translate(document(), memory=approved())


def test_a_pointer_is_saved_with_its_model(tmp_path):
    ours = translator()
    section = ours.model.section
    assert section.kind == "none"
    from tiny_models import SECTION

    save_model(tmp_path / "m", ours.model, ours.pipeline, SECTION, {})
    loaded = load_model(tmp_path / "m")
    again = Translator(loaded.model, loaded.pipeline)
    assert figures(again, [document()], memory=approved()) == figures(ours, [document()], memory=approved())


def test_an_explanation_shows_what_was_fetched():
    """A fetched word names the approved sentence and word; a sentence without any says so; its JSON comes back."""
    from weitblick.explanation.explain import explain
    from weitblick.explanation.storage import from_json, to_json

    ours = translator(share=8.0)  # everything is fetched
    memory = approved(*zip(SAME_WORDS[1:], SAID[1:], strict=True))
    explanation = explain(ours, document([SAME_WORDS[0], *SENTENCES[1:]]), memory=memory, beam=1)
    fetched = [word for sentence in explanation.sentences for word in sentence.fetched or ()]
    assert fetched
    for word in fetched:
        assert word.target in (*TARGETS, *SAID)
        assert word.text in word.target
        assert 0.5 <= word.share <= 1
    again = from_json(to_json(explanation))
    assert to_json(again)["sentences"] == to_json(explanation)["sentences"]
    never = explain(translator(share=-20.0), document(SENTENCES[:2]), memory=approved(), beam=1)
    assert [sentence.fetched for sentence in never.sentences] == [(), ()]
    assert [s.fetched for s in explain(ours, document(SENTENCES[:2]), beam=1).sentences] == [None, None]


def test_a_sentence_that_may_take_no_approved_word_fetched_none_alone_and_among_others():
    from weitblick.explanation.explain import explain

    ours = translator(share=8.0)
    for sentences in (SENTENCES[:1], [SENTENCES[0], SOURCES[2]]):
        units = split_documents([document(sentences)], ours.pipeline, ours.warn)
        pointer = ours.pointer_for(units, TranslationOptions(memory=approved()))
        assert pointer is not None
        assert pointer.readers[0, 0].closed
        assert explain(ours, document(sentences), memory=approved(), beam=1).sentences[0].fetched == ()
