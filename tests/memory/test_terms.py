"""Terms are found by stems, and said in any form; corrections become terms; articles go with nouns."""

from __future__ import annotations

import numpy as np
import pytest

from weitblick.memory.articles import alternatives, cases, ending_fits, fits, is_plural_article
from weitblick.memory.bounds import SourceWords, TargetWord, needed_words, open_places
from weitblick.memory.corrections import Correction, changes, term_of_key
from weitblick.memory.forms_building import article_counts, articles_of_nouns, count_words, paradigms, write
from weitblick.memory.terms import Term, Terms
from weitblick.memory.word_forms import word_forms
from weitblick.translation.alignment import Alignment, word_spans


@pytest.mark.parametrize(
    ("term", "some", "others"),
    [
        ("Haus", {"Häuser", "Hauses"}, {"Hausen"}),
        ("Dorschquote", {"Dorschquoten"}, {"Dorschquotes"}),
        ("gemeinsame Meerespolitik", {"gemeinsamen Meerespolitik"}, {"gemeinsamste Meerespolitik"}),
        ("Vertrag über die Arbeitsweise", {"Vertrags über die Arbeitsweise"}, {"Vertrag über der Arbeitsweise"}),
        ("Xyzzy", {"Xyzzys"}, {"Xyzzyn"}),
    ],
)
def test_forms(term: str, some: set[str], others: set[str]) -> None:
    forms = word_forms("de").of(term)
    assert forms[0] == term
    assert some <= set(forms)
    assert not others & set(forms)


@pytest.mark.parametrize(
    ("target", "text", "said"),
    [
        ("Haus", "Zwei Häuser.", True),
        ("Dorsch", "Die Dorschquote.", True),
        ("Quote", "Die Dorschquoten.", True),
        ("Berichterstatterin", "Der Berichterstatter.", False),
        ("Bericht", "Der Berichterstatter.", False),
        ("Bericht", "Im Berichtsjahr.", True),
        ("Dorsch", "Die Dorschfangmenge.", True),
        ("Freund", "Eine Freundschaft.", False),
        ("Lizenznehmer", "Der Lizenzgeber.", False),
        ("Dorsch|Kabeljau", "Der Kabeljau.", True),
    ],
)
def test_inflected_forms_and_compounds_say_a_term_and_its_relatives_do_not(target: str, text: str, said: bool) -> None:
    assert Term("x", target, "").is_said(text, "de") is said


def test_the_longest_term_is_found_and_stems_decide() -> None:
    terms = Terms([Term("cod", "Dorsch", ""), Term("cod quota", "Dorschquote", ""), Term("IT", "IT", "")])
    text = "It says that cod quotas are IT, not codes of cod."
    assert [text[one.start : one.end] for one in terms.occurrences(text)] == ["cod quotas", "IT", "cod"]


def test_articles() -> None:
    assert set(alternatives("Der", "de")) == {"Der", "Die", "Das", "Des", "Dem", "Den"}
    neuter, masculine = frozenset({"das", "dem"}), frozenset({"der", "den", "dem"})
    assert fits("ein", neuter)
    assert not fits("einen", neuter)
    assert fits("einen", masculine)
    assert ending_fits("ein", "neues", neuter)
    assert not ending_fits("ein", "neuer", neuter)
    assert "den" not in (word_forms("de").articles("Motorrad") or ())


def test_a_list_of_forms_is_made_of_text(tmp_path) -> None:
    lines = ["Hier sind Quoten und Quoten und Quoten."]
    lemmas = [("Quoten", "Quote"), ("Quote", "Quote"), ("Rotten", "Rotte")]
    assert paradigms(count_words(lines), lemmas) == {"Quote": ["Quoten"]}
    counts = article_counts("das Haus " * 9 + "den Haus")
    assert articles_of_nouns(counts) == {"Haus": {"das", "dem"}}
    write({"Haus": ["Häuser"]}, tmp_path / "x.xz")
    assert (tmp_path / "x.xz").stat().st_size


SOURCE = SourceWords([0, 1, 2, 3, -1], ["the", "cod", "quota", "low"], [False] * 4, [True, *[False] * 3])


