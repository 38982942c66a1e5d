"""What one client may ask for, so that the others are served, too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """body_bytes: of a request, uploads included; characters: of text in a request; waiting_tokens: of all requests
    that have not been answered yet; patience: seconds that a request waits for a place before it is refused;
    seconds: until an answer is given up; requests_a_minute: of one key, or of one address where there are no keys."""

    body_bytes: int = 32 * 2**20
    characters: int = 500_000
    waiting_tokens: int = 100_000
    patience: float = 15.0
    seconds: float = 600.0
    requests_a_minute: int = 600
