"""The server: the translator's workbench in the browser, and the API.

HTTP requests come in; translations, projects and exported files go out. It imports `files`, `explanation` and
`evaluation`.
"""
