"""Scores of translations: BLEU, chrF, TER, METEOR, significance, comparison."""
