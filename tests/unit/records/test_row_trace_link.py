"""Links from a row to its trace: which templates are taken, and what a row puts into them."""

from __future__ import annotations

from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.errors import SettingsError
from ragmetrics.records import LogRow, trace_address

LANGFUSE = "https://cloud.langfuse.com/project/p1/traces/{trace_id}?observation={span_id}"


def row(**change: Any) -> LogRow:
    """A row of a traced log."""
    values: dict[str, Any] = {"id": "q-1", "user_input": "?", "retrieved_contexts": ()}
    return LogRow(**{**values, **change})


@pytest.mark.parametrize(
    ("template", "address"),
    [
        (LANGFUSE, "https://cloud.langfuse.com/project/p1/traces/t%2F1?observation=s1"),
        (
            "http://localhost:6006/projects/x/traces/{trace_id}",
            "http://localhost:6006/projects/x/traces/t%2F1",
        ),
        (
            "https://mlflow.example/#/experiments/1?trace={tags.run id}",
            "https://mlflow.example/#/experiments/1?trace=a%26b",
        ),
        ("https://tool.example/{id}", "https://tool.example/q-1"),
    ],
)
def test_values_are_encoded(template: str, address: str) -> None:
    """They stay one part of the address."""
    assert make_settings({"logs": "x", "trace_url": template}).trace_url == template
    traced = row(trace_id="t/1", span_id="s1", tags={"run id": "a&b"})
    assert trace_address(template, traced) == address


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"trace_id": "t"},
        {"trace_id": "..", "span_id": "s"},
        {"trace_id": "t" * 3000, "span_id": "s"},
    ],
)
def test_a_row_without_the_values_has_no_link(change: dict[str, str]) -> None:
    """Nor one whose value would lead elsewhere, or be too long for a link."""
    assert trace_address(LANGFUSE, row(**change)) == ""


@pytest.mark.parametrize("template", [None, 7, "", "javascript:alert(1)//{id}", "x/{id}"])
def test_what_is_no_address_gives_no_link(template: object) -> None:
    """A manifest of another version may hold anything."""
    assert trace_address(template, row()) == ""


@pytest.mark.parametrize(
    "template",
    [
        "javascript:alert({id})",
        "ftp://tool.example/{id}",
        "https://{id}.example/x",
        "https://user:secret@tool.example/{id}",
        "https://tool.example/traces",
        "https://tool.example/{user_input}",
        "https://tool.example/{id}/{",
        "https://tool.example/ {id}",
        "https://tool.example/{tags.}",
        "{id}",
    ],
)
def test_other_templates_are_refused(template: str) -> None:
    """By the settings, so that a night does not begin with them."""
    with pytest.raises(SettingsError, match="trace_url"):
        make_settings({"logs": "x", "trace_url": template})


def test_an_odd_sign_does_not_break_the_night() -> None:
    """A half of a surrogate pair is encoded as it is."""
    assert trace_address("https://tool.example/{id}", row(id="\ud800")).endswith("/%ED%A0%80")
