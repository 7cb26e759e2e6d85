"""Every command of the wheel runs once, with a small input, as `pip install` leaves it.

`make test-dist` names the installed command in RAGMETRICS; the default is that of this environment.
The commands are in the order in which each finds what it needs.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from ragmetrics.cli.app import COMMANDS, Commands
from tests.builders import save_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.code_host import COMMIT, CodeHost
from tests.fakes.events import EventServer
from tests.fakes.labelled import make_labelled
from tests.fakes.logs import write_jsonl
from tests.fakes.tracing import KEYS, LangfuseServer

pytestmark = pytest.mark.process

PROGRAM = shlex.split(os.environ.get("RAGMETRICS") or f"{sys.executable} -P -m ragmetrics")
NIGHT = "2026-11-18"
LOG = f"logs/dt={NIGHT}/"
RETRIEVER = """
def search(user_input, build, k=5):
    return [f"{number}: an answer to {user_input}" for number in range(k)]
"""


@dataclass(frozen=True)
class World:
    """A folder with the demo's logs and settings, and the servers that commands speak to."""

    folder: Path
    environment: dict[str, str]

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a command line in the folder."""
        return subprocess.run(
            [*PROGRAM, *shlex.split(line)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, judge_process: JudgeServer) -> Iterator[World]:
    """The folder of the demo, in which one command after the other runs."""
    folder = tmp_path_factory.mktemp("wheel")
    event = {"pull_request": {"number": 7, "head": {"sha": COMMIT}}}
    (folder / "event.json").write_text(json.dumps(event), "utf-8")
    (folder / "mine.py").write_text(RETRIEVER, "utf-8")
    write_jsonl(folder / "labelled.jsonl", make_labelled(6))
    hidden = ("PYTHONPATH", "RAGMETRICS", "CI")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    with (
        CodeHost().running() as host,
        EventServer().running() as events,
        LangfuseServer().running() as langfuse,
    ):
        more = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": host.url,
            "GITHUB_REPOSITORY": "acme/search",
            "GITHUB_TOKEN": "token-4711",
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "PREFECT_API_URL": events.url,
            "OPENAI_BASE_URL": judge_process.base_url,
            "OPENAI_API_KEY": "testing",
            "LANGFUSE_URL": langfuse.url,
            **KEYS,
        }
        made = World(folder, {**kept, **more})
        ended = made.run("demo")
        assert ended.returncode == 0, ended.stderr
        write_settings(made)
        yield made


def write_settings(world: World) -> None:
    """Write the settings that the commands need, beside those of the demo."""
    demo = world.folder / "ragmetrics-demo"
    known = yaml.safe_load((demo / "ragmetrics.yaml").read_text("utf-8"))
    known |= {
        "logs": f"{demo}/logs/dt={{date}}/",
        "golden": f"{demo}/golden.jsonl",
        "store": f"{demo}/store",
        "retriever": {"entrypoint": "mine:search", "parameters": {"k": 3}},
        "gate": {"logs": f"{world.folder}/builds/{{build}}.jsonl"},
        "write_back": {"langfuse": {"base_url": world.environment["LANGFUSE_URL"]}},
    }
    save_settings(world.folder, known)


# Each command line, with the exit codes that its input may have. 2 is an error of input, which only
# those commands may have that find nothing to do in the demo.
LINES: dict[str, tuple[int, ...]] = {
    "schema": (0,),
    "metrics": (0,),
    f"check ragmetrics-demo/{LOG}": (0,),
    f"score ragmetrics-demo/{LOG} --metrics context_relevance": (0,),
    f"init ragmetrics-demo/{LOG} --settings first.yaml --yes": (0,),
    "doctor": (0, 1),
    "nightly --date 2026-11-18": (0, 1),
    "backfill --first 2026-11-17 --last 2026-11-17": (0, 1),
    "dashboard": (0,),
    "plan": (0,),
    "prune": (0,),
    "batches": (0,),
    "write-back --date 2026-11-18": (0, 1),
    "compare 2026-11-16 2026-11-17": (0, 1),
    "replay --build b2 --limit 3 --out trial.jsonl": (0, 1),
    "whatif --night 2026-11-17 --set k=5 --questions 3": (0, 1),
    "calibrate labelled.jsonl": (0, 1),
    "learn": (1, 2),
    "emit-build --build b2 --logs builds/b2.jsonl": (0,),
    f"gate --build b2 --against b1 --logs ragmetrics-demo/{LOG}": (0, 1, 2),
    "pull-request compare --arguments '2026-11-16 2026-11-17' --fail-on never": (0,),
    "golden check": (0, 1),
    "golden suggest --out suggested.jsonl": (0, 1),
    "golden add suggested.jsonl --out added.jsonl": (0, 1, 2),
    "golden nuggets --out cut.jsonl --count 1 --judge openai --model m": (0, 1, 2),
    "golden anchor --out anchored.jsonl": (0, 1),
    "golden retire nobody --out retired.jsonl": (2,),
    "labels suggest --out rows.jsonl --rows 3": (0,),
    "labels check rows.jsonl": (0, 1),
    "prompts export": (0,),
    "prompts check": (0,),
    "prompts adapt --language de --dir prompts --judge openai --model m": (0, 1),
    "alerts list": (0,),
    "mcp": (0, 2),  # a plain install lacks its extra
    "alerts preview --sample": (0,),
    "alerts ack nothing": (2,),
    "alerts snooze nothing --days 2": (2,),
    "alerts unsilence nothing": (2,),
}


@pytest.mark.parametrize("line", LINES)
def test_the_command_runs(world: World, line: str) -> None:
    """It ends with an exit code of its own, and no module is missing."""
    ended = world.run(line)
    said = ended.stdout + ended.stderr
    assert "Traceback" not in said, said
    assert "No module named" not in said, said
    assert ended.returncode in LINES[line], said


def test_no_command_is_left_out() -> None:
    """A new command, or a new one of a group, needs its line."""
    groups = {name: getattr(Commands()[name], "commands", None) for name in COMMANDS}
    names = {
        " ".join([name, inner]) if inner else name
        for name, group in groups.items()
        for inner in (group or [""])
    }
    ran = {" ".join(line.split()[:2]) for line in LINES} | {line.split()[0] for line in LINES}
    ran.add("demo")  # by the fixture
    assert names <= ran
