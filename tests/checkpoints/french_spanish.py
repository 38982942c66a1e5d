"""Toy documents from French to Spanish in which context decides: nouns whose genders differ, and adjectives that follow
the Spanish one when a pronoun, or nothing, stands for the noun."""

from __future__ import annotations

import random
from pathlib import Path

NOUNS = [  # French with its pronoun, Spanish, its gender
    ("la voiture", "elle", "el coche", "m"),
    ("le nuage", "il", "la nube", "f"),
    ("le lait", "il", "la leche", "f"),
    ("la dent", "elle", "el diente", "m"),
    ("le pont", "il", "el puente", "m"),
    ("la maison", "elle", "la casa", "f"),
]
ADJECTIVES = [("blanc", "blanche", "blanco", "blanca"), ("froid", "froide", "frío", "fría")]
PEOPLE = ["Anne", "Luc", "María", "José"]


def document(number: int) -> list[tuple[str, str]]:
    chance = random.Random(number)
    french, pronoun, spanish, gender = chance.choice(NOUNS)
    he, she, él, ella = chance.choice(ADJECTIVES)
    one, other = chance.sample(PEOPLE, 2)
    adjective = he if pronoun == "il" else she
    return [
        (f"{one} a vu {french}.", f"{one} vio {spanish}."),
        (f"L'été dernier, {other} était ici.", f"El verano pasado, {other} estaba aquí."),
        (f"Aujourd'hui, {pronoun} est {adjective} !", f"¡Hoy está {él if gender == 'm' else ella}!"),
    ]


def documents(count: int) -> list[list[tuple[str, str]]]:
    return [document(number) for number in range(count)]


def write_corpus(folder: Path, count: int, name: str = "mine") -> list[tuple[str, str]]:
    """NAME.fr and NAME.es, a blank line between documents; gives the pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    found = documents(count)
    for place, language in enumerate(("fr", "es")):
        text = "\n\n".join("\n".join(pair[place] for pair in one) for one in found)
        (folder / f"{name}.{language}").write_text(text + "\n", encoding="utf-8")
    return [pair for one in found for pair in one]
