"""Classes of things: their nouns, what is said of them, what is done to them, and their parts.

Every phrase belongs to one class only, so that it selects the one thing of that class in a document.
"""

from __future__ import annotations

from dataclasses import dataclass

from weitblick.discourse.german import Gender, Noun, Predicate, predicate


@dataclass(frozen=True, slots=True)
class Kind:
    """`held_out` nouns are antecedents in the test only. `done` predicates have `it` where their object goes."""

    nouns: tuple[Noun, ...]
    held_out: tuple[Noun, ...]
    said: tuple[Predicate, ...]
    done: tuple[Predicate, ...]
    parts: tuple[Noun, ...]


def _nouns(gender: Gender, listing: str) -> list[Noun]:
    """`washing machine Waschmaschine, elephant Elefant/Elefanten`: German comes last, with its oblique form."""
    nouns = []
    for entry in listing.split(","):
        english, _, german = entry.strip().rpartition(" ")
        nominative, _, oblique = german.partition("/")
        nouns.append(Noun(english, nominative, gender, oblique or None))
    return nouns


def _kind(
    m: str, f: str, n: str, said: list[tuple[str, ...]], done: list[tuple[str, ...]], parts: dict[Gender, str]
) -> Kind:
    """The last noun of each gender is held out."""
    genders: list[tuple[Gender, str]] = [("m", m), ("f", f), ("n", n)]
    nouns = [_nouns(gender, listing) for gender, listing in genders]
    return Kind(
        nouns=tuple(noun for group in nouns for noun in group[:-1]),
        held_out=tuple(group[-1] for group in nouns),
        said=tuple(predicate(*phrase) for phrase in said),
        done=tuple(predicate(*phrase) for phrase in done),
        parts=tuple(noun for gender, listing in parts.items() for noun in _nouns(gender, listing)),
    )


