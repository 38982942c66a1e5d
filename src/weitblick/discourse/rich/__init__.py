"""The preset `rich`: several phenomena, a few hundred lexemes, many patterns, references to past and future."""

from weitblick.discourse.rich.preset import RichPreset

__all__ = ["RichPreset"]
