"""Parts scored by several processes: the same scores, and clean ends."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragmetrics.config import JudgeSettings, Settings, make_settings
from ragmetrics.errors import (
    JudgeError,
    JudgeRefused,
    RagmetricsError,
    StoreError,
    Unanswered,
    WorkerDied,
)
from ragmetrics.logs import find_inputs
from ragmetrics.pipeline import evaluate, run_night
from ragmetrics.scoring import (
    Staged,
    list_parts,
    plan_run,
    process_pool as workers,
    score_parts,
    stage_run,
)
from ragmetrics.scoring.process_pool import _LongestFirst
from ragmetrics.storage import open_store
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.processes import ROOT

pytestmark = pytest.mark.usefixtures("without_pages")

ROWS = 40
METRICS = ("context_relevance", "context_recall", "hit_rate")
SCRIPT = """
import multiprocessing, os, signal, sys
from ragmetrics import evaluate
from ragmetrics.scoring import process_pool as workers
workers.FEWEST_ROWS = 1
print("begun", flush=True)

def told(*_):
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    os.kill(os.getpid(), getattr(signal, sys.argv[2]))

settings = {"workers": 2, "shards": 8, "metrics": ["context_relevance"]}
from ragmetrics.config.settings import make_settings
evaluate(sys.argv[1], settings=make_settings(settings), progress=told if sys.argv[2:] else None)
print("done", flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log whose rows all need the judge, and can be held against ids without one."""
    ids = {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]}
    return write_jsonl(tmp_path / "log.jsonl", make_rows(ROWS, good=0.5, **ids))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a few rows were worth a worker."""
    monkeypatch.setattr(workers, "FEWEST_ROWS", 1)


@pytest.fixture
def settings(log: Path, tmp_path: Path) -> Settings:
    """Two workers, and parts enough for both."""
    values = {"metrics": METRICS, "shards": 4, "workers": 2, "logs": str(log)}
    return make_settings({**values, "store": str(tmp_path / "store")})


@pytest.fixture
def by_workers(monkeypatch: pytest.MonkeyPatch) -> list[workers.Part]:
    """The parts that would go to worker processes."""
    sent: list[workers.Part] = []

    def note(*arguments: object) -> list[RagmetricsError]:
        sent.extend(arguments[1])  # type: ignore[call-overload]
        return []

    monkeypatch.setattr(workers, "_score_by_workers", note)
    return sent


def _staged(settings: Settings) -> Staged:
    inputs = find_inputs(settings, NIGHT)
    return stage_run(settings, plan_run(settings, NIGHT, inputs, "x"), inputs, datetime.now(UTC))


def _score(
    settings: Settings, done: Callable[[Sequence[str]], None] | None = None
) -> list[RagmetricsError]:
    staged = _staged(settings)
    return score_parts(settings, staged, list_parts(settings, staged), None, done)


@pytest.mark.process
@pytest.mark.usefixtures("few")
def test_workers_give_the_scores_that_one_process_gives(log: Path) -> None:
    """Two processes write the same scores as one, and every part is told of."""
    told: list[tuple[str, int, int]] = []
    found = []
    for count in (1, 2):
        told.clear()
        chosen = make_settings({"metrics": METRICS, "shards": 3, "workers": count})
        one = evaluate(log, settings=chosen, progress=lambda *part: told.append(part))
        found.append((list(one.records()), one.manifest.metrics))
    assert found[0] == found[1]
    assert len(found[0][0]) == ROWS * len(METRICS)
    assert [number for _, number, _ in told] == list(range(1, len(told) + 1))
    assert {of for _, _, of in told} == {len(told)}


@pytest.mark.process
@pytest.mark.usefixtures("few")
def test_an_error_of_a_worker_is_the_same_error_here(settings: Settings) -> None:
    """A part that fails in a worker is told by its own error; the others are scored."""
    staged = _staged(settings)
    files = open_store(settings)
    files.remove(staged.ref.rows(1))
    todo = [part for part in list_parts(settings, staged) if "hit_rate" not in part[0]]
    errors = score_parts(settings, staged, todo)
    assert {type(error) for error in errors} == {StoreError}
    assert {str(error).rpartition(": ")[2] for error in errors} == {"no such file"}
    scored = [shard for family, shard in todo if files.exists(staged.ref.scores(family[0], shard))]
    assert 1 not in scored and {0, 2, 3} <= set(scored)


@pytest.mark.process
@pytest.mark.usefixtures("few")
def test_a_judge_that_refuses_in_a_worker_ends_the_run(settings: Settings) -> None:
    """One refusal is raised, as it is in one process, and no worker is left."""
    refusing = settings.model_copy(update={"judge": JudgeSettings(name="local:no-such-model")})
    with pytest.raises(JudgeRefused, match="no-such-model"):
        _score(refusing)
    assert multiprocessing.active_children() == []


@pytest.mark.process
@pytest.mark.usefixtures("few")
def test_a_dead_worker_is_one_clear_error(settings: Settings) -> None:
    """Where the system kills a worker the run ends and says what to do; nothing hangs."""

    def kill(_: Sequence[str]) -> None:
        for child in multiprocessing.active_children():
            os.kill(child.pid or 0, signal.SIGKILL)

    errors = _score(settings.model_copy(update={"metrics": ("context_relevance",)}), kill)
    assert [type(error) for error in errors] == [WorkerDied]
    assert "a worker process died" in str(errors[0]) and errors[0].transient


@pytest.mark.process
@pytest.mark.usefixtures("few")
def test_an_error_here_ends_the_workers(settings: Settings) -> None:
    """Ctrl-C, or an error in what is told of parts, leaves no process behind."""

    def interrupt(_: Sequence[str]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _score(settings.model_copy(update={"metrics": ("context_relevance",)}), interrupt)
    assert multiprocessing.active_children() == []


@pytest.mark.process
@pytest.mark.usefixtures("few")
def test_a_night_is_scored_by_workers(settings: Settings) -> None:
    """A night without Prefect uses the cores too."""
    manifest = run_night(settings, NIGHT).manifest
    assert {one.metric: one.scored for one in manifest.metrics} == dict.fromkeys(METRICS, ROWS)


def _script(log: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = log.with_name("mine.py")
    script.write_text(SCRIPT)
    return subprocess.run(
        [sys.executable, str(script), str(log), *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(log.parent),
        },  # killed, it leaves some
        capture_output=True,
        text=True,
    )


@pytest.mark.process
def test_a_script_without_a_guard_runs_once(log: Path) -> None:
    """Workers do not run the user's script again, which need not ask for `__main__`."""
    done = _script(log)
    assert (done.stdout.split(), done.returncode) == (["begun", "done"], 0), done.stderr


@pytest.mark.process
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_workers_end_with_the_process_that_started_them(log: Path, name: str) -> None:
    """After `kill -9` no worker goes on writing beside the run that takes its place."""
    done = _script(log, name)
    assert done.returncode == -getattr(signal, name)
    pids = [int(pid) for pid in done.stdout.split()[1:]]
    assert pids
    deadline = time.monotonic() + 240
    while any(Path(f"/proc/{pid}/cmdline").exists() and _runs(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_few_rows_stay_in_this_process(
    settings: Settings, by_workers: list[workers.Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a thousand rows no process is started; at that number one is."""
    assert _score(settings) == []
    assert by_workers == []
    monkeypatch.setattr(workers, "FEWEST_ROWS", ROWS)
    _score(settings)
    assert by_workers


@pytest.mark.usefixtures("few")
def test_only_parts_with_a_judge_go_to_workers(
    settings: Settings, by_workers: list[workers.Part]
) -> None:
    """Metrics that compare ids take no time worth a process."""
    _score(settings)
    names = {name for family, _ in by_workers for name in family}
    assert names == {"context_relevance", "context_recall"}


@pytest.mark.usefixtures("few")
def test_one_worker_is_this_process(settings: Settings, by_workers: list[workers.Part]) -> None:
    """`workers: 1` starts none."""
    assert _score(settings.model_copy(update={"workers": 1})) == []
    assert by_workers == []


@pytest.mark.usefixtures("few")
def test_recording_stays_in_this_process(
    log: Path, tmp_path: Path, by_workers: list[workers.Part]
) -> None:
    """Replies are written to one file by one process."""
    chosen = make_settings({"metrics": METRICS, "shards": 2, "workers": 2})
    evaluate(log, settings=chosen, record=tmp_path / "replies.jsonl")
    assert by_workers == []
    assert (tmp_path / "replies.jsonl").stat().st_size


def test_the_family_that_takes_longest_goes_first() -> None:
    """Each family is tried, then the slowest is worked off, so that no long part comes last."""
    queue = _LongestFirst([(name, shard) for name in (["fast"], ["slow"]) for shard in range(2)])
    first, second = queue.take(), queue.take()
    assert (first, second) == ((("fast",), 0), (("slow",), 0))
    queue.took((("fast",), 0), 1.0)
    queue.took((("slow",), 0), 9.0)
    assert [queue.take(), queue.take(), queue.take()] == [(("slow",), 1), (("fast",), 1), None]


def test_errors_survive_the_way_between_processes() -> None:
    """Each error comes back with its text and all it says beside."""
    told: list[RagmetricsError] = [
        JudgeError("slow", transient=True, failures={"timeout": 2}),
        JudgeRefused("wrong key"),
        StoreError("full", transient=True),
        Unanswered("unreadable", "no JSON"),
        *(kind("text") for kind in _kinds() if kind.__init__ is RagmetricsError.__init__),
    ]
    for error in told:
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def _kinds() -> list[type[RagmetricsError]]:
    found = [RagmetricsError]
    for kind in found:
        found += [subclass for subclass in kind.__subclasses__() if subclass not in found]
    return found
