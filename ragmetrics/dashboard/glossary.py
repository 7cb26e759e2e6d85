"""The glossary: every term of the product with its definition, as glossary.toml has it.

A page shows a definition at hover and focus wherever it uses the term: `_parts.html`, macro `term`.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files

from ragmetrics.rules import used_checks
from ragmetrics.text import slug

_WRITTEN: dict[str, dict[str, str]] = tomllib.loads(
    (files("ragmetrics.dashboard") / "glossary.toml").read_text("utf-8")
)


def groups() -> dict[str, dict[str, str]]:
    """Definitions by term, grouped by heading, with those of the checks that this process uses."""
    written = {term for group in _WRITTEN.values() for term in group}
    checks = {check.term: check.definition for check in used_checks() if check.term not in written}
    return {**_WRITTEN, "Alerts": {**_WRITTEN["Alerts"], **checks}}


GROUPS = groups()
"""Definitions of this project by term, grouped by heading."""
TERMS = {term: line for group in GROUPS.values() for term, line in group.items()}


def anchor_of(term: str) -> str:
    """The term's address in the glossary: `term-p-value`."""
    return f"term-{slug(term.lower().replace('α', 'alpha'))}"
