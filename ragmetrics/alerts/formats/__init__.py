"""Formats of messages: Slack blocks, and the same message for terminals, web pages and others."""