def test_a_place_needs_all_source_words_behind_it() -> None:
    words = [
        TargetWord(0, 1, "Die"),
        TargetWord(1, 3, "Dorschquote"),
        TargetWord(3, 4, "niedrig"),
        TargetWord(4, 5, ""),
    ]
    weights = np.array(
        [[0.9, 0, 0, 0, 0.1], [0, 0.5, 0.4, 0, 0.1], [0, 0.4, 0.5, 0.1, 0], [0, 0, 0.1, 0.9, 0], [0, 0, 0, 0.1, 0.9]]
    )
    needed = needed_words(weights, SOURCE, words, "de")
    herring, cod = frozenset({"the", "herring", "quota", "low"}), frozenset({"cod", "quota", "high"})
    # The article needs its noun's words, the full stop and the end those of the word before.
    assert open_places(needed, SOURCE.stems, herring).tolist() == [False, False, False, True, True, True]
    assert open_places(needed, SOURCE.stems, cod).tolist() == [False, True, True, False, False, False]


def test_a_word_that_says_little_needs_the_next_one_that_says_more() -> None:
    source = SourceWords([0, 1, 2], ["to", "the", "track"], [False] * 3, [True, True, False])
    words = [
        TargetWord(0, 1, "auf"),
        TargetWord(1, 2, "die"),
        TargetWord(2, 3, "Rennstrecke"),
        TargetWord(3, 4, "Weil"),
    ]
    weights = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    needed = needed_words(weights, source, words, "de")
    without, whole = frozenset({"to", "the", "wall"}), frozenset({"to", "the", "track"})
    assert open_places(needed, source.stems, without).tolist() == [False] * 5
    assert open_places(needed, source.stems, whole).tolist() == [True] * 5


@pytest.mark.parametrize(
    ("article", "articles", "plural"),
    [("die", "der die dem", True), ("unsere", "der die dem", True), ("der", "der die dem", False),
     ("ein", "der die dem", False), ("die", "die der", False), ("die", "", False)],
)  # fmt: skip
def test_an_article_tells_the_number_of_a_form_that_may_be_both(article: str, articles: str, plural: bool) -> None:
    assert is_plural_article(article, frozenset(articles.split()) or None) == plural


def test_a_negation_needs_what_negates() -> None:
    source = SourceWords([0, 1], ["agre", "not"], [False, True], [False, True])
    needed = needed_words(np.array([[0.9, 0.1]]), source, [TargetWord(0, 1, "nicht")], "de")
    assert not open_places(needed, source.stems, frozenset({"agre"}))[0]
    assert open_places(needed, source.stems, frozenset({"agre", "not"}))[0]


def aligned(source: str, target: str, links: dict[str, str]) -> Alignment:
    """Every target word with all of its weight on one source word, or spread evenly over several."""
    spans = word_spans(source), word_spans(target)
    ours, theirs = ([text[a:b] for a, b in own] for text, own in zip((source, target), spans, strict=True))
    weights = np.zeros((len(theirs), len(ours)))
    for row, word in enumerate(theirs):
        behind = links.get(word, word).split()
        for one in behind:
            weights[row, ours.index(one) if one in ours else 0] = 1 / len(behind)
    return Alignment(*spans, weights)


def test_a_correction_becomes_a_term_with_the_word_that_was_refused() -> None:
    source = "The cod quota is low."
    links = {"Kabeljauquote": "cod quota", "Dorschquote": "cod quota", "Die": "The", "ist": "is", "niedrig": "low"}
    old, new = "Die Kabeljauquote ist niedrig.", "Die Dorschquote ist niedrig."
    found = changes(
        Correction(source, old, new, "row 7"), aligned(source, old, links), aligned(source, new, links), ("en", "de")
    )
    assert found == [Term("cod quota", "Dorschquote", "row 7", "correction", refused="Kabeljauquote")]
    assert found[0].reason == "because of the term cod quota = Dorschquote, row 7"


def test_another_form_of_the_same_word_is_no_correction() -> None:
    source, links = "The houses are old.", {"Haus": "houses", "Häuser": "houses", "Die": "The"}
    old, new = "Die Haus sind alt.", "Die Häuser sind alt."
    alignments = aligned(source, old, links), aligned(source, new, links)
    assert changes(Correction(source, old, new), *alignments, ("en", "de")) == []


