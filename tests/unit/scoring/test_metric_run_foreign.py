"""Metrics of other packages: whatever their code does, they cost only their own rows."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragmetrics import plugins
from ragmetrics.errors import InputError, JudgeRefused, Unanswered, UnreadableReply
from ragmetrics.metrics import METRICS, Metric, find_metric, metrics, select
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.pipeline.doctor import examine
from ragmetrics.records import Ask, Embed, LogRow, Score, Status
from ragmetrics.rules import incidents
from ragmetrics.scoring import MetricRun, metric_run
from ragmetrics.storage import Runs, open_store
from tests.builders import night_settings
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.plugins import plugin_site

ROW = LogRow("1", "What is it?", ("It is a chair.",))
HEAD = "import time\nfrom ragmetrics import Score, metric\n\n\n@metric(version=1, calls='0')\n"


def foreign(steps: Callable[[LogRow], Any]) -> Metric:
    """A metric of another package."""
    return Metric(steps.__name__, 1, steps, (), (), "0")


def run(steps: Callable[[LogRow], Any], answers: Any = ()) -> Score:
    """Its score of one row, where each request gets the same answer."""
    one = MetricRun(foreign(steps), ROW)
    one.step(None)
    while one.score is None:
        one.step([answers for _ in one.requests])
    return one.score


def returns(value: Any) -> Callable[[LogRow], Any]:
    """A metric that returns a value at once."""

    def steps(row: LogRow) -> Any:
        return value
        yield

    return steps


def yields(value: Any, *, forever: bool = False) -> Callable[[LogRow], Any]:
    """A metric that yields a value in place of a list of requests, once or for ever."""

    def steps(row: LogRow) -> Any:
        yield value
        while forever:
            yield value
        return Score(1.0)

    return steps


def raises(error: BaseException) -> Callable[[LogRow], Any]:
    """A metric whose code raises an error."""

    def steps(row: LogRow) -> Any:
        raise error
        yield

    return steps


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (returns("0.5"), "a metric returns a Score, not '0.5'"),
        (returns(Score(1.0, details={"found": object()})), "cannot be stored: TypeError"),
        (returns(Score(1.0, details={"found": "\ud800"})), "cannot be stored: UnicodeEncodeError"),
        (returns(Score(1.0, details={"found": float("nan")})), "cannot be stored: ValueError"),
        (returns(Score(1.0, reason="\udfff")), "cannot be stored: UnicodeEncodeError"),
        (lambda row: "no generator", "TypeError"),
        (yields(None), "a metric yields a list of requests, not NoneType"),
        (yields("text"), "a metric yields a list of requests, not str"),
        (yields([1]), "a metric yields requests, not int"),
        (yields([Embed("\ud800")]), "UnicodeEncodeError"),
        (yields([], forever=True), "at most 1,000 times and 10,000 requests"),
        (yields([Embed("a")] * 1_000_000), "at most 1,000 times and 10,000 requests"),
        (yields([Embed("a")] * 5_000, forever=True), "at most 1,000 times and 10,000 requests"),
        (raises(SystemExit(3)), "SystemExit(3)"),
        (raises(KeyboardInterrupt()), "KeyboardInterrupt()"),
        (raises(JudgeRefused("stop the run")), "JudgeRefused('stop the run')"),
        (raises(UnreadableReply("\ud800")), "cannot be stored: UnicodeEncodeError"),
        (raises(Unanswered("lost", "no answer")), "'lost' is not a valid Status"),
        (yields([Ask("a text", {})]), "a metric asks by a Prompt, not str"),
    ],
)
def test_its_row_fails_with_the_reason(steps: Any, reason: str) -> None:
    """And nothing is raised, which would end the part of the night."""
    found = run(steps, np.ones(3))
    assert found.status is Status.METRIC_FAILED
    assert reason in found.reason


def test_a_step_that_hangs_is_left_and_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next row fails at once: its code is not run."""
    monkeypatch.setattr(metric_run, "STEP_SECONDS", 0.05)
    started, began, over = list[str](), threading.Event(), threading.Event()

    def steps(row: LogRow) -> Any:
        started.append(row.id)
        began.set()
        over.wait()
        yield

    first, second = run(steps), run(steps)
    assert first.reason == second.reason
    assert first.reason == "a step of the metric took over 0.05 s: it is not run again"
    assert began.wait(60)
    assert started == ["1"]
    over.set()


