"""The questions of `ragmetrics init`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ragmetrics.pipeline import Question, init_settings
from tests.fakes.command import Run
from tests.fakes.logs import write_jsonl
from tests.fakes.own_logs import (
    DAY,
    ROWS,
    german_keys,
)


def test_six_questions_are_the_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fields come first; then the likeliest answer is taken."""
    monkeypatch.chdir(tmp_path)
    records = [
        {
            "frage": row["user_input"],
            "thema": f"{row['user_input']} Wirklich?",
            "fundstellen": row["retrieved_contexts"],
            "quellen": row["retrieved_contexts"][::-1],
            "answer": row["response"],
            "generated_answer": row["response"] + " ",
            "ground_truth": row["reference"],
            "gold_answer": row["reference"] + " ",
            "doc_ids": ["a", "b"],
            "chunk_ids": ["c", "d"],
            "index_build": "7",
            "index_version": "8",
            "created_at": row["timestamp"],
            "timestamp": row["timestamp"].replace("T00", "T01"),
        }
        for row in ROWS
    ]
    write_jsonl(Path("log.jsonl"), records)
    asked: list[Question] = []

    def answer(question: Question) -> str:
        asked.append(question)
        return question.default

    init_settings("log.jsonl", Path("ragmetrics.yaml"), answer)
    assert len(asked) == 6
    assert [question.text for question in asked[:2]] == [
        "Which field holds the question of the user?",
        "Which field holds the retrieved passages?",
    ]
    assert asked[0].samples["frage"] == ROWS[0]["user_input"]
    assert "none" in asked[2].options and "none" not in asked[0].options


def test_the_keys_are_shown_with_values_and_hostile_ones_are_harmless(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number or a key answers, anything else is asked again; no text moves the cursor."""
    records = [
        {"a": "\x1b[2J\u202eWhere?", "b\x1b]0;x\x07": row["retrieved_contexts"], "c": f"{n}?"}
        for n, row in enumerate(ROWS)
    ]
    write_jsonl(Path("log.jsonl"), records)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")  # or the console of a first command has styles of its own
    answers = iter(["nonsense", "3", "", "", ""])
    monkeypatch.setattr("typer.prompt", lambda text, default, **_: next(answers) or default)
    ended = run("init", "log.jsonl")
    assert ended.code == 0, ended.err
    assert "key of the log" in ended.out and "Where?" in ended.out
    assert "Please answer with a number or a key of the list." in ended.out
    assert not {"\x1b", "\u202e", "\x07"} & set(ended.out)
    assert (
        yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))["columns"]["user_input"] == "c"
    )


def test_a_pipe_is_asked_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ends have to be terminals."""
    german_keys(Path.cwd())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert run("init", f"{DAY}.jsonl").code == 0


def test_two_keys_where_the_logs_are_and_the_judge_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers are in the file."""
    monkeypatch.chdir(tmp_path)
    made = [
        {
            "frage": row["user_input"],
            "thema": f"{row['user_input']} Wirklich?",
            "fundstellen": row["retrieved_contexts"],
            "quellen": row["retrieved_contexts"][::-1],
        }
        for row in ROWS
    ]
    Path("log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in made), "utf-8")
    answers = iter(["thema", "quellen", "log-{date}.jsonl", "openai"])
    asked: list[Question] = []

    def answer(question: Question) -> str:
        asked.append(question)
        return next(answers)

    init_settings("log.jsonl", Path("ragmetrics.yaml"), answer)
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert len(asked) == 4
    assert written["columns"] == {"user_input": "thema", "retrieved_contexts": "quellen"}
    assert (written["logs"], written["judge"]["name"]) == ("log-{date}.jsonl", "openai")


def test_hostile_keys_stay_text(run: Run) -> None:
    """A key or value of a log cannot write another line into the settings."""
    hostile = "x: y\njudge: {name: openai, base_url: http://evil}\n#"
    rows = [
        {hostile: row["user_input"], "retrieved_contexts": row["retrieved_contexts"]}
        for row in ROWS
    ]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    run("init", "a.jsonl", "--yes")
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert written["judge"] == "lexical"
    assert written["columns"] == {"user_input": hostile}
