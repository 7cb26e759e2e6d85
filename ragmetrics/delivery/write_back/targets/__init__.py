"""Tracing tools that take scores, one file each."""
