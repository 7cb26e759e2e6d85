"""docs/how-to/deploying.md, followed to the letter by somebody with an empty home.

Every command of the document is run, in its order, in terminals that keep their variables. Three
things are not as the reader's: the address that is cloned leads to a repository made of this
working tree; `make install`, which needs an index of packages, links the environment that is here;
and bucket, judge and Slack are servers of this machine. The bucket is Ceph's, and the reader has
the rights of deployments/aws/worker-policy.json, and no other.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.ceph import WORKER, Ceph
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.clone import fresh_clone
from tests.fakes.console import Command, Terminal, blocks
from tests.fakes.logs import NIGHT, make_rows
from tests.fakes.offline import skip_or_fail
from tests.fakes.processes import ROOT
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.timeout(1200)

DOCUMENT = ROOT / "docs/how-to/deploying.md"
BUCKET = "my-bucket"
SERVER = "http://127.0.0.1:4200/api"
BUILDS = ("2026-11-13", "2026-11-20")
VERDICT = f"ragmetrics/gates/{BUILDS[1]}.json"
QUESTIONS = 60  # as many as a gate needs
LINK = Command(f"mkdir .venv; ln -s {shlex.quote(sys.prefix)}/* .venv/")


def git(folder: Path, *arguments: str) -> str:
    """Run git as somebody with a name."""
    who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def publish(origin: Path) -> None:
    """Commit all that there is in a repository."""
    git(origin, "add", "--all", "--force")
    git(origin, "commit", "--quiet", "--message", "A version")


class Reader:
    """Somebody who follows the document, with an empty home."""

    def __init__(
        self, home: Path, files: dict[str, str], bucket: Bucket, running: ExitStack
    ) -> None:
        self.home = home
        self.checkout = home / "ragmetrics"
        self.run_id = ""
        self._bucket = bucket
        self._files = files
        self.unused = set(files)
        self._running = running
        kept = ("PATH", "DO_NOT_TRACK", "AWS_EC2_METADATA_DISABLED")
        self._environment = {name: os.environ[name] for name in kept if name in os.environ}
        self._environment |= {
            "HOME": str(home),
            "COLUMNS": "200",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
        }
        self.terminal = Terminal(home, self._environment)

    def follow(self, document: Path) -> list[Command]:
        """Do all that a document says; return its commands."""
        done = []
        for block in blocks(document):
            if block.kind == "console" and block.name == "terminal":
                self._leave_running(block.commands)
            elif block.kind == "console":
                for command in block.commands:
                    self.type(command)
            elif block.name:
                more, _, name = block.name.rpartition(" ")
                with (self.checkout / name).open("a" if more else "w") as file:
                    file.write(self._as_here(block.text))
            if block.kind == "console":
                done += block.commands
        return done

    def type(self, command: Command) -> str:
        """Type a command, wait for what the reader waits for, and return what it printed."""
        if command.line == "make install":
            if not (self.checkout / ".venv").exists():
                self.terminal.run(LINK)
            return ""
        if command.line == "git pull":  # somebody has made a new version meanwhile
            (self.home / "origin" / "NEWS").write_text("A new version.\n")
            publish(self.home / "origin")
        line = re.sub(r"\bID\b", self.run_id, command.line)
        printed = self.terminal.run(Command(line, command.output))
        if found := re.search(r"UUID: (\S+)", printed):
            self.run_id = found[1]
        if "emit-build" in line:
            wait_for(lambda: self._bucket.keys(VERDICT))
        if "--state-type RUNNING" in line:
            wait_for(lambda: "No flow runs found" in self.terminal.run(command))
        return printed

    def _leave_running(self, commands: list[Command]) -> None:
        terminal = Terminal(self.home, self._environment)
        for command in commands[:-1]:
            terminal.run(command)
        output = self.home / f"{len(list(self.home.glob('*.log')))}.log"
        self._running.enter_context(terminal.leave_running(commands[-1], output))
        if "server start" in commands[-1].line:
            wait_for(lambda: answer("health"))  # as the reader sees in the browser

    def _as_here(self, text: str) -> str:
        """A file of the document with the addresses and keys of this machine."""
        for there, here in self._files.items():
            if there in text:
                self.unused.discard(there)
                text = text.replace(there, here)
        return text


def wait_for(what: Callable[[], object], seconds: float = 180) -> None:
    """Wait until something is there (is true)."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.5)


def answer(path: str) -> Any:
    """What the server answers to a GET with the document's password; None where nobody answers."""
    request = urllib.request.Request(f"{SERVER}/{path}")
    request.add_header("Authorization", f"Basic {base64.b64encode(b'admin:change-me').decode()}")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        error.close()
        raise
    except OSError:
        return None


