"""Presets read exports of tracing tools as rows, one file each, whose docstring is its docs."""
