"""Where the log of an announced build may lie: below the folder of `gate: logs:`, nowhere else."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ragmetrics.comparison import run_gate, stage_gate
from ragmetrics.comparison.gate.build_logs import check_announced
from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import find_logs
from ragmetrics.records import IndexBuild, make_index_build
from ragmetrics.storage import Files
from tests.fakes.build_logs import gate_settings, golden, write_build
from tests.fakes.logs import write_jsonl

ROWS = golden(40)
REFUSED = r"^index build b2: logs: .* is not below .*, the folder of `gate: logs:`"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Two builds with logs where the settings say, and a file of the worker that is none's."""
    monkeypatch.chdir(tmp_path)
    for build in ("b1", "b2"):
        write_build(tmp_path, build, ROWS)
    write_jsonl(tmp_path / "home" / "private.jsonl", ROWS)
    (tmp_path / "builds" / "link").symlink_to(tmp_path / "home")
    (tmp_path / "builds" / "linked.jsonl").symlink_to(tmp_path / "home/private.jsonl")
    return gate_settings(tmp_path)


def announced(**values: str) -> IndexBuild:
    """The build of an event."""
    return make_index_build({"dataset": "towers", "build": "b2", "serving": "b1", **values})


@pytest.mark.parametrize(
    "place",
    [
        "{tmp}/home/private.jsonl",
        "{tmp}/home/",
        "{tmp}/home/*.jsonl",
        "home/private.jsonl",
        "./home/",
        "file://{tmp}/home/private.jsonl",
        "file:{tmp}/home/private.jsonl",
        "local://{tmp}/home/private.jsonl",
        "~/private.jsonl",
        "{tmp}/builds/../home/private.jsonl",
        "{tmp}/builds/{{build}}/../../home/private.jsonl",
        "{tmp}/builds/*/../../home/private.jsonl",
        "{tmp}/builds/link/private.jsonl",
        "{tmp}/builds/link/",
        "{tmp}/builds/link/*",
        "{tmp}/builds/linked.jsonl",
        "{tmp}/builds-too/",
        "{tmp}/builds*/b1.jsonl",
        "/dev/stdin.jsonl",
        "s3://my-bucket/builds/b2/",
        "data:application/json;base64,e30=",
    ],
)
def test_an_event_has_no_other_file_read(tmp_path: Path, settings: Settings, place: str) -> None:
    """Its questions and answers would stand on the dashboard. Nothing is written either."""
    with pytest.raises(InputError, match=f"{REFUSED}|^index build: logs: "):
        stage_gate(settings, announced(logs=place.format(tmp=tmp_path)), announced=True)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "place",
    [
        "{tmp}/builds/b2.jsonl",
        "file://{tmp}/builds/b2.jsonl",
        "builds/{{build}}.jsonl",
        "./builds/b2.jsonl",
        "builds/../builds/b2.jsonl",
        "builds/b2*",
    ],
)
def test_an_event_names_a_log_among_those_of_builds(
    tmp_path: Path, settings: Settings, place: str
) -> None:
    """In whatever way it is written."""
    found = stage_gate(settings, announced(logs=place.format(tmp=tmp_path)), announced=True)
    assert not found.problems
    assert len(found.runs) == 2


@pytest.mark.parametrize(
    ("place", "allowed"),
    [
        ("memory://logs/builds/b2/", True),
        ("memory://logs/builds/b2/part-*.jsonl", True),
        ("memory://logs/builds/{build}.jsonl", True),
        ("memory://logs/builds/../private.jsonl", False),
        ("memory://logs/builds/%2e%2e/private.jsonl", False),
        ("memory://logs/builds/%2E./private.jsonl", False),
        ("memory://logs/builds-too/b2/", False),
        ("memory://logs/builds*/b2/", False),
        ("memory://logs/", False),
        ("memory://private.jsonl", False),
        ("/etc/private.jsonl", False),
        ("s3://logs/builds/b2/", False),
    ],
)
def test_a_bucket_has_folders_by_its_addresses(
    settings: Settings, place: str, *, allowed: bool
) -> None:
    """A bucket of another kind, a name that only begins alike and a step up are elsewhere."""
    gate = settings.gate.model_copy(update={"logs": "memory://logs/builds/{build}/"})
    build = IndexBuild.model_construct(dataset="towers", build="b2", logs=place, serving=None)
    in_bucket = settings.model_copy(update={"gate": gate})
    with nullcontext() if allowed else pytest.raises(InputError, match=REFUSED):
        check_announced(in_bucket, build)


@pytest.mark.parametrize(("one", "other"), [("s3", "s3a"), ("s3a", "s3")])
def test_both_schemes_of_a_bucket_are_one_bucket(one: str, other: str) -> None:
    """As for s3fs; another bucket is another."""
    folder = Files(f"{one}://logs/builds/")
    assert Files(f"{other}://logs/builds/b2/").lie_below(folder)
    assert not Files(f"{other}://logs-of-others/builds/b2/").lie_below(folder)
    assert not Files(f"{other}://logs/builds/../b2/").lie_below(folder)


def test_the_serving_build_leads_an_event_nowhere_else(tmp_path: Path, settings: Settings) -> None:
    """A gate by hand read its log elsewhere; an event that names this build does not."""
    elsewhere = tmp_path / "home" / "b1.jsonl"
    (tmp_path / "builds" / "b1.jsonl").rename(elsewhere)
    write_build(tmp_path, "b0", ROWS)
    run_gate(settings, announced(build="b1", serving="b0", logs=str(elsewhere)))
    assert not stage_gate(settings, announced()).problems
    found = stage_gate(settings, announced(), announced=True)
    assert found.before is None
    assert "serving build b1: no log at" in found.problems[0]


def test_a_gate_by_hand_reads_any_log(tmp_path: Path, settings: Settings) -> None:
    """Its user may read what the process may."""
    place = str(tmp_path / "home/private.jsonl")
    assert not stage_gate(settings, announced(logs=place)).problems


STEPS = """
builds home link linked.jsonl private.jsonl b1.jsonl . .. * ** [.][.] ? [bh]* %2e%2e ..%2f {build}
{build}.jsonl ~ file: b2*
"""
STARTS = ("", "/", "{tmp}/", "{tmp}/builds/", "file://{tmp}/builds/", "file:", "./")


@given(
    start=st.sampled_from(STARTS),
    steps=st.lists(st.sampled_from(["", *STEPS.split()]), max_size=6),
)
def test_whatever_is_allowed_opens_only_files_below(
    start: str, steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For all places: what is found there is refused, or lies in the folder, links followed."""
    tmp = _tree(tmp_path_factory.getbasetemp() / "tree")
    place = (start.replace("{tmp}", str(tmp)) + "/".join(steps)) or "."
    settings, build = gate_settings(tmp), announced(logs=place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp)
        try:
            check_announced(settings, build)
            files, infos = find_logs(place.replace("{build}", "b2"))
        except InputError:
            return
        for info in infos:
            opened = os.path.realpath((files.local or Path()) / info.path)
            assert info.refused or opened.startswith(f"{tmp}/builds/")


def _tree(tmp: Path) -> Path:
    if not tmp.exists():
        for name in (
            "home/private.jsonl",
            "builds/b1.jsonl",
            "builds/b2.jsonl",
            "builds/b2/x.jsonl",
        ):
            (tmp / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp / name).write_text("{}\n")
        (tmp / "builds/link").symlink_to(tmp / "home")
        (tmp / "builds/linked.jsonl").symlink_to(tmp / "home/private.jsonl")
        (tmp / "builds/b2/up").symlink_to(tmp)
    return Path(os.path.realpath(tmp))
