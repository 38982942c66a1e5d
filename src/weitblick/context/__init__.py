"""What reads the rest of a document: selective attention, the context layer, the context-aware baselines."""
