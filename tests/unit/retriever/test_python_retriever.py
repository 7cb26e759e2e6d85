"""A retriever in Python: found by its name, called in threads or on the loop, and never waited for
without end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from ragmetrics.comparison import run_replay
from ragmetrics.errors import InputError, RetrieverRefused
from ragmetrics.records import ReplayIncomplete, ReplayReport
from tests.fakes.replays import BUILD, give_up_soon, golden_rows, hurry, log_rows, replaying

COUNTING = """
    import threading, time
    calls, names = [], set()
"""


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module `mine`, to be written by a test, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return tmp_path / "mine.py"


def replayed(module: Path, source: str, name: str = "ask", **retriever: object) -> ReplayReport:
    """The replay by a function of that source."""
    module.write_text(dedent(COUNTING) + dedent(source))
    settings = replaying(module.parent, None, **{"entrypoint": f"mine:{name}", **retriever})
    return run_replay(settings, BUILD)


@pytest.mark.parametrize(
    "returned",
    [
        "[f'On {user_input}', build]",
        "(f'On {user_input}', build)",
        "[{'text': f'On {user_input}'}, {'text': build}]",
        "{'retrieved_contexts': [f'On {user_input}', build]}",
    ],
)
@pytest.mark.parametrize("word", ["def", "async def"])
def test_a_function_returns_texts_hits_or_fields(written: Path, returned: str, word: str) -> None:
    """Called with question and build, in a thread or as a coroutine."""
    done = replayed(written, f"{word} ask(user_input, build):\n    return {returned}")
    assert done.rows == 12
    first = log_rows(Path(done.place))[0]
    assert first["retrieved_contexts"] == [f"On {first['user_input']}", BUILD]


@pytest.mark.parametrize(
    "returned",
    [
        "numpy.array(['x', build])",
        "{'retrieved_contexts': numpy.array(['x', build]), 'retrieved_context_scores': "
        "numpy.array([0.5, 0.25], dtype='float32')}",
        "[{'text': 'x', 'score': numpy.float32(0.5)}, {'text': build, 'score': 0.25}]",
    ],
)
def test_arrays_are_lists(written: Path, returned: str) -> None:
    """As libraries for vectors return them."""
    done = replayed(written, f"import numpy\ndef ask(user_input, build):\n    return {returned}")
    row = log_rows(Path(done.place))[0]
    assert row["retrieved_contexts"] == ["x", BUILD]
    assert row.get("retrieved_context_scores", [0.5, 0.25]) == [0.5, 0.25]


def test_paths_hold_for_functions_too(written: Path) -> None:
    """What a client returns need not be laid out anew."""
    source = "def ask(q, build): return {'matches': [{'metadata': {'body': q}, 'id': 1}]}"
    done = replayed(written, source, contexts="matches.metadata.body", ids="matches.id")
    row = log_rows(Path(done.place))[0]
    assert (row["retrieved_contexts"], row["retrieved_context_ids"]) == ([row["user_input"]], ["1"])


def test_a_method_of_an_object_is_a_function(written: Path) -> None:
    """Named by a dotted path within its module."""
    source = """
        class Index:
            async def __call__(self, user_input, build, k=3):
                return [user_input] * k
            def ask(self, user_input, build):
                return [user_input]
        index = Index()
    """
    assert replayed(written, source, "index.ask").rows == 12
    done = replayed(written, source, "index")
    assert len(log_rows(Path(done.place))[0]["retrieved_contexts"]) == 3


def test_functions_run_side_by_side(written: Path) -> None:
    """As many as `concurrency` says."""
    source = """
        barrier = threading.Barrier(4, timeout=60)
        def ask(user_input, build):
            calls.append(user_input)
            if len(calls) > 1:      # the first is asked alone
                barrier.wait()
            return []
    """
    written.write_text(dedent(COUNTING) + dedent(source))
    settings = replaying(written.parent, None, golden_rows(9), entrypoint="mine:ask", concurrency=4)
    assert run_replay(settings, BUILD).rows == 9


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("ConnectionError('reset')", "dropped"),
        ("TimeoutError('slow')", "timeout"),
        ("Passing('busy')", "Passing"),
    ],
)
def test_errors_that_pass_are_asked_again(written: Path, error: str, kind: str) -> None:
    """Connection errors, time-outs, and what says of itself that it is transient."""
    source = f"""
        class Passing(Exception):
            transient = True
        def ask(user_input, build):
            calls.append(user_input)
            if calls.count(user_input) < 3:
                raise {error}
            return []
    """
    done = replayed(written, source)
    assert (done.rows, done.setbacks) == (12, {kind: 24})


@pytest.mark.parametrize(
    "error", ["KeyError('hits')", "SystemExit(3)", "StopIteration()", "KeyboardInterrupt()"]
)
def test_another_error_fails_its_question(written: Path, error: str) -> None:
    """It is not asked again, and told by its name and words; nothing ends the process."""
    source = f"""
        def ask(user_input, build):
            if "tower 003" in user_input:
                raise {error}
            return []
    """
    done = replayed(written, source, max_failed=0.1)
    kind = error.partition("(")[0]
    assert (done.rows, done.failed, done.setbacks) == (11, {kind: 1}, {})
    assert done.examples[kind].startswith(f"mine:ask raised {kind}")


def test_a_permission_error_ends_the_replay(written: Path) -> None:
    """So a function says that no question can be answered."""
    with pytest.raises(RetrieverRefused, match="mine:ask raised PermissionError: wrong key"):
        replayed(written, "def ask(q, build): raise PermissionError('wrong key')")


@pytest.mark.parametrize("word", ["def", "async def"])
def test_a_function_that_hangs_is_given_up(
    written: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """After `timeout_seconds`, as often as it is asked again."""
    give_up_soon(monkeypatch, "tower 003")
    pause = "time.sleep(60)" if word == "def" else "await __import__('asyncio').sleep(60)"
    source = f"""
        {word} ask(user_input, build):
            if "tower 003" in user_input:
                {pause}
            return []
    """
    done = replayed(written, source, max_failed=0.1, retries=1)
    assert (done.rows, done.failed) == (11, {"timeout": 1})
    assert done.setbacks == {"timeout": 2}


def test_threads_that_hang_do_not_pile_up(written: Path) -> None:
    """They cannot be stopped: the replay ends before there are too many."""
    source = "def ask(user_input, build): time.sleep(60)"
    with pytest.raises(RetrieverRefused, match="mine:ask hangs: 2 calls are over `timeout_secon"):
        replayed(written, source, timeout_seconds=0.1, concurrency=2)


@pytest.mark.process
def test_a_thread_that_hangs_does_not_hold_the_process(written: Path) -> None:
    """The command ends though a call of the function never does."""
    written.write_text("import time\ndef ask(q, build): time.sleep(600)")
    (written.parent / "ragmetrics.yaml").write_text(
        "golden: golden.jsonl\n"
        "retriever: {entrypoint: 'mine:ask', timeout_seconds: 0.1, retries: 0}"
    )
    replaying(written.parent, None, golden_rows(1), entrypoint="mine:ask")
    command = [sys.executable, "-m", "ragmetrics", "replay", "--settings", "ragmetrics.yaml"]
    done = subprocess.run(
        [*command, "--build", BUILD],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=written.parent,
    )
    assert done.returncode == 1, done.stderr
    assert "1 timeout (mine:ask did not answer within 0.1 s)" in done.stderr


@pytest.mark.parametrize(
    "returned", ["None", "'a text'", "3", "[1, 2]", "{'hits': []}", "object()"]
)
def test_what_is_no_answer_is_told(written: Path, returned: str) -> None:
    """By what it is, or by the field that does not fit."""
    with pytest.raises(ReplayIncomplete, match=r"1 unreadable \(.*"):
        replayed(written, f"def ask(q, build): return {returned}")


@pytest.mark.parametrize(
    ("entrypoint", "told"),
    [
        ("nosuch.module:ask", "there is no module nosuch, neither installed nor in "),
        ("mine:nosuch", "mine: module 'mine' has no attribute 'nosuch'"),
        ("mine:calls", "mine:calls is not a function"),
        ("mine:short", "is called as function(user_input, build), which it does not take"),
        ("broken:ask", "importing broken raised RuntimeError: no index here"),
        ("lacking:ask", "lacking: No module named 'nosuch'"),
    ],
)
def test_a_wrong_entrypoint_is_told_at_once(written: Path, entrypoint: str, told: str) -> None:
    """In one sentence, before anything is asked or written."""
    written.write_text("calls = []\ndef short(question): return []")
    (written.parent / "broken.py").write_text("raise RuntimeError('no index here')")
    (written.parent / "lacking.py").write_text("import nosuch")
    with pytest.raises(InputError) as error:
        run_replay(replaying(written.parent, None, entrypoint=entrypoint), BUILD)
    assert str(error.value).startswith("retriever: entrypoint: ")
    assert told in str(error.value)
    assert not (written.parent / "builds").exists()
