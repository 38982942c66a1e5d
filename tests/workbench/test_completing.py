"""What is typed is kept to the letter, and the rest of the row is translated anew behind it."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weitblick.documents.document import Document, Sentence
from weitblick.memory.terms import Term, Terms
from weitblick.translation.completion import PieceSpellings, SentenceCompleter
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator
from weitblick.workbench.completing import MOST_READY

SOURCES = [
    "The committee has adopted the report on fisheries quotas in the North Sea.",
    "It is long.",
    "I would like to thank the rapporteur for her excellent work.",
]
PREFIXES = [
    "",
    " ",
    "D",
    "Der Bericht über die Fangq",
    "🙂 Der",
    "Der 🙂",
    "Siehe %s und",
    "xyz",
    "„Die",
    "12,5 % der Fl",
    "Die  ",
]


def completer(translator: Translator, document: Document, index: int, options: TranslationOptions) -> SentenceCompleter:
    found = SentenceCompleter(translator, document, index, options)
    for _ in found.prepare():
        pass
    return found


@pytest.fixture(scope="module")
def drafted(translator: Translator) -> Document:
    """The three sentences, translated greedily."""
    found = translator.translate(SOURCES, beam=1)
    return Document("1", tuple(Sentence(one.source, one.target, "draft") for one in found.sentences))


@pytest.mark.parametrize("index", range(len(SOURCES)))
def test_the_models_own_translation_is_completed_from_every_place(
    translator: Translator, drafted: Document, index: int
) -> None:
    """Also within words: what the letters allow and the model prefers is the word that it had."""
    target = drafted.targets[index]
    own = completer(translator, drafted, index, TranslationOptions())
    for end in range(0, len(target) + 1, 3):
        found = own.complete(target[:end])
        assert found is not None
        assert found.whole == target
        assert found.begun == target[:end].strip()


@pytest.mark.parametrize("typed", PREFIXES)
def test_what_was_typed_is_the_beginning(translator: Translator, drafted: Document, typed: str) -> None:
    found = completer(translator, drafted, 0, TranslationOptions()).complete(typed)
    assert found is not None
    assert found.begun == " ".join(typed.split())
    assert found.whole.startswith(found.begun)
    assert len(found.whole) > len(found.begun)


@given(typed=st.text(max_size=40))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_can_be_typed(translator: Translator, drafted: Document, typed: str) -> None:
    found = completer(translator, drafted, 1, TranslationOptions()).complete(typed)
    assert found is None or found.whole.startswith(found.begun)


def test_a_word_that_was_ended_stays_as_it_is(translator: Translator, drafted: Document) -> None:
    own = completer(translator, drafted, 0, TranslationOptions())
    closed, open_ = own.complete("Der Ausschuss hat den Bericht über die Fang "), own.complete("Der Fang")
    assert closed is not None
    assert open_ is not None
    assert closed.whole[len(closed.begun)] == " "


def test_pieces_that_fit_spell_the_letters(translator: Translator) -> None:
    spellings = PieceSpellings(translator)
    fitting = [spellings.of(number) for number in spellings.fitting(" Fang")]
    assert {" ", " F", " Fang"} & set(fitting)
    assert all(text.startswith(" Fang") or " Fang".startswith(text) for text in fitting)
    every = range(len(translator.pipeline.target_vocabulary))
    wanted = {n for n in every if (t := spellings.of(n)) and (t.startswith(" Fang") or " Fang".startswith(t))}
    assert wanted == set(spellings.fitting(" Fang"))


def test_terms_take_part(translator: Translator, drafted: Document) -> None:
    terms = Terms([Term("quota", "Fangmenge", "test")], "en", "de")
    own = completer(translator, drafted, 0, TranslationOptions(terms=terms))
    begun = own.complete("Der Ausschuss hat den Bericht ")
    assert begun is not None
    assert "angmenge" in begun.whole
    within = own.complete("Der Ausschuss hat den Bericht über die Fan")
    assert within is not None
    assert within.whole.startswith("Der Ausschuss hat den Bericht über die Fangmenge")


def test_context_takes_part_as_in_a_draft(translator: Translator) -> None:
    """Which pronoun stands there depends on the row before, as it was translated."""
    found = []
    for source, target in [("The report", "Der Bericht"), ("The directive", "Die Richtlinie")]:
        before = Sentence(f"{source} is good.", f"{target} ist gut.", "locked")
        document = Document("1", (before, Sentence("It must be improved.")))
        whole = completer(translator, document, 1, TranslationOptions()).complete("")
        assert whole is not None
        assert whole.whole == translator.translate(document, beam=1).targets[1]
        found.append(whole.whole)
    assert found[0] != found[1]


# Over HTTP


def opened(client: TestClient, text: str) -> str:
    project = client.post("/v1/projects", json={"name": "Test"}).json()["id"]
    added = client.post(f"/v1/projects/{project}/documents", data={"text": text, "name": "letter.txt"}).json()
    return f"/v1/projects/{project}/documents/{added['id']}"


def rest(client: TestClient, path: str, position: int, prefix: str) -> str:
    answer = client.post(f"{path}/segments/{position}/completion", json={"prefix": prefix})
    assert answer.status_code == 200, answer.text
    return answer.json()["rest"]


def rows(client: TestClient, path: str) -> list[dict[str, Any]]:
    return client.get(path).json()["rows"]


def test_a_row_is_completed(client: TestClient) -> None:
    path = opened(client, "The quotas are ready. They are high.\n")
    found = rest(client, path, 0, "Die Fang")
    assert ("Die Fang" + found).startswith("Die Fangquoten")
    assert rest(client, path, 0, "Die Fangquoten ")[0] != " "


def test_placeholders_are_whole(client: TestClient) -> None:
    path = opened(client, "The device {device} shows an error. Write to help@example.com.\n")
    assert "{device}" in "Das Gerät" + rest(client, path, 0, "Das Gerät")
    assert rest(client, path, 0, "Das Gerät {dev").startswith("ice}")
    assert rest(client, path, 1, "Schreiben Sie an help@").startswith("example.com")
    assert "{device}" not in rest(client, path, 0, "Das Gerät {device} zeigt")


def test_a_confirmed_row_is_read_at_once(client: TestClient) -> None:
    """The row that is kept ready is made anew when something else in the document has changed."""
    path = opened(client, "The quotas are ready.\n\nWe thank you for the quotas.\n")
    before = rest(client, path, 1, "Wir danken Ihnen für die ")
    version = rows(client, path)[0]["version"]
    body = {"target": "Die Fangquoten sind fertig.", "state": "confirmed", "version": version}
    assert client.put(f"{path}/segments/0", json=body).status_code == 200
    assert rest(client, path, 1, "Wir danken Ihnen für die ") != before
    assert "Fangquoten" in rest(client, path, 1, "Wir danken Ihnen für die ")


def test_nothing_is_saved(client: TestClient) -> None:
    path = opened(client, "The quotas are ready.\n")
    before = [(row["target"], row["state"]) for row in rows(client, path) if row["state"] != "empty"]
    rest(client, path, 0, "Getippt")
    assert all(row["target"] != "Getippt" for row in rows(client, path))
    assert all(pair in [(row["target"], row["state"]) for row in rows(client, path)] for pair in before)


def test_few_rows_are_kept_ready(client: TestClient) -> None:
    path = opened(client, "\n\n".join(f"The quota is {number}." for number in range(MOST_READY + 3)))
    for position in range(MOST_READY + 3):
        rest(client, path, position, "Die")
    assert len(client.app.state.service.workbench.completing._ready) == MOST_READY  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("position", "body", "status"), [(99, {"prefix": ""}, 404), (0, {}, 422), (0, {"prefix": "a" * 20_001}, 422)]
)
def test_what_cannot_be_completed(client: TestClient, position: int, body: dict[str, str], status: int) -> None:
    path = opened(client, "The quotas are ready.\n")
    answer = client.post(f"{path}/segments/{position}/completion", json=body)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]


def test_a_long_text_is_not_completed(client: TestClient) -> None:
    path = opened(client, "The quotas are ready.\n")
    assert rest(client, path, 0, "zu lang " * 2000) == ""
