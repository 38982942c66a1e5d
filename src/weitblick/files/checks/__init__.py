"""Checks of translations: one list of findings for the command line, the API and the workbench's page.

`findings` has the records, `rules` the table of rules and the function that runs them (`check`), `numerals` reads
numbers, dates and units in the conventions of both languages, `own_rules` has what a project adds, `rows` reads the
rows of files.
"""