@pytest.mark.parametrize(
    ("old", "new", "terms"),
    [
        ("Er sagt es.", "Es sagt er.", []),  # a capital letter at the beginning is no noun's
        ("Gestern sagt Sie es.", "Gestern sagt Man es.", []),
        ("„Trieb sagt es.", "„Tweet sagt es.", []),  # trieb is a verb as well
        ("Gestern sagt Trieb es.", "Gestern sagt Tweet es.", ["Tweet"]),
        ("Quoten sagen es.", "Fangmengen sagen es.", ["Fangmenge"]),
    ],
)
def test_only_nouns_and_names_of_a_translation_become_terms(old: str, new: str, terms: list[str]) -> None:
    source = "Somebody says it."
    words = {word.strip("„.") for word in (*old.split(), *new.split())}
    links = dict.fromkeys(words, "Somebody") | {"Gestern": "it", "es": "it", "sagt": "says", "sagen": "says"}
    alignments = aligned(source, old, links), aligned(source, new, links)
    assert [term.target for term in changes(Correction(source, old, new), *alignments, ("en", "de"))] == terms


def test_a_term_of_a_key_holds_everywhere() -> None:
    term = term_of_key(" cod  quota", "Dorschquote ", "row 7")
    assert (term.source, term.target, term.kind, term.refused) == ("cod quota", "Dorschquote", "key", "")


def test_articles_tell_the_case() -> None:
    """Before a noun that is known, and before any noun."""
    articles = word_forms("de").articles
    assert cases("dieses", articles("Abkommen")) == {"nominative", "accusative"}
    assert cases("dieses", articles("Vertrags")) == {"genitive"}
    assert cases("diesen", articles("Vertrag")) == {"accusative"}
    assert cases("der", articles("Gewalt")) == {"dative", "genitive"}
    assert cases("ein", articles("Mangel")) == {"nominative"}
    assert cases("Die", None) == {"nominative", "accusative"}
    assert cases("und", None) == frozenset()


def test_nouns_of_no_list_are_known_by_their_endings() -> None:
    """Texts speak of Arbeitnehmer in the plural, and of Lizenznehmer not at all."""
    forms = word_forms("de")
    for noun in ("Arbeitnehmer", "Lizenznehmer", "Lizenzgeber"):
        assert forms.articles(noun) == {"der", "die", "dem", "den"}
    assert set(forms.of("Lizenznehmer")) == {"Lizenznehmer", "Lizenznehmern", "Lizenznehmers"}
    assert forms.articles("Mutter") == forms.articles("Mehrwertsteuer") == {"der", "die"}
    assert forms.lemma("Kod-Zuordnungen") == "Kod-Zuordnung"
    assert "EU-Verträge" in forms.of("EU-Vertrag")


def test_a_noun_is_found_in_its_own_forms_alone() -> None:
    pairs = {
        "allowance": "Zulage",
        "bearing": "Lager",
        "party": "Partei",
        "damage": "Schaden",
        "to terminate": "kündigen",
    }
    nouns = Terms([Term(source, target, "g") for source, target in pairs.items()])
    text = (
        "Allowed or not, it bears the damaged parties’ weight; the bearings and allowances are those of both parties."
    )
    found = [text[one.start : one.end] for one in nouns.occurrences(text)]
    assert found == ["parties", "bearings", "allowances", "parties"]
    verb = Terms([Term("terminate", "kündigen", "g")])
    assert verb.occurrences("It was terminated.")
    french = Terms([Term("damage", "Dommage", "g")], "en", "fr")
    assert french.occurrences("It was damaged.")


def test_the_article_of_an_unknown_noun_goes_by_its_suffix() -> None:
    forms = word_forms("de")
    assert forms.articles("Kontrollleuchte") == {"die", "der"}
    assert forms.articles("Bremsrotor") == {"der", "dem", "den"}
    assert forms.articles("Bremsrotors") == {"des"}
    assert forms.articles("Schiedsgericht") == {"das", "dem"}
    assert forms.articles("Pachtvertrage") == {"dem"}
