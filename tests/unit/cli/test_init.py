"""`ragmetrics init`: from a team's own log to its first dashboard."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given, strategies as st

from ragmetrics.config import PRESETS, Rule
from ragmetrics.errors import InputError
from ragmetrics.logs import night_place
from ragmetrics.pipeline import Question, init_settings
from ragmetrics.pipeline.init.rule_limits import rule_limit
from ragmetrics.records import Summary
from ragmetrics.rules import DEFAULT_RULES, Known, why_it_cannot_fire
from tests.fakes.clients import Bucket
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl

DAY = "2026-11-19"
ROWS = make_rows(40, good=0.7)
Row = Mapping[str, Any]


def records(make: Callable[[Row], Row]) -> list[Row]:
    """A record for each row, with the tags that the rows have."""
    return [{**make(row), "section": ("billing", "travel")[n % 2]} for n, row in enumerate(ROWS)]


def lines(path: Path, make: Callable[[Row], Row]) -> None:
    """Write the records as JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records(make)), "utf-8")


def langchain_csv(folder: Path) -> str:
    """A table of ragas's old names, with lists as Python writes them."""
    frame = pd.DataFrame(
        records(
            lambda row: {
                "question": row["user_input"],
                "contexts": str(row["retrieved_contexts"]),
                "answer": row["response"],
                "ground_truth": row["reference"],
            }
        )
    )
    frame.to_csv(folder / f"export-{DAY}.csv", index=False)
    return f"export-{DAY}.csv"


def langchain_documents(folder: Path) -> str:
    """Results of a LangChain chain, with its documents."""
    lines(
        folder / f"{DAY}.jsonl",
        lambda row: {
            "query": row["user_input"],
            "result": row["response"],
            "source_documents": [
                {"page_content": text, "metadata": {"source": "a.pdf"}}
                for text in row["retrieved_contexts"]
            ],
        },
    )
    return f"{DAY}.jsonl"


def chat_messages(folder: Path) -> str:
    """Chat messages, and what was retrieved for the last one; a folder for each day."""
    (folder / f"dt={DAY}").mkdir()
    lines(
        folder / f"dt={DAY}" / "part-0.jsonl",
        lambda row: {
            "messages": [
                {"role": "system", "content": "You help."},
                {"role": "user", "content": row["user_input"]},
            ],
            "retrieved_chunks": [{"text": text} for text in row["retrieved_contexts"]],
        },
    )
    return "."


def joined_texts(folder: Path) -> str:
    """A table in which the contexts are one text."""
    frame = pd.DataFrame(
        records(
            lambda row: {
                "question": row["user_input"],
                "context": "\n---\n".join(row["retrieved_contexts"]),
            }
        )
    )
    frame.to_csv(folder / "20261119.csv", index=False)
    return "20261119.csv"


def nested_requests(folder: Path) -> str:
    """A service's own log, with question and documents far inside, in folders by day."""
    (folder / "2026/11/19").mkdir(parents=True)
    lines(
        folder / "2026/11/19/service.jsonl",
        lambda row: {
            "request": {"body": {"question": row["user_input"], "top_k": 2}},
            "retrieval": {
                "documents": [
                    {"text": text, "score": 0.5, "meta": {"page": 1}}
                    for text in row["retrieved_contexts"]
                ]
            },
            "generation": {"answer": row["response"]},
        },
    )
    return "2026"


def camel_case_parquet(folder: Path) -> str:
    """Parquet with other names."""
    frame = pd.DataFrame(
        records(
            lambda row: {
                "userQuery": row["user_input"],
                "retrievedChunks": [
                    {"content": text, "score": 0.5} for text in row["retrieved_contexts"]
                ],
                "latencyMs": 12.5,
            }
        )
    )
    frame.to_parquet(folder / f"{DAY}.parquet")
    return f"{DAY}.parquet"


def deepeval_cases(folder: Path) -> str:
    """Test cases of DeepEval, as one array."""
    found = records(
        lambda row: {
            "input": row["user_input"],
            "actual_output": row["response"],
            "expected_output": row["reference"],
            "retrieval_context": row["retrieved_contexts"],
        }
    )
    (folder / "cases.json").write_text(json.dumps(found), "utf-8")
    return "cases.json"


def german_keys(folder: Path) -> str:
    """Names that nobody can know; the values show what they are."""
    lines(
        folder / f"{DAY}.jsonl",
        lambda row: {
            "frage": row["user_input"],
            "fundstellen": row["retrieved_contexts"],
            "antwort": row["response"],
        },
    )
    return f"{DAY}.jsonl"


