"""Presets read exports of tracing tools as rows, one file each; see docs/how-to/presets.md."""
