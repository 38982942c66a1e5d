"""What a model does with its context: contrastive suites, use of context."""
