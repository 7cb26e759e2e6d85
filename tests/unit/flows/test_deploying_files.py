"""What deployments/ holds fits together, and with the code: names, variables, commands, the image.

There is no Docker daemon and no cluster here: these files are checked, not run. What the containers
would do is done without them in test_deploy_container.py.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ragmetrics.config import Settings
from tests.fakes.console import blocks
from tests.fakes.containers import COMPOSE, DEPLOYMENTS, containers, kind
from tests.fakes.deployed import DOCKERFILE, DOCUMENT, KEYS, POOL, README, units
from tests.fakes.offline import skip_or_fail
from tests.fakes.processes import ROOT

PREFECT = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text(encoding="utf-8"))
IN_IMAGE = [line.split()[1:] for line in DOCKERFILE.splitlines() if line.startswith("COPY ")]
FOREIGN = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "PGDATA", "PYTHONUNBUFFERED"}
OURS = {"RAGMETRICS_VERSION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", *POOL}


def scripts() -> Iterator[str]:
    """Every command that a document, a container or a unit runs."""
    yield from (DEPLOYMENTS / "deploy.sh").read_text(encoding="utf-8").splitlines()
    for document in (DEPLOYMENTS / "README.md", DOCUMENT):
        for block in blocks(document):
            if block.kind == "console":
                yield from (command.line for command in block.commands)
    for service in (*COMPOSE["services"].values(), *containers()):
        yield shlex.join(service.get("command") or [])
    yield from (unit["Service"]["ExecStart"] for unit in units())
    yield shlex.join(yaml.safe_load(re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[0]))


def prefect_commands() -> list[str]:
    """What follows the word `prefect` in all of them, but to `|`, `>` and the like."""
    found = set()
    for script in scripts():
        for part in re.split(r"\|\|?|&&|;|>", script.replace("\\\n", " ")):
            program, _, rest = part.strip().partition(" ")
            if program.rpartition("/")[2] == "prefect":
                found.add(rest)
    return sorted(found)


@pytest.mark.parametrize("command", prefect_commands())
def test_prefect_knows_every_command(command: str) -> None:
    """Each `prefect ...` in documents, containers and units parses, with all its options."""
    assert known(command)


@pytest.mark.parametrize("command", ["deploy --al", "work-pool creat ragmetrics", "servr start"])
def test_prefect_knows_no_other_command(command: str) -> None:
    """A misspelt one is seen: the check above can fail."""
    assert not known(command)


def known(command: str) -> bool:
    """Whether Prefect's own parser takes a command."""
    from cyclopts import CycloptsError
    from prefect.cli._app import _app as app

    words = [word for word in shlex.split(command) if word != "--no-prompt"]  # of all commands
    words = [str(uuid.uuid4()) if word == "ID" else word for word in words]
    try:
        app.parse_args(words, print_error=False, exit_on_error=False)
    except CycloptsError:
        return False
    return True


