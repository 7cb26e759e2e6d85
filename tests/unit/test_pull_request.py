"""A comparison or gate in a pull request: summary, one comment, and a check."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragmetrics.pull_request.api import HostApi, HostError
from tests.fakes.code_host import COMMIT, CodeHost
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.processes import ROOT

pytestmark = pytest.mark.process


@pytest.fixture
def host() -> Iterator[CodeHost]:
    """A code host with one pull request."""
    with CodeHost().running() as running:
        yield running


@pytest.fixture
def logs(run: Run) -> tuple[str, str]:
    """Two logs in the working folder of `run`: the second lost the answers of half its rows."""
    write_jsonl(Path("before.jsonl"), make_rows(60))
    write_jsonl(Path("after.jsonl"), make_rows(60, good=0.5))
    return "before.jsonl", "after.jsonl"


@pytest.fixture
def github(host: CodeHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CodeHost:
    """The environment of a job of GitHub Actions for the pull request."""
    event = {"pull_request": {"number": 7, "head": {"sha": COMMIT}}}
    (tmp_path / "event.json").write_text(json.dumps(event), "utf-8")
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": host.url,
        "GITHUB_REPOSITORY": "acme/search",
        "GITHUB_TOKEN": "token",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_SHA": "0" * 40,
    }.items():
        monkeypatch.setenv(name, value)
    return host


# On GitHub


def test_a_pull_request_gets_a_summary_a_comment_and_a_check(
    run: Run, logs: tuple[str, str], github: CodeHost, tmp_path: Path
) -> None:
    """All three have the verdict and the numbers; the check is on the branch's commit."""
    ended = run("pull-request", "compare", "--arguments", " ".join(logs))
    assert ended.code == 1, ended.err
    [comment], [check] = github.comments, github.checks
    assert "failed" in comment["body"]
    assert check["conclusion"] == "failure"
    assert check["head_sha"] == COMMIT
    assert (tmp_path / "summary.md").read_text("utf-8") in comment["body"]
    assert (tmp_path / "output").read_text("utf-8") == "conclusion=failed\n"


def test_a_later_run_changes_the_comment(run: Run, logs: tuple[str, str], github: CodeHost) -> None:
    """There is one comment, also beside a hundred others and one that a person quotes."""
    github.comment_of("<!-- ragmetrics:ragmetrics --> quoted by a person")
    for number in range(120):
        github.comment_of(f"comment {number}")
    run("pull-request", "compare", "--arguments", " ".join(logs))
    run("pull-request", "compare", "--arguments", f"{logs[0]} {logs[0]}")
    ours = [one for one in github.comments if one["user"]["type"] == "Bot"]
    assert len(ours) == 1
    assert "failed" not in ours[0]["body"]
    assert len(github.checks) == 2


def test_each_name_has_its_comment(run: Run, logs: tuple[str, str], github: CodeHost) -> None:
    """Two data sets of one repository do not overwrite each other."""
    for name in ("help", "shop"):
        run("pull-request", "compare", "--arguments", " ".join(logs), "--name", name)
    assert len(github.comments) == 2


@pytest.mark.parametrize(("fail_on", "code"), [("failed", 0), ("inconclusive", 2), ("never", 0)])
def test_an_inconclusive_result_is_neutral(
    run: Run, github: CodeHost, fail_on: str, code: int
) -> None:
    """Ten questions cannot rule out a drop; whether that fails the job is the team's choice."""
    write_jsonl(Path("few.jsonl"), make_rows(10, good=0.8))
    write_jsonl(Path("now.jsonl"), make_rows(10, good=0.7))
    arguments = "few.jsonl now.jsonl --metrics context_relevance"
    ended = run("pull-request", "compare", "--arguments", arguments, "--fail-on", fail_on)
    assert ended.code == code
    assert github.checks[0]["conclusion"] == "neutral"


def test_a_fork_may_not_comment(run: Run, logs: tuple[str, str], github: CodeHost) -> None:
    """Its token is read-only: the verdict counts, and the log says why nothing is shown."""
    github.forbidden = True
    ended = run("pull-request", "compare", "--arguments", " ".join(logs))
    assert ended.code == 1
    assert "not accessible" in ended.err


def test_a_comparison_that_breaks_replaces_an_old_verdict(run: Run, github: CodeHost) -> None:
    """A log that is missing leaves no comment that says that all is well."""
    ended = run("pull-request", "compare", "--arguments", "none.jsonl nothing.jsonl")
    assert ended.code == 1
    assert "without a result" in github.comments[0]["body"]
    assert github.checks[0]["conclusion"] == "failure"


