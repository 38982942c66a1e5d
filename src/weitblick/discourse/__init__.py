"""A generator of English-German documents in which the right translation depends on another sentence."""

from weitblick.discourse.corpus import ContrastItem, Corpus, describe, write_corpus
from weitblick.discourse.generator import PRESETS, generate

__all__ = ["PRESETS", "ContrastItem", "Corpus", "describe", "generate", "write_corpus"]
