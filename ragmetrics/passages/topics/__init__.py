"""Topics: groups of questions, for logs whose questions have no tags.

It groups questions by their words, and says which topic a question belongs to. It reads no score
and decides nothing (`alerts`).
"""
