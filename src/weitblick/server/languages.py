"""Names of languages, the pair that a model translates, and which language a text is in."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

from weitblick.server.errors import Refused

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "mt": "Maltese", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
RIGHT_TO_LEFT = {"ar", "fa", "he", "ur"}
_identifying = threading.Lock()


@dataclass(frozen=True)
class Detected:
    language: str
    confidence: float  # percent


@dataclass(frozen=True)
class Languages:
    """The one pair that a server's model translates, as codes of two letters."""

    source: str
    target: str

    @staticmethod
    def name(code: str) -> str:
        return NAMES.get(code, code)

    @staticmethod
    def direction(code: str) -> str:
        return "rtl" if code in RIGHT_TO_LEFT else "ltr"

    def check(self, source: str | None, target: str | None) -> None:
        """Refuses a pair other than ours; what is not named, or `auto`, is ours. Variants (de-AT) are the language."""
        for wanted, ours in ((source, self.source), (target, self.target)):
            if wanted and base(wanted) not in (ours, "auto"):
                raise Refused(400, f"{wanted} is not supported: this server translates {self.source} to {self.target}")

    def detect(self, text: str) -> Detected:
        """Of the two languages of the pair and all others that the library knows."""
        if not re.search(r"\w", text):
            return Detected(self.source, 0.0)
        with _identifying:
            code, probability = _identifier().classify(text)
        return Detected(str(code), round(100 * float(probability), 1))


def base(code: str) -> str:
    """de of de-AT, DE and de_DE."""
    return re.split("[-_]", code.lower())[0]


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
