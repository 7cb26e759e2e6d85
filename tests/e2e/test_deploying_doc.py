"""docs/deploying.md, followed to the letter by somebody with an empty home.

Every command of the document is run, in its order, in terminals that keep their variables. Three
things are not as the reader's: the address that is cloned leads to a repository made of this
working tree; `make install`, which needs an index of packages, links the environment that is here;
and bucket, judge and Slack are servers of this machine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import pytest

from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.clone import fresh_clone
from tests.fakes.console import Command, Terminal, blocks
from tests.fakes.logs import NIGHT, make_rows
from tests.fakes.offline import skip_or_fail
from tests.fakes.processes import ROOT
from tests.fakes.slack import SlackServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

DOCUMENT = ROOT / "docs/deploying.md"
BUCKET = "my-bucket"
SERVER = "http://127.0.0.1:4200/api/health"
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

    def __init__(self, home: Path, files: dict[str, str], running: ExitStack) -> None:
        self.home = home
        self.checkout = home / "ragmetrics"
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
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
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
                    self._type(command)
            elif block.name:
                (self.checkout / block.name).write_text(self._as_here(block.text))
            if block.kind == "console":
                done += block.commands
        return done

    def _type(self, command: Command) -> None:
        if command.line == "make install":
            if not (self.checkout / ".venv").exists():
                self.terminal.run(LINK)
            return
        if command.line == "git pull":  # somebody has made a new version meanwhile
            (self.home / "origin" / "NEWS").write_text("A new version.\n")
            publish(self.home / "origin")
        self.terminal.run(command)

    def _leave_running(self, commands: list[Command]) -> None:
        terminal = Terminal(self.home, self._environment)
        for command in commands[:-1]:
            terminal.run(command)
        output = self.home / f"{len(list(self.home.glob('*.log')))}.log"
        self._running.enter_context(terminal.leave_running(commands[-1], output))
        if "server start" in commands[-1].line:
            answering(SERVER)  # as the reader sees in the browser

    def _as_here(self, text: str) -> str:
        """A file of the document with the addresses and keys of this machine."""
        for there, here in self._files.items():
            if there in text:
                self.unused.discard(there)
                text = text.replace(there, here)
        return text


def answering(url: str, seconds: float = 120) -> None:
    """Wait until an address answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


@pytest.fixture
def bucket(s3: Bucket) -> Bucket:
    """The document's bucket, with the document's night in it."""
    client = boto3.Session().client("s3")
    client.create_bucket(Bucket=BUCKET)
    body = "".join(json.dumps(row) + "\n" for row in make_rows(12, night=NIGHT)).encode()
    client.put_object(Bucket=BUCKET, Key=f"retrieval/dt={NIGHT}/log.jsonl", Body=body)
    return Bucket(BUCKET, s3.endpoint, client)


@pytest.fixture
def reader(
    bucket: Bucket, judge_server: JudgeServer, slack_server: SlackServer, tmp_path: Path
) -> Iterator[Reader]:
    """A reader, for whom the project's address is a repository of this working tree."""
    with socket.socket() as port:
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            port.bind(("127.0.0.1", 4200))
        except OSError:
            skip_or_fail("port 4200, which docs/deploying.md uses, is taken")
    origin = fresh_clone(tmp_path / "origin")
    git(origin, "init", "--quiet")
    publish(origin)
    (tmp_path / ".gitconfig").write_text(
        f'[url "{origin.as_uri()}"]\n\tinsteadOf = https://github.com/ragmetrics/ragmetrics.git\n'
        "[advice]\n\tdetachedHead = false\n"
    )
    files = {
        "https://llm.example.com/v1": judge_server.base_url,
        "https://hooks.slack.com/services/...": slack_server.url,
        "AWS_ACCESS_KEY_ID=...": f"AWS_ACCESS_KEY_ID={os.environ['AWS_ACCESS_KEY_ID']}",
        "AWS_SECRET_ACCESS_KEY=...": (
            f"AWS_SECRET_ACCESS_KEY={os.environ['AWS_SECRET_ACCESS_KEY']}\n"
            f"AWS_ENDPOINT_URL={bucket.endpoint}"
        ),
    }
    with ExitStack() as running:
        yield Reader(tmp_path, files, running)


def test_the_document_can_be_followed_to_the_letter(
    reader: Reader, bucket: Bucket, slack_server: SlackServer
) -> None:
    """Every command works and prints what it should; at the end the night is in the bucket, Slack
    was heard, and the nightly is planned."""
    typed = reader.follow(DOCUMENT)
    assert not reader.unused, "what the files of the document should hold"
    assert len(typed) == len(re.findall(r"^\$ ", DOCUMENT.read_text(), re.MULTILINE))
    page = bucket.client.head_object(Bucket=BUCKET, Key="ragmetrics/dashboard/index.html")
    assert page["ContentType"].startswith("text/html")
    assert bucket.keys(f"ragmetrics/runs/dt={NIGHT}/")
    assert (reader.checkout / "dashboard/index.html").is_file()
    assert "ragmetrics can be heard" in str(slack_server.delivered)
    assert not git(reader.checkout, "status", "--porcelain"), "git sees what the reader wrote"
    planned = reader.terminal.run(Command(".venv/bin/prefect flow-run ls --state Scheduled"))
    assert "nightly" in planned
