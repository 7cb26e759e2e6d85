"""The consoles of a document, typed as a reader types them.

A fenced block is `console` for the reader's terminal, or `console terminal` for a new one, whose
last command goes on until the end. `$ ` leads a command and `> ` its next line; what else stands
there has to come out (`...`: anything). A block with a file's name, as in `yaml ragmetrics.yaml`,
is a file that the reader writes.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.prefect_live import started

_STYLE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_FENCE = re.compile(r"^```(\w+) ?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    """One command, and what the document says it prints."""

    line: str
    output: tuple[str, ...] = ()

    def missing_in(self, printed: str) -> list[str]:
        """What it should have printed and did not."""
        return [line for line in self.output if not _pattern(line).search(printed)]


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    kind: str
    name: str
    text: str

    @property
    def commands(self) -> list[Command]:
        """The commands of a console."""
        found: list[Command] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:]))
                continue
            if not found:
                raise ValueError(f"a console begins with a command, not with {line!r}")
            last = found.pop()
            if line.startswith("> "):
                found.append(Command(f"{last.line}\n{line[2:]}", last.output))
            else:
                found.append(Command(last.line, (*last.output, line)))
        return found


def blocks(path: Path) -> list[Block]:
    """All fenced blocks of a document that say what they are, in order."""
    return [Block(*found) for found in _FENCE.findall(path.read_text(encoding="utf-8"))]


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part.strip()) for part in line.split("...")))


@dataclass
class Terminal:
    """A bash at a terminal, which keeps its variables and its folder from command to command.

    Nobody answers: a command that asks something runs until its time is up.
    """

    home: Path
    environment: Mapping[str, str]

    def __post_init__(self) -> None:
        self._state = self.home / f".terminal-{id(self)}"
        self._state.write_text("")

    def run(self, command: Command, *, seconds: float = 300) -> str:
        """Run a command to its end, and return what it printed.

        AssertionError where it fails, or does not print what the document says.
        """
        state = shlex.quote(str(self._state))
        after = f"{{ export -p; printf 'cd %q' \"$PWD\"; }} > {state}"
        done = subprocess.run(
            at_a_terminal("bash", "-ec", f". {state}\n{command.line}\n{after}"),
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=seconds,
        )
        printed = plain(done.stdout)
        assert done.returncode == 0, f"$ {command.line}\n{printed}"
        missing = command.missing_in(printed)
        assert not missing, f"$ {command.line}\nnot printed: {missing}\n{printed}"
        return printed

    @contextmanager
    def leave_running(
        self, command: Command, output: Path, *, seconds: float = 180
    ) -> Iterator[None]:
        """Start a command that goes on until the end of the block, and wait for what it prints."""
        script = f". {shlex.quote(str(self._state))}\nexec {command.line}"
        bash = at_a_terminal("bash", "-ec", script)
        with started(bash, self.home, self.environment, output) as process:
            deadline = time.monotonic() + seconds
            while missing := command.missing_in(plain(output.read_bytes())):
                if process.poll() is not None or time.monotonic() > deadline:
                    printed = plain(output.read_bytes())
                    raise AssertionError(f"$ {command.line}\nnot printed: {missing}\n{printed}")
                time.sleep(0.2)
            yield


def at_a_terminal(*command: str) -> list[str]:
    """A command as it runs where somebody sits before it: what it prints comes out as usual."""
    spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    return [sys.executable, "-c", spawn, *command]


def plain(printed: bytes) -> str:
    """What a terminal showed, without its colours."""
    return _STYLE.sub("", printed.decode("utf-8", "replace")).replace("\r\n", "\n")
