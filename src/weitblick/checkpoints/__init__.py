"""Model folders: ours, those of other toolkits, and those on a hub.

A folder comes in and a `DocumentModel` with its text pipeline goes out, and the reverse. It imports `model`,
`memory` and `text`.
"""
