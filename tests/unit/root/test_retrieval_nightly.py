"""Another project of the index installs a package `ragmetrics` too: who overwrote ours is named."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.processes import ROOT

THEIRS = '"""Another project\'s package."""\n\nVERSION = "2"\n'
FIX = "pip install --force-reinstall --no-deps retrieval-nightly"

pytestmark = pytest.mark.process


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages with ours, as pip leaves it."""
    site = tmp_path / "site"
    (site / "ragmetrics").mkdir(parents=True)
    (site / "retrieval_nightly.py").symlink_to(ROOT / "retrieval_nightly.py")
    for path in (ROOT / "ragmetrics").iterdir():
        if path.name not in ("__init__.py", "__pycache__"):
            (site / "ragmetrics" / path.name).symlink_to(path)
    first = site / "ragmetrics" / "__init__.py"
    first.write_bytes((ROOT / "ragmetrics" / "__init__.py").read_bytes())
    record(site, "retrieval-nightly", first.read_bytes())
    return site


def record(site: Path, name: str, first: bytes) -> None:
    """What pip writes of a distribution with `ragmetrics/__init__.py`."""
    folder = site / f"{name.replace('-', '_')}-9.9.dist-info"
    folder.mkdir()
    digest = base64.urlsafe_b64encode(hashlib.sha256(first).digest()).rstrip(b"=").decode()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    (folder / "top_level.txt").write_text("ragmetrics\n")
    (folder / "RECORD").write_text(f"ragmetrics/__init__.py,sha256={digest},{len(first)}\n")


def overwritten(site: Path, text: str = THEIRS) -> None:
    """Install another project over ours."""
    record(site, "ragmetrics-client", text.encode())
    (site / "ragmetrics" / "__init__.py").write_text(text, "utf-8")


def run(site: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code with the packages of the folder."""
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
        cwd=site.parent,
        capture_output=True,
        text=True,
        check=False,
    )


COMMAND = "import retrieval_nightly; retrieval_nightly.main()"


def test_an_untouched_installation_is_fine(site: Path) -> None:
    """Nothing is said, and the command runs."""
    ended = run(site, "import retrieval_nightly; print(repr(retrieval_nightly.replaced()))")
    assert ended.stdout.strip() == "''", ended.stderr
    assert run(site, COMMAND, "--version").returncode == 0


def test_doctor_names_the_other_project(site: Path) -> None:
    """Our commands still run, as their files are ours; the check fails and says what to type."""
    overwritten(site)
    ended = run(site, COMMAND, "doctor", "--json")
    assert ended.returncode == 1, ended.stderr
    assert '"installation"' in ended.stdout
    assert "ragmetrics-client" in ended.stdout
    assert f"pip uninstall ragmetrics-client, then {FIX}" in ended.stdout


@pytest.mark.parametrize("text", ["import no_such_module\n", "raise ImportError('no key')\n"])
def test_an_error_of_their_package_begins_with_the_reason(site: Path, text: str) -> None:
    """Their first file fails, and so no file of ours is reached."""
    overwritten(site, text)
    ended = run(site, COMMAND, "doctor")
    assert ended.returncode == 1
    first, second, *_ = ended.stderr.splitlines()
    assert "was overwritten by ragmetrics-client" in first
    assert "no_such_module" in second or "no key" in second


@pytest.mark.parametrize("module", ["flows", "tasks"])
def test_a_flow_says_it_too(site: Path, module: str) -> None:
    """It imports a name that their package does not have."""
    overwritten(site)
    ended = run(site, f"import {module}")
    [line] = [line for line in ended.stderr.splitlines() if "overwritten" in line]
    assert line.startswith("ImportError: the package ragmetrics of retrieval-nightly")
    assert "cannot import name 'Settings'" in ended.stderr


def test_a_first_file_that_went_with_the_other_project_is_named(site: Path) -> None:
    """pip removed the shared file with them."""
    (site / "ragmetrics" / "__init__.py").unlink()
    ended = run(site, "import retrieval_nightly; print(retrieval_nightly.replaced())")
    assert "another project that has been removed since" in ended.stdout
    assert ended.stdout.strip().endswith(FIX)
