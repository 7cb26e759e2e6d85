"""The text of a first settings file."""

from __future__ import annotations

import pytest
import yaml

from ragmetrics.pipeline.init.settings_file import FirstSettings, settings_text


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def test_texts_are_quoted_whatever_style_others_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefect's command registers blocks for all texts of several lines in this process."""
    styles = {**yaml.SafeDumper.yaml_representers, str: _block}
    monkeypatch.setattr(yaml.SafeDumper, "yaml_representers", styles)
    first = FirstSettings(
        dataset="help",
        logs="{date}.csv",
        store="store",
        layout={"context_separator": "\n\n"},
        judge="lexical",
        limits=[],
        dated=True,
        split=False,
        rows=40,
        nights=3,
        health=[],
        references=False,
    )
    assert yaml.safe_load(settings_text(first))["context_separator"] == "\n\n"