KINDS: dict[str, Kind] = {
    "food": _kind(
        m="cake Kuchen, salad Salat, fish Fisch, pancake Pfannkuchen",
        f="soup Suppe, pizza Pizza, sausage Wurst, tart Torte",
        n="egg Ei, steak Steak, omelette Omelett, chicken Hähnchen",
        said=[
            ("tasted good", "schmeckte", "gut"),
            ("was too salty", "war", "zu salzig"),
            ("was served warm", "wurde", "warm serviert"),
            ("was still raw inside", "war", "innen noch roh"),
            ("smelled of garlic", "roch", "nach Knoblauch"),
        ],
        done=[
            ("ate {} at once", "aß", "{} sofort"),
            ("warmed {} up", "wärmte", "{} auf"),
            ("seasoned {} with pepper", "würzte", "{} mit Pfeffer"),
            ("tried {} with a fork", "probierte", "{} mit einer Gabel"),
        ],
        parts={"m": "taste Geschmack", "f": "spiciness Schärfe", "n": "recipe Rezept"},
    ),
    "vehicle": _kind(
        m="bus Bus, train Zug, truck Lastwagen, tractor Traktor",
        f="ferry Fähre, tram Straßenbahn, carriage Kutsche, locomotive Lokomotive",
        n="car Auto, ship Schiff, taxi Taxi, motorcycle Motorrad",
        said=[
            ("arrived late", "kam", "spät an", "spät ankam"),
            ("left at noon", "fuhr", "mittags ab", "mittags abfuhr"),
            ("went too fast", "fuhr", "zu schnell"),
            ("stopped at the bridge", "hielt", "an der Brücke"),
            ("had no more fuel", "hatte", "keinen Treibstoff mehr"),
        ],
        done=[
            ("steered {} to the left", "lenkte", "{} nach links"),
            ("overtook {} on the right", "überholte", "{} rechts"),
            ("parked {} in the shade", "parkte", "{} im Schatten"),
            ("refuelled {} twice", "betankte", "{} zweimal"),
        ],
        parts={"m": "engine Motor", "f": "brake Bremse", "n": "steering wheel Steuerrad"},
    ),
    "text": _kind(
        m="novel Roman, report Bericht, article Artikel, contract Vertrag",
        f="newspaper Zeitung, story Geschichte, message Nachricht, biography Biographie",
        n="book Buch, poem Gedicht, diary Tagebuch, fairy tale Märchen",
        said=[
            ("was hard to read", "war", "schwer zu lesen"),
            ("was written in Latin", "war", "auf Latein geschrieben"),
            ("contained many errors", "enthielt", "viele Fehler"),
            ("ended with a question", "endete", "mit einer Frage"),
            ("was never printed", "wurde", "nie gedruckt"),
        ],
        done=[
            ("read {} aloud", "las", "{} laut vor"),
            ("translated {} into English", "übersetzte", "{} ins Englische"),
            ("copied {} by hand", "schrieb", "{} von Hand ab"),
            ("shortened {} by half", "kürzte", "{} um die Hälfte"),
        ],
        parts={"m": "title Titel", "f": "heading Überschrift", "n": "last chapter Schlusskapitel"},
    ),
    "clothing": _kind(
        m="coat Mantel, hat Hut, scarf Schal, skirt Rock",
        f="jacket Jacke, cap Mütze, blouse Bluse, waistcoat Weste",
        n="dress Kleid, shirt Hemd, headscarf Kopftuch, costume Kostüm",
        said=[
            ("did not fit", "passte", "nicht"),
            ("was too tight", "war", "zu eng"),
            ("was made of wool", "war", "aus Wolle"),
            ("shrank in the wash", "lief", "in der Wäsche ein", "in der Wäsche einlief"),
            ("was sewn by hand", "wurde", "von Hand genäht"),
        ],
        done=[
            ("put {} on", "zog", "{} an"),
            ("ironed {} carefully", "bügelte", "{} sorgfältig"),
            ("dyed {} blue", "färbte", "{} blau"),
            ("wore {} at the ball", "trug", "{} beim Ball"),
        ],
        parts={"m": "cut Schnitt", "f": "seam Naht", "n": "lining Futter"},
    ),
    "furniture": _kind(
        m="wardrobe Schrank, armchair Sessel, chair Stuhl, stool Hocker",
        f="dresser Kommode, couch Couch, cradle Wiege, display cabinet Vitrine",
        n="sofa Sofa, bed Bett, shelf Regal, desk Pult",
        said=[
            ("stood against the wall", "stand", "an der Wand"),
            ("was made of oak", "war", "aus Eiche"),
            ("wobbled on the carpet", "wackelte", "auf dem Teppich"),
            ("did not go through the doorway", "ging", "nicht durch den Türrahmen"),
            ("filled half the living room", "füllte", "das halbe Wohnzimmer"),
        ],
        done=[
            ("assembled {} without instructions", "baute", "{} ohne Anleitung zusammen"),
            ("moved {} into the corner", "rückte", "{} in die Ecke"),
            ("varnished {} twice", "lackierte", "{} zweimal"),
            ("carried {} up the stairs", "trug", "{} die Treppe hinauf"),
        ],
        parts={"m": "varnish Lack", "f": "armrest Armlehne", "n": "wood Holz"},
    ),
    "instrument": _kind(
        m="grand piano Flügel, double bass Kontrabass, gong Gong, bagpipe Dudelsack",
        f="violin Geige, flute Flöte, trumpet Trompete, guitar Gitarre",
        n="piano Klavier, cello Cello, saxophone Saxophon, accordion Akkordeon",
        said=[
            ("sounded out of tune", "klang", "verstimmt"),
            ("drowned out the singers", "übertönte", "die Sänger"),
            ("fell silent after the solo", "verstummte", "nach dem Solo"),
            ("could be heard in the last row", "war", "in der letzten Reihe zu hören"),
            ("opened the second movement", "eröffnete", "den zweiten Satz"),
        ],
        done=[
            ("tuned {} before the performance", "stimmte", "{} vor dem Auftritt"),
            ("practised {} every evening", "übte", "{} jeden Abend"),
            ("played {} by ear", "spielte", "{} nach Gehör"),
            ("mastered {} within a year", "beherrschte", "{} nach einem Jahr"),
        ],
        parts={"m": "sound Klang", "f": "pitch Tonhöhe", "n": "echo Echo"},
    ),
    "animal": _kind(
        m="dog Hund, parrot Papagei, donkey Esel, elephant Elefant/Elefanten",
        f="cat Katze, goat Ziege, duck Ente, cow Kuh",
        n="horse Pferd, sheep Schaf, pig Schwein, rabbit Kaninchen",
        said=[
            ("slept in the straw", "schlief", "im Stroh"),
            ("ran across the meadow", "lief", "über die Wiese"),
            ("drank some water", "trank", "etwas Wasser"),
            ("was afraid of thunder", "hatte", "Angst vor Donner"),
            ("came when called", "kam", "auf Zuruf"),
        ],
        done=[
            ("fed {} every morning", "fütterte", "{} jeden Morgen"),
            ("stroked {} gently", "streichelte", "{} sanft"),
            ("drove {} into the stable", "trieb", "{} in den Stall"),
            ("tamed {} with patience", "zähmte", "{} mit Geduld"),
        ],
        parts={"m": "tail Schwanz", "f": "tongue Zunge", "n": "ear Ohr"},
    ),
    "plant": _kind(
        m="tree Baum, shrub Strauch, cactus Kaktus, fern Farn",
        f="rose Rose, tulip Tulpe, carnation Nelke, lily Lilie",
        n="violet Veilchen, daisy Gänseblümchen, snowdrop Schneeglöckchen, pansy Stiefmütterchen",
        said=[
            ("withered in the heat", "verdorrte", "in der Hitze"),
            ("grew quickly", "wuchs", "schnell"),
            ("took root", "schlug", "Wurzeln"),
            ("froze during the winter", "erfror", "im Winter"),
            ("needed more sun", "brauchte", "mehr Sonne"),
        ],
        done=[
            ("watered {} daily", "goss", "{} täglich"),
            ("cut {} back in autumn", "schnitt", "{} im Herbst zurück"),
            ("dug {} up", "grub", "{} aus"),
            ("fertilised {} with compost", "düngte", "{} mit Kompost"),
        ],
        parts={"m": "stem Stängel", "f": "root Wurzel", "n": "foliage Blattwerk"},
    ),
    "building": _kind(
        m="tower Turm, palace Palast, station Bahnhof, supermarket Supermarkt",
        f="church Kirche, castle Burg, hut Hütte, barn Scheune",
        n="house Haus, theatre Theater, museum Museum, hotel Hotel",
        said=[
            ("stood empty for years", "stand", "jahrelang leer"),
            ("had a leaking roof", "hatte", "ein undichtes Dach"),
            ("was torn down", "wurde", "abgerissen"),
            ("had two entrances", "hatte", "zwei Eingänge"),
            ("was closed on Sundays", "war", "sonntags geschlossen"),
        ],
        done=[
            ("entered {} through a side door", "betrat", "{} durch eine Seitentür"),
            ("renovated {} thoroughly", "renovierte", "{} gründlich"),
            ("built {} on a hill", "baute", "{} auf einem Hügel"),
            ("left {} by the back exit", "verließ", "{} durch den Hinterausgang"),
        ],
        parts={"m": "cellar Keller", "f": "facade Fassade", "n": "staircase Treppenhaus"},
    ),
    "device": _kind(
        m="printer Drucker, fridge Kühlschrank, television Fernseher, vending machine Automat/Automaten",
        f="camera Kamera, washing machine Waschmaschine, dishwasher Spülmaschine, coffee machine Kaffeemaschine",
        n="radio Radio, telephone Telefon, charger Ladegerät, fax machine Faxgerät",
        said=[
            ("blinked red", "blinkte", "rot"),
            ("switched itself off", "schaltete", "sich aus", "sich ausschaltete"),
            ("used a lot of electricity", "verbrauchte", "viel Strom"),
            ("had a short circuit", "hatte", "einen Kurzschluss"),
            ("hummed all night", "summte", "die ganze Nacht"),
        ],
        done=[
            ("switched {} on", "schaltete", "{} ein"),
            ("unplugged {} overnight", "steckte", "{} über Nacht aus"),
            ("reset {} to the factory settings", "setzte", "{} auf die Werkseinstellungen zurück"),
            ("connected {} to the socket", "schloss", "{} an die Steckdose an"),
        ],
        parts={"m": "plug Stecker", "f": "wiring Verkabelung", "n": "power cable Stromkabel"},
    ),
    "tool": _kind(
        m="hammer Hammer, spade Spaten, screwdriver Schraubenzieher, spanner Schraubenschlüssel",
        f="axe Axt, shovel Schaufel, rake Harke, sickle Sichel",
        n="hatchet Beil, knife Messer, chisel Stemmeisen, crowbar Brecheisen",
        said=[
            ("was completely rusty", "war", "völlig verrostet"),
            ("lay in the toolbox", "lag", "im Werkzeugkasten"),
            ("slipped off the workbench", "rutschte", "von der Werkbank"),
            ("lay well in the hand", "lag", "gut in der Hand"),
            ("was good for heavy work", "taugte", "für schwere Arbeit"),
        ],
        done=[
            ("oiled {} afterwards", "ölte", "{} danach"),
            ("hung {} on the hook", "hängte", "{} an den Haken"),
            ("swung {} with both hands", "schwang", "{} mit beiden Händen"),
            ("cleaned {} with a steel brush", "säuberte", "{} mit einer Drahtbürste"),
        ],
        parts={"m": "handle Griff", "f": "tip Spitze", "n": "metal Metall"},
    ),
    "container": _kind(
        m="suitcase Koffer, basket Korb, bucket Eimer, sack Sack",
        f="bag Tasche, crate Kiste, bottle Flasche, tin Dose",
        n="barrel Fass, jar Glas, parcel Paket, little box Kästchen",
        said=[
            ("was filled to the brim", "war", "randvoll"),
            ("had no lid", "hatte", "keinen Deckel"),
            ("contained only sand", "enthielt", "nur Sand"),
            ("burst at the bottom", "platzte", "unten auf", "unten aufplatzte"),
            ("held ten kilos", "fasste", "zehn Kilo"),
        ],
        done=[
            ("emptied {} completely", "leerte", "{} vollständig"),
            ("filled {} with coins", "füllte", "{} mit Münzen"),
            ("sealed {} tightly", "verschloss", "{} fest"),
            ("unpacked {} slowly", "packte", "{} langsam aus"),
        ],
        parts={"m": "lid Deckel", "f": "opening Öffnung", "n": "capacity Fassungsvermögen"},
    ),
}
