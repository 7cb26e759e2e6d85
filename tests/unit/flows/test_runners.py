"""What tasks run on: what the settings may say, what is missing is told, errors come back whole."""

from __future__ import annotations

import logging
import pickle
import sys
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from unittest.mock import Mock

import cloudpickle
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

import flows
import ragmetrics
from flows import backfill, scoring
from flows.runners import THREADS, RunnerFailed, _ray, _threads, lost, open_runner
from ragmetrics.config import RunnerSettings, make_settings
from ragmetrics.errors import JudgeError, RagmetricsError, SettingsError, StoreError, Unanswered
from ragmetrics.records import ReplayIncomplete, ReplayReport
from ragmetrics.scoring import Part
from ragmetrics.scoring.process_pool import WorkerDied
from ragmetrics.storage import RunRef
from tests.fakes.logs import NIGHT
from tests.fakes.runner_nights import need


@pytest.mark.parametrize(
    ("runner", "told"),
    [
        ({"name": "slurm"}, "runner.name: should be 'threads', 'processes'"),
        ({"address": "tcp://10.0.0.1:8786"}, "add `name: dask` or `name: ray`"),
        ({"name": "processes", "cluster": {"n_workers": 2}}, "cluster: is for clusters only"),
        (
            {"name": "dask", "address": "tcp://a:1", "workers": 2},
            "workers: the workers at `address`",
        ),
        (
            {"name": "dask", "address": "tcp://a:1", "cluster": {"n_workers": 2}},
            "remove one of the two",
        ),
        ({"name": "threads", "workers": 0}, "runner.workers"),
    ],
)
def test_settings_that_contradict_each_other_are_told(runner: dict[str, Any], told: str) -> None:
    """Each with the key and what to do."""
    with pytest.raises(SettingsError, match="runner") as error:
        make_settings({"runner": runner})
    assert told in str(error.value)


def test_a_runner_may_be_named_alone() -> None:
    """`runner: dask`, in the file or in the environment."""
    assert make_settings({"runner": "dask"}).runner.name == "dask"


@pytest.mark.parametrize(("name", "module"), [("dask", "prefect_dask"), ("ray", "ray")])
def test_a_missing_extra_is_told_with_the_command(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The night ends at once, and says what to install."""
    monkeypatch.setitem(sys.modules, module, None)
    settings = make_settings({"runner": name})
    with pytest.raises(SettingsError) as error, open_runner(settings, 1):
        pass
    assert f'pip install "retrieval-nightly[{name}]"' in str(error.value)


def test_a_backfill_with_a_missing_extra_stages_no_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be missing for each of them."""
    monkeypatch.setitem(sys.modules, "ray", None)
    settings = tmp_path / "ragmetrics.yaml"
    settings.write_text("logs: logs/dt={date}/\nrunner: ray\n")
    days = ["--first", "2026-11-10", "--last", "2026-11-11"]
    monkeypatch.setattr(sys, "argv", ["backfill", "--settings", str(settings), *days])
    assert backfill.main() == 2
    assert "retrieval-nightly[ray]" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["ragmetrics.yaml"]


def test_a_cluster_class_that_is_not_there_is_told() -> None:
    """By the key that names it."""
    need("dask")
    cluster = {"cluster_class": "dask_nowhere.Cluster"}
    settings = make_settings({"runner": {"name": "dask", "cluster": cluster}})
    with (
        temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}),  # for its address alone
        pytest.raises(SettingsError, match=r"cluster_class: no 'dask_nowhere\.Cluster'"),
        open_runner(settings, 1),
    ):
        pass


def test_a_few_threads_are_enough() -> None:
    """Four parts score at once in a process, and some more wait at the door."""
    assert _threads(make_settings({}), 400) == THREADS
    assert _threads(make_settings({}), 3) == 3
    assert _threads(make_settings({"runner": {"name": "threads", "workers": 2}}), 400) == 2


def test_batches_and_budgets_want_all_parts_at_once() -> None:
    """The requests of all parts go into one batch, and all portions into one purse."""
    endpoint = {"base_url": "http://localhost:1/v1", "model": "m"}
    batches = make_settings({"judge": {"name": "openai-batch", **endpoint}})
    bounded = make_settings(
        {"judge": {"name": "openai", **endpoint}, "budget": {"max_requests": 10}}
    )
    assert _threads(batches, 300) == 300
    assert _threads(bounded, 300) == 300


