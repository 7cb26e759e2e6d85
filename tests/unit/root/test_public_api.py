"""The public API: what a metric, a notebook or a flow of one's own imports, and from where."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ragmetrics
from scripts import api_page, package_map

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("[!d]*/*.md")),
]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
_DEEP = re.compile(r"^\s*(?:from|import) +(ragmetrics\.[\w.]+)", re.MULTILINE)


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda one: one.name)
def test_docs_and_examples_import_from_the_root_alone(path: Path) -> None:
    """Who follows the docs depends on no module that may move. A test suite imports from
    `ragmetrics.pytest`: the root must not need pytest."""
    assert set(_DEEP.findall(path.read_text(encoding="utf-8"))) <= {"ragmetrics.pytest"}


@pytest.mark.parametrize("name", sorted(ragmetrics.__all__))
def test_public_names_are_there_and_say_what_they_are(name: str) -> None:
    """Each name of the API can be imported; functions and classes have a docstring."""
    thing = getattr(ragmetrics, name)
    if inspect.isfunction(thing) or inspect.isclass(thing):
        assert inspect.getdoc(thing)


def test_the_page_of_the_api_is_made_of_the_docstrings() -> None:
    """docs/reference/api.md is what scripts/api_page.py writes."""
    assert api_page.PAGE.read_text(encoding="utf-8") == api_page.page(), (
        "run: python -m scripts.api_page"
    )


@pytest.mark.process
def test_importing_the_api_loads_no_library() -> None:
    """Names are imported on first use: a module that only names a type costs nothing."""
    code = "import ragmetrics, sys; print(sorted(sys.modules.keys() & {'pydantic', 'pandas'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", package_map.packages())
def test_every_front_says_what_it_is_for_and_names_what_exists(package: str) -> None:
    """A package's docstring is a paragraph, and each name of its `__all__` can be imported."""
    front = __import__(f"ragmetrics.{package}", fromlist=["__all__"])
    assert len(inspect.getdoc(front).splitlines()) > 2
    assert front.__all__
    for name in front.__all__:
        getattr(front, name)


def test_no_front_hides_a_name_behind_a_module() -> None:
    """A name that is also a module of its package would be one or the other by chance."""
    assert list(package_map.hidden()) == []
