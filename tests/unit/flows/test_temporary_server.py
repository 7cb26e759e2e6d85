"""The Prefect server of a run by hand: when it is started, and when another one may be meant."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from flows import temporary_server
from flows.temporary_server import may_be_set
from tests.fakes.processes import ROOT

ACTIVE = 'active = "ours"\n[profiles.ours]\n{settings}\n[profiles.other]\nPREFECT_API_URL = "x"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home of Prefect."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def is_set(home: Path, folder: Path, **environment: str) -> bool:
    """Whether a server may be named for a process in a folder."""
    return may_be_set({"PREFECT_HOME": str(home), **environment}, folder)


def test_without_any_settings_no_server_is_named(home: Path, tmp_path: Path) -> None:
    """A fresh machine."""
    assert not is_set(home, tmp_path)


@pytest.mark.parametrize(
    "name", ["PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"]
)
def test_the_environment_may_name_one(home: Path, tmp_path: Path, name: str) -> None:
    """By its address or a profile; or it may forbid temporary servers."""
    assert is_set(home, tmp_path, **{name: "x"})


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ('PREFECT_API_URL = "http://x/api"', True),
        ('PREFECT_SERVER_ALLOW_EPHEMERAL_MODE = "true"', False),
    ],
)
def test_the_active_profile_may_name_one(
    home: Path, tmp_path: Path, settings: str, named: bool
) -> None:
    """Other profiles do not count, nor does the mode that Prefect writes into its own."""
    (home / "profiles.toml").write_text(ACTIVE.format(settings=settings))
    assert is_set(home, tmp_path) is named


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("prefect.toml", "", True),
        (".env", "PREFECT_API_URL=http://x/api", True),
        (".env", "OPENAI_API_KEY=x", False),
        ("pyproject.toml", "[tool.prefect.api]\nurl = 'http://x/api'", True),
        ("pyproject.toml", "[tool.prefect.deployments]\ndefault_work_pool_name = 'x'", False),
        ("pyproject.toml", "not toml", False),
    ],
)
def test_files_of_the_folder_may_name_one(
    home: Path, tmp_path: Path, file: str, text: str, named: bool
) -> None:
    """Those that Prefect reads."""
    (tmp_path / file).write_text(text)
    assert is_set(home, tmp_path) is named


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_starts_no_server(monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    """It would only be stopped again."""
    monkeypatch.setattr(sys, "argv", ["flows.nightly", flag])
    started: list[object] = []
    monkeypatch.setattr(temporary_server, "_run", started.append)
    temporary_server.start()
    assert started == []


@pytest.mark.process
@pytest.mark.parametrize("end", ["pass", "os.kill(os.getpid(), 9)"], ids=["ends", "is killed"])
def test_requests_wait_for_the_server_which_ends_with_the_process(tmp_path: Path, end: str) -> None:
    """The address is there before the server is; nothing is left behind, also by a kill."""
    code = (
        "from flows import temporary_server; temporary_server.start()\n"
        "import os, urllib.request\n"
        "url = os.environ['PREFECT_API_URL']\n"
        "health = urllib.request.urlopen(url + '/health', timeout=120).read().decode()\n"
        "print(url, health, flush=True)\n"
        f"{end}\n"
    )
    known = {key: one for key, one in os.environ.items() if not key.startswith("PREFECT_")}
    environment = {**known, "PREFECT_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    url, health = done.stdout.split()
    assert health == "true"
    assert "Starting temporary server on" in done.stderr
    port = int(url.split(":")[2].split("/")[0])
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    pytest.fail(f"the server still listens at {url}: {urllib.request.urlopen(url).status}")
