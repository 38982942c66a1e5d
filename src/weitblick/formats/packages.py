"""Zip packages (docx, odt): read within limits, written with everything that was not translated as it was."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from weitblick.errors import UserError

MOST_BYTES = 512 * 2**20  # of all parts together, unpacked
MOST_RATIO, RATIO_FROM = 200, 10 * 2**20  # unpacked to packed, of parts from this size on
MOST_PARTS = 20_000
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Package:
    """The parts of a zip file, each read when it is asked for."""

    def __init__(self, data: bytes, path: Path) -> None:
        self.path, self._data = path, data
        if data.startswith(OLE):
            raise UserError(
                "is protected by a password, or an old binary file", where=path, remedy="save it without a password"
            )
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
            raise UserError(
                f"is not a complete Office file ({error})", where=path, remedy="save or fetch it again"
            ) from None
        self._check(self._zip.infolist())

    def _check(self, entries: Iterable[zipfile.ZipInfo]) -> None:
        total = 0
        for number, entry in enumerate(entries):
            total += entry.file_size
            swollen = entry.file_size > RATIO_FROM and entry.file_size > MOST_RATIO * max(1, entry.compress_size)
            if swollen or total > MOST_BYTES or number >= MOST_PARTS:
                raise UserError(
                    f"{entry.filename} unpacks to {entry.file_size:,} bytes ({total:,} in all): more than is safe",
                    where=self.path,
                    remedy="split the document",
                )
            if entry.flag_bits & 1:
                raise UserError("is protected by a password", where=self.path, remedy="save it without a password")

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    @property
    def names(self) -> list[str]:
        return self._zip.namelist()

    def read(self, name: str) -> bytes:
        try:
            with self._zip.open(name) as stream:
                data = stream.read(MOST_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise UserError(
                f"its part {name} is damaged ({error})", where=self.path, remedy="save or fetch it again"
            ) from None
        except KeyError:
            raise UserError(f"has no part {name}", where=self.path, remedy="save it again") from None
        if len(data) > MOST_BYTES:
            raise UserError(f"{name} is larger than it says", where=self.path, remedy="do not trust this file")
        return data

    def replaced(self, new: Mapping[str, bytes]) -> bytes:
        """The package with some parts exchanged: order, dates, kinds of compression and all other parts as before."""
        if not new:
            return self._data
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as package:
            for entry in self._zip.infolist():
                copy = zipfile.ZipInfo(entry.filename, entry.date_time)
                copy.compress_type, copy.external_attr, copy.comment = (
                    entry.compress_type,
                    entry.external_attr,
                    entry.comment,
                )
                copy.create_system = entry.create_system
                package.writestr(copy, new[entry.filename] if entry.filename in new else self.read(entry.filename))
            package.comment = self._zip.comment
        return out.getvalue()