OWN = (
    langchain_csv,
    langchain_documents,
    chat_messages,
    joined_texts,
    nested_requests,
    camel_case_parquet,
    deepeval_cases,
    german_keys,
)
SAMPLES = PRESETS.bundled_names


@pytest.mark.parametrize("write", OWN)
def test_a_log_as_people_have_it_gets_to_a_dashboard_in_three_commands(
    write: Callable[[Path], str], run: Run
) -> None:
    """`init`, `nightly`, `dashboard`: no line of the settings is edited; every row is scored."""
    place = write(Path.cwd())
    made = run("init", place, "--yes")
    assert made.code == 0, made.err
    command = next(line for line in made.out.splitlines() if "ragmetrics nightly" in line)
    night = run(*command.split()[1:])
    assert night.code == 0, night.out + night.err
    assert "Rows: 40, quarantined: 0" in night.out
    assert run("dashboard").code == 0
    page = Path("ragmetrics-store/dashboard/index.html").read_text("utf-8")
    assert "context_relevance" in page


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_of_the_presets_get_to_a_dashboard(name: str, run: Run) -> None:
    """Their good rows are scored; each sample has bad ones on purpose, so the night says so."""
    write_jsonl(Path(f"{DAY}.jsonl"), PRESETS.find(name).sample)
    assert run("init", f"{DAY}.jsonl", "--yes").code in (0, 1)
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert written.get("preset") == (None if name == "ragas" else name)
    run("nightly", "--date", DAY)
    assert Path("ragmetrics-store/dashboard/index.html").exists()


def test_from_a_bucket_to_the_first_dashboard(run: Run, s3: Bucket) -> None:
    """The store is in the bucket of the logs; three commands, and nothing is edited."""
    data = "".join(json.dumps(row) + "\n" for row in ROWS)
    s3.client.put_object(Bucket=s3.name, Key=f"logs/dt={DAY}/part-0.jsonl", Body=data.encode())
    made = run("init", f"{s3.uri}/logs/", "--yes")
    assert made.code == 0, made.err
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert (written["logs"], written["store"]) == (
        f"{s3.uri}/logs/dt={{date}}/",
        f"{s3.uri}/ragmetrics",
    )
    assert run("nightly", "--date", DAY).code == 0
    assert run("dashboard").code == 0
    assert "ragmetrics/dashboard/index.html" in s3.keys("ragmetrics/dashboard/")


def test_the_place_of_a_night_is_found(run: Run) -> None:
    """A folder with a date for each day becomes a location with {date}."""
    chat_messages(Path.cwd())
    report = json.loads(run("init", ".", "--json").out)
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert written["logs"] == "dt={date}/"
    assert report["night"] == DAY


def test_few_values_become_tags(run: Run) -> None:
    """A key with few values is a tag, so that scores are shown by it."""
    langchain_documents(Path.cwd())
    assert "these tags: section" in run("init", f"{DAY}.jsonl", "--yes").out


def test_a_log_in_our_own_layout_gets_tags_too(run: Run) -> None:
    """Its other keys with few values; those under `tags` are tags already."""
    rows = [
        {**row, "section": ("billing", "app")[number % 2]}
        for number, row in enumerate(make_rows(40))
    ]
    write_jsonl(Path(f"{DAY}.jsonl"), rows)
    said = run("init", f"{DAY}.jsonl", "--yes").out
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert written["columns"] == {"tags.section": "section"}
    assert "channel" in said
    assert "section" in said


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            {"question": "Why is it so?", "doc_ids": ["a-1", "b-2"]},
            "retrieved passages? Found: question, doc_ids.",
        ),
        (
            {"contexts": ["It is so."], "latency": 3},
            "question of the user? Found: contexts, latency.",
        ),
    ],
    ids=["no contexts", "no question"],
)
def test_what_is_missing_is_said_in_one_sentence(record: Row, said: str, run: Run) -> None:
    """A log without contexts or questions is refused; no file is written."""
    Path("a.jsonl").write_text(json.dumps(record) + "\n", "utf-8")
    ended = run("init", "a.jsonl", "--yes")
    assert (ended.code, Path("ragmetrics.yaml").exists()) == (2, False)
    ask = f"Unknown log format. Which field holds the {said}"
    assert ask in " ".join(ended.err.split())


