"""English nouns with two German translations, and the topics that decide between them."""

from __future__ import annotations

from dataclasses import dataclass

from weitblick.discourse.german import Gender, Noun, Predicate, predicate


@dataclass(frozen=True, slots=True)
class Topic:
    """`cues` say what someone did. Things of the class `near` would hint at the topic too: they are kept away."""

    cues: tuple[Predicate, ...]
    near: str | None = None


def _topic(*cues: tuple[str, str, str], near: str | None = None) -> Topic:
    return Topic(tuple(predicate(*cue) for cue in cues), near)


TOPICS: dict[str, Topic] = {
    "finance": _topic(
        ("needed a loan", "brauchte", "einen Kredit"),
        ("opened a savings account", "eröffnete", "ein Sparkonto"),
        ("lost a lot of money", "verlor", "viel Geld"),
    ),
    "river": _topic(
        ("rowed down the river", "ruderte", "den Fluss hinunter"),
        ("fished for trout", "angelte", "Forellen"),
        ("swam in the stream", "schwamm", "im Bach"),
    ),
    "sport": _topic(
        ("trained for the tournament", "trainierte", "für das Turnier"),
        ("scored the decisive point", "erzielte", "den entscheidenden Punkt"),
        ("ran around the stadium", "lief", "um das Stadion"),
    ),
    "zoo": _topic(
        ("visited the zoo", "besuchte", "den Zoo"),
        ("watched the wild animals", "beobachtete", "die wilden Tiere"),
        ("studied zoology", "studierte", "Zoologie"),
        near="animal",
    ),
    "music": _topic(
        ("rehearsed with the orchestra", "probte", "mit dem Orchester"),
        ("composed a symphony", "komponierte", "eine Sinfonie"),
        ("conducted the choir", "leitete", "den Chor"),
        near="instrument",
    ),
    "medicine": _topic(
        ("worked in the hospital", "arbeitete", "im Krankenhaus"),
        ("examined the patient", "untersuchte", "den Patienten"),
        ("suffered from severe pain", "litt", "unter starken Schmerzen"),
    ),
    "workshop": _topic(
        ("tightened the screws", "zog", "die Schrauben fest"),
        ("welded some steel", "schweißte", "etwas Stahl"),
        ("dismantled the machine", "zerlegte", "die Maschine"),
        near="tool",
    ),
    "computer": _topic(
        ("wrote a program", "schrieb", "ein Programm"),
        ("typed on the keyboard", "tippte", "auf der Tastatur"),
        ("installed new software", "installierte", "neue Software"),
        near="device",
    ),
    "kitchen": _topic(
        ("prepared breakfast", "bereitete", "das Frühstück zu"),
        ("baked some bread", "backte", "etwas Brot"),
        ("was hungry", "hatte", "Hunger"),
        near="food",
    ),
    "traffic": _topic(
        ("drove on the motorway", "fuhr", "auf der Autobahn"),
        ("missed the exit", "verpasste", "die Ausfahrt"),
        ("got a driving licence", "machte", "den Führerschein"),
        near="vehicle",
    ),
    "school": _topic(
        ("learned the alphabet", "lernte", "das Alphabet"),
        ("taught at the primary school", "unterrichtete", "an der Grundschule"),
        ("corrected the homework", "korrigierte", "die Hausaufgaben"),
        near="text",
    ),
    "post": _topic(
        ("went to the post office", "ging", "zur Post"),
        ("bought stamps", "kaufte", "Briefmarken"),
        ("wrote to relatives", "schrieb", "an Verwandte"),
        near="text",
    ),
    "wardrobe": _topic(
        ("changed for the wedding", "zog", "sich für die Hochzeit um"),
        ("studied fashion", "studierte", "Mode"),
        ("went to the tailor", "ging", "zum Schneider"),
        near="clothing",
    ),
    "site": _topic(
        ("worked on the building site", "arbeitete", "auf der Baustelle"),
        ("poured concrete", "goss", "Beton"),
        ("wore a safety helmet", "trug", "einen Schutzhelm"),
        near="building",
    ),
    "garden": _topic(
        ("worked in the garden", "arbeitete", "im Garten"),
        ("pulled weeds", "jätete", "Unkraut"),
        ("studied botany", "studierte", "Botanik"),
        near="plant",
    ),
    "industry": _topic(
        ("organised a strike", "organisierte", "einen Streik"),
        ("worked on the assembly line", "arbeitete", "am Fließband"),
        ("hired new workers", "stellte", "neue Arbeiter ein"),
    ),
    "fire": _topic(
        ("lit the candles", "zündete", "die Kerzen an"),
        ("sat by the campfire", "saß", "am Lagerfeuer"),
        ("collected firewood", "sammelte", "Brennholz"),
    ),
    "treasure": _topic(
        ("searched for gold", "suchte", "nach Gold"),
        ("sailed with pirates", "segelte", "mit Piraten"),
        ("hid the jewels", "versteckte", "die Juwelen"),
        near="container",
    ),
    "archive": _topic(
        ("studied medieval charters", "studierte", "mittelalterliche Urkunden"),
        ("worked in the archive", "arbeitete", "im Archiv"),
        ("deciphered old parchments", "entzifferte", "alte Pergamente"),
        near="text",
    ),
    "home": _topic(
        ("locked the door", "schloss", "die Tür ab"),
        ("could not get into the flat", "kam", "nicht in die Wohnung"),
        ("called the locksmith", "rief", "den Schlosser"),
        near="building",
    ),
    "dining": _topic(
        ("furnished the dining room", "richtete", "das Esszimmer ein"),
        ("went to the carpenter", "ging", "zum Tischler"),
        ("sawed some boards", "sägte", "Bretter zu"),
        near="furniture",
    ),
    "archery": _topic(
        ("shot three arrows", "schoss", "drei Pfeile"),
        ("aimed at the target", "zielte", "auf die Zielscheibe"),
        ("hunted with a quiver", "jagte", "mit einem Köcher"),
    ),
    "travel": _topic(
        ("prayed to the gods", "betete", "zu den Göttern"),
        ("visited the ruins", "besichtigte", "die Ruinen"),
        ("followed the pilgrims", "folgte", "den Pilgern"),
        near="building",
    ),
}


