"""Translating documents: `translator` is what users call, `driver` the passes over a document, `beam` the search.

Documents come in; documents with translations go out, one for each sentence. It imports `checkpoints`, `memory` and
`model`.
"""
