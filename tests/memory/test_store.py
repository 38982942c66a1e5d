"""The store of approved pairs: what goes in can be found, changed and taken out; search finds what is like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitblick.common.errors import UserError
from weitblick.memory import matches as search
from weitblick.memory import store
from weitblick.memory.store import Memory

PAIRS = [
    ("The committee has approved the report.", "Der Ausschuss hat den Bericht angenommen."),
    ("The fisheries policy needs reform.", "Die Fischereipolitik muss reformiert werden."),
    ("We thank the rapporteur.", "Wir danken dem Berichterstatter."),
]


def filled(memory: Memory) -> list[int]:
    return [memory.add(source, target, f"test:{number}") for number, (source, target) in enumerate(PAIRS)]


@pytest.fixture(params=["ram", "folder"])
def memory(request, tmp_path):
    with Memory() if request.param == "ram" else Memory.open(tmp_path / "memory") as opened:
        yield opened


def test_pairs_are_added_replaced_and_removed(memory):
    first, second, third = filled(memory)
    assert [(p.source, p.target) for p in memory] == PAIRS
    memory.replace(first, "Der Ausschuss hat dem Bericht zugestimmt.")
    memory.remove(second)
    assert len(memory) == 2
    assert [pair.id for pair in memory] == [third, first]  # what was changed last is the latest approval
    assert memory.pair(first).target == "Der Ausschuss hat dem Bericht zugestimmt."
    with pytest.raises(KeyError):
        memory.pair(second)
    assert all(pair.id != second for pair in memory.candidates(["The fisheries policy needs reform."], 1)[0])


def test_the_same_pair_twice_is_one_pair_and_the_latest(memory):
    first, *_ = filled(memory)
    assert memory.add(*PAIRS[0]) == first
    assert len(memory) == 3
    assert [pair.id for pair in memory][-1] == first


def test_a_pair_replaced_by_what_another_says_is_one_pair(memory):
    older = memory.add("Yes.", "Ja.")
    memory.add("Yes.", "Jawohl.")
    memory.replace(older, "Jawohl.")
    assert [(pair.id, pair.target) for pair in memory] == [(older, "Jawohl.")]
    with pytest.raises(KeyError):
        memory.replace(99, "Nein.")


def test_a_sample_is_spread_over_what_is_left(memory):
    ids = memory.extend((f"Sentence {n}.", f"Satz {n}.", "") for n in range(500))
    for id in ids[:490]:
        memory.remove(id)
    assert [source for source, _, _ in memory.sample(5)] == [f"Sentence {n}." for n in range(491, 500, 2)]


def test_a_folder_keeps_its_pairs(tmp_path):
    with Memory.open(tmp_path / "m") as memory:
        ids = filled(memory)
    with Memory.open(tmp_path / "m") as memory:
        assert [pair.id for pair in memory] == ids
        assert memory.pair(ids[2]).origin == "test:2"


def test_a_pair_needs_both_sides_and_a_failed_change_changes_nothing(memory):
    filled(memory)
    with pytest.raises(ValueError, match="source and a target"):
        memory.extend([("One more.", "Noch einer.", ""), ("Another.", "  ", "")])
    assert len(memory) == 3


def test_many_pairs_at_once_are_what_they_are_one_by_one(monkeypatch):
    pairs = [(f"Sentence {n % 70} of word{n % 7}.", f"Satz {n % 35}.", f"file:{n}") for n in range(200)]
    alone, together = Memory(), Memory()
    with together, alone:
        ids = [alone.add(*pair) for pair in pairs]
        monkeypatch.setattr("weitblick.memory.store.WRITTEN_TOGETHER", 30)
        assert together.extend(pairs[:120]) + together.extend(iter(pairs[120:])) == ids
        assert list(together) == list(alone)
        assert together.candidates(["word3", "Sentence 9"], 5) == alone.candidates(["word3", "Sentence 9"], 5)

        def broken():
            yield from pairs
            yield "Another.", "Noch einer.", ""
            raise ValueError("it broke off")

        with pytest.raises(ValueError, match="broke off"):
            together.extend(broken())
        assert list(together) == list(alone)
        assert together.add("Unheard-of words.", "Neues.") in together
        assert [match.pair.target for match in together.matches("Unheard-of words.")] == ["Neues."]


def test_matches_are_the_likest_first_and_of_equal_ones_the_latest(memory):
    filled(memory)
    older = memory.add("The committee has approved the proposal.", "Der Ausschuss hat den Vorschlag angenommen.")
    newer = memory.add("The committee has approved the proposal.", "Der Ausschuss hat dem Vorschlag zugestimmt.")
    found = memory.matches("The committee has approved the proposal.", limit=3, at_least=0.5)
    assert [match.pair.id for match in found[:2]] == [newer, older]
    assert found[0].similarity == 1.0 > found[2].similarity
    assert memory.matches("Something else entirely, I fear.") == []


def test_near_matches_of_common_words_are_found(monkeypatch):
    monkeypatch.setattr(search, "MOST_ROWS", 50)
    memory = Memory()
    for number in range(200):
        memory.add(f"Thank you for the report on number {number}, Commissioner, and for all of the rest.", "Danke.")
    wanted = memory.add("Thank you, Commissioner.", "Vielen Dank, Frau Kommissarin.")
    (match,) = memory.matches("Thank you, Commissioner!", limit=1)
    assert match.pair.id == wanted
    assert memory.matches("Thank you!") == []


def test_a_match_shows_the_difference():
    memory = Memory()
    memory.add(*PAIRS[0])
    (match,) = memory.matches("The committee has rejected the report.")
    different = [(change.here, change.there) for change in match.difference() if change.kind == "different"]
    assert different == [("rejected", "approved")]


@given(st.lists(st.sampled_from(["alpha", "beta", '"', "'", "*", "(", "AND", "NEAR", "^", ":", "ä"]), max_size=8))
def test_search_takes_any_text(words):
    memory = Memory()
    for number in range(6):
        memory.add(f'alpha sentence {number} with " and AND', "Ziel")
    assert len(memory.candidates([" ".join(words)], 2)[0]) <= 2


def test_candidates_share_the_rarest_words():
    memory = Memory()
    for number in range(200):
        memory.add(f"The usual sentence number {number} of the debate.", f"Satz {number}")
    wanted = memory.add("The cod quota is too low.", "Die Dorschquote ist zu niedrig.")
    assert memory.candidates(["What does the cod want in the debate?"], 5)[0][0].id == wanted


@pytest.mark.parametrize("together", [2, 200])
def test_many_sources_find_what_each_finds_alone(together, monkeypatch):
    monkeypatch.setattr(store, "TOGETHER", together)
    memory = Memory()
    for number in range(60):
        memory.add(f"Sentence {number % 7} of debate {number % 11} about {number % 5} fish.", f"Satz {number}")
    memory.add("Debate 3.", "Eine.")
    memory.add("Debate 3.", "Andere.")
    sources = ["Debate 3.", "Sentence 4 about fish", "Nichts!", "", "Debate 3.", "fish 2 debate 10"]
    found = memory.candidates(sources, 5)
    assert found == [memory.candidates([source], 5)[0] for source in sources]
    assert [pair.target for pair in found[0][:2]] == ["Andere.", "Eine."]
    assert found[2] == []


def test_keys_are_kept_until_their_pair_changes(memory):
    first, second, _ = filled(memory)
    memory.store_keys({first: b"abc", second: b"def"}, "model")
    assert memory.keys([first, second], "model") == {first: b"abc", second: b"def"}
    assert memory.keys([first], "another") == {}
    memory.replace(first, "Anders.")
    memory.remove(second)
    assert memory.keys([first, second], "model") == {}


def test_a_damaged_folder_is_one_line(tmp_path):
    (tmp_path / "pairs.sqlite").write_bytes(b"this is not a database at all, whatever its name says" * 40)
    with pytest.raises(UserError, match="cannot be opened as a memory"):
        Memory.open(tmp_path)
