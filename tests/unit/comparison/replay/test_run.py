"""Replays: the golden questions asked of a search over HTTP, and the log that comes of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragmetrics.comparison import run_replay
from ragmetrics.config import RetrieverSettings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.logs import log_set
from ragmetrics.records import LogRow
from ragmetrics.retriever.questions import Question, read_answer
from tests.fakes.clients import Bucket
from tests.fakes.logs import write_jsonl
from tests.fakes.replays import BUILD, golden_rows, hurry, log_rows, replaying
from tests.fakes.retriever import SearchServer, hits_of


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def test_a_replay_writes_a_row_for_each_golden_question(
    tmp_path: Path, search_server: SearchServer
) -> None:
    """In the golden set's order, with contexts, ids, scores, response, build, time and tags."""
    before = datetime.now(UTC)
    done = run_replay(replaying(tmp_path, search_server), BUILD)
    assert (done.rows, done.questions, done.asked, done.found) == (12, 12, 12, 0)
    assert (done.failed, done.empty, done.setbacks) == ({}, 0, {})
    assert done.place == str(tmp_path / "builds" / BUILD / "replay.jsonl")
    rows = log_rows(Path(done.place))
    assert [row["id"] for row in rows] == [row["id"] for row in golden_rows()]
    question = "What is the height of tower 000?"
    moment = datetime.fromisoformat(rows[0].pop("timestamp"))
    assert before <= moment <= datetime.now(UTC)
    assert rows[0] == {
        "id": "gold-000",
        "user_input": question,
        "retrieved_contexts": [hit["text"] for hit in hits_of(question, BUILD)],
        "response": f"On {question}",
        "retrieved_context_ids": [hit["id"] for hit in hits_of(question, BUILD)],
        "retrieved_context_scores": [hit["score"] for hit in hits_of(question, BUILD)],
        "index_build": BUILD,
        "language": "en",
        "tags": {"section": "towers"},
    }


def test_the_log_is_one_of_ours(tmp_path: Path, search_server: SearchServer) -> None:
    """Every reader of logs takes it, and sees nothing else beside it."""
    settings = replaying(tmp_path, search_server)
    run_replay(settings, BUILD)
    logs = log_set(settings, str(tmp_path / "builds" / BUILD))
    assert [info.path for info in logs.infos] == ["replay.jsonl"]
    rows = list(logs.read())
    assert len(rows) == 12
    assert all(isinstance(row, LogRow) for row in rows)


def test_a_replay_by_get(tmp_path: Path, search_server: SearchServer) -> None:
    """Parameters are encoded, whatever a question holds; a list gives one for each item."""
    hostile = 'a&build=evil#x?y=%20 +"{build}"\n\x00é'
    settings = replaying(
        tmp_path,
        search_server,
        [{"user_input": hostile, "language": "de"}],
        url=f"{search_server.root}/search",
        method="GET",
        body=None,
        params={"q": "{user_input}", "build": "{build}", "k": 3, "in": ["a", "{language}"]},
    )
    assert run_replay(settings, BUILD).rows == 1
    expected = [("q", hostile), ("build", BUILD), ("k", "3"), ("in", "a"), ("in", "de")]
    assert [tuple(pair) for pair in search_server.stats()["last_query"]] == expected


def test_the_body_is_json_made_from_the_template(
    tmp_path: Path, search_server: SearchServer
) -> None:
    """Texts are filled in wherever they stand; numbers, nulls and other braces stay."""
    body = {
        "query": "{user_input}",
        "k": 3,
        "filter": [{"lang": "{language}"}, None, True],
        "graphql": "{hits{text}}",
        "ask": "{id}@{build}: {user_input}",
    }
    hostile = '"}, "k": 9, {build} {{id}} \\ \u2028 \x00'
    settings = replaying(tmp_path, search_server, [{"id": 7, "user_input": hostile}], body=body)
    assert run_replay(settings, BUILD).rows == 1
    assert json.loads(search_server.stats()["last_body"]) == {
        "query": hostile,
        "k": 3,
        "filter": [{"lang": "en"}, None, True],
        "graphql": "{hits{text}}",
        "ask": f"7@{BUILD}: {hostile}",
    }
    assert log_rows(tmp_path / "builds" / BUILD / "replay.jsonl")[0]["user_input"] == hostile