@pytest.fixture
def bucket(gateway: Ceph) -> Bucket:
    """The document's bucket: its night, its golden set, which alone knows the right answers, and
    the logs of its two builds.
    """
    client = gateway.client("s3")
    gateway.empty(BUCKET)
    gateway.allow((ROOT / "deployments/aws/worker-policy.json").read_text())
    logs = {f"builds/{build}/": {"index_build": build} for build in BUILDS}
    for folder, fields in {f"retrieval/dt={NIGHT}/": {}, **logs}.items():
        rows = make_rows(QUESTIONS, night=NIGHT, reference=None, **fields)
        put(client, f"{folder}log.jsonl", rows)
    put(client, "golden.jsonl", make_rows(QUESTIONS, retrieved_contexts=None))
    # What the worker writes is the worker's, and not readable for the owner of the bucket.
    return Bucket(BUCKET, gateway.endpoint, gateway.client("s3", WORKER))


def put(client: Any, key: str, rows: list[dict[str, Any]]) -> None:
    """Write rows into the bucket."""
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    client.put_object(Bucket=BUCKET, Key=key, Body=body)


def read(bucket: Bucket, key: str) -> Any:
    """A JSON file of the bucket."""
    return json.loads(bucket.client.get_object(Bucket=BUCKET, Key=key)["Body"].read())


@pytest.fixture
def reader(
    bucket: Bucket,
    gateway: Ceph,
    judge_server: JudgeServer,
    slack_server: SlackServer,
    tmp_path: Path,
) -> Iterator[Reader]:
    """A reader, for whom the project's address is a repository of this working tree."""
    with socket.socket() as port:
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            port.bind(("127.0.0.1", 4200))
        except OSError:
            skip_or_fail("port 4200, which docs/how-to/deploying.md uses, is taken")
    origin = fresh_clone(tmp_path / "origin")
    git(origin, "init", "--quiet")
    publish(origin)
    (tmp_path / ".gitconfig").write_text(
        f'[url "{origin.as_uri()}"]\n\tinsteadOf = https://github.com/ragmetrics/ragmetrics.git\n'
        "[advice]\n\tdetachedHead = false\n"
    )
    keys = gateway.environment()
    files = {
        "https://llm.example.com/v1": judge_server.base_url,
        "https://hooks.slack.com/services/...": slack_server.url,
        "AWS_ACCESS_KEY_ID=...": f"AWS_ACCESS_KEY_ID={keys['AWS_ACCESS_KEY_ID']}",
        "AWS_SECRET_ACCESS_KEY=...": (
            f"AWS_SECRET_ACCESS_KEY={keys['AWS_SECRET_ACCESS_KEY']}\n"
            f"AWS_ENDPOINT_URL={bucket.endpoint}"
        ),
    }
    with ExitStack() as running:
        yield Reader(tmp_path, files, bucket, running)


def test_the_document_can_be_followed_to_the_letter(reader: Reader, bucket: Bucket) -> None:
    """Every command works and prints what it should; at the end the night and the verdict on the
    build are in the bucket, no run has failed, and the nightly is planned."""
    typed = reader.follow(DOCUMENT)
    assert not reader.unused, "what the files of the document should hold"
    assert len(typed) == len(re.findall(r"^\$ ", DOCUMENT.read_text(), re.MULTILINE))
    page = bucket.client.head_object(Bucket=BUCKET, Key="ragmetrics/dashboard/index.html")
    assert page["ContentType"].startswith("text/html")
    [manifest] = bucket.keys(f"ragmetrics/runs/dt={NIGHT}/")
    night, gate = read(bucket, manifest), read(bucket, VERDICT)
    scored = {summary["metric"]: summary["scored"] for summary in night["metrics"]}
    assert scored["context_recall"] == scored["context_relevance"] == QUESTIONS
    assert (gate["verdict"], gate["build"], gate["serving"]) == ("promote", *reversed(BUILDS))
    assert (reader.checkout / "dashboard/index.html").is_file()
    assert not git(reader.checkout, "status", "--porcelain"), "git sees what the reader wrote"
    runs = ".venv/bin/prefect flow-run ls"
    assert "nightly" in reader.type(Command(f"{runs} --state Scheduled"))
    bad = reader.type(Command(f"{runs} --state-type FAILED --state-type CRASHED"))
    assert "No flow runs found" in bad
    assert answer("admin/settings")["server"]["analytics_enabled"] is False
    [logs] = [command for command in typed if "flow-run logs" in command.line]
    assert_a_failed_run_says_why(reader, logs)


def assert_a_failed_run_says_why(reader: Reader, logs: Command) -> None:
    """The last line of the log, as the document has people read it, holds the reason."""
    line = ".venv/bin/prefect deployment run nightly/nightly --param date=2026-11-18 --watch"
    reader.type(Command(f"! {line}", ("Flow run finished in state 'Failed...",)))
    assert "nothing to score: no log file at" in reader.type(Command(logs.line))
