"""Searches texts for regular expressions, in a process of its own that can be stopped.

A regular expression can take longer than the age of the universe, and Python cannot interrupt it in a thread. This file
is run as a script, without the rest of the package. It reads a request a line as JSON: seconds, pattern, texts, and if
wanted flags and a replacement. It answers with the span of the first match in each text, or null; with a replacement,
with each text after it and the number of matches; with null for all if it was not done after so many seconds of
computing. Those of waiting for a busy machine do not count.
"""

import json
import re
import signal
import sys
from types import FrameType

LONGEST = 20_000
"""Characters of a text in which something was replaced: a longer one is cut behind them, and nobody wants it."""


def stop(number: int, frame: FrameType | None) -> None:
    """Ends a search, which looks for signals now and then."""
    raise TimeoutError


def replaced(pattern: re.Pattern[str], replacement: str, text: str) -> tuple[str, int]:
    """A text with all matches replaced, and how many there were."""
    parts, end, hits, size = [], 0, 0, 0
    for match in pattern.finditer(text):
        parts += [text[end : match.start()], match.expand(replacement)]
        size += len(parts[-1])
        end, hits = match.end(), hits + 1
        if size > LONGEST:
            break
    return "".join(parts) + text[end:], hits


def answer(request: str) -> str:
    """The answer to one request."""
    seconds, pattern, texts, *more = json.loads(request)
    flags, replacement = more or (0, None)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        wanted = re.compile(pattern, flags)
        if replacement is not None:
            return json.dumps([replaced(wanted, replacement, text) for text in texts])
        found = [wanted.search(text) for text in texts]
    except TimeoutError:
        return "null"
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return json.dumps([list(one.span()) if one else None for one in found])


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(answer(line) + "\n")
        sys.stdout.flush()
