"""The metrics: one per file, named like it."""
