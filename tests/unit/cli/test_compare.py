"""`ragmetrics compare`: what is printed, and the exit code that a pipeline acts on."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest
import yaml

from ragmetrics.metrics import display_name
from tests.builders import save_settings
from tests.fakes.build_logs import METRICS, damaged, golden
from tests.fakes.command import Ended, Run
from tests.fakes.logs import make_rows, write_jsonl

ROWS = golden(80)
NAMES = [display_name(metric) for metric in METRICS]
HOSTILE = "[red]tower[/red] \x1b[31m\u202e :smile:"


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """Two logs, the second by an index that lost a fifth of its rows."""
    now = damaged(ROWS, 0.2, seed=3)
    return write_jsonl(tmp_path / "a.jsonl", ROWS), write_jsonl(tmp_path / "b.jsonl", now)


def compare(run: Run, logs: tuple[Path, Path], *more: object) -> Ended:
    """`ragmetrics compare BEFORE AFTER`, by two metrics."""
    return run("compare", *logs, "--metrics", ",".join(METRICS), *more)


def test_two_logs_need_no_settings(run: Run, logs: tuple[Path, Path]) -> None:
    """A line per metric, the questions that moved, and exit code 0: it is a report."""
    ended = compare(run, logs)
    assert (ended.code, ended.err) == (0, "")
    for text in (*NAMES, "80 in pairs", "Moved furthest by Context recall:", "1.000 → 0.000"):
        assert text in ended.out
    assert f"\nBefore: {logs[0]}, 80 rows of default\nAfter: {logs[1]}, 80 rows" in ended.out
    assert not list(Path.cwd().iterdir())


def test_one_log_of_many_days_is_split_by_a_day(run: Run, tmp_path: Path) -> None:
    """The rows from that day on are the second side."""
    rows = [
        row
        for number, good in ((17, 1.0), (18, 1.0), (19, 0.2))
        for row in make_rows(20, good=good, night=date(2026, 11, number))
    ]
    place = write_jsonl(tmp_path / "export.jsonl", rows)
    ended = run("compare", place, "--split", "2026-11-19", "--metrics", "context_relevance")
    assert ended.code == 0, ended.err
    assert "40 rows" in ended.out and "20 rows" in ended.out
    assert "same data" not in ended.out
    assert "from 2026-11-19" in ended.out
    assert run("compare", place).code == 2
    assert run("compare", place, place, "--split", "2026-11-19").code == 2


def test_rows_are_as_many_as_asked_for(run: Run, logs: tuple[Path, Path]) -> None:
    """Per metric; none at all with 0."""
    assert len(re.findall(r"\n  \d\.\d+ → ", compare(run, logs, "--rows", 2).out)) == 2 * len(
        METRICS
    )
    assert "Moved" not in compare(run, logs, "--rows", 0).out


def test_by_tag_has_a_table_of_its_own(run: Run, logs: tuple[Path, Path]) -> None:
    """With the values of the tag on both sides."""
    lines = compare(run, logs, "--by", "channel", "--rows", 0).out.splitlines()
    told = [line.split()[:2] for line in lines]
    assert ["channel", "metric"] in told
    assert sorted(one[0] for one in told if one and one[0] in ("app", "web")) == [
        value for value in ("app", "web") for _ in METRICS
    ]


def test_without_by_what_got_worse_is_named_and_fails_nothing(
    run: Run, logs: tuple[Path, Path]
) -> None:
    """One channel lost most: *Where* names it, and its tag has a table of what got worse."""
    app, web = ([row for row in ROWS if row["tags"]["channel"] == one] for one in ("app", "web"))
    write_jsonl(logs[1], [*web, *damaged(app, 0.5, seed=1)])
    ended = compare(run, logs, "--rows", 0, "--fail-on-drop", 0.35)
    assert (ended.code, ended.err) == (0, "")
    assert re.search(r"\nWhere: .*channel=app \(1\.00 → 0\.\d+\)", ended.out)
    assert "\n app " in ended.out and "\n web " not in ended.out
    assert compare(run, logs, "--by", "channel", "--fail-on-drop", 0.35).code == 1


def test_of_many_segments_those_that_most_likely_got_worse_are_shown(
    run: Run, logs: tuple[Path, Path]
) -> None:
    """And how many there are besides."""
    rows = [
        [{**row, "tags": {"number": str(n // 2)}} for n, row in enumerate(side)]
        for side in (ROWS, damaged(ROWS, 0.2, seed=3))
    ]
    many = compare(
        run, (write_jsonl(logs[0], rows[0]), write_jsonl(logs[1], rows[1])), "--by", "number"
    )
    assert "and 60 that contribute less to a loss: --json has them all" in many.out


def test_a_tag_that_there_is_not_ends_with_the_tags_that_there_are(
    run: Run, logs: tuple[Path, Path]
) -> None:
    """With exit code 2, and no names that a terminal would act on."""
    rows = [{**row, "tags": {"section": "x", "\x1b[31mred": "y"}} for row in ROWS]
    ended = compare(run, (write_jsonl(logs[0], rows), write_jsonl(logs[1], rows)), "--by", "secton")
    assert (ended.code, ended.out, "\x1b" in ended.err) == (2, "", False)
    assert "no scored row has the tag secton; tags of the rows: " in ended.err
    assert "section" in ended.err


def test_a_page_is_written_into_the_dashboard_of_the_store(
    run: Run, logs: tuple[Path, Path], tmp_path: Path
) -> None:
    """Named by what the sides were called; where it is, is the last line."""
    ended = compare(run, logs, "--by", "channel", "--page", "--store", tmp_path / "store")
    assert ended.code == 0
    line = ended.out.splitlines()[-1]
    assert line.startswith(f"Page: {tmp_path}/store/dashboard/compare/")
    html = Path(line.removeprefix("Page: ")).read_text()
    for told in ("significantly worse", "context_recall", "By <bdi>channel</bdi>"):
        assert told in html


def test_a_page_may_go_into_any_folder(run: Run, logs: tuple[Path, Path], tmp_path: Path) -> None:
    """With its style beside it; beside JSON its path is no part of that."""
    ended = compare(run, logs, "--site", tmp_path / "site", "--json")
    (written,) = (tmp_path / "site" / "compare").iterdir()
    assert ended.err == f"Page: {written}\n"
    assert json.loads(ended.out)["rows"]
    assert list((tmp_path / "site" / "assets").glob("*.css"))
    assert not list(Path.cwd().iterdir())


def test_a_page_hides_what_the_settings_hide(
    run: Run, logs: tuple[Path, Path], tmp_path: Path
) -> None:
    """With `redact` no question or context is on it, though the terminal shows them."""
    settings = save_settings(
        tmp_path, name="settings.yaml", redact=True, store=str(tmp_path / "store")
    )
    ended = compare(run, logs, "--settings", settings, "--page")
    html = Path(ended.out.splitlines()[-1].removeprefix("Page: ")).read_text()
    assert "What is the height" in ended.out
    for word in ("tower", "metres", "Ferries", "Museums"):
        assert word not in html, word


def test_json_is_one_object(run: Run, logs: tuple[Path, Path]) -> None:
    """With all that the terminal shows."""
    ended = compare(run, logs, "--by", "channel", "--json")
    told = json.loads(ended.out)
    assert (ended.code, ended.err) == (0, "")
    recall = next(metric for metric in told["metrics"] if metric["metric"] == "context_recall")
    assert recall["difference"] == pytest.approx(recall["mean_b"] - recall["mean_a"])
    assert recall["low"] < recall["difference"] < recall["high"] < 0
    assert recall["p_value"] < 0.001
    assert {segment["segment"]["value"] for segment in told["segments"]} == {"app", "web"}


def test_a_sure_drop_fails_where_that_was_asked(run: Run, logs: tuple[Path, Path]) -> None:
    """Exit code 1, with what fell on stderr; a limit that was not passed is exit code 0."""
    ended = compare(run, logs, "--fail-on-drop", 0.05)
    assert ended.code == 1
    assert "Context recall fell significantly, by 0.1" in ended.err
    assert compare(run, logs, "--fail-on-drop", 0.9).code == 0
    assert compare(run, (logs[0], logs[0]), "--fail-on-drop", 0).code == 0


def test_what_nobody_can_tell_does_not_pass(run: Run, tmp_path: Path) -> None:
    """A metric that A has and B cannot be scored by: exit code 2, if dropping was asked about."""
    bare = [{name: row[name] for name in row if name != "reference"} for row in ROWS]
    logs = write_jsonl(tmp_path / "a.jsonl", ROWS), write_jsonl(tmp_path / "b.jsonl", bare)
    assert compare(run, logs).code == 0
    ended = compare(run, logs, "--fail-on-drop", 0.05)
    assert ended.code == 2
    assert ended.err == "ragmetrics: undecided: Context recall; choose others with --metrics\n"
    assert "Not compared: Context recall: no row was scored after" in ended.out


def test_where_nothing_could_be_compared_the_exit_code_says_so(run: Run, tmp_path: Path) -> None:
    """One question is none: exit code 2, also without `--fail-on-drop`, and no empty table."""
    log = write_jsonl(tmp_path / "a.jsonl", ROWS[:1])
    ended = compare(run, (log, log))
    assert (ended.code, ended.err) == (2, "ragmetrics: no metric could be compared\n")
    assert "Not compared: Context recall: less than two questions to compare" in ended.out
    sides = f"Before: {log}, 1 row of default\nAfter: "
    assert ended.out.startswith(f"Nothing can be compared.\n{sides}")
    assert "change [95%]" not in ended.out


def test_a_metric_that_applies_to_neither_side_is_no_obstacle(run: Run, tmp_path: Path) -> None:
    """Rows without references were never scored by recall."""
    bare = [{name: row[name] for name in row if name != "reference"} for row in ROWS]
    log = write_jsonl(tmp_path / "a.jsonl", bare)
    assert compare(run, (log, log), "--fail-on-drop", 0.05).code == 0


def test_the_settings_of_the_folder_are_used(
    run: Run, logs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ragmetrics.yaml`, as by `ragmetrics gate`, where no other is named."""
    monkeypatch.chdir(logs[0].parent)
    Path("ragmetrics.yaml").write_text(yaml.safe_dump({"dataset": "towers", "metrics": METRICS}))
    ended = run("compare", "a.jsonl", "b.jsonl")
    assert ended.code == 0
    assert "Before: a.jsonl, 80 rows of towers\n" in ended.out


