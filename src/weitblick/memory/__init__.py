"""Approved translations, whole: pairs on disc, the search for them, the pointer that reads them, and its training.

Pairs of sentences come in; a change of the next word's distribution goes out, with the place that it came from. It
imports `model`, `fast`, `text` and `documents`.
"""
