"""Real files whose layout is kept: Office, subtitles, localisation, the web.

A file comes in as blocks of text; the same file goes out with other text in them. It imports `translation` and
`documents`.
"""
