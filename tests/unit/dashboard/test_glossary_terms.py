"""The glossary is one: docs, dashboard and command line use its words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from typer.main import get_command

from ragmetrics.cli.app import app
from ragmetrics.dashboard.glossary import GROUPS, TERMS, anchor_of
from ragmetrics.records import Level, Severity, State, Status, Transition, Verdict
from ragmetrics.rules import Check, used_checks
from scripts import glossary_page
from tests.fakes.processes import ROOT

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("[!d]*/*.md")),
]
INSTEAD = {
    r"surely": "significantly",
    r"c[ao]me to nothing": "failed",
    r"anew": "again, or re-",
    r"carried by": "attributed to",
    r"(held|hold|holds) against": "compared with",
    r"speaks for": "is the current run",
}
"""Words that earlier versions used, as patterns, and the term for each."""
NAMED_OTHERWISE = {
    "metric": "metric",
    "quarantine": "quarantine",
    "unreadable": "unreadable verdict",
    "refused": "refused by the judge",
    "not_sampled": "not in the sample",
}
"""Stored values whose term is not the value itself with spaces."""


def helps() -> dict[str, str]:
    """Command -> everything that its help says."""
    found = {}

    def visit(name: str, command: object) -> None:
        options = [getattr(one, "help", None) or "" for one in getattr(command, "params", [])]
        found[name] = "\n".join([getattr(command, "help", None) or "", *options])
        for inner, child in getattr(command, "commands", {}).items():
            visit(f"{name} {inner}", child)

    visit("ragmetrics", get_command(app))
    return found


def test_the_page_is_the_glossary_of_the_dashboard() -> None:
    """docs/reference/glossary.md is what scripts/glossary_page.py writes."""
    assert glossary_page.PAGE.read_text(encoding="utf-8") == glossary_page.page(), (
        "run: python -m scripts.glossary_page"
    )


def test_each_term_is_defined_once() -> None:
    """No term stands in two groups, and no two terms share an address."""
    assert sum(map(len, GROUPS.values())) == len(TERMS)
    assert len({anchor_of(term) for term in TERMS}) == len(TERMS)


@pytest.mark.parametrize("kind", [Level, Severity, State, Transition, Verdict, Status])
def test_every_stored_state_has_a_term(kind: object) -> None:
    """What a record may say is defined, under the name by which people see it."""
    values = [str(one) for one in get_args(kind) or list(kind)]  # type: ignore[call-overload]
    names = {NAMED_OTHERWISE.get(value, value.replace("_", " ")) for value in values}
    assert names <= set(TERMS)


@pytest.mark.parametrize("check", used_checks(), ids=lambda check: check.name)
def test_every_check_has_a_term(check: Check) -> None:
    """The kind of its findings is defined, under the name by which people see it."""
    assert check.term in TERMS


@pytest.mark.parametrize("path", PAGES, ids=lambda one: one.name)
def test_the_docs_use_the_terms(path: Path) -> None:
    """No page says an earlier version's word for one of them."""
    assert _old_words(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("command", helps())
def test_the_help_uses_the_terms(command: str) -> None:
    """Nor does the help of any command or option."""
    assert _old_words(helps()[command]) == []


def test_the_glossary_uses_its_own_terms() -> None:
    """Nor does a definition."""
    assert _old_words("\n".join([*TERMS, *TERMS.values()])) == []


def _old_words(text: str) -> list[str]:
    """Each old word that a text uses, with the words around it and the term to use."""
    return [
        f"{text[max(0, match.start() - 40) : match.end() + 20]!r}: say {term!r}"
        for old, term in INSTEAD.items()
        for match in re.finditer(rf"\b{old}\b", text.replace("\n", " "), re.IGNORECASE)
    ]
