"""Sentence-level models, context-agnostic: Transformer and RNNSearch, their layers and the loss."""