def test_batches_are_sent_from_one_process() -> None:
    """A cluster has nothing to compute there, and would send a batch from each worker."""
    judge = {"name": "openai-batch", "base_url": "http://localhost:1/v1", "model": "m"}
    with open_runner(make_settings({"judge": judge, "runner": "dask"}), 4) as runner:
        assert runner.name == "threadpool"


def test_a_lost_process_is_no_fault_of_its_task() -> None:
    """What a pool or a cluster raises in place of a result is told from errors of ours and bugs."""
    assert lost(BrokenProcessPool("died")) and lost(CancelledError())
    assert not lost(ValueError("a bug")) and not lost(StoreError("full"))


def test_a_worker_that_dask_gave_up_is_lost() -> None:
    """It has killed several workers."""
    need("dask")
    from distributed.scheduler import KilledWorker

    worker = type("Worker", (), {"address": "tcp://10.0.0.1:1"})()
    assert lost(KilledWorker("score-1", worker, 3))


def test_what_a_task_raised_on_ray_is_not_taken_for_a_lost_worker() -> None:
    """A worker without our modules has not run out of memory."""
    need("ray")
    from ray.exceptions import RayTaskError, WorkerCrashedError

    assert lost(WorkerCrashedError())
    assert not lost(RayTaskError("score", "traceback", ModuleNotFoundError("tasks")))


def test_a_local_ray_is_one_of_our_own() -> None:
    """Whatever else is running; its workers import the package that is installed."""
    need("ray")
    runner: Any = _ray(RunnerSettings(name="ray", workers=2), 8, "http://127.0.0.1:1/api")
    assert "PYTHONPATH" not in runner.init_kwargs["runtime_env"]["env_vars"]
    assert (runner.address, runner.init_kwargs["num_cpus"]) == ("local", 2)


def test_each_part_that_died_is_told_where_no_runner_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cluster lost two parts and then itself: two errors, each with both reasons."""
    lost_parts: list[Part] = [(("context_recall",), 0), (("context_recall",), 1)]
    died = [(part, WorkerDied(f"shard {part[1]} died")) for part in lost_parts]
    rounds = Mock(side_effect=[([], died), RunnerFailed("dask: cannot be reached")])
    watch = Mock()
    monkeypatch.setattr("flows.scoring._Work.round", rounds)
    monkeypatch.setattr(scoring, "watching", lambda *_: nullcontext(watch))
    monkeypatch.setattr(scoring, "get_run_logger", lambda: logging.getLogger("flow"))
    ref = RunRef(date=NIGHT, run="ab12", shards=2)
    scored = scoring.score_all(make_settings({}), ref, lost_parts)
    assert [str(error) for error in scored.errors] == [
        "shard 0 died; dask: cannot be reached",
        "shard 1 died; dask: cannot be reached",
    ]
    assert watch.ended.call_count == 2


def _kinds() -> list[type[RagmetricsError]]:
    """All errors of ours, wherever they are."""
    for package in (ragmetrics, flows):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    found: list[type[RagmetricsError]] = [RagmetricsError]
    for kind in found:
        found += [subclass for subclass in kind.__subclasses__() if subclass not in found]
    return [kind for kind in found if kind.__module__.split(".")[0] in ("ragmetrics", "flows")]


def _made(kind: type[RagmetricsError]) -> RagmetricsError:
    if issubclass(kind, Unanswered):
        return kind("unreadable", "no JSON")
    if issubclass(kind, ReplayIncomplete):
        said = {"failed": {"timeout": 2}, "examples": {"timeout": "60 s"}}
        return kind(ReplayReport(build="b", place="p", questions=9, rows=7, **said), 0.05)
    error = kind("said")
    if isinstance(error, JudgeError):
        error.failures = {"timeout": 2}
    error.transient = not kind.transient
    return error


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=["processes", "clusters"])
def test_every_error_comes_back_from_another_process(
    kind: type[RagmetricsError], pickler: Any
) -> None:
    """With its text, with whether a retry may help, and all else that it says."""
    error = _made(kind)
    back = pickle.loads(pickler.dumps(error))
    assert (type(back), str(back), vars(back)) == (kind, str(error), vars(error))
