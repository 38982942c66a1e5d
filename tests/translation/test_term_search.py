"""Terms are said by any model, at their place, and nothing else is touched."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import SOURCES, name, tiny_pipeline, tiny_translation_model

from weitblick.documents.document import Document, Sentence
from weitblick.memory.terms import Term, Terms
from weitblick.model.context import Sources
from weitblick.translation.alignment import Alignment, align_by_place
from weitblick.translation.beam import Hypothesis
from weitblick.translation.document_job import DocumentJob
from weitblick.translation.forced import Forced, continuing_pieces
from weitblick.translation.options import TranslationOptions
from weitblick.translation.searching import search_batch
from weitblick.translation.term_alternatives import WORDS_BEHIND, best_candidates
from weitblick.translation.term_cases import Attempt, Change, TermCase
from weitblick.translation.term_places import (
    Candidate,
    Part,
    TermPlace,
    agrees,
    candidates,
    with_number,
    with_other_endings,
)
from weitblick.translation.term_scorer import TermScorer
from weitblick.translation.term_search import TermSearch
from weitblick.translation.translator import Translator

VARIANTS = [
    {"kind": "none"},
    {"kind": "hierarchical", "integration": "encoder"},
    {"kind": "hierarchical", "integration": "decoder", "direction": "online"},
    {"kind": "concatenation", "integration": "encoder"},
]
TERMS = Terms([Term("report", "Ausschuss", "g:1"), Term("house", "Montag", "g:2"), Term("figures", "Zahlen", "g:3")])


def translator(variant: dict[str, str], architecture: str = "transformer") -> Translator:
    return Translator(tiny_translation_model(variant, end=2.5, architecture=architecture), tiny_pipeline())


@pytest.mark.parametrize("variant", VARIANTS, ids=name)
@pytest.mark.parametrize("beam", [1, 3])
def test_every_model_says_a_term_and_the_rest_stays(variant: dict[str, str], beam: int) -> None:
    ours = translator(variant)
    plain = ours.translate(SOURCES, beam=beam).targets
    document = Document("1", tuple(Sentence(source) for source in SOURCES))
    (one,) = ours.translations([document], beam=beam, terms=TERMS)
    followed = one.document.targets
    assert "Ausschuss" in (followed[0] or "")
    assert "Montag" in (followed[3] or "")
    assert followed[2] == plain[2]
    (use,) = one.translations[0][0].terms
    assert use.followed
    assert use.as_json()["reason"] == "because of the term report = Ausschuss, g:1"
    assert not one.translations[2][0].terms


def test_a_sentence_with_terms_alone_or_in_a_batch() -> None:
    ours = translator(VARIANTS[0])
    together = ours.translate(SOURCES, terms=TERMS).targets
    assert list(together) == [ours.translate([source], terms=TERMS).targets[0] for source in SOURCES]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_search_goes_on_from_a_given_beginning(beam: int) -> None:
    ours = translator(VARIANTS[0])
    sources = Sources(ours.pipeline.encode_source(SOURCES), [0] * 4, list(range(4)))
    prefixes = ours.pipeline.encode_target(["Der Bericht", "", "Es", "Wo ist das Haus"])
    options = TranslationOptions(beam=beam).of(ours.model.sentence.generation)
    barred = continuing_pieces(ours.pipeline, len(ours.model.sentence.output()[0]))
    forced = Forced.of(prefixes, [[-1.0] * len(prefix) for prefix in prefixes], [True] * 4, barred)
    states = sources.encode(ours.model.sentence)
    found = search_batch(ours.model, sources, [0, 1, 2, 3], states, None, options, options.search, forced=forced)
    free = search_batch(ours.model, sources, [1], states, None, options, options.search)
    for prefix, hypotheses in zip(prefixes, found, strict=True):
        assert hypotheses[0].ids[: len(prefix)] == list(prefix)
        assert len(hypotheses[0].ids) == len(prefix) or not barred[hypotheses[0].ids[len(prefix)]]
    assert found[1][0].ids[1:] == free[0][0].ids[1:] or barred[free[0][0].ids[0]]


def test_scores_of_a_search_are_those_of_forced_decoding() -> None:
    ours = translator(VARIANTS[0])
    document = Document("1", (Sentence("The report was read."), Sentence("It is near.")))
    job = DocumentJob(ours, document, TranslationOptions())
    for _ in job.prepare():
        pass
    barred = continuing_pieces(ours.pipeline, len(ours.model.sentence.output()[0]))
    prefixes = ours.pipeline.encode_target(["Der Bericht", "Es"])
    with torch.no_grad():
        scores = job.passes.score([0, 1], prefixes)
        scorer = TermScorer(job.passes)
        found = scorer.search_from([0, 1], prefixes, scores, [True, False], barred)
        words = job.passes.score([0, 1], [own[0].ids for own in found])
        later = scorer.score_alternatives([0, 1], [own[0].ids for own in found], [1, 2])
    assert [sum(own) for own in words] == pytest.approx([own[0].log_probability for own in found], abs=1e-3)
    assert [own[0].word_log_probabilities for own in found] == [pytest.approx(own, abs=1e-3) for own in words]
    assert later == pytest.approx([sum(own[first:-1]) for own, first in zip(words, (1, 2), strict=True)], abs=1e-3)


@pytest.mark.parametrize("architecture", ["transformer", "ssru"])
def test_alternatives_that_begin_alike_are_scored_as_each_alone(architecture: str) -> None:
    ours = translator(VARIANTS[0], architecture)
    document = Document("1", (Sentence("The report was read."), Sentence("Where is the house?")))
    job = DocumentJob(ours, document, TranslationOptions())
    for _ in job.prepare():
        pass
    texts = ["Der Bericht wurde verlesen.", "Der Bericht", "Der", "Der Bericht war falsch.", "Es ist nahe."]
    texts += ["Wo ist das Haus?", "Wo ist die Bank?", "Wo ist das Haus? Es"]
    numbers, rows = [0] * 5 + [1] * 3, ours.pipeline.encode_target(texts)
    begun = [1, 1, 0, 1, 0, 2, 2, 2]
    alone = [job.passes.score([n], [row], alone=True)[0] for n, row in zip(numbers, rows, strict=True)]
    scorer = TermScorer(job.passes)
    wanted = [sum(own[n:-1]) for own, n in zip(alone, begun, strict=True)]
    first = scorer.score_alternatives(numbers[::2], rows[::2], begun[::2])
    assert first == pytest.approx(wanted[::2], abs=1e-4)
    assert scorer.score_alternatives(numbers, rows, begun) == pytest.approx(wanted, abs=1e-4)  # behind what is known


@pytest.mark.parametrize("architecture", ["transformer", "ssru"])
@pytest.mark.parametrize("variant", VARIANTS, ids=name)
def test_the_rest_of_a_translation_is_scored_as_in_the_whole(variant: dict[str, str], architecture: str) -> None:
    ours = translator(variant, architecture)
    document = Document("1", (Sentence("The report was read."), Sentence("Where is the house?")))
    job = DocumentJob(ours, document, TranslationOptions())
    for _ in job.prepare():
        pass
    rows = ours.pipeline.encode_target(["Der Bericht wurde verlesen.", "Wo ist das Haus?", "Der Bericht war falsch."])
    numbers, begun = [0, 1, 0], [2, 0, 1]
    with torch.no_grad():
        whole = job.passes.score(numbers, rows)
    found = TermScorer(job.passes).score(numbers, rows, begun)
    assert [len(own) for own in found] == [len(row) + 1 - n for row, n in zip(rows, begun, strict=True)]
    for own, every, first in zip(found, whole, begun, strict=True):
        assert own == pytest.approx(every[first:], abs=1e-4)


@pytest.mark.parametrize("architecture", ["transformer", "ssru"])
def test_reading_again_gives_the_same_attention_and_states(architecture: str) -> None:
    ours = translator(VARIANTS[0], architecture)
    document = Document("1", (Sentence("The report was read."), Sentence("Where is the house?")))
    job = DocumentJob(ours, document, TranslationOptions())
    for _ in job.prepare():
        pass
    rows, passes = ours.pipeline.encode_target(["Der Bericht wurde verlesen.", "Wo ist das Haus?"]), job.passes
    scorer = TermScorer(passes)
    scorer.score_alternatives([0, 1], [rows[0][:2], rows[1][:3]], [0, 0])
    readings = scorer.read([0, 1], rows)
    for number, (reading, row) in enumerate(zip(readings, rows, strict=True)):
        source, target = passes.sources.pack([number]), passes.sources.choose([number]).pack_targets([0], [row])
        encoded = passes.encoder_states[passes.sources.rows([number])]
        with torch.no_grad():
            sentence = ours.model.sentence
            states, weights = sentence.decode_with_weights(target.tokens, target.layout, encoded, source.layout)
        torch.testing.assert_close(reading.states, states.final, atol=1e-5, rtol=1e-4)
        own = torch.from_numpy(reading.weights)
        torch.testing.assert_close(own, weights[0, : own.shape[0], : own.shape[1]], atol=1e-5, rtol=1e-4)


def test_candidates_that_cannot_win_are_not_read_to_their_end() -> None:
    ours = translator(VARIANTS[0])
    document = Document("1", (Sentence("The report was read."), Sentence("Where is the house?")))
    job = DocumentJob(ours, document, TranslationOptions())
    for _ in job.prepare():
        pass
    said = ["Bericht", "Haus", "Montag", "Ausschuss", "Bank", "Zahlen"]
    penalties = [0.0, 0.3, 0.1, 80.0, 0.2, 0.0]
    pairs = list(zip(said, penalties, strict=True))
    places = [("Der ", " wurde verlesen."), ("Wo ist das ", " ? Es ist nahe.")]
    offered = [
        [Candidate(before, "", (), word, rest, len(before), penalty=penalty) for word, penalty in pairs]
        for before, rest in places
    ]
    cases = [TermCase(number, number, text, [], []) for number, text in enumerate(document.sources)]
    best = best_candidates(TermScorer(job.passes), ours.pipeline, cases, offered, [1, 3])
    for number, (own, wanted) in enumerate(zip(offered, (1, 3), strict=True)):
        rows = ours.pipeline.encode_target([one.until(WORDS_BEHIND) for one in own])
        with torch.no_grad():
            scores = job.passes.score([number] * len(rows), rows, alone=True)
        costs = {one.form: one.penalty - sum(words[:-1]) for one, words in zip(own, scores, strict=True)}
        assert [one.form for one in best[number]][:wanted] == sorted(costs, key=lambda form: costs[form])[:wanted]
    assert len(best[0]) < len(said)


def test_several_terms_of_a_sentence_are_said_at_once() -> None:
    ours = translator(VARIANTS[0])
    source = "The report of the house was read."
    (one,) = ours.translations([Document("1", (Sentence(source),))], terms=TERMS)
    uses = one.translations[0][0].terms
    assert [use.followed for use in uses] == [True, True]
    assert "Ausschuss" in (one.document.targets[0] or "")
    assert "Montag" in (one.document.targets[0] or "")


def test_a_correction_changes_only_drafts_with_the_refused_word() -> None:
    ours = translator(VARIANTS[0])
    rows = ("The report is here.", "Der Bericht ist da."), ("The report.", "Das Haus.")
    document = Document("1", tuple(Sentence(source, draft, "draft") for source, draft in rows))
    job = DocumentJob(ours, document, TranslationOptions())
    for _ in job.prepare():
        pass
    term = Term("report", "Ausschuss", "row 1", "correction", refused="Bericht")
    search = ours.term_search(TranslationOptions(terms=Terms([term])))
    assert search is not None
    found = job.with_terms(search, job.chosen)
    assert list(found) == [0]
    assert "Ausschuss" in found[0][0].text
    with torch.no_grad():
        draft = sum(job.passes.score([0], ours.pipeline.encode_target([rows[0][1]]))[0])
    lost = draft - found[0][0].log_probability
    for most_lost in (lost + 0.01, lost - 0.01, -1e6):
        bounded = job.with_terms(TermSearch(Terms([term]), ours.pipeline, most_lost), job.chosen)
        assert all(draft - own[0].log_probability <= most_lost + 1e-3 for own in bounded.values())
        assert bool(bounded) or most_lost < lost


def test_articles_and_adjectives_agree_with_a_term() -> None:
    text = "Ich habe einen neuen Wagen gekauft."
    place = TermPlace(text, 21, 26, 9, ("neuen",))
    assert place.words == "Wagen"
    offered = with_other_endings(candidates(place, ["Motorrad"], False, "de"), "de")
    texts = {one.text for one in offered}
    assert "Ich habe ein neues Motorrad gekauft." in texts
    assert not any("einen" in one or "ein neuer" in one for one in texts)
    assert not agrees("Ich habe einen neuen Motorrad.", 21, "Motorrad", "de")
    assert agrees("Ich habe ein neues Motorrad.", 19, "Motorrad", "de")


def test_number_and_case_of_a_term_are_those_of_its_place() -> None:
    text = "Wir verstoßen gegen dieses Abkommen."
    place = TermPlace(text, 27, 35, 20)
    assert place.words == "Abkommen"
    offered = with_number(candidates(place, ["Vertrag", "Vertrags", "Verträge"], False, "de"), "Vertrag", False, "de")
    penalties = {one.said: one.penalty for one in offered}
    assert penalties["diesen Vertrag"] < penalties["dieses Vertrags"]
    assert penalties["diesen Vertrag"] < penalties["diese Verträge"]
    each = TermPlace("Sie melden jede Niederlage.", 16, 26, 11)
    found = with_number(candidates(each, ["Mangel", "Mängel"], False, "de"), "Mangel", None, "de")
    said = {one.said: one.penalty for one in found}
    assert said["jeden Mangel"] < said["jede Mängel"]


def test_a_plural_that_looks_like_the_singular_has_the_article_of_a_plural() -> None:
    place = TermPlace("Die Drill-Bits sind nicht dabei.", 4, 14, 0)
    found = with_number(candidates(place, ["Bohrer", "Bohrern", "Bohrers"], False, "de"), "Bohrer", True, "de")
    penalties = {one.said: one.penalty for one in found}
    assert penalties["Die Bohrer"] < penalties["Der Bohrer"]


def test_the_article_of_a_term_of_several_words_is_that_of_its_noun() -> None:
    text = "Er gibt alle vertraulichen Informationen zurück."
    assert agrees(text, 13, "vertraulichen Informationen", "de")
    place = TermPlace("Wegen der Kraftwerke ist alles verspätet.", 10, 20, 6)
    said = {one.said for one in candidates(place, ["höhere Gewalt", "höheren Gewalt"], False, "de")}
    assert "der höheren Gewalt" in said
    assert "der höhere Gewalt" not in said


def test_a_place_has_its_article() -> None:
    source, target = "This is the new report", "Dies ist der neue Bericht"
    place = TermPlace.of(target, 16, 22, align_by_place(source, target), "de")
    assert place is not None
    assert (place.words, place.adjectives) == ("Bericht", ("neue",))
    assert target[place.article :].startswith("der")


def said_at(place: TermPlace, *forms: str) -> set[str]:
    return {one.text for one in candidates(place, forms, False, "de")}


def test_a_part_of_a_compound_is_replaced() -> None:
    place = TermPlace("Die Kabeljaubestände sinken.", 4, 20, 0, (), True, "first")
    assert said_at(place, "Dorsch", "Dorsche") >= {"Die Dorschbestände sinken."}
    text = "Die Entscheidung des Überwachungsausschusses ist endgültig."
    found = said_at(TermPlace(text, 21, 44, 17, (), True, "last"), "Kommission", "Kommissionen")
    assert "Die Entscheidung der Überwachungskommission ist endgültig." in found
    assert not any("Kommissions" in one for one in found)
    requests = TermPlace("Die Personalanfragen sind da.", 4, 20, 0, (), True, "first")
    offered = candidates(requests, ["Stelle", "Stellen"], False, "de")
    assert {one.form for one in offered} == {"Stellenanfragen"}


@pytest.mark.parametrize("part", [None, "first", "last"])
@pytest.mark.parametrize("word", ["Ausschusses", "Vorschlags", "Beitrags"])
def test_what_is_no_compound_is_replaced_as_a_whole(word: str, part: Part | None) -> None:
    text = f"Die Stellungnahme des {word} kam spät."
    place = TermPlace(text, 22, 22 + len(word), 18, (), part is not None, part)
    offered = candidates(place, ["Kommission"], False, "de")
    assert {one.form for one in offered} == {"Kommission"}
    assert "Die Stellungnahme der Kommission kam spät." in {one.text for one in offered}


@pytest.mark.parametrize(
    ("source", "term", "other", "part"),
    [
        ("the audit committee decides", "committee", "audit", "last"),
        ("the committee on budgets decides", "committee", "budgets", "last"),
        ("the cod quota falls", "cod", "quota", "first"),
        ("the quota for cod falls", "cod", "quota", "first"),
        ("the quota for cod falls", "quota", "cod", "last"),
    ],
)
def test_which_part_of_a_compound_stands_for_a_term(source: str, term: str, other: str, part: str) -> None:
    target, words = "das Zwillingswort ist da", source.split()
    weights = np.full((4, len(words)), 0.02)
    weights[1, [words.index(term), words.index(other)]] = 0.5, 0.4
    starts = [source.index(word) for word in words]
    spans = tuple((start, start + len(word)) for start, word in zip(starts, words, strict=True))
    alignment = Alignment(spans, ((0, 3), (4, 17), (18, 21), (22, 24)), weights)
    place = TermPlace.of(target, source.index(term), source.index(term) + len(term), alignment, "de")
    assert place is not None
    assert (place.words, place.shared, place.part) == ("Zwillingswort", True, part)


def test_a_word_that_was_replaced_does_not_come_back() -> None:
    place = TermPlace("Die Stellungnahme des Ausschusses kam spät.", 22, 33, 18)
    case = TermCase(0, 0, "The opinion of the committee came late.", [], [])
    attempt = Attempt(case, 0, Term("committee", "Kommission", "g"), place)
    nothing = Hypothesis([], 0.0, 0.0, [])
    change = Change([attempt], "Die Stellungnahme der Kommission kam spät.", nothing, nothing, None, True)
    assert change.comes_back("Die Stellungnahme der Kommission des Ausschusses kam spät.")
    assert not change.comes_back("Die Stellungnahme der Kommission wurde spät gebracht.")
