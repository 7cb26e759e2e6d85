"""Settings under fire: whatever the file and the environment say, settings come out, or an error
for people.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import Settings, load_settings
from ragmetrics.errors import SettingsError
from ragmetrics.metrics import read_folder
from tests.builders import save_settings
from tests.fakes.fuzzing import JSON, damaged, fuzzed

SOME = b"""
dataset: support
logs: logs/dt={date}/
golden: golden.jsonl
metrics: [context_recall, {context_precision: {at: 5}}]
judge: &judge {name: openai, model: small, price: {input: 0.1, output: 0.4}}
columns: {user_input: request.body.question, tags.customer: customer}
budget: {max_usd: 5}
sample: {rows: 100}
alerts:
  slack: true
  rules:
    - {metric: context_recall, min: 0.7, severity: critical}
    - {metric: context_precision, max_drop: 0.05, versus: "trailing:7"}
limits: {row_bytes: 1_000_000}
"""
PROMPT = b"name: grade\ninstruction: |\n  Say how well it fits.\nexamples: []\n"
KEYS = st.sampled_from([*Settings.model_fields, "nosuch", ""])
INSIDE = st.sampled_from(
    ["name", "rules", "metric", "min", "max_usd", "row_bytes", "rows", "slack"]
)


def loaded(path: Path) -> Settings | str:
    """Settings, or the text of the one error that there is."""
    try:
        return load_settings(path)
    except SettingsError as error:
        return str(error)


@fuzzed
@given(text=damaged(SOME))
def test_damaged_settings(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    """A file with pieces of it changed."""
    path = tmp_path_factory.mktemp("fuzz") / "ragmetrics.yaml"
    path.write_bytes(text)
    assert loaded(path)


@fuzzed
@given(values=st.dictionaries(KEYS, JSON | st.dictionaries(INSIDE, JSON, max_size=3), max_size=4))
def test_any_values(tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]) -> None:
    """Values of every kind under the keys that there are."""
    path = save_settings(tmp_path_factory.mktemp("fuzz"), values)
    assert loaded(path)


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@fuzzed
@given(
    name=st.sampled_from([*Settings.model_fields]),
    key=st.sampled_from(["", "__NAME", "__ROW_BYTES", "__X__Y"]),
    value=st.one_of(
        TEXTS, st.sampled_from(["{", "[1", "[" * 10_000, "1e400", "null", '{"name": 1}'])
    ),
)
def test_any_environment(
    tmp_path_factory: pytest.TempPathFactory, name: str, key: str, value: str
) -> None:
    """Variables of every kind over a file that is well."""
    path = tmp_path_factory.mktemp("fuzz") / "ragmetrics.yaml"
    path.write_text("dataset: x\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"RAGMETRICS_{name.upper()}{key}", value)
        assert loaded(path)


@fuzzed
@given(text=damaged(PROMPT))
def test_damaged_prompts(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    """A file of wording is a prompt, or has a problem."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "grade.yaml").write_bytes(text)
    (one,) = read_folder(folder, {})
    assert one.problem
