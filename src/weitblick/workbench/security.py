"""Who may ask for what. All of it is plain ASGI, so that endpoints still see when a client leaves.

- A page of another site must neither read nor change a local project: requests to a loopback server under another
  host name are refused (DNS rebinding), and so are writes with the Origin of another site. Programs send no Origin.
- Anywhere but on the loopback interface a key is needed, unless the server was started with --open.
- Whoever sends ten wrong keys is not answered for five minutes.
- Every key, or every address where there are no keys, has so many requests a minute.
- Bodies have a limit, with or without a declared length.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weitblick.common.errors import UserError
from weitblick.common.files import read_lines
from weitblick.workbench.errors import Refused, answer_to, error_response
from weitblick.workbench.requests import Limits

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
SHORTEST_KEY = 16
KEY_IN_BODY = ("/translate", "/detect", "/languages", "/suggest", "/translate_file", "/frontend/settings")
"""LibreTranslate's paths: their key may stand in the body, which they look at themselves."""
WITHOUT_KEY = ("/health",)
MOST_WRONG_KEYS, WRONG_KEY_SECONDS = 10, 300
"""After so many wrong keys an address is refused for so long, whatever key it then sends."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def read_keys(path: str | Path) -> list[str]:
    """The keys of a file, one a line; lines that begin with # are comments."""
    keys = []
    for number, line in enumerate(read_lines(path), 1):
        key = line.strip()
        if not key or key.startswith("#"):
            continue
        if len(key) < SHORTEST_KEY or not key.isascii() or any(letter.isspace() for letter in key):
            raise UserError(
                "is no key",
                where=path,
                line=number,
                remedy=f"write at least {SHORTEST_KEY} letters and digits a line, as `openssl rand -hex 16` makes them",
            )
        keys.append(key)
    if not keys:
        raise UserError("holds no key", where=path, remedy="write one key a line")
    return keys


class Guard:
    """The rules of one server, asked for every request."""

    def __init__(self, host: str, keys: Iterable[str], limits: Limits) -> None:
        self.local = is_loopback(host)
        self.keys = [key.encode() for key in keys]
        self.limits = limits
        self._buckets: dict[str, tuple[float, float]] = {}  # requests left, and when that was
        self._wrong: dict[str, tuple[int, float]] = {}  # wrong keys of an address, and when the last one came

    def check_origin(self, method: str, headers: Headers) -> None:
        host = headers.get("host", "")
        if self.local and host and not is_loopback(_hostname(f"//{host}")):
            raise Refused(403, "this server answers on this machine only, under its own name")
        origin = headers.get("origin")
        if method in SAFE_METHODS or origin is None:
            return
        if origin == "null" or _authority(origin) != host.lower():
            raise Refused(403, "requests from pages of other sites are refused")

    def check_key(self, key: str | None, client: str) -> None:
        """Refuses a request without a key, with a wrong one, or from an address that has sent too many wrong ones."""
        if not self.keys:
            return
        now = monotonic()
        wrong, since = self._wrong.get(client, (0, now))
        if now - since >= WRONG_KEY_SECONDS:
            wrong = 0
        if wrong >= MOST_WRONG_KEYS:
            wait = max(1, round(WRONG_KEY_SECONDS - (now - since)))
            raise Refused(429, "too many wrong API keys from this address", retry_after=wait)
        if key is None:
            raise Refused(403, "an API key is needed")
        given = key.encode()
        matches = [hmac.compare_digest(given, known) for known in self.keys]  # all, so that time tells nothing
        if not any(matches):
            if len(self._wrong) > 10_000:
                self._wrong = {name: seen for name, seen in self._wrong.items() if now - seen[1] < WRONG_KEY_SECONDS}
            self._wrong[client] = (wrong + 1, now)
            raise Refused(403, "invalid API key")

    def check_rate(self, client: str) -> None:
        """A bucket for each client that fills again within a minute."""
        if self.local and not self.keys:
            return
        now, most = monotonic(), float(self.limits.requests_a_minute)
        left, when = self._buckets.pop(client, (most, now))
        left = min(most, left + (now - when) * most / 60)
        if len(self._buckets) > 10_000:  # forget those who have not come for long
            self._buckets = {name: bucket for name, bucket in self._buckets.items() if now - bucket[1] < 60}
        self._buckets[client] = (max(0.0, left - 1), now)
        if left < 1:
            wait = max(1, round((1 - left) * 60 / most))
            raise Refused(429, f"more than {most:,.0f} requests a minute", retry_after=wait)


def client_of(scope: Scope) -> str:
    """The address that a request comes from."""
    return str(scope["client"][0]) if scope.get("client") else ""


def key_of(headers: Headers, query: str) -> str | None:
    """The key of a request: Bearer, DeepL's scheme, the password of Basic (browsers), X-API-Key, or `api_key`."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key"):
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return None
    in_query = parse_qs(query).get("api_key")
    return headers.get("x-api-key") or (in_query[0] if in_query else None)


class Secure:
    """ASGI middleware that asks the guard, limits bodies and sets the headers of answers."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answered = False

        async def send_secure(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                own = message.get("headers", [])
                names = {name.lower() for name, _ in own}  # a page that is only shown has a policy of its own
                message["headers"] = [*own, *(header for header in HEADERS if header[0] not in names)]
            await send(message)

        async def refuse(refused: Refused) -> None:
            response = error_response(scope["path"], refused.status, refused.message, refused.retry_after)
            if refused.status == 403 and self.guard.keys and "text/html" in Headers(scope=scope).get("accept", ""):
                response.status_code = 401  # a browser asks for the key: it is the password, the name does not matter
                response.headers["www-authenticate"] = 'Basic realm="Weitblick"'
            await response(scope, receive, send_secure)

        try:
            self._check(scope)
            await self.app(scope, self._limited(receive), send_secure)
        except Refused as refused:
            if not answered:
                await refuse(refused)
        except Exception as error:  # to be logged without what it says, which may hold text of documents
            response = answer_to(scope["path"], error)
            if not answered:
                await response(scope, receive, send_secure)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        self.guard.check_origin(scope["method"], headers)
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > self.guard.limits.body_bytes:
            raise self._too_large()
        if scope["path"] in WITHOUT_KEY:
            return
        client = client_of(scope)
        key = key_of(headers, scope["query_string"].decode("latin-1"))
        if key is not None or scope["path"] not in KEY_IN_BODY:
            self.guard.check_key(key, client)
            scope["weitblick.key"] = key
        self.guard.check_rate(key if self.guard.keys and key else client)

    def _limited(self, receive: Receive) -> Receive:
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.guard.limits.body_bytes:
                raise self._too_large()
            return message

        return limited

    def _too_large(self) -> Refused:
        return Refused(413, f"a request may have {self.guard.limits.body_bytes // 2**20} MB")


def _authority(url: str) -> str | None:
    try:
        return urlsplit(url).netloc.lower() or None
    except ValueError:
        return None


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
