"""The command line: each module parses the options of one group of commands, calls the package, and prints.

Arguments come in; files and lines go out, with exit code 2 for a user's mistake. It imports everything.
"""
