"""The metrics of this package: one per file, named like it."""
