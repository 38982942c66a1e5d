"""Documents and their file formats; statistics, splits and checks of corpora."""

from weitblick.documents.document import Document, Sentence
from weitblick.documents.formats import Corpus, guess_format, read_documents, write_documents, write_translations

__all__ = [
    "Corpus",
    "Document",
    "Sentence",
    "guess_format",
    "read_documents",
    "write_documents",
    "write_translations",
]
