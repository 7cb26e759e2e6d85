"""The systemd units: they run what an installation has, and may do little."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fakes.containers import DEPLOYMENTS, containers
from tests.fakes.deployed import DOCKERFILE, units


def test_units_run_what_an_installation_has() -> None:
    """Both run Prefect from the checkout, with its variables, and are started again."""
    assert len(units()) == 2
    for unit in units():
        service = unit["Service"]
        assert service["ExecStart"].startswith(f"{service['WorkingDirectory']}/.venv/bin/prefect ")
        assert service["Restart"] == "always"
    files = {unit["Service"]["EnvironmentFile"].rpartition("/")[2] for unit in units()}
    assert files == {"ragmetrics.env", "server.env"}


@pytest.mark.process
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    """Each key and value, for a checkout that is there."""
    if not (analyze := shutil.which("systemd-analyze")):
        pytest.skip("there is no systemd on this machine")
    program = tmp_path / ".venv/bin/prefect"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for file in (DEPLOYMENTS / "systemd").glob("*.service"):
        unit = tmp_path / file.name
        unit.write_text(file.read_text(encoding="utf-8").replace("/opt/ragmetrics", str(tmp_path)))
    done = subprocess.run(
        [analyze, "verify", "--man=no", *tmp_path.glob("*.service")], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


MOST_EXPOSED = 20
"""In tenths: systemd's own measure, which calls 92 unsafe, and 20 well protected."""


@pytest.mark.process
@pytest.mark.parametrize("unit", ["ragmetrics-server", "ragmetrics-worker"])
def test_units_may_do_little(unit: str) -> None:
    """A run, which reads what strangers wrote, gets no more of the machine than it needs."""
    if not (analyze := shutil.which("systemd-analyze")):
        pytest.skip("no systemd-analyze: apt-get install systemd")
    file = DEPLOYMENTS / f"systemd/{unit}.service"
    measure = [analyze, "security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(file)]
    done = subprocess.run(measure, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout.splitlines()[-1]


def test_the_page_of_the_server_is_copied_to_where_it_may_write() -> None:
    """Prefect copies it beside its own code, unless told: root's, where there would be no page."""
    [unit] = [file for file in (DEPLOYMENTS / "systemd").glob("*server.service")]
    name = "PREFECT_SERVER_UI_STATIC_DIRECTORY"
    assert f"Environment={name}=/var/lib/ragmetrics/ui\n" in unit.read_text(encoding="utf-8")
    folder = re.findall(rf"{name}=(\S+)", DOCKERFILE)[0]
    [server] = [container for container in containers() if container["name"] == "server"]
    mounts = [volumemount["mountPath"] for volumemount in server["volumeMounts"]]
    assert any(folder.startswith(f"{mount}/") for mount in mounts)


def test_units_write_their_state_alone() -> None:
    """The folder of their state is the only one, and the checkout is not below what is hidden."""
    for unit in units():
        service = unit["Service"]
        assert (service["ProtectSystem"], service["ProtectHome"]) == ("strict", "yes")
        assert "/var/lib/ragmetrics" in service["Environment"]
        assert service["StateDirectory"] == "ragmetrics"
        assert not service["WorkingDirectory"].startswith(("/home", "/root", "/tmp"))