def test_one_that_behaves_gets_its_answers() -> None:
    """Step by step, as a bundled one does."""

    def steps(row: LogRow) -> Any:
        (vector,) = yield [Embed("a")]
        return Score(float(vector[0]), details={"from": "a"})

    assert run(steps, np.array([0.25])) == Score(0.25, details={"from": "a"})


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install packages of metrics: their names, the source of their modules, and the metrics."""
    with plugin_site(tmp_path, monkeypatch) as put:
        yield partial(put, METRICS.group)


def test_one_that_nobody_names_is_not_loaded(install: Callable[..., None]) -> None:
    """It may raise, exit or sleep when it is imported."""
    install("bad", "raise SystemExit(1)\n", "worst")
    assert METRICS.foreign_names == ["worst"]
    assert "worst" not in metrics(named=["context_recall"])
    assert [one.name for one in select(["context_recall"])] == ["context_recall"]
    assert "bad_plugin" not in sys.modules
    assert METRICS.problems(["context_recall"]) == []


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("raise ImportError('no such library')\n", "cannot be imported: ImportError"),
        ("raise SystemExit(1)\n", "cannot be imported: RuntimeError('SystemExit(1)')"),
        ("import time\ntime.sleep(600)\n", "loading took over 0.2 s"),
        ("worst = 3\n", "is not a metric of that name"),
        (f"{HEAD}def other(row):\n    yield []\nworst = other\n", "is not a metric of that name"),
    ],
)
def test_one_that_cannot_be_loaded_fails_its_rows(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch, source: str, why: str
) -> None:
    """The reason names the package; `doctor` has it too."""
    if "sleep" in source:
        monkeypatch.setattr(plugins, "LOADING_SECONDS", 0.2)
    package = f"bad{len(source)}"  # a module that hangs holds the lock of its import
    install(package, source, "worst")
    found = find_metric("worst")
    assert found is not None
    assert why in found.problem
    assert f"metric 'worst' of {package}" in found.problem
    one = MetricRun(found, ROW)
    one.step(None)
    assert one.score == Score(None, found.problem, status=Status.METRIC_FAILED)
    assert METRICS.problems(["worst"]) == [found.problem]


def test_a_taken_name_is_left_out_and_told(install: Callable[..., None]) -> None:
    """A package never replaces a bundled metric, nor that of another package."""
    source = f"{HEAD}def shared(row):\n    yield []\n"
    install("one", source, "shared", "context_recall")
    install("two", source, "shared")
    assert METRICS.foreign_names == []
    assert set(METRICS.problems([])) == {
        "metric 'context_recall' of one: there is already a metric of that name",
        "metric 'shared' of one: several packages have a metric of that name",
        "metric 'shared' of two: several packages have a metric of that name",
    }
    with pytest.raises(InputError, match="no metric 'shared'"):
        select(["shared"])


def test_a_night_goes_on_without_it(install: Callable[..., None], tmp_path: Path) -> None:
    """Both broken metrics are told, each with its own reason; all others are published."""
    install("bad", "raise ImportError('no such library')\n", "worst")
    install("exits", f"{HEAD}def leaves(row):\n    raise SystemExit(2)\n    yield\n", "leaves")
    install("unused", "raise SystemExit(1)\n", "never")
    write_jsonl(tmp_path / "logs" / f"{NIGHT}.jsonl", make_rows(30, good=0.8))
    settings = night_settings(
        tmp_path,
        logs="logs/{date}.jsonl",
        metrics=["context_relevance", "worst", "leaves"],
        shards=1,
    )
    with pytest.raises(CoverageShort, match="all other scores are published"):
        run_night(settings, NIGHT)
    manifest = next(iter(Runs(open_store(settings)).nights()))
    scored = {
        summary.metric: (summary.scored, summary.status.get("metric_failed", 0))
        for summary in manifest.metrics
    }
    assert scored == {"context_relevance": (30, 0), "worst": (0, 30), "leaves": (0, 30)}
    failed = {one.metric: one.message for one in manifest.findings if one.kind == "judge_failures"}
    assert failed["leaves"].startswith("leaves: its code failed on 30 of 30 rows (100.0%)")
    causes = [incident.message for incident in incidents(manifest.findings, manifest)]
    assert all(any(text.startswith(name) for text in causes) for name in ("worst:", "leaves:"))
    assert "SystemExit(2)" in failed["leaves"]
    assert "no such library" in failed["worst"]
    (told,) = [one for one in examine(settings, NIGHT) if one.name == "metrics of other packages"]
    assert told.state == "failed"
    assert "metric 'worst' of bad cannot be imported" in told.text
