"""Files from a server: checked by size and checksum, taken up again where a connection broke, unpacked within bounds.

Only `weitblick fetch` and `weitblick publish` use a network.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from weitblick.common.errors import UserError
from weitblick.common.files import make_folder
from weitblick.common.imports import optional_package

CHUNK = 1 << 18
SECONDS = 30
"""Without a byte, after which a connection counts as broken."""
ATTEMPTS = 4
"""In a row that bring nothing new, before it is given up."""
MOST_JSON = 64 << 20
SPARE_SPACE = 50 << 20
AGENT = "weitblick"

Advance = Callable[[int], None]


class NotFound(UserError):
    """The server has no such thing, or does not show it to everybody."""


@dataclass(frozen=True)
class Download:
    """A file to take: where it is, what it is called here, its size, and its checksum.

    kind: sha256 of the content, or git, which puts a head before it and takes sha1.
    """

    url: str
    name: str
    size: int
    checksum: str
    kind: str = "sha256"

    def matches(self, path: Path) -> bool:
        digest = hashlib.sha256() if self.kind == "sha256" else hashlib.sha1(f"blob {self.size}\0".encode())
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
        return digest.hexdigest() == self.checksum


def get_json(url: str) -> Any:
    """What a server answers, as JSON."""
    try:
        with _open(url, {}) as answer:
            return json.loads(answer.read(MOST_JSON))
    except (ValueError, RecursionError):
        raise UserError("answered with something that is no JSON", where=url, remedy="try again later") from None
    except (OSError, http.client.HTTPException) as error:
        raise _broken(url, error) from None


def download_all(downloads: list[Download], folder: Path, advance: Advance) -> None:
    """Takes all files into a folder. What is there already and right is not asked for again."""
    make_folder(folder)
    missing = sum(one.size - _present(folder / f"{one.name}.part") for one in downloads)
    free = shutil.disk_usage(folder).free
    if missing + SPARE_SPACE > free:
        needed = f"{_megabytes(missing + SPARE_SPACE)} are needed, to download and to unpack"
        raise UserError(f"{needed}; {_megabytes(free)} are free", where=folder, remedy="free some space")
    for one in downloads:
        try:
            _download(one, folder, advance)
        except OSError as error:
            remedy = "free some space, and fetch again: it goes on where it stopped"
            raise UserError(f"cannot be written ({error.strerror or error})", where=folder, remedy=remedy) from None


@contextmanager
def discarded_if_refused(folder: Path) -> Iterator[None]:
    """What was downloaded into a folder is thrown away where it turns out to be no model: it came as it was announced,
    so that no other try could mend it."""
    try:
        yield
    except UserError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _download(one: Download, folder: Path, advance: Advance) -> None:
    path, part = folder / one.name, folder / f"{one.name}.part"
    if path.is_file() and path.stat().st_size == one.size and one.matches(path):
        advance(one.size)
        return
    have, idle = _present(part), 0
    advance(have)
    while have < one.size:
        broken = _continue(one, part, have, advance)
        now = _present(part)
        idle = 0 if now > have else idle + 1
        if idle == ATTEMPTS:
            raise broken or UserError("the connection ends too soon", where=one.url, remedy="fetch again")
        have = now
    if have != one.size or not one.matches(part):
        part.unlink()
        raise UserError(
            f"{one.name} is not what was announced: its checksum differs", where=one.url, remedy="fetch again"
        )
    part.replace(path)


def _continue(one: Download, part: Path, have: int, advance: Advance) -> UserError | None:
    """Takes what is missing, as far as the connection lasts; what broke it, if that is known."""
    try:
        answer = _open(one.url, {"Range": f"bytes={have}-"} if have else {})
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        return _broken(one.url, error)
    with answer, open(part, "ab") as out:
        if answer.status != http.HTTPStatus.PARTIAL_CONTENT and have:  # the server begins anew
            out.truncate(0)
            advance(-have)
            have = 0
        while have <= one.size:
            try:
                chunk = answer.read1(CHUNK)
            except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
                return _broken(one.url, error)
            if not chunk:
                return None
            out.write(chunk)
            have += len(chunk)
            advance(len(chunk))
    return None


def _present(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _open(url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    if not url.startswith(("https://", "http://")):
        raise UserError("is no address of a server", where=url)
    request = urllib.request.Request(url, headers={"User-Agent": AGENT, **headers})
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403, 404):
            raise NotFound(f"is not there, or not for everybody ({error.code})", where=url) from None
        if error.code >= 500:
            raise urllib.error.URLError(f"the server answered {error.code}") from None
        raise UserError(f"the server answered {error.code} {error.reason}", where=url) from None
    return answer


def _broken(url: str, error: Exception) -> UserError:
    reason = " ".join(str(getattr(error, "reason", None) or error).split()) or type(error).__name__
    return UserError(f"cannot be reached ({reason[:200]})", where=url, remedy="check the network, and fetch again")


def _megabytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MB"


# Packed files


def unpack(packed: Path, path: Path, size: int | None = None, sha256: str | None = None) -> None:
    """Writes what gzip or zstandard packed, or the file as it is; at most `size` bytes, with the checksum `sha256`."""
    with open(packed, "rb") as file:
        magic = file.read(4)
    digest, written = hashlib.sha256(), 0
    try:
        with open(path, "wb") as out:
            for chunk in _chunks(packed, magic):
                written += len(chunk)
                if size is not None and written > size:
                    break
                digest.update(chunk)
                out.write(chunk)
    except (EOFError, gzip.BadGzipFile, ValueError) as error:
        raise UserError(f"is damaged ({error})", where=packed, remedy="fetch again") from None
    if (size is not None and written != size) or (sha256 is not None and digest.hexdigest() != sha256):
        path.unlink()
        raise UserError("unpacked is not what was announced: its checksum differs", where=packed, remedy="fetch again")


def _chunks(path: Path, magic: bytes) -> Iterator[bytes]:
    with open(path, "rb") as file:
        reader: IO[bytes] = file
        if magic[:2] == b"\x1f\x8b":
            reader = cast(IO[bytes], gzip.GzipFile(fileobj=file))
        elif magic == b"\x28\xb5\x2f\xfd":
            reader = _zstandard(file)
        while chunk := reader.read(CHUNK):
            yield chunk


def _zstandard(file: IO[bytes]) -> IO[bytes]:
    with optional_package("hub"):
        import zstandard
    reader: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(file)
    return reader
