"""METEOR against values of the reference implementation, and its properties: best alignments, weights, paraphrases."""

from __future__ import annotations

import gzip
import random
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from weitblick.common.errors import UserError
from weitblick.evaluation.meteor import Meteor, shipped_function_words
from weitblick.evaluation.meteor_alignment import Match, Matcher, align, count_chunks, normalise

# language -> function words, corpus score, (hypothesis, reference, score), all from meteor-1.5.jar run as
#   java -jar meteor-1.5.jar HYP REF -l LANGUAGE -norm -m "exact stem" -p ... -w ... -s FUNCTION_WORDS
REFERENCE_VALUES: dict[str, tuple[str, float, list[tuple[str, str, float]]]] = {
    "de": (
        "der die das und ist wir im , .",
        0.56415558446277,
        [
            (
                "Das Haus, das wir gestern sahen, ist alt.",
                "Das alte Haus, das wir gestern gesehen haben, ist sehr alt.",
                0.5412359956631733,
            ),
            (
                "Die Kinder spielten im Garten.",
                "Im Garten spielte das Kind.",
                0.43493333333333334,
            ),
            (
                "Er sagte: „Ich komme nicht“ ...",
                "Er sagte: “Ich komme nicht”...",
                0.7666666666666667,
            ),
            (
                "Der Hund jagt der Katze und der Maus nach der Arbeit",
                "Nach der Arbeit jagt der Hund die Katze und die Maus, der Hund der Nachbarn",
                0.4931767692795938,
            ),
            (
                "z.B. am 3. Mai um 3,5 Uhr",
                "Zum Beispiel am 3. Mai um 3,5 Uhr, d.h. bald.",
                0.47787963332004785,
            ),
            (
                "völlig anderer Text",
                "Hier passt nichts",
                0.0,
            ),
            (
                "Wir sind uns einig.",
                "Wir sind uns einig.",
                1.0,
            ),
            (
                "Nord-Süd-Gefälle – die US-Politik",
                "Das Nord-Süd-Gefälle -- US-Politik",
                0.7186666666666668,
            ),
        ],
    ),
    "en": (
        "the and is are of , .",
        0.3040675342622133,
        [
            (
                "The houses we saw yesterday are old.",
                "The old house that we had seen yesterday is old.",
                0.21033144519531471,
            ),
            (
                "He doesn't know it's John's.",
                "He does not know that it's John's.",
                0.3403637738576097,
            ),
            (
                "The dog chases the cat and the mouse after the work",
                "After the work the dog chases the cats and mice, the dog of the neighbours",
                0.32410718415889384,
            ),
            (
                "U.S. policy, No. 5 of Mr. Smith.",
                "US policy, No. 5 by Mr. Smith.",
                0.4804273392483529,
            ),
            (
                "nothing here",
                "All other words",
                0.0,
            ),
        ],
    ),
}


@pytest.mark.parametrize("language", REFERENCE_VALUES)
def test_scores_are_those_of_the_reference_implementation(language: str, tmp_path: Path) -> None:
    words, corpus, pairs = REFERENCE_VALUES[language]
    path = tmp_path / "words"
    path.write_text("\n".join(words.split()), encoding="utf-8")
    metric = Meteor(language, function_words=path)
    hypotheses, references, scores = zip(*pairs, strict=True)
    counts = metric.statistics(hypotheses, references)
    np.testing.assert_allclose(metric.score(counts) / 100, scores, atol=1e-12)
    assert metric.corpus_score(counts).value / 100 == pytest.approx(corpus, abs=1e-12)


@pytest.mark.parametrize(
    ("language", "line", "words"),
    [
        ("de", "Herr Dr. Kohl kam am 3. Mai (1990).", "herr dr. kohl kam am 3. mai ( 1990 ) ."),
        ("de", "Wie geht's, „Freund“?", "wie geht ' s , „ freund \" ?"),
        ("de", "Er sagt ... 3,5 Prozent,oder?", "er sagt ... 3,5 prozent , oder ?"),
        ("en", "The U.S. isn't Mr. Smith's.", "the us isn 't mr. smith 's ."),
        ("en", "a well-known man\u00a0here", "a well known man here"),
        ("de", "", ""),
    ],
)
def test_normalisation(language: str, line: str, words: str) -> None:
    assert normalise(line, language) == words.split()


def best_by_trying_all(hypothesis: list[str], reference: list[str]) -> tuple[int, int]:
    """The most exact matches and, with them, the fewest chunks, over all one-to-one alignments."""
    places = [*range(len(hypothesis)), *[-1] * len(reference)]
    best = (0, 0)
    for chosen in set(permutations(places, len(reference))):
        if all(place < 0 or hypothesis[place] == word for place, word in zip(chosen, reference, strict=True)):
            matches = [Match(i, 1, place, 1, 0) for i, place in enumerate(chosen) if place >= 0]
            best = min(best, (-len(matches), count_chunks(matches)))
    return -best[0], best[1]


@pytest.mark.parametrize("seed", range(25))
def test_alignment_has_the_most_matches_in_the_fewest_chunks(seed: int) -> None:
    generator = random.Random(seed)
    hypothesis = generator.choices("abc", k=generator.randint(1, 5))
    reference = generator.choices("abc", k=generator.randint(1, 4))
    found = align(Matcher("de").matches(hypothesis, reference), len(hypothesis), [1.0, 0.8])
    assert (len(found.matches), found.chunks) == best_by_trying_all(hypothesis, reference)
    assert len({match.other for match in found.matches}) == len(found.matches)


def test_exact_matches_come_before_stems() -> None:
    hypothesis, reference = ["kinder", "kind"], ["kind", "kinder"]
    found = align(Matcher("de").matches(hypothesis, reference), 2, [1.0, 0.8])
    assert [match.module for match in found.matches] == [0, 0]


def score(metric: Meteor, hypothesis: str, reference: str) -> float:
    return float(metric.score(metric.statistics([hypothesis], [reference])[0]))


def test_order_costs_and_perfect_sentences_do_not() -> None:
    metric = Meteor("de")
    reference = "das alte Haus steht am Fluss"
    assert score(metric, reference, reference) == pytest.approx(100)
    assert score(metric, "am Fluss steht das alte Haus", reference) < 100
    assert score(metric, "", reference) == 0


def test_content_words_weigh_more_than_function_words() -> None:
    metric = Meteor("de")
    assert {"der", "und", ","} <= shipped_function_words("de")
    without_function = score(metric, "Haus steht am Fluss", "das Haus steht am Fluss")
    without_content = score(metric, "das steht am Fluss", "das Haus steht am Fluss")
    assert without_function > without_content


def test_english_words_for_german_are_another_metric() -> None:
    like_the_command_line = Meteor("de", function_words="en")
    assert "function-words:en" in like_the_command_line.signature
    assert score(like_the_command_line, "das steht", "das Haus steht") != score(
        Meteor("de"), "das steht", "das Haus steht"
    )


def test_paraphrases_match_in_both_directions(tmp_path: Path) -> None:
    path = tmp_path / "table.gz"
    path.write_bytes(gzip.compress(b"0.5\nso to speak\nquasi\n"))
    plain, richer = Meteor("en"), Meteor("en", paraphrases=path)
    pair = ("he is so to speak finished", "he is quasi finished")
    for hypothesis, reference in (pair, pair[::-1]):
        assert score(richer, hypothesis, reference) > score(plain, hypothesis, reference)
    assert "paraphrase" in richer.signature


def test_damaged_paraphrase_table_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("0.5\na\nb\nno number\nc\nd\n")
    with pytest.raises(UserError, match="table:4:"):
        Meteor("en", paraphrases=path)