def test_an_empty_log_is_refused(run: Run) -> None:
    """A log without a record ends with exit code 2, and no file is written."""
    Path("a.jsonl").write_text("", "utf-8")
    ended = run("init", "a.jsonl", "--yes")
    assert (ended.code, Path("ragmetrics.yaml").exists()) == (2, False)
    assert "no row can be read" in ended.err


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


def test_a_metric_in_which_lower_is_better_gets_no_rule(run: Run) -> None:
    """Rules are for metrics in which higher is better; once the file had one that no night took."""
    deepeval_cases(Path.cwd())
    Path("ragmetrics.yaml").write_text("metrics: [noise_sensitivity, context_recall]\n", "utf-8")
    ended = run("init", "cases.json", "--yes")
    assert ended.code == 0, ended.err
    assert "Noise sensitivity gets no rule, because lower is better in it." in ended.out
    rules = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))["alerts"]["rules"]
    assert [rule["metric"] for rule in rules] == ["context_recall"]


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


def test_what_was_guessed_is_said(run: Run) -> None:
    """With the key, the field, and a request to look at it."""
    german_keys(Path.cwd())
    said = run("init", f"{DAY}.jsonl", "--yes").out
    assert "Guessed: `fundstellen` is read as retrieved_contexts. Please check." in said
    assert "Guessed: `antwort` is read as response. Please check." in said


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


def test_one_export_of_many_days_is_seen(run: Run) -> None:
    """Each day is a night; all but the newest are for the backfill."""
    days = [date(2026, 11, number) for number in (17, 18, 19)]
    write_jsonl(Path("export.jsonl"), [row for day in days for row in make_rows(30, night=day)])
    ended = run("init", "export.jsonl", "--yes")
    assert "rows of 3 days, 2026-11-17 to 2026-11-19: each is a night" in ended.out
    assert "backfill --first 2026-11-17 --last 2026-11-18" in ended.out
    assert yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))["split_nights"] is True


