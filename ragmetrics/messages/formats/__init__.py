"""Formats of messages: Slack blocks, and their rendering for terminals, web pages and others."""
