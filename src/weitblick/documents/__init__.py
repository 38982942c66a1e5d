"""Documents and their file formats; statistics, splits and checks of corpora."""

from weitblick.documents.corpora import Corpus, guess_format, read_documents, write_documents, write_translations
from weitblick.documents.document import Document, Sentence

__all__ = [
    "Corpus",
    "Document",
    "Sentence",
    "guess_format",
    "read_documents",
    "write_documents",
    "write_translations",
]
