"""The task runner of the settings: threads, processes of this machine, a Dask or a Ray cluster.

Whatever runs a task, it is given references alone, finds rows and judgements in the store and
leaves its parts there.

The flow itself keeps Prefect's thread runner, and opens this one around the parts. Prefect takes a
runner by `@flow` or `with_options`, when the flow is made at import, before its settings are known;
and a flow's runner is entered once more around each task in the process that runs it
(`prefect.context.hydrated_context`): every worker of a cluster would start a cluster for each part.
A subflow `with_options` has the same copies, and is one more run to retry and to watch.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib import import_module
from multiprocessing import connection, parent_process
from typing import Any

from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from ragmetrics import __version__
from ragmetrics.config import RunnerSettings, Settings
from ragmetrics.errors import RagmetricsError, SettingsError
from ragmetrics.version import install_extra

log = logging.getLogger("ragmetrics.flows")
THREADS = 8
"""Twice as many parts as a process scores at once, so that the next part is ready."""
WORKER_SECONDS = 300.0
"""The longest wait for a cluster's first worker, or Ray's first CPU. It may wait for a machine."""


class RunnerFailed(RagmetricsError):
    """The runner cannot be started or reached, or does not fit this process."""

    transient = True


@contextmanager
def open_runner(settings: Settings, parts: int) -> Iterator[TaskRunner[Any]]:
    """The runner for so many parts, started; its processes end with the block.

    Raises SettingsError if its extra is not installed, RunnerFailed if it cannot be started.
    """
    kind = settings.runner.name
    if kind == "threads" or _in_batches(settings):
        threads: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=_threads(settings, parts))
        with threads:
            yield threads
        return
    check_runner(settings)
    with _server() as url, ExitStack() as stack:
        try:
            runner: Any = _MAKE[kind](settings.runner, parts, url)
            stack.enter_context(runner)
            if kind == "dask":
                # The client starts the cluster, or reaches it.
                _check_workers(runner.client, settings.runner)
            elif kind == "ray":
                _check_cpus(import_module("ray"), settings.runner)
        except RagmetricsError:
            raise
        except Exception as error:  # whatever a cluster's own classes raise
            text = f"{type(error).__name__}: {error}"
            raise RunnerFailed(f"runner: {kind}: {_place(settings.runner)}: {text}") from error
        yield runner


def sharing_ray(settings: Settings) -> AbstractContextManager[object]:
    """Share one Ray between nights: a process cannot have a second one. Other runners are opened by
    each night. Raises as `open_runner` does.
    """
    if settings.runner.name != "ray":
        return nullcontext()
    return open_runner(settings, settings.runner.parallel)


def check_runner(settings: Settings) -> None:
    """Raise SettingsError if the runner's extra is not installed."""
    # Read when Dask is imported, here and in its workers: some thirty lines a cluster.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "warning")
    for name in _LIBRARIES.get(settings.runner.name, ()):
        try:
            import_module(name)
        except ImportError as error:
            extra = settings.runner.name
            raise SettingsError(
                f"runner: {extra}: {error}; install it: {install_extra(extra)}"
            ) from error


_LIBRARIES = {"dask": ("prefect_dask",), "ray": ("ray", "prefect_ray.task_runners")}


def lost(error: BaseException) -> bool:
    """Whether a task was lost: its process ended, or the cluster gave it up."""
    kinds: list[type[BaseException]] = [BrokenExecutor, CancelledError]
    for name, more in _LOST.items():
        if name in sys.modules:
            kinds += [getattr(sys.modules[name], kind) for kind in more]
    return isinstance(error, tuple(kinds))


_LOST = {
    "distributed.scheduler": ("KilledWorker",),
    "ray.exceptions": (
        "WorkerCrashedError",
        "OutOfMemoryError",
        "NodeDiedError",
        "LocalRayletDiedError",
        "ObjectLostError",
        "TaskCancelledError",
    ),
}


def _in_batches(settings: Settings) -> bool:
    """Whether all parts should begin in one process, because their requests wait for each other."""
    return any(one.waits for one in settings.panel)


def _threads(settings: Settings, parts: int) -> int:
    """With a budget all parts must begin, each with its share, before one may run out of budget."""
    budgeted = settings.budget.model_dump(exclude_none=True)
    if _in_batches(settings) or (budgeted and not settings.runner.workers):
        return max(1, parts)
    return min(settings.runner.workers or THREADS, max(1, parts))


def _place(chosen: RunnerSettings) -> str:
    return f"cannot be reached at {chosen.address}" if chosen.address else "does not start"


@contextmanager
def _server() -> Iterator[str]:
    """Prefect's API address for other processes. Without a deployment it ends with the run."""
    url = str(get_client(sync_client=True).api_url)
    with temporary_settings({PREFECT_API_URL: url}):
        yield url


def _processes(chosen: RunnerSettings, parts: int, _url: str) -> TaskRunner[Any]:
    return ProcessPoolTaskRunner(_workers(chosen, parts), initializer=_end_with_parent)


