"""Simulations behind the figures of the docs; see `python -m research --help`."""
