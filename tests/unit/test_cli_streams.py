"""How a command ends does not depend on who reads it, nor look like a finding where it broke."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.fakes.build_logs import METRICS, damaged, golden, write_build
from tests.fakes.command import Run
from tests.fakes.processes import ROOT

ASKED = "Какова высота башни?"
BUILDS = {"promoted": 0, "held": 1}


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


def command(settings: Path, build: str, *more: str) -> list[str]:
    """The gate as a process of its own."""
    asked = ["gate", "--build", build, "--against", "b1", "--settings", str(settings), *more]
    return [sys.executable, "-m", "ragmetrics", *asked]


def complaints(stderr: bytes) -> list[str]:
    """The lines on stderr, but for those that say how far the gate is."""
    lines = stderr.decode().splitlines()
    return [line for line in lines if not re.fullmatch(r"\w+: \d+ of \d+( after \d+ s)?", line)]


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
@pytest.mark.parametrize("build", BUILDS)
def test_any_encoding_takes_the_json(settings: Path, build: str, encoding: str) -> None:
    """It is the record in the store, and the exit code is the verdict's."""
    ended = subprocess.run(
        command(settings, build, "--json"),
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, complaints(ended.stderr)) == (BUILDS[build], [])
    stored = settings.parent / "store" / "gates" / f"{build}.json"
    assert json.loads(ended.stdout) == json.loads(stored.read_bytes())


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_characters_that_a_terminal_lacks_are_written_as_python_does(
    settings: Path, encoding: str
) -> None:
    """The table is whole, and the exit code is the verdict's."""
    ended = subprocess.run(
        command(settings, "held"),
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, complaints(ended.stderr)) == (1, [])
    told = ended.stdout.decode(encoding)
    assert ASKED.encode("ascii", "backslashreplace").decode() in told
    assert "HOLD" in told


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("build", BUILDS)
def test_a_reader_that_went_away_leaves_the_verdict(
    settings: Path, build: str, more: tuple[str, ...]
) -> None:
    """As `| true` does, without a word."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        ended = subprocess.run(
            command(settings, build, *more),
            cwd=ROOT,
            stdout=writes,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writes)
    assert (ended.returncode, complaints(ended.stderr)) == (BUILDS[build], [])


@pytest.mark.parametrize("build", BUILDS)
def test_a_closed_stdout_leaves_the_verdict(settings: Path, build: str) -> None:
    """As `>&-` does."""
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *command(settings, build, "--json")]
    ended = subprocess.run(shell, cwd=ROOT, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, complaints(ended.stderr)) == (BUILDS[build], [])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("build", BUILDS)
def test_a_full_disk_is_no_verdict(settings: Path, build: str, more: tuple[str, ...]) -> None:
    """Exit code 74, and one line that says why: half a record should not pass for one."""
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command(settings, build, *more),
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == 74
    assert complaints(ended.stderr) == [
        "ragmetrics: the output could not be written: No space left on device"
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
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
