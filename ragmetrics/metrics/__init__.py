"""Metrics: the registry, the wording of their prompts, and the bundled ones."""
