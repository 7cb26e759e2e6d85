"""The registry: which metrics there are, how they are chosen, which are scored together."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import ragmetrics.metrics.bundled
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.errors import InputError
from ragmetrics.metrics import (
    GRADE,
    METRICS,
    NEEDED,
    Metric,
    metric,
    metric_families,
    metrics,
    select,
)
from ragmetrics.records import LogRow, Prompt, Score, Steps
from tests.fakes.plugins import forget_plugins

ALL = list(metrics().values())


def scaled(row: LogRow, by: float = 1.0, plus: float = 0.0) -> Steps[Score]:
    """A metric with two parameters."""
    yield []
    return Score(by + plus)


SCALED = metric(version=1, calls="0")(scaled)


def named(name: str, *prompts: Prompt) -> Metric:
    """A metric of this name with these prompts."""
    return Metric(name, 1, scaled, prompts, (), "0")


def names(groups: list[tuple[Metric, ...]]) -> list[list[str]]:
    """The names of grouped metrics."""
    return [[one.name for one in group] for group in groups]


# What there is


def test_every_module_is_a_metric_of_its_name() -> None:
    """Adding a metric is adding a file: there is no list to edit. Helpers begin with `_`."""
    modules = [module.name for module in pkgutil.iter_modules(ragmetrics.metrics.bundled.__path__)]
    assert list(metrics()) == sorted(name for name in modules if not name.startswith("_"))
    assert all(name == one.name for name, one in metrics().items())


def test_the_default_metrics_exist() -> None:
    """What the settings choose by default can be chosen."""
    assert {one.name for one in select(DEFAULT_METRICS)} == set(DEFAULT_METRICS)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with a metric `brevity`; its entry points."""
    (tmp_path / "brevity_plugin.py").write_text(
        "from ragmetrics import Score, metric\n\n\n"
        "@metric(version=1, calls='0')\n"
        "def brevity(row):\n"
        "    '''How short.'''\n"
        "    return Score(1.0)\n"
        "    yield\n"
    )
    info = tmp_path / "brevity-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brevity\nVersion: 1.0\n")
    points = info / "entry_points.txt"
    points.write_text("[ragmetrics.metrics]\nbrevity = brevity_plugin:brevity\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget_plugins()
    yield points
    forget_plugins()


@pytest.mark.usefixtures("installed")
def test_installed_packages_add_metrics() -> None:
    """An entry point adds a metric, in alphabetical order."""
    assert list(metrics()) == sorted([*(one.name for one in ALL), "brevity"])
    assert metrics()["brevity"].title == "How short."


def test_a_taken_name_is_an_error(installed: Path) -> None:
    """A package never replaces a bundled metric, nor is it silently left out."""
    with installed.open("a") as file:
        file.write("context_recall = brevity_plugin:brevity\n")
    assert METRICS.problems([]) == [
        "metric 'context_recall' of brevity: there is already a metric of that name"
    ]
    assert metrics()["context_recall"].bundled


@pytest.mark.parametrize("name", ["../../etc", "con.text", "a b", "<b>"])
def test_a_name_that_is_no_name_of_a_function_is_an_error(installed: Path, name: str) -> None:
    """A name is a folder of the store too: none leads out of it."""
    installed.write_text(f"[ragmetrics.metrics]\n{name} = brevity_plugin:brevity\n")
    (problem,) = METRICS.problems([])
    assert "of brevity: a metric is named like a function" in problem
    assert list(metrics()) == [one.name for one in ALL]


# Choosing


def test_select_keeps_the_order_asked_for() -> None:
    """Metrics come out as they were named, each once."""
    found = select(["context_recall", "context_precision", "context_recall"])
    assert [one.name for one in found] == ["context_recall", "context_precision"]


def test_select_binds_parameters() -> None:
    """`{name: parameters}` is how the settings say it; no parameters is fine."""
    first, second = select([{"context_precision": {"relevant_from": 2}}, {"context_recall": {}}])
    assert first.parameters == {"relevant_from": 2}
    assert second.parameters == {}


def test_an_unknown_metric_is_an_error_that_lists_what_there_is() -> None:
    """The error for a misspelt name lists all metrics."""
    with pytest.raises(InputError, match=f"no metric 'recall'; there are: {', '.join(metrics())}"):
        select(["recall"])


def test_an_unknown_parameter_is_an_error_that_lists_what_there_is() -> None:
    """So is a misspelt parameter."""
    with pytest.raises(InputError, match="has no parameter 'top'; it has: relevant_from"):
        select([{"context_precision": {"top": 3}}])
    with pytest.raises(InputError, match="it has: none"):
        select([{"context_recall": {"top": 3}}])


def test_play_passes_the_parameters() -> None:
    """Bound parameters reach the steps."""
    steps = SCALED.with_parameters({"by": 3.0}).play(LogRow("1", "?", ()))
    next(steps)
    with pytest.raises(StopIteration) as stop:
        steps.send([])
    assert stop.value.value == Score(3.0)


# Who is who


def test_digest_changes_with_all_that_may_change_a_value() -> None:
    """Name, version, parameters and prompts: scores with another digest are not comparable."""
    changed = [
        SCALED,
        metric(version=2, calls="0")(scaled),
        metric(version=1, calls="0", prompts=[GRADE])(scaled),
        SCALED.with_parameters({"by": 2.0}),
        SCALED.with_parameters({"plus": 2.0}),
        named("other"),
    ]
    assert len({one.digest for one in changed}) == len(changed)


def test_digest_does_not_depend_on_the_order_of_parameters() -> None:
    """Sorting the settings file breaks no comparison with earlier nights."""
    first = SCALED.with_parameters({"by": 2.0, "plus": 1.0})
    second = SCALED.with_parameters({"plus": 1.0, "by": 2.0})
    assert first.digest == second.digest


# Families


def test_metrics_that_share_a_prompt_are_a_family() -> None:
    """One task scores a family, so that two tasks never ask the same at once."""
    assert names(metric_families(select(DEFAULT_METRICS))) == [
        ["context_relevance", "context_precision"],
        ["context_relevancy", "context_relevancy_chunks"],
        ["context_recall"],
        ["response_relevancy"],
    ]


def test_a_metric_with_two_prompts_joins_families() -> None:
    """Families that turn out to share are one."""
    chosen = [named("a", GRADE), named("b", NEEDED), named("c"), named("d", GRADE, NEEDED)]
    assert sorted(map(sorted, names(metric_families(chosen)))) == [["a", "b", "d"], ["c"]]


def test_metrics_without_prompts_stand_alone() -> None:
    """Asking nothing is nothing to share."""
    assert names(metric_families([named("a"), named("b")])) == [["a"], ["b"]]
    assert metric_families([]) == []
