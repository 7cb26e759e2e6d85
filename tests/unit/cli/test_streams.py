"""How a command ends does not depend on who reads it, nor look like a finding where it broke."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import pytest
import yaml

from ragmetrics.cli import main
from tests.fakes.build_logs import METRICS, damaged, golden, write_build
from tests.fakes.command import Run
from tests.fakes.processes import ROOT

ASKED = "Какова высота башни?"
BUILDS = {"promoted": 0, "held": 1}
NO_SPACE = "ragmetrics: the output could not be written: No space left on device"
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build to promote and one to hold, whose questions few terminals can show."""
    folder = tmp_path_factory.mktemp("gate")
    rows = [{**row, "user_input": f"{ASKED} {n} \U0001f5fc"} for n, row in enumerate(golden(60))]
    write_build(folder, "b1", rows)
    write_build(folder, "promoted", rows)
    write_build(folder, "held", damaged(rows, 0.4, seed=1))
    path = folder / "ragmetrics.yaml"
    values = {"store": "store", "metrics": METRICS, "gate": {"logs": "builds/{build}.jsonl"}}
    path.write_text(yaml.safe_dump(values))
    return path


@dataclass(frozen=True)
class Gated:
    """How a gate ended, and what its stderr says beside its progress."""

    code: int
    complaints: list[str]


def complaints(stderr: str) -> list[str]:
    """The lines on stderr, but for those that say how far the gate is."""
    lines = stderr.splitlines()
    return [line for line in lines if not re.fullmatch(r"\w+: \d+ of \d+( after \d+ s)?", line)]


Gate = Callable[..., Gated]
HELD = Gated(1, [])


@pytest.fixture
def gate(settings: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Runs the gate in this process, from `main` on, with a stdout of the test's choice."""

    def gated(build: str, stdout: TextIO | None, *more: str) -> Gated:
        stderr = StringIO()
        monkeypatch.setattr(sys, "argv", ["ragmetrics", *arguments(settings, build), *more])
        monkeypatch.setattr(sys, "stdout", stdout)
        monkeypatch.setattr(sys, "stderr", stderr)
        with pytest.raises(SystemExit) as ended:
            main()
        return Gated(int(ended.value.code or 0), complaints(stderr.getvalue()))

    return gated


def arguments(settings: Path, build: str) -> list[str]:
    """The gate of a build."""
    return ["gate", "--build", build, "--against", "b1", "--settings", str(settings)]


def process(settings: Path, *more: str, via: Sequence[str] = (), **options: Any) -> Gated:
    """The gate of the build to hold, as a process of its own: Python closes its streams itself."""
    asked = [*via, sys.executable, "-m", "ragmetrics", *arguments(settings, "held"), *more]
    ended = subprocess.run(asked, cwd=ROOT, stderr=subprocess.PIPE, check=False, **options)
    return Gated(ended.returncode, complaints(ended.stderr.decode()))


@contextmanager
def nobody_reads() -> Iterator[TextIO]:
    """A pipe whose reader went away."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w", encoding="utf-8") as stream:
        yield stream


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
@pytest.mark.parametrize("build", BUILDS)
def test_any_encoding_takes_the_json(settings: Path, gate: Gate, build: str, encoding: str) -> None:
    """It is the record in the store, and the exit code is the verdict's."""
    printed = BytesIO()
    ended = gate(build, TextIOWrapper(printed, encoding=encoding), "--json")
    assert ended == Gated(BUILDS[build], [])
    stored = settings.parent / "store" / "gates" / f"{build}.json"
    assert json.loads(printed.getvalue()) == json.loads(stored.read_bytes())


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_characters_that_a_terminal_lacks_are_written_as_python_does(
    gate: Gate, encoding: str
) -> None:
    """The table is whole, and the exit code is the verdict's."""
    printed = BytesIO()
    assert gate("held", TextIOWrapper(printed, encoding=encoding)) == HELD
    told = printed.getvalue().decode(encoding)
    assert ASKED.encode("ascii", "backslashreplace").decode() in told
    assert "HOLD" in told


@pytest.mark.process
def test_the_encoding_of_a_process_is_its_environments(settings: Path, tmp_path: Path) -> None:
    """A terminal that only knows ASCII gets the whole table, in a process of its own."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    with (tmp_path / "printed").open("wb") as printed:
        assert process(settings, stdout=printed, env=environment) == HELD
    told = (tmp_path / "printed").read_text("ascii")
    assert ASKED.encode("ascii", "backslashreplace").decode() in told


@pytest.mark.process
@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("build", BUILDS)
def test_a_reader_that_went_away_leaves_the_verdict(
    gate: Gate, build: str, more: tuple[str, ...]
) -> None:
    """As `| true` does, without a word."""
    with nobody_reads() as stdout:
        assert gate(build, stdout, *more) == Gated(BUILDS[build], [])


@pytest.mark.process
def test_a_process_whose_reader_went_away_leaves_the_verdict(settings: Path) -> None:
    """Python itself has nothing left to write at its end."""
    with nobody_reads() as stdout:
        assert process(settings, stdout=stdout) == HELD


@pytest.mark.process
@pytest.mark.parametrize("build", BUILDS)
def test_a_closed_stdout_leaves_the_verdict(gate: Gate, build: str) -> None:
    """Python has no stdout then."""
    assert gate(build, None, "--json") == Gated(BUILDS[build], [])


@pytest.mark.process
def test_a_process_with_a_closed_stdout_leaves_the_verdict(settings: Path) -> None:
    """As `>&-` does."""
    assert process(settings, "--json", via=["sh", "-c", 'exec "$@" >&-', "sh"]) == HELD


@pytest.mark.process
@FULL
@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("build", BUILDS)
def test_a_full_disk_is_no_verdict(gate: Gate, build: str, more: tuple[str, ...]) -> None:
    """Exit code 74, and one line that says why: half a record should not pass for one."""
    with Path("/dev/full").open("w") as full:
        assert gate(build, full, *more) == Gated(74, [NO_SPACE])


@pytest.mark.process
@FULL
def test_a_process_on_a_full_disk_gives_no_verdict(settings: Path) -> None:
    """Python itself has nothing left to write at its end."""
    with Path("/dev/full").open("w") as full:
        assert process(settings, stdout=full) == Gated(74, [NO_SPACE])


@pytest.mark.process
@FULL
def test_a_full_stderr_leaves_the_exit_code() -> None:
    """There is nobody to tell."""
    asked = [sys.executable, "-m", "ragmetrics", "gate", "--build", "../b"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(asked, cwd=ROOT, stderr=full, capture_output=False, check=False)
    assert ended.returncode == 2


class _Panic(BaseException):
    """As libraries written in Rust raise."""


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError("odd"), BrokenPipeError(32, "odd"), EOFError("odd"), _Panic("odd")],
    ids=lambda error: type(error).__name__,
)
def test_an_unexpected_error_is_exit_code_70(
    run: Run, settings: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """With its traceback on stderr: neither a verdict nor an error of the user's."""

    def breaks(*_: object) -> None:
        raise error

    monkeypatch.setattr("ragmetrics.comparison.run_gate", breaks)
    ended = run("gate", "--build", "held", "--settings", settings, "--json")
    assert (ended.code, ended.out) == (70, "")
    assert ended.err.startswith("Traceback")
    assert "odd" in ended.err
