"""What the benchmarks share: made-up text, turns, peers' environments, tables."""
