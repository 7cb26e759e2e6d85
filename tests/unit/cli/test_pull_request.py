"""A comparison or gate in a pull request: summary, one comment, and a check."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragmetrics.cli import app as cli, pull_request
from ragmetrics.delivery.pull_request.api import HostApi, HostError
from ragmetrics.delivery.pull_request.hosts import GitHub, GitLab, find_host
from ragmetrics.delivery.pull_request.markdown import CheckResult
from tests.builders import save_settings
from tests.fakes.build_logs import METRICS, damaged, golden, write_build
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
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison runs in this process: for tests of what is made of its result."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
            patch.setattr(sys, "argv", command[command.index("-m") + 1 :])
            with pytest.raises(SystemExit) as ended:
                cli.main()
        return subprocess.CompletedProcess(command, int(ended.value.code or 0), printed.getvalue())

    here = types.SimpleNamespace(run=run, PIPE=subprocess.PIPE)
    monkeypatch.setattr(pull_request, "subprocess", here)


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


@pytest.mark.usefixtures("in_process")
def test_a_later_run_changes_the_comment(run: Run, logs: tuple[str, str], github: CodeHost) -> None:
    """There is one comment, also beside a hundred others and one that a person quotes."""
    github.comment_of("<!-- ragmetrics:ragmetrics --> quoted by a person")
    for number in range(120):
        github.comment_of(f"comment {number}")
    run("pull-request", "compare", "--arguments", " ".join(logs))
    run("pull-request", "compare", "--arguments", f"{logs[0]} {logs[0]}")
    ours = [comment for comment in github.comments if comment["user"]["type"] == "Bot"]
    assert len(ours) == 1
    assert "failed" not in ours[0]["body"]
    assert len(github.checks) == 2


@pytest.mark.usefixtures("in_process")
def test_a_personal_token_changes_its_own_comment(
    run: Run, logs: tuple[str, str], github: CodeHost
) -> None:
    """Its comments are those of a person. Neither another person's nor a bot's is changed."""
    github.me = 77
    others = "<!-- ragmetrics:ragmetrics --> not ours"
    github.comment_of(others, by=78)
    github.comment_of(others, kind="Bot", by=79)
    for _ in range(2):
        run("pull-request", "compare", "--arguments", " ".join(logs))
    assert [comment["user"]["id"] for comment in github.comments] == [78, 79, 77]
    assert [comment["body"] for comment in github.comments[:2]] == [others, others]


@pytest.mark.usefixtures("in_process")
def test_each_name_has_its_comment(run: Run, logs: tuple[str, str], github: CodeHost) -> None:
    """Two data sets of one repository do not overwrite each other."""
    for name in ("help", "shop"):
        run("pull-request", "compare", "--arguments", " ".join(logs), "--name", name)
    assert len(github.comments) == 2


@pytest.mark.usefixtures("in_process")
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


@pytest.mark.usefixtures("in_process")
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


def test_settings_that_cannot_be_read_replace_an_old_verdict(run: Run, github: CodeHost) -> None:
    """A wrong key of the settings file, which the branch may have changed."""
    Path("ragmetrics.yaml").write_text("jduge: openai\n", "utf-8")
    ended = run("pull-request", "compare", "--arguments", "a.jsonl b.jsonl")
    assert (ended.code, "jduge" in ended.err) == (1, True)
    assert "settings cannot be read" in github.comments[0]["body"]
    assert github.checks[0]["conclusion"] == "failure"


@pytest.mark.usefixtures("in_process")
def test_the_check_links_to_the_page(run: Run, logs: tuple[str, str], github: CodeHost) -> None:
    """An address of the web; anything else is no link."""
    for link in ("https://acme.example/compare.html", "javascript:alert(1)"):
        run("pull-request", "compare", "--arguments", " ".join(logs), "--link", link)
    first, second = github.checks
    assert first["details_url"] == "https://acme.example/compare.html"
    assert "details_url" not in second
    assert "javascript" not in github.comments[0]["body"]


@pytest.mark.usefixtures("in_process")
def test_a_gate_is_shown_by_its_verdict(run: Run, github: CodeHost, tmp_path: Path) -> None:
    """`gate`, run for a build that lost a part of its index: hold fails the check."""
    rows = golden()
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", damaged(rows, 0.15, seed=1))
    logs = {"logs": "builds/{build}.jsonl"}
    save_settings(tmp_path, dataset="towers", store="store", metrics=METRICS, gate=logs)
    path = tmp_path / "ragmetrics.yaml"
    arguments = f"--build b2 --against b1 --settings {path}"
    ended = run("pull-request", "gate", "--arguments", arguments, "--report", tmp_path / "r.md")
    assert ended.code == 1, ended.err
    body = github.comments[0]["body"]
    assert (tmp_path / "r.md").read_text("utf-8") in body
    assert "❌ Index build <code>b2</code> compared with <code>b1</code>: hold" in body
    assert "Questions that fell most" in body
    assert github.checks[0]["output"]["title"] == "Index build b2 against b1: hold"


@pytest.mark.usefixtures("in_process")
def test_a_report_that_cannot_be_written_is_an_error(run: Run, logs: tuple[str, str]) -> None:
    """Later steps of the job would miss it."""
    ended = run(
        "pull-request", "compare", "--arguments", " ".join(logs), "--report", "none/report.md"
    )
    assert (ended.code, "none/report.md" in ended.err) == (2, True)


@pytest.mark.usefixtures("in_process")
def test_redacted_questions_stay_out(run: Run, logs: tuple[str, str], github: CodeHost) -> None:
    """`alerts: redact` holds for comments too."""
    Path("ragmetrics.yaml").write_text("alerts: {redact: true}\n", "utf-8")
    run("pull-request", "compare", "--arguments", " ".join(logs))
    assert "tower" not in github.comments[0]["body"]


def test_words_that_a_shell_cannot_split_are_an_error(run: Run) -> None:
    """A quote that does not end."""
    ended = run("pull-request", "compare", "--arguments", "'a.jsonl")
    assert (ended.code, "--arguments" in ended.err) == (2, True)


@pytest.mark.usefixtures("in_process")
def test_without_a_host_the_report_is_printed(run: Run, logs: tuple[str, str]) -> None:
    """On a developer's machine."""
    ended = run("pull-request", "compare", "--arguments", " ".join(logs))
    assert "## ❌ Retrieval failed" in ended.out


