"""Tables on a terminal: names give way to numbers, and numbers to nothing."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import date

import pytest
from rich.console import Console

from ragmetrics.cli import print_summary
from ragmetrics.cli.alerts import print_alerts
from ragmetrics.cli.compare import print_comparison
from ragmetrics.cli.gate import print_gate
from ragmetrics.cli.output.costs import print_usage
from ragmetrics.cli.output.summary import print_check, print_nights
from ragmetrics.cli.table import make_console, print_grid
from ragmetrics.delivery.alert_list import Alert, AlertList
from ragmetrics.delivery.delivery import Delivery
from ragmetrics.metrics import bundled_metrics, display_name
from ragmetrics.pipeline import CheckReport, NightResult
from ragmetrics.records import AlertState, JudgeInfo, JudgeSummary, Manifest
from ragmetrics.records.judging import Usage
from tests.fakes.comparisons import change, comparison
from tests.fakes.gated import gate, metric_verdict
from tests.fakes.nights import finding, night, summary

LONGEST = max(bundled_metrics(), key=lambda name: len(display_name(name)))
USAGE = Usage(requests=12_345, prompt_tokens=123_456_789, completion_tokens=4_567_890, usd=1234.56)
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
    (line,) = (line for line in printed(on).splitlines() if "Faithfulness" in line)
    numbers = ["12,345", "23,456", "34,567", "123,456,789", "98,765,432", "4,567,890", "$1,234.56"]
    assert line.split() == ["Faithfulness", *numbers]
    names = map(display_name, SHARED.split(" + "))
    assert all(name in printed(on) for name in names), "no name is broken"


def test_at_80_columns_a_long_name_is_wrapped_between_words() -> None:
    """The table is no wider than the terminal."""
    on = console(80)
    print_grid(on, ["metric", "asked", "in"], [[SHARED, "1,200", "1,234,567"]])
    lines = [line.rstrip() for line in printed(on).splitlines() if line.strip()]
    assert max(map(len, lines)) <= 80
    assert lines[2].split()[-2:] == ["1,200", "1,234,567"]
    assert lines[2].split()[:2] == ["context_relevance", "+"]


@pytest.mark.parametrize("names", [(0,), (0, 1)])
def test_a_name_is_never_broken(names: tuple[int, ...]) -> None:
    """At 80 columns it stands above its numbers; short names stay beside theirs."""
    on = console(80)
    name = display_name(LONGEST)
    first = ["web"] if len(names) == 2 else []
    numbers = ["0.912", "0.875", "-0.037 [-0.061, -0.013]", "0.0012", "0.024", "1,234"]
    headers = [*["tag"][: len(first)], "metric", "A", "B", "B - A [95%]", "p", "MDE", "questions"]
    rows = [[*first, name, *numbers], [*first, "nDCG", *numbers]]
    print_grid(on, headers, rows, names=names)
    lines = [line.rstrip() for line in printed(on).splitlines() if line.strip()]
    assert max(map(len, lines)) <= 80
    at = next(at for at, line in enumerate(lines) if name in line)
    assert lines[at].split() == [*first, *name.split()]
    assert " ".join(lines[at + 1].split()) == " ".join(numbers)
    assert " ".join(lines[at + 2].split()) == " ".join([*first, "nDCG", *numbers])


def of_panel() -> Manifest:
    """A night by a panel whose judges have long names."""
    names = ["openai:a-model-of-a-long-name", "anthropic:another-model-of-a-long-name"]
    judges = [JudgeSummary(name=name, mean=0.9, scored=100, failed=3) for name in names]
    judge = JudgeInfo(name="mean of two", fingerprint="f", panel=names)
    return night(judge=judge, metrics=[summary(LONGEST, 0.9, agreement=0.8, judges=judges)])


def alert(level: str) -> Alert:
    """An alert of a rule on the metric."""
    state = AlertState(state="firing", since=date(2026, 11, 19))
    one = finding(LONGEST, level, message="" if level == "ok" else f"{LONGEST} fell")
    return Alert(f"help/{LONGEST}/all/min 0.8", state, one, None, None)


BOOK = AlertList(date(2026, 11, 19), {}, [alert("ok"), alert("breach")])
TABLES: dict[str, Callable[[Console], None]] = {
    "score": lambda on: print_summary(
        on,
        night(metrics=[summary(LONGEST, 0.9, status={"scored": 9, "over_budget": 8}, questions=7)]),
    ),
    "panel": lambda on: print_summary(on, of_panel()),
    "nights": lambda on: print_nights(
        on, [NightResult(night(findings=[finding(LONGEST)]), Delivery(None, sent=False))]
    ),
    "usage": lambda on: print_usage(
        on, {f"{LONGEST} + {LONGEST} + mrr": {"a": USAGE}, "mrr": {"a": USAGE}}, USAGE + USAGE
    ),
    "check": lambda on: print_check(
        on, CheckReport(files=1, rows=1_200, runnable={LONGEST: 1_200})
    ),
    "compare": lambda on: print_comparison(on, comparison(metrics=[change(LONGEST)])),
    "gate": lambda on: print_gate(on, gate(metrics=[metric_verdict(LONGEST)])),
    "alerts": lambda on: print_alerts(on, BOOK, BOOK.alerts),
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_show_display_names_unbroken(table: str) -> None:
    """The longest of all at 80 columns; the name of the code is nowhere."""
    on = console(80)
    TABLES[table](on)
    whole, name = " ".join(printed(on).split()), display_name(LONGEST)
    assert whole.count(name) == printed(on).count(name) > 0
    assert LONGEST not in whole


def test_columns_that_say_nothing_are_left_out() -> None:
    """No row is left unscored, and each row is a question of its own."""
    on = console(80)
    print_summary(on, night(metrics=[summary("context_recall", 0.9, status={"scored": 200})]))
    assert "questions" not in printed(on)
    assert "Not scored" not in printed(on)


def test_what_is_not_scored_is_below_the_table() -> None:
    """By metric and status, so that the table stays narrow."""
    status = {"scored": 100, "over_budget": 1_200, "judge_failed": 34, "unreadable": 5}
    on = console(80)
    print_summary(on, night(metrics=[summary(LONGEST, 0.9, status=status, questions=7)]))
    table, _, rest = printed(on).partition("Not scored by ")
    assert max(len(line.rstrip()) for line in table.splitlines()) <= 80
    assert "0.900  [0.870, 0.930]" in table
    said = f"{display_name(LONGEST)}: 1,200 over budget, 34 judge failed, 5 unreadable\n"
    assert rest.startswith(said)


def test_a_panel_that_scored_nothing_has_no_table() -> None:
    """There is nothing to agree on."""
    on = console(80)
    judge = JudgeInfo(name="mean of a, b", fingerprint="f", panel=["a", "b"])
    print_summary(on, night(judge=judge, metrics=[summary("context_recall", None)]))
    assert "agreement" not in printed(on)
