"""People: who they are, what they do meanwhile, and how they address each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weitblick.discourse.german import Case, predicate

Register = Literal["du", "Sie"]

NAMES = (
    "Anna",
    "Ben",
    "Clara",
    "David",
    "Emma",
    "Felix",
    "Greta",
    "Hans",
    "Ida",
    "Jonas",
    "Karla",
    "Leo",
    "Marta",
    "Nils",
    "Olga",
    "Paul",
    "Rosa",
    "Simon",
    "Tina",
    "Viktor",
)

# What happens between the sentences that matter: nothing here is a thing of ours or touches a topic.
MEANWHILE = (
    predicate("was tired", "war", "müde"),
    predicate("laughed loudly", "lachte", "laut"),
    predicate("went for a walk", "ging", "spazieren", "spazieren ging"),
    predicate("slept badly", "schlief", "schlecht"),
    predicate("stayed until midnight", "blieb", "bis Mitternacht"),
    predicate("had a headache", "hatte", "Kopfweh"),
    predicate("told a joke", "erzählte", "einen Witz"),
    predicate("changed the subject", "wechselte", "das Thema"),
    predicate("looked out of the window", "sah", "aus dem Fenster"),
    predicate("forgot the time", "vergaß", "die Zeit"),
    predicate("made a suggestion", "machte", "einen Vorschlag"),
    predicate("nodded politely", "nickte", "höflich"),
    predicate("was in a good mood", "war", "guter Laune"),
    predicate("did not say a word", "sagte", "kein Wort"),
    predicate("called {other}", "rief", "{other} an"),
    predicate("waited for {other}", "wartete", "auf {other}"),
    predicate("danced with {other}", "tanzte", "mit {other}"),
    predicate("thanked {other}", "dankte", "{other}"),
    predicate("agreed with {other}", "stimmte", "{other} zu"),
    predicate("invited {other}", "lud", "{other} ein"),
    predicate("trusted {other}", "vertraute", "{other}"),
    predicate("argued with {other}", "stritt", "mit {other}"),
)


@dataclass(frozen=True, slots=True)
class Acquaintance:
    english: str
    dative: str
    accusative: str

    def german(self, case: Case) -> str:
        return self.dative if case == "dative" else self.accusative


ACQUAINTANCES: dict[Register, tuple[Acquaintance, ...]] = {
    "du": (
        Acquaintance("an old friend", "einem alten Freund", "einen alten Freund"),
        Acquaintance("a childhood friend", "einer Jugendfreundin", "eine Jugendfreundin"),
        Acquaintance("a little boy", "einem kleinen Jungen", "einen kleinen Jungen"),
        Acquaintance("a little girl", "einem kleinen Mädchen", "ein kleines Mädchen"),
        Acquaintance("a cousin", "einem Cousin", "einen Cousin"),
        Acquaintance("the nephew", "dem Neffen", "den Neffen"),
        Acquaintance("the niece", "der Nichte", "die Nichte"),
        Acquaintance("the flatmate", "dem Mitbewohner", "den Mitbewohner"),
        Acquaintance("an aunt", "einer Tante", "eine Tante"),
        Acquaintance("the younger sister", "der jüngeren Schwester", "die jüngere Schwester"),
    ),
    "Sie": (
        Acquaintance("the judge", "dem Richter", "den Richter"),
        Acquaintance("the minister", "der Ministerin", "die Ministerin"),
        Acquaintance("a customer", "einem Kunden", "einen Kunden"),
        Acquaintance("a stranger", "einem Fremden", "einen Fremden"),
        Acquaintance("the bishop", "dem Bischof", "den Bischof"),
        Acquaintance("the ambassador", "der Botschafterin", "die Botschafterin"),
        Acquaintance("a police officer", "einer Polizistin", "eine Polizistin"),
        Acquaintance("the landlord", "dem Vermieter", "den Vermieter"),
        Acquaintance("the mayor", "dem Bürgermeister", "den Bürgermeister"),
        Acquaintance("a lawyer", "einer Anwältin", "eine Anwältin"),
    ),
}

# The speaker meets someone; the relation of the two decides how they talk.
MEETINGS: tuple[tuple[str, str, str, Case], ...] = (
    ("spoke with {who}", "sprach", "mit {who}", "dative"),
    ("sat next to {who}", "saß", "neben {who}", "dative"),
    ("met {who}", "traf", "{who}", "accusative"),
    ("greeted {who}", "begrüßte", "{who}", "accusative"),
    ("visited {who}", "besuchte", "{who}", "accusative"),
)


@dataclass(frozen=True, slots=True)
class Utterance:
    english: str
    du: str
    sie: str

    def german(self, register: Register) -> str:
        return self.du if register == "du" else self.sie

    @property
    def is_question(self) -> bool:
        return self.english.endswith("?")


UTTERANCES = (
    Utterance("I will help you", "Ich helfe dir", "Ich helfe Ihnen"),
    Utterance("I did not see you", "Ich habe dich nicht gesehen", "Ich habe Sie nicht gesehen"),
    Utterance("I have been waiting for you", "Ich habe auf dich gewartet", "Ich habe auf Sie gewartet"),
    Utterance("You are right", "Du hast recht", "Sie haben recht"),
    Utterance("You came too early", "Du bist zu früh gekommen", "Sie sind zu früh gekommen"),
    Utterance("You look tired", "Du siehst müde aus", "Sie sehen müde aus"),
    Utterance("I will never forget you", "Ich werde dich nie vergessen", "Ich werde Sie nie vergessen"),
    Utterance("I believe you", "Ich glaube dir", "Ich glaube Ihnen"),
    Utterance("I owe you an answer", "Ich schulde dir eine Antwort", "Ich schulde Ihnen eine Antwort"),
    Utterance("Your idea is good", "Deine Idee ist gut", "Ihre Idee ist gut"),
    Utterance("I like your voice", "Ich mag deine Stimme", "Ich mag Ihre Stimme"),
    Utterance("Where do you live?", "Wo wohnst du?", "Wo wohnen Sie?"),
    Utterance("Can you hear me?", "Kannst du mich hören?", "Können Sie mich hören?"),
    Utterance("What do you think?", "Was denkst du?", "Was denken Sie?"),
    Utterance("Are you coming tomorrow?", "Kommst du morgen?", "Kommen Sie morgen?"),
    Utterance("May I disturb you?", "Darf ich dich stören?", "Darf ich Sie stören?"),
    Utterance("How is your family?", "Wie geht es deiner Familie?", "Wie geht es Ihrer Familie?"),
    Utterance("Do you need advice?", "Brauchst du Rat?", "Brauchen Sie Rat?"),
)
