"""`weitblick serve`: a workbench for whole documents, and an API that existing tools already speak."""
