"""Tables on a terminal: names give way to numbers, and numbers to nothing."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ragmetrics.cli import print_summary
from ragmetrics.cli.output.costs import print_usage
from ragmetrics.cli.table import make_console, print_grid
from ragmetrics.records import JudgeInfo
from ragmetrics.records.judging import Usage
from tests.fakes.nights import night, summary

SHARED = "context_relevance + context_precision_without_reference + response_relevancy"


def console(width: int) -> Console:
    """One that keeps what it prints."""
    return make_console(file=io.StringIO(), width=width)


def printed(on: Console) -> str:
    """What it has printed."""
    assert isinstance(on.file, io.StringIO)
    return on.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
def test_numbers_are_never_cut(width: int) -> None:
    """The usage of a run is told in full on any terminal, and where there is none."""
    usage = Usage(
        requests=12_345,
        answered_from_store=23_456,
        shared=34_567,
        prompt_tokens=123_456_789,
        cached_tokens=98_765_432,
        completion_tokens=4_567_890,
        usd=1234.56,
    )
    by_metric = {SHARED: {"openai:a": usage}, "faithfulness": {"openai:a": usage}}
    on = console(width)
    print_usage(on, by_metric, usage + usage)
    (line,) = (line for line in printed(on).splitlines() if "faithfulness" in line)
    numbers = ["12,345", "23,456", "34,567", "123,456,789", "98,765,432", "4,567,890", "$1,234.56"]
    assert line.split() == ["faithfulness", *numbers]
    assert all(name in printed(on) for name in SHARED.split(" + ")), "no name is broken"


def test_at_80_columns_a_long_name_is_wrapped_between_words() -> None:
    """The table is no wider than the terminal."""
    on = console(80)
    print_grid(on, ["metric", "asked", "in"], [[SHARED, "1,200", "1,234,567"]])
    lines = [line.rstrip() for line in printed(on).splitlines() if line.strip()]
    assert max(map(len, lines)) <= 80
    assert lines[2].split()[-2:] == ["1,200", "1,234,567"]
    assert lines[2].split()[:2] == ["context_relevance", "+"]


@pytest.mark.parametrize("names", [(0,), (0, 1)])
def test_the_name_of_a_metric_is_never_broken(names: tuple[int, ...]) -> None:
    """At 80 columns it stands above its numbers; short names stay beside theirs."""
    on = console(80)
    name = "context_precision_without_reference"
    first = ["web"] if len(names) == 2 else []
    numbers = ["0.912", "0.875", "-0.037 [-0.061, -0.013]", "0.0012", "0.024", "1,234"]
    headers = [*["tag"][: len(first)], "metric", "A", "B", "B - A [95%]", "p", "MDE", "questions"]
    rows = [[*first, name, *numbers], [*first, "mrr", *numbers]]
    print_grid(on, headers, rows, names=names)
    lines = [line.rstrip() for line in printed(on).splitlines() if line.strip()]
    assert max(map(len, lines)) <= 80
    at = next(at for at, line in enumerate(lines) if name in line)
    assert lines[at].split() == [*first, name]
    assert " ".join(lines[at + 1].split()) == " ".join(numbers)
    assert " ".join(lines[at + 2].split()) == " ".join([*first, "mrr", *numbers])


def test_columns_that_say_nothing_are_left_out() -> None:
    """No row is left unscored, and each row is a question of its own."""
    on = console(80)
    print_summary(on, night(metrics=[summary("context_recall", 0.9, status={"scored": 200})]))
    assert "questions" not in printed(on)
    assert "not scored" not in printed(on)


def test_statuses_are_wrapped_between_words() -> None:
    """At 80 columns, with long names and all that a table has."""
    status = {"scored": 100, "over_budget": 1_200, "judge_failed": 34, "unreadable": 5}
    name = "context_precision_without_reference"
    on = console(80)
    print_summary(on, night(metrics=[summary(name, 0.9, status=status, questions=7)]))
    table = printed(on).split("Rows:")[0]
    assert max(len(line.rstrip()) for line in table.splitlines()) <= 80
    statuses = " ".join(line[50:].strip() for line in table.splitlines()[3:])
    assert "0.900  [0.870, 0.930]" in table
    assert "1,200 over budget, 34 judge failed, 5 unreadable" in statuses


def test_a_panel_that_scored_nothing_has_no_table() -> None:
    """There is nothing to agree on."""
    on = console(80)
    judge = JudgeInfo(name="mean of a, b", fingerprint="f", panel=["a", "b"])
    print_summary(on, night(judge=judge, metrics=[summary("context_recall", None)]))
    assert "agreement" not in printed(on)
