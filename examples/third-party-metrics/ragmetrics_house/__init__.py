"""Metrics of our own."""
