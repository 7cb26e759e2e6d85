"""The docs name everything that there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from ragmetrics.registry import metrics
from ragmetrics.rows import FIELDS
from ragmetrics.settings import DEFAULT_METRICS, Settings
from tests.fakes.processes import ROOT

LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def keys(model: type[BaseModel]) -> Iterator[str]:
    """All keys of the settings, as they are written in the file."""
    for name, field in model.model_fields.items():
        yield field.alias or name
        for part in (field.annotation, *get_args(field.annotation)):
            for inner in (part, *get_args(part)):
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    yield from keys(inner)


@pytest.mark.parametrize("key", sorted(set(keys(Settings))))
def test_every_setting_is_documented(key: str) -> None:
    """docs/settings.md names each key that `ragmetrics.yaml` may hold."""
    assert re.search(rf"`(\w+: )*{key}[:`]", (ROOT / "docs/settings.md").read_text())


@pytest.mark.parametrize("field", FIELDS)
def test_every_row_field_is_documented(field: str) -> None:
    """docs/logs.md names each field of a row."""
    assert f"`{field}`" in (ROOT / "docs/logs.md").read_text()


def test_every_metric_stands_in_the_readme() -> None:
    """The README's table lists the metrics there are, and they are those scored by default."""
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(table) == sorted(metrics()) == sorted(DEFAULT_METRICS)


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")))
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links of every page point at files that exist."""
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_no_page_names_a_machine_or_a_registry() -> None:
    """Nothing committed depends on where it was written."""
    for page in (*ROOT.glob("*.txt"), *ROOT.glob("*.md"), ROOT / "pyproject.toml"):
        assert not re.search(r"index-url|files\.pythonhosted|\.whl\b", page.read_text()), page
