"""The files of deployments/ and what documents say of them, read for the tests that check them."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.fakes.console import blocks
from tests.fakes.containers import DEPLOYMENTS, EnvFiles
from tests.fakes.processes import ROOT

if TYPE_CHECKING:
    from prefect.settings.models.root import Settings as PrefectSettings

README = (DEPLOYMENTS / "README.md").read_text(encoding="utf-8")
DOCUMENT = ROOT / "docs/how-to/deploying.md"
DOCKERFILE = (DEPLOYMENTS / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
KEYS = {"OPENAI_API_KEY", "SLACK_WEBHOOK_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
POOL = {"RAGMETRICS_POOL", "RAGMETRICS_IMAGE", "RAGMETRICS_NAMESPACE"}
PASSWORD = "a@b/c:d#e%20f+?=&$'"
Environment = Callable[[str, EnvFiles], dict[str, str]]


def in_a_terminal(container: str, files: EnvFiles) -> dict[str, str]:
    """What a terminal has that read the file of the server, or of the worker."""
    return dict(files["server.env" if container == "server" else "ragmetrics.env"])


def env_files() -> EnvFiles:
    """What docs/how-to/deploying.md has people write, and the password that the README adds."""
    files = {
        block.name: dict(line.split("=", 1) for line in block.text.splitlines())
        for block in blocks(DOCUMENT)
        if block.name.endswith(".env")
    }
    files["server.env"]["POSTGRES_PASSWORD"] = PASSWORD
    return files


def units() -> list[configparser.RawConfigParser]:
    """The systemd units; of a key that stands there twice, the last value."""
    parsed = []
    for file in sorted((DEPLOYMENTS / "systemd").glob("*.service")):
        parser = configparser.RawConfigParser(strict=False)
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        parser.read_string(file.read_text(encoding="utf-8"))
        parsed.append(parser)
    return parsed


def prefect_settings(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> PrefectSettings:
    """What Prefect reads in an environment."""
    from prefect.settings.models.root import Settings as PrefectSettings

    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return PrefectSettings()


def readme_server(_: str, files: EnvFiles) -> dict[str, str]:
    """What the README has people set for a PostgreSQL of theirs."""
    [block] = re.findall(r"^```sh\n(PREFECT_SERVER_DATABASE_.*?)^```", README, re.M | re.S)
    given = dict(line.split("=", 1) for line in block.splitlines())
    return given | {"PREFECT_SERVER_DATABASE_PASSWORD": files["server.env"]["POSTGRES_PASSWORD"]}
