"""The glossary: every term of the product with its definition, as glossary.toml has it.

A page shows a definition at hover and focus wherever it uses the term: `_parts.html`, macro `term`.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files

from ragmetrics.text import slug

GROUPS: dict[str, dict[str, str]] = tomllib.loads(
    (files("ragmetrics.dashboard") / "glossary.toml").read_text("utf-8")
)
"""Definitions by term, grouped by heading."""
TERMS = {term: line for group in GROUPS.values() for term, line in group.items()}


def anchor_of(term: str) -> str:
    """The term's address in the glossary: `term-p-value`."""
    return f"term-{slug(term.lower().replace('α', 'alpha'))}"
