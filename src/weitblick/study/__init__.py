"""Studies: every row of the paper's tables, trained, translated, judged and tabulated by one command."""
