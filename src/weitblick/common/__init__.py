"""What every other package uses: errors, files, intervals, recipes, logs, and settings of the process.

Nothing comes in but plain values and paths; out go `UserError`s, complete files and typed recipes. It imports no
other package of ours.
"""