def test_a_search_that_finds_nothing_has_rows_without_contexts(
    tmp_path: Path, search_server: SearchServer
) -> None:
    """No hits, as an empty list or as null, is an answer, and a bad one: no failure."""
    search_server.faults(fail={"no hits": 0.5, "null hits": 0.5})
    done = run_replay(replaying(tmp_path, search_server), BUILD)
    assert (done.rows, done.empty, done.failed) == (12, 12, {})
    rows = log_rows(Path(done.place))
    assert all(row["retrieved_contexts"] == [] for row in rows)


def test_questions_are_asked_side_by_side(tmp_path: Path, search_server: SearchServer) -> None:
    """As many as the settings say, and no more."""
    search_server.faults(latency_ms=400)
    run_replay(replaying(tmp_path, search_server, concurrency=3), BUILD)
    assert search_server.stats()["max_in_flight"] == 3


def test_requests_a_second_are_kept_to(tmp_path: Path, search_server: SearchServer) -> None:
    """Eight questions at twenty a second take at least seven twentieths of one."""
    settings = replaying(tmp_path, search_server, golden_rows(8), requests_per_second=20)
    assert run_replay(settings, BUILD).seconds >= 0.35


def test_keys_come_from_the_environment(
    tmp_path: Path, search_server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is the whole header, or stands in a text; other headers stand in the file."""
    monkeypatch.setenv("SEARCH_TOKEN", "s3cr3t-token\n")
    search_server.faults(token="Bearer s3cr3t-token")
    settings = replaying(
        tmp_path,
        search_server,
        headers={"X-Tenant": "shop", "user-agent": "mine"},
        headers_env={"Authorization": "Bearer {SEARCH_TOKEN}", "X-Api-Key": "SEARCH_TOKEN"},
    )
    assert run_replay(settings, BUILD).rows == 12
    headers = search_server.stats()["last_headers"]
    assert headers["x-api-key"] == "s3cr3t-token"
    assert (headers["x-tenant"], headers["user-agent"]) == ("shop", "mine")


def test_the_golden_set_is_asked_once_each(tmp_path: Path, search_server: SearchServer) -> None:
    """A row that stands twice is one question; equal questions under two ids are two rows; rows
    without a question are counted."""
    rows = [
        {"id": "a", "user_input": "Where?"},
        {"id": "a", "user_input": "Where?"},
        {"id": "b", "user_input": "Where?"},
        {"id": "c", "user_input": "  "},
        {"id": "d"},
    ]
    done = run_replay(replaying(tmp_path, search_server, rows), BUILD)
    assert (done.questions, done.rows, done.unreadable) == (2, 2, 2)


def test_the_log_may_be_a_file(tmp_path: Path, search_server: SearchServer) -> None:
    """The place may hold the build's name; logs of several builds may lie in one folder."""
    settings = replaying(tmp_path, search_server)
    for build in ("b1", "b2"):
        done = run_replay(settings, build, str(tmp_path / "logs" / "{build}.jsonl"))
        assert done.place == str(tmp_path / "logs" / f"{build}.jsonl")
    assert search_server.stats()["builds"] == {"b1": 12, "b2": 12}


def test_a_bucket_is_a_place(tmp_path: Path, search_server: SearchServer, s3: Bucket) -> None:
    """The log and what is said of it are objects; the parts are gone."""
    done = run_replay(replaying(tmp_path, search_server), BUILD, f"{s3.uri}/builds/{BUILD}/")
    assert done.place == f"{s3.uri}/builds/{BUILD}/replay.jsonl"
    assert s3.keys() == [
        f"builds/{BUILD}/_replay/replay.jsonl/state.json",
        f"builds/{BUILD}/replay.jsonl",
    ]


def test_progress_is_told(tmp_path: Path, search_server: SearchServer) -> None:
    """At the start and after each question: how many are done, of how many."""
    told: list[tuple[str, int, int]] = []
    run_replay(replaying(tmp_path, search_server), BUILD, progress=lambda *one: told.append(one))
    assert sorted(told) == [("asking", number, 12) for number in range(13)]


def test_a_try_asks_a_few(tmp_path: Path, search_server: SearchServer) -> None:
    """`limit` takes the first questions."""
    done = run_replay(replaying(tmp_path, search_server), BUILD, str(tmp_path / "try"), limit=2)
    assert (done.questions, done.rows) == (2, 2)
    assert search_server.stats()["requests"] == 2


@pytest.mark.parametrize("place", ["builds/*.jsonl", "builds/{date}/", "b.csv", "b.jsonl.gz"])
def test_a_place_that_cannot_be_written_to_is_told(
    tmp_path: Path, search_server: SearchServer, place: str
) -> None:
    """Globs, templates of nights and other formats."""
    with pytest.raises(InputError, match="a replay writes"):
        run_replay(replaying(tmp_path, search_server), BUILD, str(tmp_path / place))
    assert search_server.stats()["requests"] == 0


@pytest.mark.parametrize("build", ["", "../x", "a/b", ".x", "a b", "x" * 101, "b\n", "é"])
def test_a_build_is_a_plain_name(tmp_path: Path, search_server: SearchServer, build: str) -> None:
    """It becomes part of paths and URLs."""
    with pytest.raises(InputError, match="should be at most 100 letters"):
        run_replay(replaying(tmp_path, search_server), build)


def test_what_a_replay_needs_is_told(tmp_path: Path, search_server: SearchServer) -> None:
    """A retriever, a golden set, and a question in it."""
    settings = replaying(tmp_path, search_server)
    with pytest.raises(InputError, match="needs a retriever: set `retriever:`"):
        run_replay(make_settings({}), BUILD)
    with pytest.raises(InputError, match="name them by `golden:`"):
        run_replay(settings.model_copy(update={"golden": None}), BUILD)
    with pytest.raises(InputError, match="there is no question in it"):
        run_replay(replaying(tmp_path, search_server, [{"user_input": ""}]), BUILD)


def test_a_golden_set_that_is_cut_short_is_told(
    tmp_path: Path, search_server: SearchServer
) -> None:
    """A log of half the questions would pass for one of all."""
    packed = write_jsonl(tmp_path / "golden.jsonl.gz", golden_rows(50))
    packed.write_bytes(packed.read_bytes()[:-20])
    settings = replaying(tmp_path, search_server).model_copy(update={"golden": str(packed)})
    with pytest.raises(InputError, match="the file is truncated"):
        run_replay(settings, BUILD)


@pytest.mark.parametrize(
    ("answer", "named", "expected"),
    [
        ({"retrieved_contexts": ["a"], "response": "r"}, {}, (("a",), None, "r")),
        (["a", "b"], {}, (("a", "b"), None, None)),
        ([], {}, ((), None, None)),
        ([{"text": "a", "id": 7, "score": 0.5}], {}, (("a",), ("7",), None)),
        ({"documents": [["a", "b"]]}, {"contexts": "documents.0"}, (("a", "b"), None, None)),
        (["a"], {"contexts": "."}, (("a",), None, None)),
        ([{"t": "a", "i": "1"}], {"contexts": "t", "ids": "i"}, (("a",), ("1",), None)),
        ({"hits": {"hits": None}}, {"contexts": "hits.hits.text"}, ((), None, None)),
        ({"a.b": {"c": ["x"]}}, {"contexts": "a.b.c"}, (("x",), None, None)),
        ({"c": ["x"], "a": None}, {"contexts": "c", "response": "a.text"}, (("x",), None, None)),
    ],
)
def test_answers_of_many_shapes_are_read(
    answer: object, named: dict[str, str], expected: tuple[object, ...]
) -> None:
    """By the paths in the settings, else under our own names, else as a list of hits."""
    settings = RetrieverSettings(url="http://localhost/s", **named)  # type: ignore[arg-type]
    question = Question("q", "Where?", "en", {})
    row = read_answer(settings, question, BUILD, answer, datetime.now(UTC))
    assert (row.retrieved_contexts, row.retrieved_context_ids, row.response) == expected