@dataclass(frozen=True, slots=True)
class Sense:
    topic: str
    noun: Noun


def _word(english: str, *senses: str) -> tuple[Sense, Sense]:
    """Each sense is `topic gender noun`, the noun with its oblique form if it is weak."""
    first, second = (_sense(english, *sense.split()) for sense in senses)
    return first, second


def _sense(english: str, topic: str, gender: str, german: str) -> Sense:
    nominative, _, oblique = german.partition("/")
    return Sense(topic, Noun(english, nominative, _GENDER[gender], oblique or None))


_GENDER: dict[str, Gender] = {"m": "m", "f": "f", "n": "n"}

AMBIGUOUS: tuple[tuple[Sense, Sense], ...] = (
    _word("bank", "finance f Bank", "river n Ufer"),
    _word("bat", "sport m Schläger", "zoo f Fledermaus"),
    _word("match", "sport n Spiel", "fire n Streichholz"),
    _word("letter", "post m Brief", "school m Buchstabe/Buchstaben"),
    _word("key", "home m Schlüssel", "computer f Taste"),
    _word("table", "dining m Tisch", "computer f Tabelle"),
    _word("plant", "garden f Pflanze", "industry f Fabrik"),
    _word("seal", "zoo f Robbe", "archive n Siegel"),
    _word("crane", "zoo m Kranich", "site m Kran"),
    _word("nut", "kitchen f Nuss", "workshop f Schraubenmutter"),
    _word("organ", "music f Orgel", "medicine n Organ"),
    _word("trunk", "zoo m Rüssel", "traffic m Kofferraum"),
    _word("bow", "archery m Bogen", "wardrobe f Schleife"),
    _word("chest", "treasure f Truhe", "medicine f Brust"),
    _word("bill", "finance f Rechnung", "zoo m Schnabel"),
    _word("file", "computer f Datei", "workshop f Feile"),
    _word("jam", "kitchen f Marmelade", "traffic m Stau"),
    _word("palm", "garden f Palme", "medicine f Handfläche"),
    _word("tie", "wardrobe f Krawatte", "sport n Unentschieden"),
    _word("pupil", "school m Schüler", "medicine f Pupille"),
    _word("calf", "zoo n Kalb", "medicine f Wade"),
    _word("coach", "sport m Trainer", "traffic m Reisebus"),
    _word("temple", "travel m Tempel", "medicine f Schläfe"),
    _word("spring", "river f Quelle", "workshop f Feder"),
)