def test_text_of_logs_is_shown_as_text(run: Run, tmp_path: Path) -> None:
    """No markup, no escape code and no direction of a question or a tag reaches the terminal."""
    rows = [
        {**row, "user_input": f"{HOSTILE} {n}", "tags": {"channel": HOSTILE}}
        for n, row in enumerate(ROWS)
    ]
    logs = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_jsonl(logs[0], rows)
    write_jsonl(logs[1], damaged(rows, 0.2, seed=3))
    ended = compare(run, logs, "--by", "channel")
    assert "[red]tower[/red] [31m :smile:" in ended.out
    assert not set("\x1b\u202e") & set(ended.out)


def test_an_error_is_exit_code_2(run: Run, logs: tuple[Path, Path]) -> None:
    """Nothing on stdout, one line on stderr."""
    ended = run("compare", logs[0], "2026-11-19", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("ragmetrics: 2026-11-19: no run of that night in ")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("b", "first"),
    [
        (0, "None of 2 metrics is significantly worse."),
        (1, "2 of 2 metrics are significantly worse.\nWhat: Context recall fell from 0.9"),
    ],
)
def test_the_first_line_is_the_verdict(
    run: Run, logs: tuple[Path, Path], b: int, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no line of the tables is wider than a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    ended = compare(run, (logs[0], logs[b]), "--by", "channel")
    assert ended.out.startswith(first)
    tables = [line for line in ended.out.splitlines() if line.startswith(" ") and "→" not in line]
    assert max(map(len, tables)) <= 80


def test_the_page_compare_and_the_gate_count_the_same(run: Run, tmp_path: Path) -> None:
    """Also where many segments, of which the page and the gate have tables, hardly changed."""
    days, counts = ("2026-11-18", "2026-11-19"), []
    rows = [{**row, "tags": {"number": str(n // 3)}} for n, row in enumerate(ROWS)]
    sides = {"b1": rows, "b2": damaged(rows, 0.08, seed=4)}
    rules = [{"metric": metric, "max_drop": 0.01} for metric in METRICS]
    settings = save_settings(
        tmp_path,
        {
            "logs": "{date}/",
            "store": "store",
            "metrics": METRICS,
            "segments": ["number"],
            "gate": {"logs": "builds/{build}.jsonl", "rules": rules},
        },
    )
    for day, (build, side) in zip(days, sides.items(), strict=True):
        log = [{**row, "index_build": build} for row in side]
        write_jsonl(tmp_path / day / "log.jsonl", log)
        write_jsonl(tmp_path / "builds" / f"{build}.jsonl", log)
        assert run("nightly", "--date", day, "--settings", settings).code == 0
    page = tmp_path / "store" / "dashboard" / days[1] / "changes.html"
    gate = ("gate", "--build", "b2", "--against", "b1", "--settings", settings)
    outputs = page.read_text(), run("compare", *days, "--settings", settings).out, run(*gate).out
    for output in outputs:
        found = re.search(r"\w+ of \d+ metrics? (is|are) significantly worse", output)
        counts.append(found and found[0])
    segmented = run("compare", *days, "--by", "number", "--settings", settings).out
    assert counts == ["2 of 2 metrics are significantly worse"] * 3
    assert segmented.startswith(counts[0])
