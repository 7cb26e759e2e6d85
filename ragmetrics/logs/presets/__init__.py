"""Presets: exports of tracing tools, read as rows. One file per preset; docs/presets.md."""
