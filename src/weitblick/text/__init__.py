"""Strings become ids and ids become strings: Moses with BPE, SentencePiece, Marian's vocabularies.

Sentences come in; lists of ids go out, and back. It imports `common` and `documents`.
"""
