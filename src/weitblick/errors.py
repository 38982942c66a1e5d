"""The one kind of error a user may cause: a single line that names file, line, value and remedy."""

from __future__ import annotations

from pathlib import Path

LONGEST = 2000  # characters of a message: values may be of any size


class UserError(Exception):
    """A user's mistake. The command line prints it as one line and exits with code 2.

    `where` is the file (or recipe key) concerned, `line` its 1-based line; `message` says what is wrong and
    with which value, `remedy` what to do about it.
    """

    def __init__(
        self, message: str, *, where: str | Path | None = None, line: int | None = None, remedy: str | None = None
    ) -> None:
        self.message, self.where, self.line, self.remedy = message, where, line, remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        place = "" if self.where is None else f"{self.where}:" + (f"{self.line}:" if self.line is not None else "")
        text = f"{place} {self.message}" if place else self.message
        text = f"{text}; {self.remedy}" if self.remedy else text
        text = " ".join(text.split())
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 300]} ... {text[-295:]}"
