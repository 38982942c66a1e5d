"""A generator of English-German documents in which the right translation depends on another sentence."""

from weitblick.discourse.corpus import DiscourseCorpus, describe, write_corpus
from weitblick.discourse.generator import PRESETS, generate

__all__ = ["PRESETS", "DiscourseCorpus", "describe", "generate", "write_corpus"]