def variables() -> set[str]:
    """The environment variables that files and documents set."""
    named: set[str] = set()
    for service in (*COMPOSE["services"].values(),):
        named |= set(service.get("environment", {}))
    for container in containers():
        named |= {entry["name"] for entry in container.get("env", ())}
    for file in (DEPLOYMENTS / "systemd").glob("*.service"):
        lines = re.findall("^Environment=(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        named |= set(re.findall(r"(\w+)=", " ".join(lines)))
    named |= set(re.findall(r"(\w+)=", DOCKERFILE.partition("ENV ")[2]))
    for document in (README, DOCUMENT.read_text(encoding="utf-8")):
        named |= set(re.findall(r"\b(?:PREFECT|RAGMETRICS|AWS)_\w+[A-Z]\b", document))
        named |= set(re.findall(r"^([A-Z_]+)=", document, re.MULTILINE))
    return named


KUBERNETES = "PREFECT_INTEGRATIONS_KUBERNETES_"


def kubernetes_settings() -> set[str]:
    """The settings of Prefect's integration, by the rest of their variables' names."""
    try:
        from prefect_kubernetes.settings import KubernetesSettings
    except ImportError:
        skip_or_fail("no prefect-kubernetes: make venv")
    parts = {name: field.annotation for name, field in KubernetesSettings.model_fields.items()}
    return {
        f"{part}_{name}".upper()
        for part, model in parts.items()
        for name in getattr(model, "model_fields", ())
    }


@pytest.mark.parametrize("name", sorted(variables()))
def test_somebody_reads_every_variable(name: str) -> None:
    """A variable is one of Prefect's settings, of ours, or of a program that is named here."""
    from prefect.server.utilities import encryption
    from prefect.settings.legacy import _get_settings_fields
    from prefect.settings.models.root import Settings as PrefectSettings

    known = FOREIGN | KEYS | OURS | set(_get_settings_fields(PrefectSettings))
    known |= {"PREFECT_DEFAULT_WORK_POOL_NAME"}  # an alias; test_deployments.py uses it
    known |= {f"RAGMETRICS_{field.upper()}" for field in Settings.model_fields}
    if name == "PREFECT_SERVER_ENCRYPTION_KEY":
        assert name in Path(encryption.__file__).read_text(encoding="utf-8")
        return
    if name.startswith(KUBERNETES):
        assert name.removeprefix(KUBERNETES) in kubernetes_settings()
        return
    assert name.partition("__")[0] in known


@pytest.mark.process
def test_every_deployment_can_be_loaded_and_runs_one_at_a_time() -> None:
    """Entrypoints name flows that are there; runs of a deployment wait in a queue of its own, which
    deploying limits, and not for its concurrency limit, under which they overtake each other."""
    from prefect import Flow
    from prefect.cli.deploy._models import PrefectYamlModel
    from prefect.utilities.importtools import import_object

    assert len(PrefectYamlModel.model_validate(PREFECT).deployments) >= 3
    for deployment in PREFECT["deployments"]:
        flow = import_object(deployment["entrypoint"])
        assert isinstance(flow, Flow)
        assert flow.name == deployment["name"]
        assert ":" not in deployment["entrypoint"]  # or Prefect looks for a file
        assert deployment["work_pool"] == {"work_queue_name": deployment["name"]}
        assert "concurrency_limit" not in deployment
    [step] = PREFECT["build"]
    [limited] = [inputs["queues"] for inputs in step.values()]
    assert set(limited) == {deployment["name"] for deployment in PREFECT["deployments"]}


def test_the_readme_lists_the_variables_that_deploying_reads() -> None:
    """No more and no fewer, with their defaults."""
    from flows.deploying import DEFAULTS

    listed = dict(re.findall(r"^\| `ragmetrics_(\w+)` \| (.+?) \|", README, re.MULTILINE))
    assert {name: "" if text == "none" else text.strip("`") for name, text in listed.items()} == (
        DEFAULTS
    )


def test_nothing_of_one_machine_stands_in_prefect_yaml() -> None:
    """No absolute path and no pool: those are variables."""
    for deployment in PREFECT["deployments"]:
        assert "name" not in deployment["work_pool"]
        assert not re.search(r"(?<![\w}])/\w", str(deployment))


def test_the_image_lets_in_what_it_copies_and_no_secret() -> None:
    """Each COPY names what is there and is let through; nothing is copied as a whole."""
    allowed = (DEPLOYMENTS / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in allowed
    for sources in IN_IMAGE:
        for source in sources[:-1]:
            assert (ROOT / source).exists()
            assert f"!{source.rstrip('/')}" in allowed
    assert not {"!.", "!ragmetrics.env", "!server.env", "!ragmetrics.yaml"} & set(allowed)


def test_the_image_runs_as_an_ordinary_user_on_a_python_that_is_supported() -> None:
    """The last USER is not root, and the base image's Python is one that the package takes."""
    base = re.findall(r"^ARG BASE=python:3\.(\d+)-slim$", DOCKERFILE, re.MULTILINE)
    assert [11 <= int(minor) <= 13 for minor in base] == [True]
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.MULTILINE)[-1] == "ragmetrics"
    ids = {re.search(r"--uid (\d+)", DOCKERFILE)[1]}  # type: ignore[index]
    ids |= {
        str(pod["spec"]["template"]["spec"]["securityContext"]["runAsUser"])
        for pod in kind("Deployment", "Job")
    }
    assert len(ids) == 1


@pytest.mark.process
def test_what_the_image_copies_is_enough_to_run_from(tmp_path: Path) -> None:
    """The files of its COPY lines alone can be installed, and every flow imported without them."""
    for *sources, _ in IN_IMAGE:
        for source in (ROOT / name for name in sources):
            target = tmp_path / "app" / source.name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir(exist_ok=True)
                shutil.copy(source, target)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    where = tmp_path / "site"
    subprocess.run([*pip, "--target", str(where), "."], cwd=tmp_path / "app", check=True)
    flows = [deployment["entrypoint"].rpartition(".")[0] for deployment in PREFECT["deployments"]]
    names = ", ".join([*flows, "pysbd_fast", "ragmetrics"])
    program = f"import sys; sys.path.insert(0, {str(where)!r}); import {names}"
    for package in ("flows", "pysbd_fast", "ragmetrics", "tasks"):
        program += f"; assert sys.modules[{package!r}].__file__.startswith({str(where)!r})"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
