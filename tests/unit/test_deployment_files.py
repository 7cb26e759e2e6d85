"""What deployments/ holds fits together, and with the code: names, variables, commands, paths.

There is no Docker daemon and no cluster here: these files are checked, not run.
"""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragmetrics.settings import Settings
from tests.fakes.console import blocks
from tests.fakes.processes import ROOT

DEPLOYMENTS = ROOT / "deployments"
README = (DEPLOYMENTS / "README.md").read_text(encoding="utf-8")
PREFECT = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text(encoding="utf-8"))
COMPOSE = yaml.safe_load((DEPLOYMENTS / "docker-compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (DEPLOYMENTS / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
IN_IMAGE = [line.split()[1:] for line in DOCKERFILE.splitlines() if line.startswith("COPY ")]
FOREIGN = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "PGDATA", "PYTHONUNBUFFERED"}
OURS = {"RAGMETRICS_CHECKOUT", "RAGMETRICS_VERSION", "OPENAI_API_KEY", "SLACK_WEBHOOK_URL"}
AWS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"}


def objects() -> list[dict[str, Any]]:
    """Everything that the Kubernetes files hold."""
    files = sorted((DEPLOYMENTS / "kubernetes").glob("*.yaml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def kind(*wanted: str) -> list[dict[str, Any]]:
    """The Kubernetes objects of some kinds."""
    return [one for one in objects() if one["kind"] in wanted]


def pods() -> list[dict[str, Any]]:
    """The Kubernetes objects that run containers."""
    return kind("Deployment", "StatefulSet", "Job")


def containers() -> list[dict[str, Any]]:
    """All containers of the Kubernetes files."""
    return [one for pod in pods() for one in pod["spec"]["template"]["spec"]["containers"]]


def units() -> list[configparser.RawConfigParser]:
    """The systemd units; each key once."""
    parsed = []
    for file in sorted((DEPLOYMENTS / "systemd").glob("*.service")):
        parser = configparser.RawConfigParser()
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        parser.read_string(file.read_text(encoding="utf-8"))
        parsed.append(parser)
    return parsed


def scripts() -> Iterator[str]:
    """Every command that a document, a container or a unit runs."""
    for document in (DEPLOYMENTS / "README.md", ROOT / "docs/deploying.md"):
        for block in blocks(document):
            if block.kind == "console":
                yield from (command.line for command in block.commands)
    for one in (*COMPOSE["services"].values(), *containers()):
        words = one.get("command") or []
        yield from words[-1].splitlines() if words[:1] == ["sh"] else [shlex.join(words)]
    yield from (unit["Service"]["ExecStart"] for unit in units())
    yield shlex.join(yaml.safe_load(re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[0]))


def prefect_commands() -> list[str]:
    """What follows the word `prefect` in all of them, but to `||`, `>` and the like."""
    found = set()
    for script in scripts():
        for part in re.split(r"\|\||&&|;|>", script.replace("\\\n", " ")):
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
    try:
        app.parse_args(words, print_error=False, exit_on_error=False)
    except CycloptsError:
        return False
    return True


def variables() -> set[str]:
    """The environment variables that files and documents set."""
    named: set[str] = set()
    for one in (*COMPOSE["services"].values(),):
        named |= set(one.get("environment", {}))
    for one in containers():
        named |= {entry["name"] for entry in one.get("env", ())}
    named |= set(kind("Secret")[0]["stringData"])
    for unit in units():
        named |= set(re.findall(r"(\w+)=", unit["Service"]["Environment"]))
    named |= set(re.findall(r"(\w+)=", DOCKERFILE.partition("ENV ")[2]))
    for document in (README, (ROOT / "docs/deploying.md").read_text(encoding="utf-8")):
        named |= set(re.findall(r"\b(?:PREFECT|RAGMETRICS|AWS)_\w+[A-Z]\b", document))
        named |= set(re.findall(r"^([A-Z_]+)=", document, re.MULTILINE))
    return named


@pytest.mark.parametrize("name", sorted(variables()))
def test_somebody_reads_every_variable(name: str) -> None:
    """A variable is one of Prefect's settings, of ours, or of a program that is named here."""
    from prefect.server.utilities import encryption
    from prefect.settings.legacy import _get_settings_fields
    from prefect.settings.models.root import Settings as PrefectSettings

    known = FOREIGN | OURS | AWS | set(_get_settings_fields(PrefectSettings))
    known |= {"PREFECT_DEFAULT_WORK_POOL_NAME"}  # an alias; test_deployments.py uses it
    known |= {f"RAGMETRICS_{field.upper()}" for field in Settings.model_fields}
    if name == "PREFECT_SERVER_ENCRYPTION_KEY":
        assert name in Path(encryption.__file__).read_text(encoding="utf-8")
        return
    assert name.partition("__")[0] in known


def test_every_deployment_can_be_loaded_and_runs_one_at_a_time() -> None:
    """Entrypoints name flows that are there; two runs of a deployment wait for each other."""
    from prefect import Flow
    from prefect.cli.deploy._models import PrefectYamlModel
    from prefect.utilities.importtools import import_object

    assert len(PrefectYamlModel.model_validate(PREFECT).deployments) >= 3
    for deployment in PREFECT["deployments"]:
        path, _, function = deployment["entrypoint"].partition(":")
        flow = import_object(f"{path.removesuffix('.py').replace('/', '.')}.{function}")
        assert isinstance(flow, Flow)
        assert flow.name == deployment["name"]
        assert deployment["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}


def test_the_readme_lists_the_variables_that_prefect_yaml_reads() -> None:
    """No more and no fewer; and every default that the README gives stands in the file."""
    text = (DEPLOYMENTS / "prefect.yaml").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(ragmetrics_\w+)` \| (.+?) \|", README, re.MULTILINE))
    assert set(listed) == set(re.findall(r"prefect\.variables\.(\w+)", text))
    for default in listed.values():
        assert default == "none" or f":-{default.strip('`')}}}" in text


def test_what_a_step_gives_out_is_what_a_deployment_takes() -> None:
    """Each `{{ id.stdout }}` has a step of that id before it."""
    text = (DEPLOYMENTS / "prefect.yaml").read_text(encoding="utf-8")
    steps = [next(iter(step.values())) for step in (*PREFECT["build"], *PREFECT["pull"])]
    ids = {step["id"] for step in steps if "id" in step}
    assert set(re.findall(r"\{\{ ([\w-]+)\.stdout \}\}", text)) <= ids


def test_nothing_of_one_machine_stands_in_prefect_yaml() -> None:
    """No absolute path and no pool: those are variables."""
    for deployment in PREFECT["deployments"]:
        assert "work_pool" not in deployment
        assert not re.search(r"(?<![\w}])/\w", str(deployment))


def test_the_image_lets_in_what_it_copies_and_no_secret() -> None:
    """Each COPY names what is there and is let through; nothing is copied as a whole."""
    allowed = (DEPLOYMENTS / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in allowed
    for sources in IN_IMAGE:
        for source in sources[:-1]:
            assert (ROOT / source).exists()
            assert f"!{source.rstrip('/')}" in allowed
    assert not {"!.", "!ragmetrics.env", "!ragmetrics.yaml"} & set(allowed)


def test_the_image_runs_as_an_ordinary_user_on_a_python_that_is_supported() -> None:
    """The last USER is not root, and the base image's Python is one that the package takes."""
    base = re.findall(r"^FROM python:3\.(\d+)-slim$", DOCKERFILE, re.MULTILINE)
    assert [11 <= int(minor) <= 13 for minor in base] == [True]
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.MULTILINE)[-1] == "ragmetrics"
    ids = {re.search(r"--uid (\d+)", DOCKERFILE)[1]}  # type: ignore[index]
    ids |= {
        str(pod["spec"]["template"]["spec"]["securityContext"]["runAsUser"])
        for pod in kind("Deployment", "Job")
    }
    assert len(ids) == 1


@pytest.mark.slow
def test_what_the_image_copies_is_enough_to_run_from(tmp_path: Path) -> None:
    """The files of its COPY lines alone can be installed, and every flow imported beside them."""
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
    shutil.rmtree(tmp_path / "app" / "ragmetrics")
    flows = [one["entrypoint"].partition(":")[0] for one in PREFECT["deployments"]]
    program = f"import sys; sys.path[:0] = ['.', {str(where)!r}]; import ragmetrics, " + ", ".join(
        flow.removesuffix(".py").replace("/", ".") for flow in flows
    )
    program += f"; assert ragmetrics.__file__.startswith({str(where)!r}), ragmetrics.__file__"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "app", check=True)


def test_compose_services_refer_to_what_there_is() -> None:
    """Who waits for a healthy service waits for one with a health check; volumes, files and
    the build exist."""
    services = COMPOSE["services"]
    for service in services.values():
        for name, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert services[name]["healthcheck"]["test"]
            else:
                assert services[name]["restart"] == "on-failure"
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or source == "../ragmetrics.yaml"
        if "build" in service:
            context = DEPLOYMENTS / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).is_file()
            assert service["env_file"] == "../ragmetrics.env"
        for host in re.findall(r"://(?:[^@/]*@)?([a-z]+):\d", str(service)):
            assert host in services


def test_kubernetes_objects_refer_to_what_there_is() -> None:
    """Selectors, config maps, secrets, volumes, probes and services all name each other right."""
    named = {(one["kind"], one["metadata"]["name"]) for one in objects() if "metadata" in one}
    labels = [pod["spec"]["template"]["metadata"]["labels"] for pod in pods()]
    for service in kind("Service"):
        assert service["spec"]["selector"] in labels
    for pod in pods():
        spec = pod["spec"]["template"]["spec"]
        if "selector" in pod["spec"]:
            assert (
                pod["spec"]["selector"]["matchLabels"]
                == pod["spec"]["template"]["metadata"]["labels"]
            )
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        claims = {one["metadata"]["name"] for one in pod["spec"].get("volumeClaimTemplates", ())}
        for volume in volumes.values():
            assert ("ConfigMap", volume["configMap"]["name"]) in named
        for container in spec["containers"]:
            assert {one["name"] for one in container.get("volumeMounts", ())} <= {*volumes, *claims}
            ports = {one["containerPort"] for one in container.get("ports", ())}
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                assert container.get(probe, {}).get("httpGet", {}).get("port") in {*ports, None}
            for entry in container.get("envFrom", ()):
                assert ("Secret", entry["secretRef"]["name"]) in named
    for host in re.findall(r"://(?:[^@/]*@)?([a-z]+):\d", str(objects())):
        assert ("Service", host) in named


def test_the_settings_in_kubernetes_are_settings() -> None:
    """The example settings can be read."""
    text = kind("ConfigMap")[0]["data"]["ragmetrics.yaml"]
    assert Settings(**yaml.safe_load(text)).store == "s3://my-bucket/ragmetrics"


def test_the_kustomization_takes_all_files_but_the_secret() -> None:
    """Secrets are made by hand; all else is in it, and kubectl, where there is one, agrees."""
    folder = DEPLOYMENTS / "kubernetes"
    [kustomization] = [one for one in objects() if one["kind"] == "Kustomization"]
    files = {file.name for file in folder.glob("*.yaml")}
    assert files - {*kustomization["resources"]} == {"kustomization.yaml", "secret.yaml"}
    images = {one["name"] for one in kustomization["images"]}
    assert {one["image"] for one in containers()} == {"postgres:16", *images}
    if kubectl := shutil.which("kubectl"):
        made = subprocess.run(
            [kubectl, "kustomize", str(folder)], check=True, capture_output=True, text=True
        )
        assert {one["metadata"]["namespace"] for one in yaml.safe_load_all(made.stdout)} == {
            "ragmetrics"
        }


def test_units_run_what_an_installation_has() -> None:
    """Both run Prefect from the checkout, with its variables, and are started again."""
    assert len(units()) == 2
    for unit in units():
        service = unit["Service"]
        assert service["ExecStart"].startswith(f"{service['WorkingDirectory']}/.venv/bin/prefect ")
        assert service["EnvironmentFile"] == f"{service['WorkingDirectory']}/ragmetrics.env"
        assert service["Restart"] == "always"
