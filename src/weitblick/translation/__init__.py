"""Translation: beam search, passes over documents, the Python interface."""
