"""Which form of address a translation shows."""

import pytest

from weitblick.text.address import form_of_address


@pytest.mark.parametrize(
    ("source", "target", "form"),
    [
        ("Are you tired?", "Bist du müde?", "informal"),
        ("I saw you all.", "Ich habe euch alle gesehen.", "informal"),
        ("Can you help me?", "Können Sie mir helfen?", "formal"),
        ("You can go.", "Sie können gehen.", "formal"),
        ("Your bag is here.", "Ihre Tasche ist hier.", "formal"),
        ("Click Save.", "Klicken Sie auf „Speichern“.", "formal"),
        ("They are tired.", "Sie sind müde.", None),
        ("They like you.", "Sie mögen Kuchen.", None),
        ("It is raining.", "Es regnet.", None),
        ("She said that they had left.", "Sie sagte, Sie seien gegangen.", None),
        ("Do you see your bag?", "Siehst du Ihre Tasche?", None),
    ],
)
def test_form_of_address(source: str, target: str, form: str | None) -> None:
    assert form_of_address(source, target) == form


def test_of_other_languages_nothing_is_known() -> None:
    assert form_of_address("Are you tired?", "Êtes-vous fatigué ?", "fr") is None