def _workers(chosen: RunnerSettings, parts: int) -> int:
    return max(1, min(chosen.parallel, parts))


def _end_with_parent() -> None:
    """End a worker process together with the flow's process, which may be killed."""
    parent = parent_process()
    if parent is None:
        raise RuntimeError("not in a process that another one started")

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _dask(chosen: RunnerSettings, parts: int, url: str) -> TaskRunner[Any]:
    make = import_module("prefect_dask").DaskTaskRunner
    if chosen.address:
        runner: TaskRunner[Any] = make(address=chosen.address)
        return runner
    given = dict(chosen.cluster)
    named, adapt = given.pop("cluster_class", None), given.pop("adapt", None)
    if named is None:
        local = {
            "n_workers": _workers(chosen, parts),
            "threads_per_worker": 1,  # a judge that computes holds the interpreter's lock
            "dashboard_address": "127.0.0.1:0",  # any free port: two runs may be under way
        }
        environment = {"PREFECT_API_URL": url, **given.pop("env", {})}
        given = {**local, **given, "env": environment}
    elif chosen.workers:
        given.setdefault("n_workers", chosen.workers)
    try:
        runner = make(cluster_class=named, cluster_kwargs=given, adapt_kwargs=adapt)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"runner: cluster: cluster_class: no {named!r}: {error}") from error
    return runner


def _check_workers(client: Any, chosen: RunnerSettings) -> None:
    """Raise RunnerFailed if no worker comes, or if a worker lacks our tasks or has other ones."""

    def look() -> str:  # travels by value: a worker that lacks our modules can answer too
        try:
            import_module("tasks.nightly")
            return f"has ragmetrics {import_module('ragmetrics').__version__}"
        except ImportError as error:
            return f"cannot import {error.name}"

    replies: Mapping[str, str] = client.run(look) or _first_worker(client, chosen, look)
    for address, reply in replies.items():
        if reply != f"has ragmetrics {__version__}":
            raise RunnerFailed(
                f"runner: the Dask worker {address} {reply}; give it the environment of this "
                f"process (ragmetrics {__version__}): {install_extra('dask')}"
            )


def _first_worker(
    client: Any, chosen: RunnerSettings, look: Callable[[], str]
) -> Mapping[str, str]:
    """The answer of the first worker. Raises RunnerFailed if none comes in time."""
    seconds = f"{WORKER_SECONDS:.0f} s"
    log.warning("runner: the Dask cluster has no worker yet: waiting up to %s for one", seconds)
    asked = client.submit(look, pure=False)  # a cluster may grow only as tasks come
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError as error:
        where, mend = "the cluster started here", "its own log says why none starts"
        if chosen.address:
            where = f"the scheduler at {chosen.address}"
            mend = f"start one: dask worker {chosen.address}"
        raise RunnerFailed(
            f"runner: dask: {where} has had no worker for {seconds}; {mend}"
        ) from error
    return {"that came first": asked.result()}


def _check_cpus(ray: Any, chosen: RunnerSettings) -> None:
    """Raise RunnerFailed if a Ray cluster gets no CPU for a task in time."""
    if ray.cluster_resources().get("CPU", 0) >= 1:
        return

    def look() -> None:  # travels by value, as on Dask
        pass

    where, mend = "the Ray started here", "set `num_cpus` under `cluster:` to 1 or more"
    if chosen.address:
        where = f"the Ray at {chosen.address}"
        mend = "start a node that has some: ray start --address HEAD:PORT"
    seconds = f"{WORKER_SECONDS:.0f} s"
    log.warning("runner: ray: %s has no CPU yet: waiting up to %s for one", where, seconds)
    asked = ray.remote(num_cpus=1)(look).remote()  # a cluster may grow only as tasks come
    try:
        ray.get(asked, timeout=WORKER_SECONDS)
    except TimeoutError as error:
        raise RunnerFailed(
            f"runner: ray: {where} has had no CPU for tasks for {seconds}; {mend}"
        ) from error


def _ray(chosen: RunnerSettings, parts: int, url: str) -> TaskRunner[Any]:
    make = import_module("prefect_ray.task_runners").RayTaskRunner
    given = dict(chosen.cluster)
    runtime = dict(given.pop("runtime_env", {}))
    variables = {"PREFECT_API_URL": url, **runtime.pop("env_vars", {})}
    if not chosen.address:
        given = {"num_cpus": _workers(chosen, parts), "include_dashboard": False, **given}
    given["runtime_env"] = {**runtime, "env_vars": variables}
    # Without "local" Ray would join whatever RAY_ADDRESS or another program has started.
    runner: TaskRunner[Any] = make(address=chosen.address or "local", init_kwargs=given)
    return runner


_MAKE: Mapping[str, Callable[[RunnerSettings, int, str], TaskRunner[Any]]] = {
    "processes": _processes,
    "dask": _dask,
    "ray": _ray,
}