# On GitLab


@pytest.mark.usefixtures("in_process")
def test_a_merge_request_gets_a_note_and_a_status(
    run: Run, logs: tuple[str, str], host: CodeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, by GitLab's API; a second run changes the note, and no note of a person."""
    for name, value in {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": host.url,
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_COMMIT_SHA": COMMIT,
        "CI_PIPELINE_ID": "4711",
        "GITLAB_TOKEN": "token",
    }.items():
        monkeypatch.setenv(name, value)
    host.me = 77
    quoted = "<!-- ragmetrics:ragmetrics --> quoted by a person"
    host.comment_of(quoted)
    for _ in range(2):
        run("pull-request", "compare", "--arguments", " ".join(logs))
    assert [comment["author"]["id"] for comment in host.comments] == [500, 77]
    assert host.comments[0]["body"] == quoted
    assert [check["state"] for check in host.checks] == ["failed", "failed"]
    assert host.checks[0]["pipeline_id"] == "4711"


# The API


def test_a_failing_api_is_asked_again(host: CodeHost) -> None:
    """Server errors and rate limits; as long as a rate limit asks for."""
    host.failures = [(500, {}), (403, {"Retry-After": "7"}), (429, {})]
    waits: list[float] = []
    api = HostApi(host.url, {"Authorization": "Bearer x"}, sleep=waits.append)
    path = "/repos/acme/search/issues/7/comments"
    assert api.request("GET", path, page=1, per_page=5) == []
    assert waits[1:] == [7.0, 60.0]
    assert 0.5 <= waits[0] <= 1.0


def test_a_rate_limit_of_an_hour_is_an_error(host: CodeHost) -> None:
    """No job waits that long, and an earlier repeat is held against us."""
    host.failures = [(403, {"Retry-After": "3600"})]
    api = HostApi(host.url, {"Authorization": "Bearer x"})
    with pytest.raises(HostError, match="403"):
        api.request("GET", "/repos/acme/search/issues/7/comments")


def test_a_refusal_is_not_asked_again(host: CodeHost) -> None:
    """A wrong token stays wrong."""
    with pytest.raises(HostError, match="401"):
        HostApi(host.url, {}).request("GET", "/repos/acme/search/issues/7/comments")
    assert len(host.requests) == 1


MALFORMED: dict[str, tuple[int, dict[str, str], bytes]] = {
    "a login page": (200, {"Content-Type": "text/html"}, b"<html>Sign in</html>"),
    "another type": (200, {}, b'"ok"'),
    "nothing": (200, {}, b""),
    "no id": (200, {}, b'{"login": "ragmetrics"}'),
    "ids of another type": (200, {}, b'{"id": {"a": 1}}'),
    "items of another type": (200, {}, b"[1, null]"),
    "no UTF-8": (200, {}, b'{"id": "\xff\xfe"}'),
    "too deep": (200, {}, b"[" * 200_000),
    "an encoding that was not offered": (200, {"Content-Encoding": "br"}, b'{"id": 1}'),
    "damaged gzip": (200, {"Content-Encoding": "gzip"}, b"\x1f\x8b no gzip"),
    "less than announced": (200, {"Content-Length": "5000"}, b'{"id": 1}'),
    "a bomb": (200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(40 << 20), 1)),
    "a redirect to itself": (302, {"Location": "/user"}, b""),
}


