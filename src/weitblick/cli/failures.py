"""What the machine, not the user, did wrong, in one line: no space, no permission, no memory, no file handles."""

from __future__ import annotations

import errno
import sqlite3

REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EACCES: "change its permissions, or choose another place",
    errno.EMFILE: "allow more open files (ulimit -n 1024)",
    errno.ENFILE: "close some programs",
    errno.ENAMETOOLONG: "choose a shorter name",
}
FEW_HANDLES = "Too many open files"


def explain_failure(error: BaseException) -> tuple[str, int] | None:
    """A line and an exit code; None for what is a mistake in this program."""
    if type(error).__name__ == "Abort":  # click's word for an input that ended, or Ctrl-C in a question
        return "interrupted", 130
    if isinstance(error, OSError) and error.errno is not None:
        name = error.filename if isinstance(error.filename, str) and len(error.filename) < 200 else ""
        remedy = REMEDIES.get(error.errno)
        text = f"{name}: {error.strerror}" if name else str(error.strerror)
        return (f"{text}; {remedy}" if remedy else text), 2
    if isinstance(error, sqlite3.Error):
        return f"a memory cannot be read or written ({error}); look whether another program uses it, and for space", 2
    if isinstance(error, UnicodeEncodeError):
        found = ascii(error.object[error.start : error.start + 1])
        return f"a name or a text holds {found}, which is no character of Unicode; rename the file, or mend the text", 2
    text = str(error)
    if FEW_HANDLES in text:
        return f"{FEW_HANDLES}; {REMEDIES[errno.EMFILE]}", 2
    if isinstance(error, MemoryError) or "can't allocate memory" in text or "out of memory" in text:
        first = text.splitlines()[0] if text else "MemoryError"
        return f"out of memory ({first[:200]}); lower --batch-tokens, --beam or batch_tokens", 2
    if isinstance(error, RecursionError):
        return "the input is nested too deeply", 2
    return None
