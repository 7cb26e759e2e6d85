"""What is published: names, workflows, templates, and the promise on stored files."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragmetrics.version import DISTRIBUTION, __version__, install_extra
from tests.fakes.processes import ROOT
from tests.fakes.store_reading import RELEASES

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def workflow(path: Path) -> dict[str, Any]:
    """A workflow as GitHub reads it."""
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    """All steps of a workflow."""
    return [step for job in workflow(path)["jobs"].values() for step in job["steps"]]


def test_name_and_version_are_written_alike() -> None:
    """In pyproject.toml, and in the code, which tells how to install an extra."""
    assert (PROJECT["name"], PROJECT["version"]) == (DISTRIBUTION, __version__)
    assert install_extra("dask") == f'pip install "{DISTRIBUTION}[dask]"'
    assert PROJECT["scripts"]["ragmetrics"] == PROJECT["scripts"][DISTRIBUTION]


def test_the_name_is_not_one_of_another_project() -> None:
    """The index ignores separators and case, and has rag-metrics and its like."""
    bare = re.sub(r"[-_.]", "", DISTRIBUTION).lower()
    assert "ragmetrics" not in bare


def test_all_extras_name_this_distribution() -> None:
    """An extra that is made of others names them by the distribution, not by the package."""
    for needs in PROJECT["optional-dependencies"].values():
        assert not [need for need in needs if need.startswith("ragmetrics")]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda one: one.name)
def test_actions_are_pinned(path: Path) -> None:
    """By commit: a tag can be moved."""
    for step in steps(path):
        if uses := step.get("uses"):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", uses)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda one: one.name)
def test_workflows_may_do_little(path: Path) -> None:
    """They read by default, and a job that writes says what; no token stays in the checkout."""
    found = workflow(path)
    assert found["permissions"] == {"contents": "read"}
    for step in steps(path):
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda one: one.name)
def test_no_name_of_a_branch_is_run_as_code(path: Path) -> None:
    """Text in `run:` is code; values reach it as variables."""
    assert not [step for step in steps(path) if "${{" in step.get("run", "")]


def test_publishing_needs_no_token() -> None:
    """The index trusts the workflow, in an environment that a maintainer approves."""
    publish = workflow(ROOT / ".github/workflows/release.yml")["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "pypi"
    assert "password" not in str(publish)


@pytest.mark.process
@pytest.mark.parametrize(("tag", "code"), [(f"v{__version__}", 0), ("v9.9.9", 1)])
def test_a_tag_of_another_version_is_refused(tag: str, code: int) -> None:
    """The release stops before it builds."""
    script = ROOT / "scripts/release_version.py"
    assert subprocess.run([sys.executable, script, tag], check=False).returncode == code


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")))
def test_issue_forms_have_what_github_needs(path: Path) -> None:
    """Name, description and a body whose fields have ids and labels."""
    form = workflow(path)
    assert form["name"]
    assert form["description"]
    for field in form["body"]:
        assert field["id"]
        assert field["attributes"]["label"]


def test_there_is_a_store_of_a_version_that_stores_as_this_one() -> None:
    """The promise on stored files is tested over every release's store, the first one on."""
    assert RELEASES[0].name == "0.1.0"
    for release in RELEASES:
        assert {path.name for path in release.iterdir()} == {"store.zip", "numbers.json"}
