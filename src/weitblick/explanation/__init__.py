"""What a model read for each word, as data, page, figure and table.

A model and a document come in; an `Explanation` goes out. It imports `translation` and what is before it.
"""
