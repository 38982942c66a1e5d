"""Makes the lists that `word_forms` reads, from text of a language, in a folder:

    python -m weitblick.memory.forms_building de FOLDER CORPUS.de.xz ...

writes de.txt.xz, inflected forms, and of German de.articles.txt.xz, the definite articles that stand before each noun.

Words of the corpora are counted as they are spelled, those at the beginning of a sentence apart, and grouped by their
lemma as simplemma knows it; a lemma that was seen gets the rest of its forms from simplemma's own list. Only the forms
are written, no text: a line for each lemma, its forms coded as the letters to cut from its end and those to add.
"""

from __future__ import annotations

import lzma
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
FEWEST = 3
"""Times that a word must have been seen inside a sentence."""
MOST_FORMS = 24
"""Of a lemma: German verbs have more, of which the most frequent count."""
LONGEST = 40


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word was seen, without the first of each line, which has a capital letter in any case."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(WORD.findall(line)[1:])
    return counts


def paradigms(counts: Counter[str], lemma_of: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The forms of every lemma that was seen, the most frequent first; lemma_of: pairs of form and lemma."""
    forms: defaultdict[str, list[str]] = defaultdict(list)
    seen: set[str] = set()
    for form, lemma in lemma_of:
        if len(form) > LONGEST or form[:1].isupper() != lemma[:1].isupper():
            continue
        forms[lemma].append(form)
        if counts[form] >= FEWEST:
            seen.add(lemma)
    found = {}
    for lemma in sorted(seen):
        own = sorted(set(forms[lemma]) - {lemma}, key=lambda form: (-counts[form], form))[:MOST_FORMS]
        if own:
            found[lemma] = own
    return found


def coded(lemma: str, form: str) -> str:
    """How a form comes from its lemma: 0n is Quoten from Quote, 3äuser is Häuser from Haus."""
    same = 0
    while same < min(len(lemma), len(form)) and lemma[same] == form[same]:
        same += 1
    return f"{len(lemma) - same}{form[same:]}"


def write(found: dict[str, list[str]], path: Path) -> None:
    """One line for each lemma, compressed."""
    lines = ("\t".join((lemma, *(coded(lemma, form) for form in forms))) for lemma, forms in found.items())
    path.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))


ARTICLES = ("der", "die", "das", "des", "dem", "den")
BEFORE_A_NOUN = re.compile(r"\b([Dd](?:er|ie|as|es|em|en)) ([A-ZÄÖÜ][\w-]+)")
LEAST_SHARE, LEAST_COUNT = 0.04, 2
"""Of the articles of a noun: what is rarer is a mistake, or a relative pronoun."""


def article_counts(text: str) -> Counter[tuple[str, str]]:
    """How often each definite article stands directly before each word with a capital letter, in German."""
    return Counter((article.lower(), noun) for article, noun in BEFORE_A_NOUN.findall(text))


def articles_of_nouns(counts: Counter[tuple[str, str]], fewest: int = 2 * FEWEST) -> dict[str, set[str]]:
    """The articles that fit each form of a noun. What gender or number imply is added: where das fits, dem does; where
    der and den do, and die does not, dem does; where die does, der does."""
    of_noun: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for (article, noun), count in counts.items():
        of_noun[noun][article] = count
    found = {}
    for noun, own in of_noun.items():
        total = sum(own.values())
        if total < fewest or len(noun) > LONGEST:
            continue
        fitting = {a for a, count in own.items() if count >= LEAST_COUNT and count >= LEAST_SHARE * total}
        if "das" in fitting or ({"der", "den"} <= fitting and "die" not in fitting):
            fitting.add("dem")
        if "die" in fitting:
            fitting.add("der")
        if fitting:
            found[noun] = fitting
    return found


def write_articles(found: dict[str, set[str]], path: Path) -> None:
    """One line for each set of articles: they, and all nouns before which they stand."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for noun in sorted(found):
        lines[" ".join(article for article in ARTICLES if article in found[noun])].append(noun)
    text = "\n".join(f"{articles}\t{' '.join(nouns)}" for articles, nouns in sorted(lines.items()))
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")


def main(language: str, folder: str, *corpora: str) -> None:
    from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory

    words: Counter[str] = Counter()
    articles: Counter[tuple[str, str]] = Counter()
    for name in corpora:
        text = _text(Path(name))
        words.update(count_words(text.splitlines()))
        if language == "de":
            articles.update(article_counts(text))
    found = paradigms(words, DefaultDictionaryFactory().get_dictionary(language).items())
    write(found, Path(folder) / f"{language}.txt.xz")
    print(f"{len(found)} lemmas, {sum(map(len, found.values()))} other forms")
    if articles:
        nouns = articles_of_nouns(articles)
        write_articles(nouns, Path(folder) / f"{language}.articles.txt.xz")
        print(f"articles of {len(nouns)} nouns")


if __name__ == "__main__":
    main(*sys.argv[1:])