def test_metrics_of_the_settings_get_rules(run: Run) -> None:
    """Not only those of the default settings; the table has the names of the pages."""
    rows = [
        {**row, "retrieved_context_ids": ["a", f"b{n}"], "reference_context_ids": ["a"]}
        for n, row in enumerate(ROWS)
    ]
    write_jsonl(Path(f"{DAY}.jsonl"), rows)
    Path("ragmetrics.yaml").write_text("metrics: [mrr, context_recall]\n", "utf-8")
    ended = run("init", f"{DAY}.jsonl", "--yes")
    rules = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))["alerts"]["rules"]
    assert [rule["metric"] for rule in rules] == ["context_recall", "mrr"]
    assert "Context recall" in ended.out


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
    Path("log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in made), "utf-8")
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


@pytest.mark.parametrize(
    ("paths", "logs"),
    [
        (
            ["s3://b/x/dt=2026-11-18/a.jsonl", "s3://b/x/dt=2026-11-19/a.jsonl"],
            "s3://b/x/dt={date}/",
        ),
        (["x/2026/11/19/a.jsonl"], "x/{date:%Y/%m/%d}/"),
        (["x/year=2026/month=11/day=19/a.csv"], "x/{date:year=%Y/month=%m/day=%d}/"),
        (["x/log_20261119.csv.gz"], "x/log_{date:%Y%m%d}.csv.gz"),
        (["x/2026-11-19T01.jsonl", "x/2026-11-19T02.jsonl"], "x/{date}*.jsonl"),
        (["x/2026-11-19/rows-2026-11-19.jsonl"], "x/{date}/rows-{date}.jsonl"),
        (["x/20269919.csv"], "here"),
        (["x/a.csv"], "here"),
    ],
)
def test_dates_in_names(paths: Sequence[str], logs: str) -> None:
    """The date of a folder or file becomes {date}; digits that are no date stay."""
    assert night_place("here", paths).logs == logs


def summary(mean: float, mde: float, rows: int) -> Summary:
    """A mean with its detectable drop."""
    return Summary(
        metric="context_relevance",
        mean=mean,
        low=None,
        high=None,
        mde=mde,
        scored=rows,
        questions=rows,
        status={"scored": rows},
        fingerprint="f",
    )


@given(mde=st.floats(0.0, 0.3), rows=st.integers(20, 50_000), share=st.floats(0.001, 0.05))
def test_limits_follow_from_the_variance(mde: float, rows: int, share: float) -> None:
    """A rule never promises more false alarms than the settings allow, and detects more than its
    limit."""
    found = rule_limit([summary(0.6, mde, rows)], rows, DEFAULT_RULES[0], false_alarms=share)
    assert found is not None
    assert found.false_alarms <= 365 * share + 1e-9
    assert found.detects >= min(found.max_drop, 0.6 * found.max_share) >= 0.03


@given(
    mean=st.floats(0.001, 1.0),
    mde=st.floats(0.0, 0.3),
    rows=st.integers(20, 50_000),
    rule=st.sampled_from(DEFAULT_RULES),
)
def test_no_limit_is_more_than_what_can_fall(
    mean: float, mde: float, rows: int, rule: Rule
) -> None:
    """Whatever the mean, the rule that is written can fire, and its `min` is at least half of the
    mean and at most 85% of it.
    """
    found = rule_limit([summary(mean, mde, rows)], rows, rule, false_alarms=0.01)
    assert found is not None
    written = Rule(metric=rule.metric, max_drop=found.max_drop, max_share=found.max_share)
    assert not why_it_cannot_fire(written, Known(mean=mean, rows=rows))
    assert found.sees or found.detects >= mean
    assert found.least is None or mean / 2 - 0.01 <= found.least <= 0.85 * mean + 1e-9


def test_a_floor_is_where_the_metric_would_hurt() -> None:
    """A fall of recall from 0.86 to 0.69 is below it: once it was four drops below, at 0.45. Nights
    that differ much have a lower one.
    """
    steady = [summary(0.86, 0.05, 200)]
    found = rule_limit(steady, 200, DEFAULT_RULES[0], false_alarms=0.01)
    assert found is not None
    assert found.least == 0.73
    restless = [summary(mean, 0.05, 200) for mean in (0.94, 0.86, 0.78)]
    found = rule_limit(restless, 200, DEFAULT_RULES[0], false_alarms=0.01)
    assert found is not None
    assert found.least == pytest.approx(0.86 - 3 * 0.08)


@pytest.mark.parametrize(
    ("a_year", "text"),
    [
        (1.234, "at most 1.2 false alarms a year"),
        (0.1, "at most 0.1 false alarms a year"),
        (0.03, "less than one false alarm in 30 years"),
        (0.0028, "less than one false alarm in 300 years"),
        (0.0, "less than one false alarm in 1,000 years"),
    ],
)
def test_rare_false_alarms_are_told_in_years(a_year: float, text: str) -> None:
    """No rule has "0.0 false alarms a year"."""
    found = rule_limit([summary(0.6, 0.05, 1000)], 1000, DEFAULT_RULES[0], false_alarms=0.01)
    assert found is not None
    assert replace(found, false_alarms=a_year).false_alarms_text == text


def test_a_metric_whose_fall_to_0_is_found_can_see_a_regression() -> None:
    """A night that fell to 0 has no spread of its own; one with a larger spread stays blind."""
    for mde, sees in ((0.06, True), (0.07, False)):
        found = rule_limit([summary(0.07, mde, 100)], 100, DEFAULT_RULES[0], false_alarms=0.01)
        assert found is not None
        assert found.detects > found.mean
        assert found.sees is sees


def test_more_rows_a_night_see_smaller_drops() -> None:
    """A sample of ten nights says less of each night than a night of all its rows."""
    nights = [summary(0.6, 0.05, 1000)]
    one, ten = (rule_limit(nights, n, DEFAULT_RULES[0], false_alarms=0.01) for n in (1000, 100))
    assert one is not None and ten is not None
    assert one.detects < ten.detects


def test_a_place_without_logs_is_refused(tmp_path: Path) -> None:
    """As everywhere: no such log."""
    with pytest.raises(InputError, match="no such log"):
        init_settings(str(tmp_path / "none.jsonl"), tmp_path / "ragmetrics.yaml")


def test_only_the_newest_week_is_read(tmp_path: Path) -> None:
    """A bucket has the logs of a year: the rows of seven nights are enough."""
    for number in range(10, 20):
        path = tmp_path / f"2026-11-{number}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    report = init_settings(str(tmp_path), tmp_path / "ragmetrics.yaml")
    assert (report.check.files, report.check.rows) == (7, 7 * len(ROWS))


def test_the_newest_day_is_the_night(tmp_path: Path) -> None:
    """Of several days the newest is proposed, and rows a night are those of one day."""
    for day in ("2026-11-17", "2026-11-19", "2026-11-18"):
        rows = make_rows(30, night=date.fromisoformat(day))
        path = tmp_path / f"{day}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    report = init_settings(str(tmp_path), tmp_path / "ragmetrics.yaml")
    assert report.day == date(2026, 11, 19)
    assert "of 3 nights" in (tmp_path / "ragmetrics.yaml").read_text("utf-8")