@pytest.mark.parametrize("kind", [GitHub, GitLab])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_answer_is_one_sentence(
    host: CodeHost, name: str, kind: type[GitHub] | type[GitLab]
) -> None:
    """Whatever a proxy or another server answers: an error that names the address, in one line."""
    host.answers = MALFORMED[name]
    api = HostApi(host.url, {"Authorization": "Bearer x"}, sleep=lambda _: None)
    with pytest.raises(HostError) as caught:
        kind(api, "acme/search", 7, COMMIT).comment(CheckResult.without("none"), "ragmetrics")
    said = str(caught.value)
    assert "/user" in said
    assert len(said) < 600
    assert "\n" not in said


def test_an_answer_is_read_up_to_a_limit(host: CodeHost) -> None:
    """A host that sends 33 MB is read no further, and the error says how much is too much."""
    host.answers = (200, {}, b" " * (33 << 20))
    with pytest.raises(HostError, match="larger than 33,554,432 bytes"):
        HostApi(host.url, {}).request("GET", "/user")


@pytest.mark.usefixtures("in_process")
def test_a_token_that_the_host_repeats_is_not_printed(
    run: Run, logs: tuple[str, str], github: CodeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as it is nor as JSON escapes it; the verdict counts all the same."""
    monkeypatch.setenv("GITHUB_TOKEN", "ghs/4711abc")
    said = b'{"message": "bad: ghs/4711abc ghs\\/4711abc \\u0067hs/4711abc"}'
    github.answers = (401, {}, said)
    ended = run("pull-request", "compare", "--arguments", " ".join(logs))
    assert ended.code == 1
    assert "401: bad: *** *** ***" in " ".join(ended.err.split())
    assert "4711abc" not in ended.out + ended.err


def test_an_event_of_another_form_is_none(github: CodeHost, tmp_path: Path) -> None:
    """The file of the event is no object, or its pull request is none: there is no comment."""
    odd = '{"pull_request": {"number": "7", "head": []}}'
    for text in ("[]", '{"pull_request": "seven"}', odd):
        (tmp_path / "event.json").write_text(text, "utf-8")
        host = find_host(os.environ)
        assert isinstance(host, GitHub)
        assert (host.number, host.commit) == (None, "0" * 40)


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
    for name, value in action()["inputs"].items():
        assert f"inputs.{name} " in text
        assert value["description"]


def run_action(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the last step of the action by bash, as GitHub does, with the variables that it sets."""
    step = action()["runs"]["steps"][-1]
    values = {name: one.get("default", "") for name, one in action()["inputs"].items()}
    values |= {"token": "token", **inputs}

    def value(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda one: values[one[1]], text)

    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": binaries, "PYTHONPATH": str(ROOT)}
    environment |= {"RUNNER_TEMP": str(folder)}
    environment |= {name: value(text) for name, text in step["env"].items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("injection", ["; touch injected", "$(touch injected)"])
def test_the_script_of_the_action_runs(
    logs: tuple[str, str], github: CodeHost, tmp_path: Path, injection: str
) -> None:
    """It writes comment, check and outputs. Shell code in an input is no code, a module in the
    checkout is not imported, and no line of its output can be a workflow command."""
    Path("typer.py").write_text("raise SystemExit('imported from the checkout')\n", "utf-8")
    name = f"search{injection}"
    done = run_action(tmp_path, arguments=" ".join(logs), name=name)
    assert done.returncode == 1, done.stderr
    assert "failed" in github.comments[0]["body"]
    assert github.checks[0]["name"] == name
    assert not Path("injected").exists()
    first, last = done.stdout.splitlines()[0], done.stdout.splitlines()[-1]
    assert last == f"::{first.removeprefix('::stop-commands::')}::" != "::::"
    outputs = dict(line.split("=") for line in (tmp_path / "output").read_text().splitlines())
    assert outputs["conclusion"] == "failed"
    assert Path(outputs["report"]).read_text("utf-8") in github.comments[0]["body"]


def test_the_action_shows_nothing_that_is_not_wanted(
    logs: tuple[str, str], github: CodeHost, tmp_path: Path
) -> None:
    """`comment: false` and `check: false`; the verdict still fails the job."""
    done = run_action(tmp_path, arguments=" ".join(logs), comment="false", check="false")
    assert done.returncode == 1, done.stderr
    assert (github.requests, github.comments) == ([], [])


def test_an_input_that_is_neither_true_nor_false_is_an_error(
    github: CodeHost, tmp_path: Path
) -> None:
    """A check that is silently not set would be required for nothing."""
    done = run_action(tmp_path, arguments="a.jsonl b.jsonl", check="yes")
    assert (done.returncode, "input check" in done.stdout) == (2, True)


# The examples


def example(name: str) -> dict[str, Any]:
    """The job of an example."""
    found = yaml.safe_load((ROOT / f"examples/pull-requests/{name}.yml").read_text("utf-8"))
    job: dict[str, Any] = found["retrieval"] if name == "gitlab" else found
    return job


def test_the_example_of_github_names_what_there_is() -> None:
    """Inputs of the action, and the permissions that it needs; third parties' actions are
    pinned."""
    found = example("github")
    *others, step = found["jobs"]["retrieval"]["steps"]
    assert set(step["with"]) <= set(action()["inputs"])
    assert found["permissions"]["pull-requests"] == found["permissions"]["checks"] == "write"
    assert all(re.search(r"@[0-9a-f]{40}$", other["uses"]) for other in others if "uses" in other)


@pytest.mark.usefixtures("in_process")
def test_the_example_of_gitlab_runs(run: Run, logs: tuple[str, str]) -> None:
    """Its command, with logs of ours, writes the report that the job keeps."""
    found = example("gitlab")
    command = found["script"][-1].replace("s3://my-bucket/golden/main.jsonl", logs[0])
    program, *words = shlex.split(command.replace("--by section", "--by channel"))
    assert program == "ragmetrics"
    assert run(*words).code == 1
    [report] = found["artifacts"]["paths"]
    assert "Retrieval failed" in Path(report).read_text("utf-8")
