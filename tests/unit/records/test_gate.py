"""What asks for a gate: names that are safe as file names, and one sentence for what is wrong."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import make_settings
from ragmetrics.errors import InputError, SettingsError
from ragmetrics.records import IndexBuild, make_index_build

GOOD = {"dataset": "helpdesk", "build": "2026-11-19.1"}
PAYLOADS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_dataset_and_build_are_enough() -> None:
    """The settings say where logs are, and what serves can be found out."""
    assert make_index_build(GOOD) == IndexBuild(dataset="helpdesk", build="2026-11-19.1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"build": None}, "build: "),
        ({"build": ""}, "build: "),
        ({"build": "../../etc/passwd"}, "build: "),
        ({"build": ".."}, "build: "),
        ({"build": "b 1"}, "build: "),
        ({"build": "b\n1"}, "build: "),
        ({"build": "b1\n"}, "build: "),
        ({"build": "b*"}, "build: "),
        ({"build": "ä"}, "build: "),
        ({"build": "b" * 101}, "build: "),
        ({"build": 7}, "build: "),
        ({"dataset": 1.5}, "dataset: "),
        ({"dataset": ["helpdesk"]}, "dataset: "),
        ({"logs": ""}, "logs: "),
        ({"logs": "s3://b/\x1b[2J"}, "logs: "),
        ({"serving": "/"}, "serving: "),
        ({"serving": "2026-11-19.1"}, "serving: 2026-11-19.1 cannot be compared with itself"),
        ({"built": "yesterday"}, "built: "),
        ({"built": "2026-11-20T05:30:00"}, "built: should have timezone info"),
        ({"biuld": "b2"}, "biuld: there is no such key"),
        ({"logs": "simplecache::s3://b/log/"}, "logs: contains `::`"),
        ({"logs": "zip://log.jsonl::builds/b2.zip"}, "logs: contains `::`"),
        ({"logs": "https://example.com/log.jsonl"}, "logs: https:// is not supported: name a p"),
        ({"logs": "memory://builds/b2/"}, "logs: memory:// is not supported"),
        ({"b" * 1_000: 1, "serving": 7}, "serving: should be a valid string; bbb"),
    ],
)
def test_a_wrong_payload_is_told_by_key(change: dict[str, Any], message: str) -> None:
    """What is wrong with which key, in one line."""
    with pytest.raises(InputError) as error:
        make_index_build({**GOOD, **change})
    assert str(error.value).startswith("index build: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    """Whoever announces a build need not find one mistake after the other, but gets no book."""
    with pytest.raises(InputError) as error:
        make_index_build(
            {"dataset": "helpdesk", "build": 7, "logs": "", "biuld": "b", "server": "a"}
        )
    for key in ("build: should be a valid string", "logs: ", "biuld: there is", "server: there is"):
        assert key in str(error.value)
    with pytest.raises(InputError, match=r"\(and 95 more\)$") as many:
        make_index_build({**GOOD, **{f"{number:03d}" + "b" * 1_000: 1 for number in range(100)}})
    assert len(str(many.value)) < 1_000


@pytest.mark.parametrize(
    "place", ["builds/b2/", "/srv/b2.jsonl", "file:///srv/b2/", "s3://b/b2/", "gs://b/b2", "C:/b2"]
)
def test_folders_and_buckets_are_places_for_logs(place: str) -> None:
    """As in the settings."""
    assert make_index_build({**GOOD, "logs": place}).logs == place


@pytest.mark.parametrize("lacking", ["dataset", "build"])
def test_what_is_missing_is_told(lacking: str) -> None:
    """By its key."""
    with pytest.raises(InputError, match=f"{lacking}: not there"):
        make_index_build({name: value for name, value in GOOD.items() if name != lacking})
    with pytest.raises(InputError, match="dataset: not there; build: not there"):
        make_index_build({})


@given(PAYLOADS)
def test_nothing_else_comes_through(payload: Any) -> None:
    """An event may hold anything: it is a build, or an InputError and nothing worse."""
    try:
        build = make_index_build(payload)
    except InputError:
        return
    assert IndexBuild.model_validate_json(build.model_dump_json()) == build


@given(st.text(max_size=20))
def test_a_name_that_is_taken_stays_in_its_folder(name: str) -> None:
    """Whatever is let through is one part of a path, and no hidden file."""
    try:
        build = make_index_build({**GOOD, "build": name})
    except InputError:
        return
    assert PurePosixPath("gates", f"{build.build}.json").parts == ("gates", f"{name}.json")
    assert not name.startswith(".")


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ({"logs": "builds/latest/"}, "gate.logs: should contain {build}"),
        ({"rules": []}, "gate.rules: should name a metric"),
        ({"rules": [{"metric": "a"}, {"metric": "a"}]}, "gate.rules: a has more than one rule"),
        ({"rules": [{"metric": "a", "max_drop": 0}]}, "gate.rules.0.max_drop: "),
        ({"rules": [{"metric": "a", "max_drop": float("inf")}]}, "gate.rules.0.max_drop: "),
        ({"min_questions": 1}, "gate.min_questions: "),
        ({"max_missing": 1.5}, "gate.max_missing: "),
    ],
)
def test_a_mistake_in_the_settings_is_told_by_key(gate: dict[str, Any], message: str) -> None:
    """Before anything is read."""
    with pytest.raises(SettingsError) as error:
        make_settings({"gate": gate})
    assert message in str(error.value)
