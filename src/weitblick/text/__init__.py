"""Strings to ids and back: Moses tokenisation with BPE, or SentencePiece."""

from weitblick.text.pipeline import Side, TextPipeline, learn_pipeline, load_pipeline
from weitblick.text.special import BOS, EOS, PAD, UNK
from weitblick.text.vocabulary import Vocabulary

__all__ = ["BOS", "EOS", "PAD", "UNK", "Side", "TextPipeline", "Vocabulary", "learn_pipeline", "load_pipeline"]
