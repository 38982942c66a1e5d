"""Training: batches of a corpus, both stages of the paper, validation with controls, runs that resume.

A recipe and corpora come in; a model folder, checkpoints and logs go out. It imports `translation` and what is
before it.
"""
