"""Formats of messages: one module each, with an object of its name."""