def test_redacted_questions_stay_out(run: Run, logs: tuple[str, str], github: CodeHost) -> None:
    """`alerts: redact` holds for comments too."""
    Path("ragmetrics.yaml").write_text("alerts: {redact: true}\n", "utf-8")
    run("pull-request", "compare", "--arguments", " ".join(logs))
    assert "tower" not in github.comments[0]["body"]


def test_words_that_a_shell_cannot_split_are_an_error(run: Run) -> None:
    """A quote that does not end."""
    ended = run("pull-request", "compare", "--arguments", "'a.jsonl")
    assert (ended.code, "--arguments" in ended.err) == (2, True)


def test_without_a_host_the_report_is_printed(run: Run, logs: tuple[str, str]) -> None:
    """On a developer's machine."""
    ended = run("pull-request", "compare", "--arguments", " ".join(logs))
    assert "## ❌ Retrieval failed" in ended.out


# On GitLab


def test_a_merge_request_gets_a_note_and_a_status(
    run: Run, logs: tuple[str, str], host: CodeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, by GitLab's API; a second run changes the note."""
    for name, value in {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": host.url,
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_COMMIT_SHA": COMMIT,
        "GITLAB_TOKEN": "token",
    }.items():
        monkeypatch.setenv(name, value)
    for _ in range(2):
        run("pull-request", "compare", "--arguments", " ".join(logs))
    assert len(host.comments) == 1
    assert [one["state"] for one in host.checks] == ["failed", "failed"]


# The API


def test_a_failing_api_is_asked_again(host: CodeHost) -> None:
    """Server errors and rate limits; as long as a rate limit asks for."""
    host.failures = [(500, {}), (403, {"Retry-After": "7"}), (429, {})]
    waits: list[float] = []
    api = HostApi(host.url, {"Authorization": "Bearer x"}, sleep=waits.append)
    path = "/repos/acme/search/issues/7/comments"
    assert api.request("GET", path, page=1, per_page=5) == []
    assert waits == [1.0, 7.0, 1.0]


def test_a_refusal_is_not_asked_again(host: CodeHost) -> None:
    """A wrong token stays wrong."""
    with pytest.raises(HostError, match="401"):
        HostApi(host.url, {}).request("GET", "/repos/acme/search/issues/7/comments")
    assert len(host.requests) == 1


# The Action


def action() -> dict[str, Any]:
    """The file that GitHub reads."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return found


def test_no_input_is_run_as_code() -> None:
    """Inputs reach the scripts of the action as variables; third parties' actions are pinned."""
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        if uses := step.get("uses"):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", uses)


def test_every_input_reaches_the_script() -> None:
    """An input that no step reads would be a promise without effect."""
    text = (ROOT / "action.yml").read_text("utf-8")
    for name, one in action()["inputs"].items():
        assert f"inputs.{name} " in text
        assert one["description"]


@pytest.mark.parametrize("injection", ["", "; touch injected", "$(touch injected)"])
def test_the_script_of_the_action_runs(
    logs: tuple[str, str], github: CodeHost, injection: str
) -> None:
    """Its last step, run by bash with the variables that GitHub sets, writes the comment. Shell
    code in an input is no code."""
    step = action()["runs"]["steps"][-1]
    inputs = {name: one.get("default", "") for name, one in action()["inputs"].items()}
    inputs |= {"arguments": " ".join(logs), "token": "token", "name": f"search{injection}"}

    def value(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda one: inputs[one[1]], text)

    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": binaries, "PYTHONPATH": str(ROOT)}
    environment |= {name: value(text) for name, text in step["env"].items()}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "failed" in github.comments[0]["body"]
    assert github.checks[0]["name"] == inputs["name"]
    assert not Path("injected").exists()


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_examples_name_what_there_is(name: str) -> None:
    """Inputs of the action, and options of the command."""
    text = (ROOT / f"examples/pull-requests/{name}.yml").read_text("utf-8")
    found = yaml.safe_load(text)
    if name == "gitlab":
        assert "ragmetrics pull-request compare --arguments " in found["retrieval"]["script"][-1]
        return
    step = found["jobs"]["retrieval"]["steps"][-1]
    assert set(step["with"]) <= set(action()["inputs"])
    assert found["permissions"]["pull-requests"] == found["permissions"]["checks"] == "write"
