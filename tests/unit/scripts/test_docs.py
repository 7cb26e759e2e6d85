"""The docs name everything that there is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel

from ragmetrics.config import Settings, make_settings
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.metrics import Metric, bundled_metrics
from ragmetrics.pipeline import run_night
from ragmetrics.records import FIELDS
from scripts import metrics_page
from tests.fakes.command import Ended
from tests.fakes.console import blocks
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.processes import ROOT

LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
MODULE = re.compile(r"`([a-z_/]+\.pyi?)`")
"""A file of code, as `judges/client.py`; NAME.py stands for a file to write."""
PAGES = [
    ROOT / "README.md",
    ROOT / "deployments/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("[!d]*/*.md")),
]


def keys(model: type[BaseModel]) -> Iterator[str]:
    """All keys of the settings, as they are written in the file."""
    for name, field in model.model_fields.items():
        yield field.alias or name
        for part in (field.annotation, *get_args(field.annotation)):
            for inner in (part, *get_args(part)):
                # A learned judge has the settings of a judge in its own.
                if isinstance(inner, type) and issubclass(inner, BaseModel) and inner != model:
                    yield from keys(inner)


@pytest.mark.parametrize("key", sorted(set(keys(Settings))))
def test_every_setting_is_documented(key: str) -> None:
    """docs/reference/settings.md names each key that `ragmetrics.yaml` may hold."""
    assert re.search(rf"`(\w+: )*{key}[:`]", (ROOT / "docs/reference/settings.md").read_text())


@pytest.mark.parametrize("field", FIELDS)
def test_every_row_field_is_documented(field: str) -> None:
    """docs/how-to/logs.md names each field of a row."""
    assert f"`{field}`" in (ROOT / "docs/how-to/logs.md").read_text()


def test_the_readme_lists_the_default_metrics() -> None:
    """The README's table shows what is scored by default; the page of metrics has the others."""
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert table == list(DEFAULT_METRICS)


def test_the_page_of_metrics_is_made_of_their_docstrings() -> None:
    """The page of metrics lists what `ragmetrics metrics` does: needs, calls per row, formula."""
    assert metrics_page.PAGE.read_text(encoding="utf-8") == metrics_page.page(), (
        "run: python -m scripts.metrics_page"
    )
    assert set(re.findall(r"^## (\w+)$", metrics_page.page(), re.MULTILINE)) == set(
        bundled_metrics()
    )


@pytest.mark.parametrize("one", bundled_metrics().values(), ids=lambda one: one.name)
def test_the_command_and_the_page_say_the_same(one: Metric, run: Callable[..., Ended]) -> None:
    """Title, formula, needs and calls of every metric stand in both."""
    printed, text = run("metrics").out, metrics_page.page()
    assert one.formula
    for line in (one.title, *one.formula.splitlines(), *one.needs, one.calls):
        assert line.strip() in printed
        assert line.strip().replace("|", "\\|") in text or line.strip() in text


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")))
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links of every page point at files that exist."""
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_named_files_of_code_exist(page: Path) -> None:
    """A module that was merged or renamed is renamed in the docs too. A page may also name a file
    that it has the reader write.
    """
    folders = [
        "ragmetrics",
        "flows",
        "tasks",
        "tests",
        "scripts",
        "benchmarks",
        "research",
        "examples",
    ]
    code = [file.as_posix() for folder in folders for file in (ROOT / folder).rglob("*.py*")]
    written = {block.name for block in blocks(page)}
    for name in set(MODULE.findall(page.read_text("utf-8"))) - written:
        assert any(file.endswith(f"/{name}") for file in code), name


def test_no_page_names_a_machine_or_a_registry() -> None:
    """Nothing committed depends on where it was written."""
    for page in (*ROOT.glob("*.txt"), *ROOT.glob("*.md"), ROOT / "pyproject.toml"):
        assert not re.search(r"index-url|files\.pythonhosted|\.whl\b", page.read_text()), page


def test_examples_share_their_names() -> None:
    """One bucket, one data set and two builds: what one page has people write serves the next."""
    text = "\n".join(page.read_text() for page in PAGES)
    assert set(re.findall(r"s3://([\w-]+)", text)) == {"my-bucket"}
    named = re.findall(
        r"^dataset: (\S+)|--dataset ([a-z]\S+)|\"dataset\": \"([^\"]+)", text, re.MULTILINE
    )
    assert {"".join(one) for one in named} == {"help-centre"}
    builds = re.findall(r"--(?:build|against) (\d\S+)|\"build\": \"([^\"]+)", text)
    assert {"".join(build) for build in builds} == {"2026-11-13", "2026-11-20"}


@pytest.mark.parametrize("good", [0.0, 1.0], ids=["bad", "good"])
def test_the_first_settings_see_a_very_bad_first_night(tmp_path: Path, good: float) -> None:
    """Those of docs/how-to/deploying.md, with another judge: both rules fire where nothing is there
    to compare with, neither where all is well; the right answers are in the golden set alone."""
    [text] = [
        block.text
        for block in blocks(ROOT / "docs/how-to/deploying.md")
        if block.name == "ragmetrics.yaml"
    ]
    rows = make_rows(40, good=good, reference=None)
    here = {
        "logs": str(write_jsonl(tmp_path / "log.jsonl", rows)),
        "golden": str(write_jsonl(tmp_path / "golden.jsonl", make_rows(40))),
        "store": str(tmp_path / "store"),
        "judge": "lexical",
    }
    night = run_night(make_settings({**yaml.safe_load(text), **here}), NIGHT)
    found = [finding for finding in night.manifest.findings if finding.kind == "metric"]
    firing = {one.metric for one in found if one.state == "firing"}
    assert firing == ({"context_recall", "context_relevance"} if good == 0 else set())
