"""The rich preset: every phenomenon is decided by one other sentence, and by nothing in its own."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from weitblick.documents.contrast import ContrastItem
from weitblick.documents.discourse.generator import DiscourseCorpus, describe, generate
from weitblick.documents.discourse.german import GENDERS, POSSESSIVE, PRONOUN, Case, Noun
from weitblick.documents.discourse.lexicon import rich_words

CHANCE = {
    "pronoun-nominative": 1 / 3,
    "pronoun-accusative": 1 / 3,
    "possessive": 1 / 2,
    "ambiguous-noun": 1 / 2,
    "address": 1 / 2,
}
THINGS = {noun.english: (kind, noun) for kind, all in rich_words().kinds.items() for noun in all.nouns + all.held_out}
# Longest first, so that `grand piano` is not taken for a piano.
THING = re.compile(r"\b(" + "|".join(sorted(THINGS, key=len, reverse=True)) + r")\b")
CASES: dict[str, Case] = {"pronoun-nominative": "nominative", "pronoun-accusative": "accusative"}


@pytest.fixture(scope="module")
def corpus() -> DiscourseCorpus:
    return generate("rich", 2000, 4)


def mentions(source: str) -> list[tuple[str, Noun]]:
    return [THINGS[word] for word in THING.findall(source)]


def selected_class(item: ContrastItem) -> str:
    """The class whose phrase stands in the tested sentence."""
    source = item.source[item.sentence]

    def fits(kind: str) -> bool:
        things = rich_words().kinds[kind]
        if item.phenomenon == "pronoun-nominative":
            return any(re.search(rf"\b[Ii]t {re.escape(said.english)}\b", source) for said in things.said)
        if item.phenomenon == "pronoun-accusative":
            return any(done.english.format("it") in source for done in things.done)
        return any(re.search(rf"\b[Ii]ts {re.escape(part.english)}\b", source) for part in things.parts)

    (kind,) = [kind for kind in rich_words().kinds if fits(kind)]
    return kind


def deciding(item: ContrastItem) -> int:
    return item.sentence + item.distance * (1 if item.direction == "future" else -1)


def test_lexicon_is_sound() -> None:
    for kind in rich_words().kinds.values():
        assert Counter(noun.gender for noun in kind.nouns) == dict.fromkeys(GENDERS, 3)
        assert Counter(noun.gender for noun in kind.held_out) == dict.fromkeys(GENDERS, 1)
        assert Counter(part.gender for part in kind.parts) == dict.fromkeys(GENDERS, 1)
        assert all("{}" in done.english and "{}" in done.rest for done in kind.done)
    assert len(THINGS) == 12 * len(rich_words().kinds)
    for phrases in (
        [said.english for kind in rich_words().kinds.values() for said in kind.said],
        [done.english for kind in rich_words().kinds.values() for done in kind.done],
        [part.english for kind in rich_words().kinds.values() for part in kind.parts],
        [cue.english for topic in rich_words().topics.values() for cue in topic.cues],
    ):
        assert len(set(phrases)) == len(phrases)
    words = [first.noun.english for first, _ in rich_words().ambiguous]
    assert len(set(words)) == len(words) >= 12
    assert not set(words) & (
        set(THINGS) | {part.english for kind in rich_words().kinds.values() for part in kind.parts}
    )
    for first, second in rich_words().ambiguous:
        assert first.topic != second.topic
        assert first.noun.german != second.noun.german


def test_phrases_name_no_other_thing_or_topic() -> None:
    """A thing named in passing would be a second candidate."""
    ambiguous = {first.noun.english for first, _ in rich_words().ambiguous}
    phrases = [said.english for said in rich_words().meanwhile]
    phrases += [
        phrase.english for things in rich_words().kinds.values() for phrase in things.said + things.done + things.parts
    ]
    phrases += [cue.english for topic in rich_words().topics.values() for cue in topic.cues]
    phrases += [said.english for said in rich_words().utterances] + [
        who.english for all in rich_words().acquaintances.values() for who in all
    ]
    for phrase in phrases:
        assert not mentions(phrase)
        assert not ambiguous & set(phrase.split())


def test_a_few_hundred_lexemes(corpus: DiscourseCorpus) -> None:
    types = {word for d in corpus.train for s in d.sentences for word in re.findall(r"\w+", s.target or "")}
    assert 500 <= len(types) <= 1500


def test_pronouns_have_exactly_one_antecedent_at_the_stated_distance(corpus: DiscourseCorpus) -> None:
    tested = 0
    for item in corpus.contrast:
        if item.phenomenon not in (*CASES, "possessive"):
            continue
        tested += 1
        kind = selected_class(item)
        found = [
            (index, noun)
            for index, source in enumerate(item.source)
            for named, noun in mentions(source)
            if named == kind
        ]
        ((index, noun),) = found
        assert index == deciding(item)
        assert item.unseen_antecedent == (noun in rich_words().kinds[kind].held_out)
        case = CASES.get(item.phenomenon)
        assert item.pronoun == (PRONOUN[case][noun.gender] if case else POSSESSIVE[noun.gender])
    assert tested > 1000


def test_possessives_differ_in_the_possessor_only(corpus: DiscourseCorpus) -> None:
    for item in corpus.contrast:
        if item.phenomenon == "possessive":
            (wrong,) = item.contrastive
            pairs = zip(item.reference.split(), wrong.split(), strict=True)
            ((right_word, wrong_word),) = [pair for pair in pairs if pair[0] != pair[1]]
            stems = {right_word.lower(): "sein", wrong_word.lower(): "ihr"}
            if item.pronoun == "ihr":
                stems = {wrong_word.lower(): "sein", right_word.lower(): "ihr"}
            endings = {word.removeprefix(stem) for word, stem in stems.items()}
            assert all(word.startswith(stem) for word, stem in stems.items())
            assert len(endings) == 1
            assert endings <= {"", "e", "en", "em", "er"}


def test_topics_decide_ambiguous_nouns(corpus: DiscourseCorpus) -> None:
    senses = {sense.noun.german: (sense, word) for word in rich_words().ambiguous for sense in word}
    for item in corpus.contrast:
        if item.phenomenon == "ambiguous-noun":
            right, word = senses[item.pronoun]
            assert f"the {right.noun.english}" in item.source[item.sentence]
            assert right.noun.form("dative") in item.reference or right.noun.german in item.reference
            topics = {
                (index, name)
                for index, source in enumerate(item.source)
                for name, topic in rich_words().topics.items()
                for cue in topic.cues
                if cue.english in source
            }
            assert topics == {(deciding(item), right.topic)}
            near = {rich_words().topics[sense.topic].near for sense in word}
            assert not any(kind in near for source in item.source for kind, _ in mentions(source))


def test_relations_decide_the_address(corpus: DiscourseCorpus) -> None:
    for item in corpus.contrast:
        if item.phenomenon == "address":
            met = {
                (index, register)
                for index, source in enumerate(item.source)
                for register, all in rich_words().acquaintances.items()
                for who in all
                if who.english in source
            }
            assert met == {(deciding(item), item.pronoun)}
            assert item.reference.rsplit('"', 1)[1] == item.contrastive[0].rsplit('"', 1)[1]


def test_held_out_nouns_are_shown_in_training_but_never_taken_up(corpus: DiscourseCorpus) -> None:
    shown: Counter[str] = Counter()
    held_out = {noun.english for kind in rich_words().kinds.values() for noun in kind.held_out}
    phrases = {
        kind: [f"it {said.english}" for said in things.said]
        + [done.english.format("it") for done in things.done]
        + [f"its {part.english}" for part in things.parts]
        for kind, things in rich_words().kinds.items()
    }
    for document in corpus.train + corpus.dev:
        text = " ".join(document.sources)
        for kind, noun in mentions(text):
            if noun.english in held_out:
                shown[noun.english] += 1
                assert not any(re.search(rf"\b{re.escape(phrase)}\b", text, re.IGNORECASE) for phrase in phrases[kind])
    assert set(shown) == held_out
    assert any(item.unseen_antecedent for item in corpus.contrast)
    assert any(not item.unseen_antecedent for item in corpus.contrast)


def test_suite_is_balanced_and_knows_its_chance_levels(corpus: DiscourseCorpus) -> None:
    described = describe(corpus)["phenomena"]
    assert {name: facts["chance"] for name, facts in described.items()} == {
        name: round(chance, 4) for name, chance in CHANCE.items()
    }
    for name in CHANCE:
        items = [item for item in corpus.contrast if item.phenomenon == name]
        assert {item.direction for item in items} == {"past", "future"}
        if name != "ambiguous-noun":
            assert len(set(Counter(item.pronoun for item in items).values())) == 1
        for direction in ("past", "future"):
            distances = Counter(item.distance_group for item in items if item.direction == direction)
            assert len(set(distances.values())) == 1
            assert {"1", "2", "3", ">3"} <= set(distances)


def test_the_sentence_alone_does_not_tell(corpus: DiscourseCorpus) -> None:
    """Guess by what the training side shows for the tested sentence's words: no better than chance."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for item in generate("rich", 1, 99).contrast:  # another suite, with its answers, serves as training
        if item.distance:
            for word in set(item.source[item.sentence].lower().split()):
                seen[f"{item.phenomenon} {word}"][item.pronoun] += 1
    for name, chance in CHANCE.items():
        items = [item for item in corpus.contrast if item.phenomenon == name and item.distance]
        right = 0.0
        for item in items:
            votes: Counter[str] = Counter()
            for word in set(item.source[item.sentence].lower().split()):
                counts = seen[f"{name} {word}"]
                votes.update({answer: round(1000 * count / counts.total()) for answer, count in counts.items()})
            right += bool(votes) and votes.most_common(1)[0][0] == item.pronoun
        assert right / len(items) < chance + 0.09
