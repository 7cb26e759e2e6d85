"""`ragmetrics init` with a settings file that exists, and what it says of the rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.fakes.command import Run
from tests.fakes.own_logs import (
    DAY,
    deepeval_cases,
    lines,
)


def test_a_file_that_exists_is_completed(run: Run) -> None:
    """Its lines stay, what it lacks follows, once; --force replaces it."""
    deepeval_cases(Path.cwd())
    mine = "dataset: mine    # ours\njudge: {name: openai, model: gpt-6-luna}\n"
    Path("ragmetrics.yaml").write_text(mine, "utf-8")
    ended = run("init", "cases.json", "--yes")
    assert ended.code == 0, ended.err
    text = Path("ragmetrics.yaml").read_text("utf-8")
    written = yaml.safe_load(text)
    assert text.startswith(mine)
    assert "Completed ragmetrics.yaml" in ended.out
    assert written["columns"]["retrieved_contexts"] == "retrieval_context"
    assert written["alerts"]["rules"] and written["judge"]["name"] == "openai"
    assert run("init", "cases.json", "--yes").code == 0
    assert Path("ragmetrics.yaml").read_text("utf-8") == text
    assert run("init", "cases.json", "--yes", "--force").code == 0
    assert "mine" not in Path("ragmetrics.yaml").read_text("utf-8")


@pytest.mark.parametrize("indent", ["  ", "    "])
def test_rules_go_below_alerts_that_exist(run: Run, indent: str) -> None:
    """With the indentation of the other keys, which stay."""
    deepeval_cases(Path.cwd())
    alerts = f"alerts:    # ours\n{indent}max_outside: 0.9\n"
    Path("ragmetrics.yaml").write_text(f"{alerts}dataset: mine\n", "utf-8")
    assert run("init", "cases.json", "--yes").code == 0
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert written["alerts"]["max_outside"] == 0.9
    assert {rule["metric"] for rule in written["alerts"]["rules"]} >= {"context_recall"}


@pytest.mark.parametrize(
    "alerts",
    [
        "alerts: {max_outside: 0.9}    # ours\n",
        "alerts: {\n  max_outside: 0.9,\n}\n",
        "alerts: {}\n",
        "alerts:\n",
        "alerts: null    # none yet\n",
        "alerts: ~",
    ],
)
def test_rules_go_into_alerts_of_any_form(run: Run, alerts: str) -> None:
    """In braces, empty, or without a value: what is there stays, and a repeat changes nothing."""
    deepeval_cases(Path.cwd())
    Path("ragmetrics.yaml").write_text(f"dataset: mine\n{alerts}", "utf-8")
    assert run("init", "cases.json", "--yes").code == 0
    text = Path("ragmetrics.yaml").read_text("utf-8")
    written = yaml.safe_load(text)
    assert {rule["metric"] for rule in written["alerts"]["rules"]} >= {"context_recall"}
    assert written["alerts"].get("max_outside", 0.9) == 0.9 and written["dataset"] == "mine"
    assert run("init", "cases.json", "--yes").code == 0
    assert Path("ragmetrics.yaml").read_text("utf-8") == text


def test_rules_that_cannot_be_added_are_said_in_full(run: Run) -> None:
    """In one sentence, from which they can be pasted."""
    deepeval_cases(Path.cwd())
    Path("ragmetrics.yaml").write_text('"alerts": {max_outside: 0.9}\n', "utf-8")
    report = json.loads(run("init", "cases.json", "--json").out)
    said = next(line for line in report["found"] if "yourself" in line)
    pasted = yaml.safe_load(said.partition("yourself: ")[2])
    assert [rule["metric"] for rule in pasted["rules"]] == [r["metric"] for r in report["rules"]]
    assert "rules" not in yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))["alerts"]


def test_a_file_to_which_no_line_can_be_added_stays(run: Run) -> None:
    """All its keys are in braces; the error says what to do."""
    deepeval_cases(Path.cwd())
    Path("ragmetrics.yaml").write_text("{dataset: mine}\n", "utf-8")
    ended = run("init", "cases.json", "--yes")
    assert (ended.code, "each of its keys on a line of its own" in " ".join(ended.err.split())) == (
        2,
        True,
    )
    assert Path("ragmetrics.yaml").read_text("utf-8") == "{dataset: mine}\n"


def test_a_metric_in_which_lower_is_better_gets_a_rule_on_its_rise(run: Run) -> None:
    """It has a largest change for the worse, and no min."""
    deepeval_cases(Path.cwd())
    Path("ragmetrics.yaml").write_text("metrics: [noise_sensitivity, context_recall]\n", "utf-8")
    ended = run("init", "cases.json", "--yes")
    assert ended.code == 0, ended.err
    rules = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))["alerts"]["rules"]
    assert [rule["metric"] for rule in rules] == ["context_recall", "noise_sensitivity"]
    assert "min" not in rules[1]


def test_keys_that_may_be_an_answer_are_named(run: Run) -> None:
    """Two keys with sentences leave a doubt: neither is read, and both are said."""
    lines(
        Path(f"{DAY}.jsonl"),
        lambda row: {
            "frage": row["user_input"],
            "fundstellen": row["retrieved_contexts"],
            "antwort": row["response"],
            "musterantwort": row["reference"],
        },
    )
    said = " ".join(run("init", f"{DAY}.jsonl", "--yes").out.split())
    assert (
        "Not read: `antwort`, `musterantwort`. If one of them is the response or the reference"
    ) in said


def test_a_file_that_is_not_valid_is_left_alone(run: Run) -> None:
    """A mistake in it is named."""
    deepeval_cases(Path.cwd())
    Path("ragmetrics.yaml").write_text("datset: mine\n", "utf-8")
    ended = run("init", "cases.json", "--yes")
    assert (ended.code, "datset" in ended.err) == (2, True)
    assert Path("ragmetrics.yaml").read_text("utf-8") == "datset: mine\n"
