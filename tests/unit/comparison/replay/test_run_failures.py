"""What may go wrong while a search is asked: what is asked again, given up, or ends the replay."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from ragmetrics.comparison import run_replay
from ragmetrics.errors import InputError, RetrieverRefused
from ragmetrics.records import ReplayIncomplete
from ragmetrics.retriever import retriever_client as asking
from tests.fakes.replays import BUILD, golden_rows, hurry, log_rows, replaying
from tests.fakes.retriever import SearchServer


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def no_log(folder: Path) -> bool:
    """Whether no log was written."""
    return not (folder / "builds" / BUILD / "replay.jsonl").exists()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("429", "rate_limited"),
        ("500", "server_error"),
        ("503", "server_error"),
        ("drop", "dropped"),
    ],
)
def test_what_passes_is_asked_again(
    tmp_path: Path, search_server: SearchServer, fault: str, kind: str
) -> None:
    """Every question meets it twice, and is answered all the same; the attempts are counted."""
    search_server.faults(fail={fault: 1.0}, fail_attempts=2)
    done = run_replay(replaying(tmp_path, search_server), BUILD)
    assert (done.rows, done.failed, done.setbacks) == (12, {}, {kind: 24})


def test_a_search_that_hangs_is_asked_again(tmp_path: Path, search_server: SearchServer) -> None:
    """After `timeout_seconds`."""
    search_server.faults(fail={"hang": 1.0}, fail_attempts=1, match="tower 003")
    done = run_replay(replaying(tmp_path, search_server, timeout_seconds=5), BUILD)
    assert (done.rows, set(done.setbacks)) == (12, {"timeout"})


def test_a_429_is_no_failure(tmp_path: Path, search_server: SearchServer) -> None:
    """More of them than there are retries, and every question is answered."""
    search_server.faults(fail={"429": 1.0}, fail_attempts=6, retry_after=0.01)
    done = run_replay(replaying(tmp_path, search_server, retries=1), BUILD)
    assert (done.rows, done.setbacks["rate_limited"]) == (12, 72)


def test_a_wait_that_is_asked_for_holds_all(tmp_path: Path, search_server: SearchServer) -> None:
    """`Retry-After: 0.4` for one question: nothing is sent meanwhile, though seven wait."""
    search_server.faults(fail={"429": 1.0}, fail_attempts=1, match="tower 000", retry_after=0.4)
    done = run_replay(replaying(tmp_path, search_server, golden_rows(8)), BUILD)
    assert done.seconds >= 0.4
    assert done.setbacks == {"rate_limited": 1}


def test_a_wait_beyond_the_deadline_is_not_waited_for(
    tmp_path: Path, search_server: SearchServer
) -> None:
    """A day's Retry-After gives the question up at once."""
    search_server.faults(fail={"429": 1.0}, retry_after=86_400)
    with pytest.raises(ReplayIncomplete, match=r"rate_limited .*given up after 60 s"):
        run_replay(replaying(tmp_path, search_server, deadline_seconds=60), BUILD)
    assert search_server.stats()["requests"] == 1


def test_a_few_failures_are_told_and_leave_no_row(
    tmp_path: Path, search_server: SearchServer
) -> None:
    """Up to `max_failed` the log is written without them; the reason says what the server did."""
    search_server.faults(fail={"500": 1.0}, match="tower 003")
    done = run_replay(replaying(tmp_path, search_server, max_failed=0.1, retries=2), BUILD)
    assert (done.rows, done.failed, done.setbacks) == (11, {"server_error": 1}, {"server_error": 3})
    assert done.examples == {"server_error": "the retriever answered 500: not now, or not so"}
    assert "gold-003" not in {row["id"] for row in log_rows(Path(done.place))}


def test_many_failures_are_no_log(tmp_path: Path, search_server: SearchServer) -> None:
    """Once more than `max_failed` have failed the others need not be asked."""
    search_server.faults(fail={"500": 1.0}, after=50)
    settings = replaying(tmp_path, search_server, golden_rows(200), retries=0)
    with pytest.raises(ReplayIncomplete) as short:
        run_replay(settings, BUILD)
    assert str(short.value).startswith(
        f"replay of build {BUILD}: 5 of 200 questions have no answer, and `retriever: max_failed:` "
        "is 0.02: 5 server_error (the retriever answered 500: not now, or not so); no log is "
    )
    assert short.value.transient
    assert no_log(tmp_path)
    assert search_server.stats()["requests"] <= 50 + 5 + 8
    search_server.faults(fail={})
    assert 50 - 8 <= run_replay(settings, BUILD).found <= 50  # eight may have been on their way


def test_all_questions_never_may_fail(tmp_path: Path, search_server: SearchServer) -> None:
    """Not with `max_failed: 1` either: an empty log is none."""
    search_server.faults(fail={"400": 1.0})
    with pytest.raises(ReplayIncomplete, match="12 rejected"):
        run_replay(replaying(tmp_path, search_server, max_failed=1), BUILD)


