"""Gates of builds that have no log yet: the golden questions are replayed first."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.comparison import replay_missing, run_gate, run_replay
from ragmetrics.comparison.gate.build_logs import check_below
from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.records import IndexBuild, ReplayIncomplete
from tests.fakes.clients import Bucket
from tests.fakes.replays import hurry, log_rows, replaying
from tests.fakes.retriever import SearchServer


@pytest.fixture
def settings(
    tmp_path: Path, search_server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """A golden set, a search that knows every build, and the log of b1, which serves."""
    hurry(monkeypatch)
    settings = replaying(tmp_path, search_server).model_copy(
        update={"store": str(tmp_path / "store")}
    )
    run_replay(settings, "b1")
    search_server.reset()
    return settings


def asked(settings: Settings, **change: str) -> IndexBuild:
    """The new build, of the settings' data set unless said otherwise."""
    return IndexBuild(**{"dataset": settings.dataset, "build": "b2", "serving": "b1", **change})


def test_a_build_without_a_log_is_asked_the_golden_questions(
    tmp_path: Path, settings: Settings, search_server: SearchServer
) -> None:
    """Each once; the log is where the gate looks for it, and a repeat asks nothing."""
    found = run_gate(settings, asked(settings))
    assert search_server.stats()["builds"] == {"b2": 12}
    assert {row["index_build"] for row in log_rows(tmp_path / "builds/b2/replay.jsonl")} == {"b2"}
    assert (found.source.rows, found.missing) == (12, 0)
    assert [metric.questions for metric in found.metrics] == [12, 12]
    assert run_gate(settings, asked(settings)) == found
    assert search_server.stats()["requests"] == 12


def test_a_log_goes_where_the_event_says(
    tmp_path: Path, settings: Settings, search_server: SearchServer
) -> None:
    """It is read there as well, below the folder of `gate: logs:`."""
    place = str(tmp_path / "builds" / "elsewhere")
    found = run_gate(settings, asked(settings, logs=place))
    assert (found.logs, found.source.rows) == (place, 12)
    assert (tmp_path / "builds" / "elsewhere" / "replay.jsonl").exists()


@pytest.mark.parametrize(
    "place",
    [
        "{tmp}/home/run.jsonl",
        "{tmp}/builds/../home/run.jsonl",
        "{tmp}/builds/link/run.jsonl",
        "{tmp}/builds-too/",
        "file://{tmp}/home/run.jsonl",
        "file:{tmp}/home/run.jsonl",
        "home/run.jsonl",
    ],
)
def test_an_event_cannot_have_a_log_written_elsewhere(
    tmp_path: Path,
    settings: Settings,
    search_server: SearchServer,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    """Whoever may post events would write files of this name with the worker's rights."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "builds" / "link").symlink_to(tmp_path / "home")
    with pytest.raises(InputError, match=r"^no log at .* below .*/builds/ only, the folder of"):
        run_gate(settings, asked(settings, logs=place.format(tmp=tmp_path)))
    assert search_server.stats()["requests"] == 0
    assert list((tmp_path / "home").iterdir()) == []
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("place", "allowed"),
    [
        ("builds/x/", True),
        ("builds/b2.jsonl", True),
        ("builds/../store/b2.jsonl", False),
        ("builds-too/", False),
        ("store/", False),
    ],
)
def test_nor_elsewhere_in_the_bucket(
    settings: Settings, s3: Bucket, place: str, *, allowed: bool
) -> None:
    """By its address as it stands."""
    logs = settings.gate.model_copy(update={"logs": f"{s3.uri}/builds/{{build}}/"})
    in_bucket = settings.model_copy(update={"gate": logs})
    build = asked(settings, logs=f"{s3.uri}/{place}")
    if allowed:
        assert replay_missing(in_bucket, build) is not None
        written = s3.keys()
        assert all(key.startswith("builds/") for key in written)
    else:
        with pytest.raises(InputError, match=r"^no log at s3://"):
            replay_missing(in_bucket, build)
        assert s3.keys() == []


def test_nor_by_an_address_that_leads_on(settings: Settings) -> None:
    """As fsspec follows those with `::`."""
    logs = settings.gate.model_copy(update={"logs": "memory://builds/{build}/"})
    within = settings.model_copy(update={"gate": logs})
    check_below(within, "memory://builds/b2.jsonl")
    with pytest.raises(InputError, match=r"no log at memory://builds/b2\.zip::"):
        check_below(within, "memory://builds/b2.zip::memory://home/b2.zip")


def test_with_a_log_a_gate_reads_it_anywhere(
    tmp_path: Path, settings: Settings, search_server: SearchServer
) -> None:
    """Only what it would write is bound to a folder; `replay --out` writes where its user says."""
    place = str(tmp_path / "elsewhere")
    run_replay(settings, "b2", place)
    assert run_gate(settings, asked(settings, logs=place)).source.rows == 12


def test_a_replay_that_comes_short_is_no_verdict(
    tmp_path: Path, settings: Settings, search_server: SearchServer
) -> None:
    """No log and no verdict of half the questions; the next gate goes on."""
    search_server.faults(fail={"400": 1.0}, after=6)
    with pytest.raises(ReplayIncomplete):
        run_gate(settings, asked(settings))
    assert not (tmp_path / "store").exists()
    search_server.faults(fail={})
    assert run_gate(settings, asked(settings)).source.rows == 12


def test_nothing_is_asked_for_a_build_of_another_data_set(
    tmp_path: Path, settings: Settings, search_server: SearchServer
) -> None:
    """Its golden questions are other ones."""
    with pytest.raises(InputError, match="is of the data set bridges"):
        run_gate(settings, asked(settings, dataset="bridges"))
    assert search_server.stats()["requests"] == 0
    assert not (tmp_path / "builds" / "b2").exists()
