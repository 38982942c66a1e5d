"""Documents, the corpora that hold them, and corpora that are generated or mined.

Files in any corpus format come in; `Document`s go out, and the reverse. It imports `common` only.
"""
