"""What `make check` counts."""

from __future__ import annotations

import pytest

from scripts import limits
from scripts.trace_row import changes_of_package


def test_blanks_comments_and_docstrings_are_no_code() -> None:
    """A text over several lines that is a value is code."""
    source = '''"""A module."""

# A comment.
TEXT = """one
two"""


def f():  # said aside
    """Return
    one."""
    return 1
'''
    assert limits.code_lines(source) == 4


def test_a_walk_changes_its_package() -> None:
    """From a package to another one, and back."""
    assert changes_of_package(["logs.a", "logs.b", "stats.a", "logs.a"]) == 2


def test_every_limit_is_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that nothing counts would be none. How many lines there are, `make check` counts."""
    monkeypatch.setattr(limits, "code_lines", lambda _: 1)
    limits.main()
    printed = capsys.readouterr().out
    assert all(f"{name}:" in printed for name in limits.limits() if not name.startswith("row_"))
