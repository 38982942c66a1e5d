"""Names of languages, the pair that a model translates, and which language a text is in."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request

from weitblick.workbench.errors import Refused

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


# Parameters of requests that may come in any way: JSON, a form (multipart or not), the query, also of a GET with a
# body. JSON keeps its types; all else are strings.


async def parameters(request: Request) -> dict[str, Any]:
    """All of them; where a form names one several times, it is a list."""
    values: dict[str, Any] = {}
    pairs: list[tuple[str, Any]] = list(request.query_params.multi_items())
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        pairs += (await request.form(max_fields=2000)).multi_items()
    else:
        body = await request.body()
        if body.strip():
            values = _json(body)
    for name, value in pairs:
        name = name.removesuffix("[]")
        values[name] = [*_list(values[name]), value] if name in values else value
    return values


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(value, dict):
        raise Refused(400, "the body is not a JSON object")
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def string(values: dict[str, Any], name: str, default: str | None = None) -> str:
    value = values.get(name, default)
    if value is None:
        raise Refused(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise Refused(400, f"Invalid request: {name} is not a string")
    _check_text(value)
    return value


def strings(values: dict[str, Any], name: str) -> list[str]:
    """A string or a list of strings, as a list."""
    if values.get(name) is None:
        raise Refused(400, f"Invalid request: missing {name} parameter")
    found = _list(values[name])
    if not all(isinstance(value, str) for value in found):
        raise Refused(400, f"Invalid request: {name} is not text")
    for value in found:
        _check_text(value)
    return found


def integer(values: dict[str, Any], name: str, default: int, most: int) -> int:
    value = values.get(name, default)
    try:
        number = int(value) if not isinstance(value, bool | float) else None
    except (TypeError, ValueError):
        number = None
    if number is None or not 0 <= number <= most:
        raise Refused(400, f"Invalid request: {name} is not a number from 0 to {most}")
    return number


def flag(values: dict[str, Any], name: str, default: bool) -> bool:
    value = values.get(name, default)
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("1", "true", "yes", "on"):
        return True
    if str(value).lower() in ("0", "false", "no", "off", ""):
        return False
    raise Refused(400, f"Invalid request: {name} is neither true nor false")


def upload(values: dict[str, Any], name: str = "file") -> UploadFile:
    file = values.get(name)
    if not isinstance(file, UploadFile):
        raise Refused(400, f"Invalid request: missing {name} parameter")
    return file


def _check_text(value: str) -> None:
    """Half of a surrogate pair is no character, and nothing that could be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(400, "Invalid request: text that is not Unicode") from None