def test_a_shortfall_survives_a_process_pool() -> None:
    """Runners pickle errors."""
    from ragmetrics.records import ReplayReport

    told = ReplayReport(
        build="b", place="p", questions=9, rows=1, failed={"x": 8}, examples={"x": "y"}
    )
    again = pickle.loads(pickle.dumps(ReplayIncomplete(told, 0.02)))
    assert (str(again), again.replayed) == (str(ReplayIncomplete(told, 0.02)), told)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("401", "refused the access with 401: are `headers_env`"),
        ("403", "refused the access with 403"),
        ("404", "answered 404: are `url` and `method` right, and is there a build 2026-11-19?"),
        ("redirect", "redirects to https://login.example.com/: is `url` right?"),
    ],
)
def test_a_refusal_ends_the_replay_at_once(
    tmp_path: Path, search_server: SearchServer, fault: str, told: str
) -> None:
    """After one request, with one sentence, and without a log."""
    search_server.faults(fail={fault: 1.0})
    with pytest.raises(RetrieverRefused) as refused:
        run_replay(replaying(tmp_path, search_server), BUILD)
    assert told in str(refused.value)
    assert not refused.value.transient
    assert search_server.stats()["requests"] == 1
    assert no_log(tmp_path)


@pytest.mark.parametrize("fault", ["400", "403", "404"])
def test_one_question_may_be_refused_alone(
    tmp_path: Path, search_server: SearchServer, fault: str
) -> None:
    """A firewall that dislikes its words, say: others were answered, so the access is right."""
    search_server.faults(fail={fault: 1.0}, match="tower 003")
    done = run_replay(replaying(tmp_path, search_server, max_failed=0.1), BUILD)
    assert (done.rows, done.failed, done.setbacks) == (11, {"rejected": 1}, {})


def test_nobody_listening_is_told_at_once(tmp_path: Path, search_server: SearchServer) -> None:
    """With the address, after a second try."""
    settings = replaying(tmp_path, search_server, url="http://127.0.0.1:9/search")
    with pytest.raises(RetrieverRefused, match=r"no connection to http://127\.0\.0\.1:9/search: "):
        run_replay(settings, BUILD)


def test_a_variable_that_is_not_set_is_told(tmp_path: Path, search_server: SearchServer) -> None:
    """By its name, before anything is asked or written."""
    settings = replaying(tmp_path, search_server, headers_env={"Authorization": "NO_SUCH_TOKEN"})
    with pytest.raises(RetrieverRefused, match="needs the environment variable NO_SUCH_TOKEN"):
        run_replay(settings, BUILD)
    assert not (tmp_path / "builds").exists()


def test_a_key_is_in_no_message_and_no_file(
    tmp_path: Path, search_server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where the server repeats it either."""
    monkeypatch.setenv("SEARCH_TOKEN", "s3cr3t-token")
    search_server.faults(token="another")
    settings = replaying(
        tmp_path, search_server, headers_env={"Authorization": "Bearer {SEARCH_TOKEN}"}
    )
    with pytest.raises(RetrieverRefused, match=r"no access with Bearer \*\*\*"):
        run_replay(settings, BUILD)
    kept = [path.read_bytes() for path in (tmp_path / "builds").rglob("*") if path.is_file()]
    assert kept
    assert not any(b"s3cr3t" in content for content in kept)


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        ("html", "unreadable", "not JSON: <html>Please log in</html>"),
        ("cut", "unreadable", "not JSON"),
        ("other keys", "unreadable", "nothing at hits.text (`retriever: contexts:`) in the answer"),
        ("no text", "unreadable", "the answer is not a valid row: retrieved_contexts.0: "),
        ("huge", "too_large", "`retriever: max_answer_bytes:`, 1,000,000"),
        ("hundreds", "too_many_contexts", "300 contexts in one answer"),
    ],
)
def test_an_answer_that_is_none_fails_its_question(
    tmp_path: Path, search_server: SearchServer, fault: str, kind: str, told: str
) -> None:
    """It is not asked again, for the same would come; nothing is cut to fit."""
    search_server.faults(fail={fault: 1.0}, match="tower 003")
    settings = replaying(tmp_path, search_server, max_failed=0.1, max_answer_bytes=1_000_000)
    done = run_replay(settings, BUILD)
    assert (done.rows, done.failed, done.setbacks) == (11, {kind: 1}, {})
    assert told in done.examples[kind]


def test_half_a_character_spoils_nothing(tmp_path: Path, search_server: SearchServer) -> None:
    """As texts have that were cut between two surrogates: it becomes a question mark."""
    search_server.faults(fail={"half a character": 1.0})
    done = run_replay(replaying(tmp_path, search_server), BUILD)
    assert log_rows(Path(done.place))[0]["retrieved_contexts"] == ["cut ?"]


def test_a_build_in_the_host_is_one_part_of_it(tmp_path: Path, search_server: SearchServer) -> None:
    """A name with dots would lead to another host."""
    settings = replaying(tmp_path, search_server, url="http://search-{build}.example.com/")
    with pytest.raises(InputError, match="cannot be part of the host"):
        run_replay(settings, "evil.org")


def test_retries_are_spread(tmp_path: Path, search_server: SearchServer) -> None:
    """Pauses double, up to a longest, and no two questions have the same."""
    settings = replaying(tmp_path, search_server).retriever
    assert settings
    asker = asking.RetrieverClient(None, settings)  # type: ignore[arg-type]
    setback = asking.RetryableError("server_error", "")
    pauses = {
        n: [asker._pause(setback, asking.Counter(server_error=n)) for _ in range(20)]
        for n in (1, 4)
    }
    assert len(set(pauses[1])) > 1
    assert min(pauses[4]) >= 4 * min(0.005, min(pauses[1]))
    assert max(asker._pause(setback, asking.Counter(server_error=99)) for _ in range(9)) <= 20
