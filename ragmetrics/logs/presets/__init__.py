"""Presets: read exports of tracing tools as rows. There is one file per preset; docs/how-to/presets.md."""
