"""Approved translations: a store of sentence pairs that a human has confirmed, and the search in it."""

from weitblick.memory.matches import Change, Match, Pair
from weitblick.memory.store import Memory

__all__ = ["Change", "Match", "Memory", "Pair"]
