"""YAML that cannot be read is told with its line, whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ragmetrics.config import load_settings, make_settings
from ragmetrics.errors import SettingsError
from ragmetrics.text import load_yaml

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "store: x\ndataset: 2026-13-45",
            "line 2, column 10: '2026-13-45': month must be in 1..12",
        ),
        ("dataset: 2026-02-30T25:00:00", "line 1, column 10: '2026-02-30T25:00:00': "),
        ("[" * 5_000, "line 1, column 51: it is nested too deeply"),
        ("a: " + "{b: " * 500 + "}" * 500, "it is nested too deeply"),
        ("workers: " + "1" * 5_000, "line 1, column 10: '1111"),
        ("a: !!timestamp x", "line 1, column 4: 'x': cannot be read as such"),
        ("a: !!bool x", "line 1, column 4: 'x': cannot be read as such"),
        ("a: &a [*a]", "line 1, column 8: a reference contains itself"),
        (LAUGHS, "line 5, column 4: it expands to too many values"),
        ("a: [", "line 1, column 5: "),
        ("a: \x00", "special characters are not allowed"),
        ("1: 2", "1: there is no such key"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    """One error for people, on one line."""
    path = tmp_path / "ragmetrics.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as error:
        load_settings(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_references_may_be_used() -> None:
    """Also in a list, by name and to merge mappings."""
    text = "a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a, y: 2}\n"
    assert load_yaml(text) == {"a": {"x": 1}, "b": [{"x": 1}] * 2, "c": {"x": 1, "y": 2}}


def test_only_plain_values_are_made() -> None:
    """A tag that names a Python function is refused."""
    with pytest.raises(yaml.YAMLError, match="could not determine a constructor"):
        load_yaml("!!python/object/apply:os.getcwd []")


@pytest.mark.parametrize("value", ["{", "[" * 100_000])
def test_a_variable_that_cannot_be_read_is_told(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """As any other mistake in settings."""
    monkeypatch.setenv("RAGMETRICS_COLUMNS", value)
    with pytest.raises(SettingsError, match=r"columns|nested too deeply"):
        make_settings({})
