"""Judging translations and models: metrics, contrastive suites, use of context, post-editing, studies.

Translations, models and references come in; figures with intervals and signatures go out. It imports `training` and
what is before it.
"""
