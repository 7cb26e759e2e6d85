"""Metrics of other packages, by their entry points.

One is loaded only where it is named, in a thread with a time limit. A package that cannot be loaded
costs only its own metric: its rows fail with the reason, and the night goes on.
"""

from __future__ import annotations

import contextvars
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from importlib.metadata import EntryPoint, entry_points
from threading import Thread
from typing import Any, TypeVar

from ragmetrics.metrics.definition import Metric
from ragmetrics.model import LogRow, Prompt, Score, Status, Steps
from ragmetrics.text import shorten

ENTRY_POINTS = "ragmetrics.metrics"
LOADING_SECONDS = 10.0
"""Longest time that a package may take to load its metric."""
Made = TypeVar("Made")


class TookTooLong(Exception):
    """Foreign code did not end in its time."""


def in_time(work: Callable[[], Made], seconds: float) -> Made:
    """The result of foreign code, which runs in a thread of its own.

    Raises TookTooLong after so many seconds; the thread goes on, and ends with the process. Any
    error of the code is raised as it is, SystemExit and KeyboardInterrupt as RuntimeError.
    """
    result: Future[Made] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            result.set_result(context.run(work))
        except Exception as error:
            result.set_exception(error)
        except BaseException as error:
            result.set_exception(RuntimeError(repr(error)))

    thread = Thread(target=run, name="ragmetrics-plugin", daemon=True)
    thread.start()
    thread.join(seconds)
    if not result.done():
        raise TookTooLong
    return result.result()


def plugin_points(bundled: Mapping[str, Metric]) -> tuple[dict[str, EntryPoint], list[str]]:
    """The entry points of other packages by name, and what is wrong with those left out.

    Left out are names that no function can have, names of bundled metrics, and names of several
    packages. Nothing is loaded.
    """
    points = list(entry_points(group=ENTRY_POINTS))
    times = Counter(point.name for point in points)
    found, problems = {}, []
    for point in points:
        if not point.name.isidentifier():  # it becomes a folder, an anchor and a label
            problems.append(f"{of(point)}: a metric is named like a function: letters, digits, _")
        elif point.name in bundled:
            problems.append(f"{of(point)}: there is already a metric of that name")
        elif times[point.name] > 1:
            problems.append(f"{of(point)}: several packages have a metric of that name")
        else:
            found[point.name] = point
    return found, problems


def load_plugin(point: EntryPoint, taken: Mapping[str, Prompt[Any]]) -> Metric:
    """The metric of an entry point. One that cannot be loaded is a metric of that name whose rows
    all fail, with the reason; so is one with the name of a `taken` prompt.
    """
    try:
        found = in_time(point.load, LOADING_SECONDS)
    except TookTooLong:
        return _unusable(point.name, f"{of(point)}: loading took over {LOADING_SECONDS:g} s")
    except Exception as error:
        return _unusable(point.name, f"{of(point)} cannot be imported: {shorten(repr(error))}")
    if not isinstance(found, Metric) or found.name != point.name:
        return _unusable(point.name, f"{of(point)} is not a metric of that name")
    for prompt in found.prompts:
        if taken.get(prompt.name, prompt) is not prompt:
            return _unusable(point.name, f"{of(point)}: the prompt name {prompt.name!r} is taken")
    return found


def _unusable(name: str, why: str) -> Metric:
    def steps(row: LogRow) -> Steps[Score]:
        return Score(None, why, status=Status.METRIC_FAILED)
        yield

    steps.__doc__ = f"Not usable: {why}."
    return Metric(name, 0, steps, (), ("user_input",), "0", problem=why)


def of(point: EntryPoint) -> str:
    """`metric 'brevity' of house`."""
    package = point.dist.name if point.dist else "an unknown package"
    return f"metric {point.name!r} of {package}"
