"""Settings keys that were removed: a file that has them is still read, with a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.config import load_settings, make_settings


def test_a_removed_key_is_read_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The warning names what serves in its place; the settings are those without the key."""
    file = tmp_path / "ragmetrics.yaml"
    file.write_text("metrics: [hit_rate]\nfuse: row\n", "utf-8")
    settings = load_settings(file)
    (line,) = caplog.messages
    assert "`fuse` was removed" in line and "prompt_layout: row_first" in line
    file.write_text("metrics: [hit_rate]\n", "utf-8")
    assert load_settings(file) == settings


def test_a_removed_variable_is_read_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As the key of a file is."""
    monkeypatch.setenv("RAGMETRICS_FUSE", "row")
    make_settings({})
    (line,) = caplog.messages
    assert "`fuse` was removed" in line


def test_a_removed_key_without_a_value_is_read_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    """`fuse: null` was the default."""
    make_settings({"fuse": None})
    assert not caplog.messages
