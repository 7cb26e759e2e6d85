"""Presets read exports of tracing tools as rows, one file per preset; see docs/how-to/presets.md."""
