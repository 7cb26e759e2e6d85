"""What the pages of the reference say about settings, commands and stored records."""

from __future__ import annotations

import re

import pytest

from ragmetrics.cli.app import COMMANDS
from ragmetrics.config import settings_schema
from scripts import cli_page, package_picture, records_page, settings_page, store_page
from scripts.package_map import BESIDE, packages
from scripts.pages import cell, read_parts, table
from scripts.pages.kinds import kind

SETTINGS = settings_page.page()
CLI = cli_page.page()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "text"),
        (
            {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "whole number, at least 1",
        ),
        ({"type": "number", "minimum": 0, "maximum": 1}, "number, 0 to 1"),
        ({"type": "number", "exclusiveMinimum": 0}, "number, above 0"),
        ({"type": "array", "items": {"type": "string"}}, "list of texts"),
        ({"enum": ["row", "night"]}, "`row` or `night`"),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/JudgeSettings"}]}, "text or mapping"),
        ({"type": "string", "format": "duration"}, "duration"),
        ({}, "any"),
    ],
)
def test_types_are_told_in_words(schema: dict[str, object], words: str) -> None:
    """With their limits."""
    assert kind(schema) == words


@pytest.mark.parametrize(
    "line",
    [
        "| `dataset` | text | `default` |",
        "| `deadline` | duration | `20h` |",
        "| [`judge`](#judge) | text or mapping |  |",
        "| `max_reply_bytes` | whole number, 10,000 to 1,000,000,000 | 10,000,000 |",
        "| `for` | whole number, at least 1 | 2 | Number of nights in a row.",
        "| `metric` | text | required |",
    ],
)
def test_a_key_has_its_type_limits_and_default(line: str) -> None:
    """As the settings have them."""
    assert line in SETTINGS


def test_every_key_has_a_meaning() -> None:
    """The docstring of its field: editors show it too."""
    schema = settings_schema()
    models = {"": schema, **schema["$defs"]}
    keys = [
        (name, key, value)
        for name, model in models.items()
        for key, value in model.get("properties", {}).items()
    ]
    assert not [f"{name}.{key}" for name, key, value in keys if not value.get("description")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section(name: str) -> None:
    """Those of a group have one each."""
    assert f"\n## ragmetrics {name}\n" in CLI


@pytest.mark.parametrize(
    "text",
    [
        "ragmetrics compare [OPTIONS] BEFORE [AFTER]",
        "ragmetrics dashboard [OPTIONS] [STORE]",
        "ragmetrics golden retire [OPTIONS] ID...",
        "| `LOGS...` | Files, folders or globs; local or s3://. | required |",
        "| `--rows NUMBER` | Show at most this many questions for each metric that moved. | `5` |",
        "| `--night DATE` | The night. | required |",
        "| `--comment, --no-comment` | Write the comment. | `true` |",
    ],
)
def test_a_command_has_its_usage_and_options(text: str) -> None:
    """Arguments as in the usage, options with the value that they take."""
    assert text in CLI


def test_links_to_records_lead_to_sections() -> None:
    """Of each record that a file or a field holds."""
    records = records_page.page()
    sections = {one.lower() for one in re.findall(r"^## (\w+)$", records, re.MULTILINE)}
    linked = re.findall(r"records\.md#(\w+)\)", store_page.page())
    assert set(linked) | set(re.findall(r"\]\(#(\w+)\)", records)) <= sections
    assert "manifest" in linked


def test_the_picture_has_every_package() -> None:
    """By its floor."""
    picture = package_picture.PAGE.read_text(encoding="utf-8")
    assert all(f">{name}</text>" in picture for name in (*packages(), *BESIDE))


def test_a_text_about_an_unknown_section_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renamed section does not lose its text silently."""
    texts = {**read_parts("settings"), "jugde": "text"}
    monkeypatch.setattr(settings_page, "read_parts", lambda name: dict(texts))
    with pytest.raises(KeyError, match="jugde"):
        settings_page.page()


def test_a_cell_stays_one_cell() -> None:
    """Marks that would end it, and tags, are text."""
    assert cell("a|b\n  <c>") == "a\\|b &lt;c>"
    assert table(["x"], [["1"]]) == "| x |\n| --- |\n| 1 |\n"
