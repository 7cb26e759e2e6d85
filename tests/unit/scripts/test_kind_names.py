"""scripts/kind_names.py: no reader compares a kind with its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.kind_names import problems


def test_no_code_of_this_project_compares_a_kind_with_its_name() -> None:
    """A new check would have to be added there."""
    assert list(problems()) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("reader.py", 'bad = one.kind == "quarantine"\n'),
        ("reader.py", 'bad = finding.kind in ("metric", "quarantine")\n'),
        ("reader.py", 'bad = "quarantine" != found.cause.kind\n'),
        ("reader.py", 'bad = one.kind in NAMES; NAMES = ("quarantine",)\n'),
        ("reader.py", 'match one.kind:\n    case "quarantine":\n        pass\n'),
        ("page.html", '{% if one.kind == "quarantine" %}bad{% endif %}\n'),
        ("page.html", '{{ all | selectattr("kind", "equalto", "quarantine") | list }}\n'),
        ("page.js", 'if (one.kind !== "quarantine") bad();\n'),
    ],
)
def test_a_comparison_is_found(tmp_path: Path, name: str, source: str) -> None:
    """With its line, in code, in templates and in scripts of pages."""
    path = tmp_path / "ragmetrics" / "dashboard" / name
    path.parent.mkdir(parents=True)
    path.write_text(source)
    found = list(problems(tmp_path))
    assert f"ragmetrics/dashboard/{name}:1: compares kind with 'quarantine'" in found


def test_the_file_of_a_kind_may_compare_its_own_name(tmp_path: Path) -> None:
    """And no other."""
    folder = tmp_path / "ragmetrics" / "rules" / "checks"
    folder.mkdir(parents=True)
    (folder / "quarantine.py").write_text('own = one.kind in ("quarantine", "no_data")\n')
    (line,) = problems(tmp_path)
    assert line.endswith("compares kind with 'no_data'")
