"""What deployments/ holds fits together, and with the code: names, variables, commands, paths.

There is no Docker daemon and no cluster here: these files are checked, not run. What the containers
would do is done without them in test_deploy_container.py.
"""

from __future__ import annotations

import asyncio
import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from ragmetrics.config import Settings
from tests.fakes.console import blocks
from tests.fakes.containers import (
    COMPOSE,
    DEPLOYMENTS,
    EnvFiles,
    containers,
    in_compose,
    in_kubernetes,
    kind,
    objects,
    pods,
    pool_template,
    run_job,
)
from tests.fakes.offline import skip_or_fail
from tests.fakes.processes import ROOT

if TYPE_CHECKING:
    from prefect.settings.models.root import Settings as PrefectSettings

README = (DEPLOYMENTS / "README.md").read_text(encoding="utf-8")
DOCUMENT = ROOT / "docs/how-to/deploying.md"
PREFECT = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (DEPLOYMENTS / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
IN_IMAGE = [line.split()[1:] for line in DOCKERFILE.splitlines() if line.startswith("COPY ")]
FOREIGN = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "PGDATA", "PYTHONUNBUFFERED"}
KEYS = {"OPENAI_API_KEY", "SLACK_WEBHOOK_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
POOL = {"RAGMETRICS_POOL", "RAGMETRICS_IMAGE", "RAGMETRICS_NAMESPACE"}
OURS = {"RAGMETRICS_VERSION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", *POOL}
PASSWORD = "a@b/c:d#e%20f+?=&$'"
IN_CONTAINERS = [in_compose, in_kubernetes]
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


def test_compose_services_refer_to_what_there_is() -> None:
    """Who waits for a healthy service waits for one with a health check; volumes, files and
    the build exist."""
    services = COMPOSE["services"]
    for service in services.values():
        for name, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert services[name]["healthcheck"]["test"]
            else:
                assert how["condition"] == "service_completed_successfully"
                assert services[name]["restart"] == "no"
        for volume in service.get("volumes", ()):
            if isinstance(volume, dict):
                assert (volume["source"], volume["read_only"]) == ("../ragmetrics.yaml", True)
            else:
                assert volume.partition(":")[0] in COMPOSE["volumes"]
        if "build" in service:
            context = DEPLOYMENTS / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).is_file()
            assert service["env_file"] in ("../ragmetrics.env", "../server.env")
        for host in re.findall(r"://([a-z]+):\d", str(service)):
            assert host in services
    assert in_compose("server", env_files())["PREFECT_SERVER_DATABASE_HOST"] in services


@pytest.mark.parametrize("environment", IN_CONTAINERS)
def test_a_container_has_the_secrets_that_it_needs_and_no_other(environment: Environment) -> None:
    """Keys of judge, Slack and bucket are for worker and deploying; the server never sees them, nor
    they the passwords of server and database."""
    files = env_files()
    for client in ("worker" if environment is in_compose else "run", "deploy"):
        given = environment(client, files)
        assert {*KEYS, "PREFECT_API_AUTH_STRING"} <= set(given)
        if client != "run":  # its worker gives it the address
            assert given["PREFECT_API_URL"] == "http://server:4200/api"
        assert PASSWORD not in given.values()
        assert "PREFECT_SERVER_API_AUTH_STRING" not in given
    given = environment("server", files)
    assert (
        given["PREFECT_SERVER_API_AUTH_STRING"]
        == files["ragmetrics.env"]["PREFECT_API_AUTH_STRING"]
    )
    assert not KEYS & set(given)


@pytest.mark.parametrize("environment", [*IN_CONTAINERS, in_a_terminal])
def test_the_page_of_the_server_asks_the_address_under_which_it_was_opened(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it asks 127.0.0.1, which on another machine is nobody. The unit says so too, for a
    server.env of before."""
    server = prefect_settings(environment("server", env_files()), monkeypatch)
    assert server.server.ui.api_url == "/api"
    unit = (DEPLOYMENTS / "systemd/ragmetrics-server.service").read_text(encoding="utf-8")
    assert "PREFECT_SERVER_UI_API_URL=/api" in unit.split()


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


@pytest.mark.parametrize("environment", [*IN_CONTAINERS, readme_server])
def test_the_password_of_the_database_may_hold_anything(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would end or break a URL's password does not: the server gets it as it was written."""
    from sqlalchemy.engine import make_url

    read = prefect_settings(environment("server", env_files()), monkeypatch)
    secret = read.server.database.connection_url
    assert secret
    url = make_url(secret.get_secret_value())
    assert url.drivername == "postgresql+asyncpg"
    assert url.host in ("postgres", "db.example.com")
    assert (url.username, url.password, url.database) == ("prefect", PASSWORD, "prefect")


@pytest.mark.parametrize("environment", [*IN_CONTAINERS, in_a_terminal])
def test_no_usage_data_is_sent_and_workers_look_for_runs_often(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the files of docs/how-to/deploying.md say, by the names that Prefect knows; a server that
    has analytics off switches them off for all that speak to it."""
    server = prefect_settings(environment("server", env_files()), monkeypatch)
    assert server.server.analytics_enabled is False
    worker = prefect_settings(environment("worker", env_files()), monkeypatch)
    assert worker.worker.query_seconds == 5


def test_compose_says_what_is_missing() -> None:
    """Without a password of the database nothing starts, and the file to write it into is named."""
    files = env_files()
    del files["server.env"]["POSTGRES_PASSWORD"]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"POSTGRES_PASSWORD: set it in server\.env"):
        in_compose("postgres", files)


def test_a_deploy_that_cannot_succeed_ends() -> None:
    """Compose starts it once. Kubernetes gives up at once after exit code 2, which is what the
    script ends with where trying again is no use, and else after a number of tries."""
    assert COMPOSE["services"]["deploy"]["restart"] == "no"
    [job] = kind("Job")
    [rule] = job["spec"]["podFailurePolicy"]["rules"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert rule["action"] == "FailJob"
    assert rule["onPodConditions"] == []  # Kubernetes 1.26 to 1.28 refuse a rule without
    assert rule["onExitCodes"] == {
        "containerName": container["name"],
        "operator": "In",
        "values": [2],
    }
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"  # a policy demands it
    assert job["spec"]["backoffLimit"] <= 10


def test_the_worker_of_kubernetes_holds_the_servers_key_alone() -> None:
    """It makes the Jobs of runs, and their keys are in a Secret that it need not read."""
    given = in_kubernetes("worker", env_files())
    assert given["PREFECT_API_AUTH_STRING"] == "admin:change-me"
    assert not KEYS & set(given)
    [role] = kind("Role")
    assert not {"secrets", "*"} & {name for rule in role["rules"] for name in rule["resources"]}


@pytest.mark.usefixtures("prefect_server")
def test_the_worker_of_kubernetes_makes_the_job_of_a_run() -> None:
    """By Prefect's own worker: with the files' image, limits and labels."""
    try:
        from prefect_kubernetes.worker import KubernetesWorkerJobConfiguration as Configuration
    except ImportError:
        skip_or_fail("no prefect-kubernetes: make venv")
    from prefect.client.schemas.objects import FlowRun

    made = asyncio.run(Configuration.from_template_and_values(pool_template(), {}))
    made.prepare_for_flow_run(FlowRun(flow_id=uuid.uuid4(), name="nightly 2026-11-19"))
    job = made.job_manifest
    assert (job["metadata"]["namespace"], job["spec"]["backoffLimit"]) == ("ragmetrics", 0)
    pod = job["spec"]["template"]
    assert pod["metadata"]["labels"]["app"] == "run"
    [container] = pod["spec"]["containers"]
    assert container["image"] == "ragmetrics"
    assert container["args"] == ["prefect", "flow-run", "execute"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"},
        "limits": {"memory": "4Gi"},
    }


def test_a_drained_node_waits_for_its_runs_and_for_nothing_else() -> None:
    """The budget of disruptions is of the pods of runs; the server has one copy, and would keep a
    node for ever."""
    [budget] = kind("PodDisruptionBudget")
    assert budget["spec"]["selector"]["matchLabels"] == {"app": "run"}
    assert run_job()["spec"]["template"]["metadata"]["labels"] == {"app": "run"}


def test_the_network_of_kubernetes_lets_in_who_has_to_be() -> None:
    """Nobody, but for the clients of the server and of the database, which are all there."""
    policies = {one["metadata"]["name"]: one["spec"] for one in kind("NetworkPolicy")}
    assert policies["nobody"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    labels = {pod["spec"]["template"]["metadata"]["labels"]["app"] for pod in pods()}
    [server] = policies["server"]["ingress"]
    [clients] = server["from"][0]["podSelector"]["matchExpressions"]
    assert set(clients["values"]) == {"worker", "deploy", "run"} <= labels
    assert policies["postgres"]["ingress"][0]["from"][0]["podSelector"] == {
        "matchLabels": {"app": "server"}
    }


def test_no_image_is_named_latest() -> None:
    """Compose and Kubernetes name the version, or what is built stands beside a number."""
    [kustomization] = [one for one in objects() if one["kind"] == "Kustomization"]
    tags = [image["newTag"] for image in kustomization["images"]]
    names = [container["image"] for container in (*containers(), *COMPOSE["services"].values())]
    assert not [name for name in (*tags, *names) if "latest" in name]
    assert tags == [metadata.version("retrieval-nightly")]
    assert f"${{RAGMETRICS_VERSION:-{tags[0]}}}" in COMPOSE["x-ragmetrics"]["image"]


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
            if "emptyDir" not in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in named
        for container in spec["containers"]:
            assert {one["name"] for one in container.get("volumeMounts", ())} <= {*volumes, *claims}
            ports = {one["containerPort"] for one in container.get("ports", ())}
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                assert container.get(probe, {}).get("httpGet", {}).get("port") in {*ports, None}
            names = [entry["secretRef"]["name"] for entry in container.get("envFrom", ())]
            for entry in container["env"]:
                if "secretKeyRef" in entry.get("valueFrom", {}):
                    names.append(entry["valueFrom"]["secretKeyRef"]["name"])
            made = re.findall(r"create secret generic (\w+) --from-env-file=(\S+)", README)
            assert dict(made) == {"ragmetrics": "ragmetrics.env", "server": "server.env"}
            assert set(names) <= set(dict(made))
    hosts = re.findall(r"://([a-z]+):\d", str(objects()))
    hosts.append(in_kubernetes("server", env_files())["PREFECT_SERVER_DATABASE_HOST"])
    assert {("Service", host) for host in hosts} <= named


def test_nothing_in_kubernetes_runs_as_root_or_may_become_it() -> None:
    """As the policy `restricted` of a namespace demands. The root is read-only, and who asks
    nothing of the cluster has no token for it."""
    for pod in pods():
        spec = pod["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }
            writable = {one["mountPath"] for one in container.get("volumeMounts", ())}
            assert "/tmp" in writable
            assert container["resources"]["limits"]["memory"]
        alone = spec.get("automountServiceAccountToken") is False
        assert alone == ("serviceAccountName" not in spec)


def test_the_settings_in_kubernetes_are_settings() -> None:
    """The example can be read, and is that of docs/how-to/deploying.md."""
    text = kind("ConfigMap")[0]["data"]["ragmetrics.yaml"]
    assert Settings(**yaml.safe_load(text)).store == "s3://my-bucket/ragmetrics"
    assert [text] == [block.text for block in blocks(DOCUMENT) if block.name == "ragmetrics.yaml"]


def test_the_kustomization_takes_all_files() -> None:
    """And its image is that of all containers but the database's."""
    [kustomization] = [one for one in objects() if one["kind"] == "Kustomization"]
    files = {file.name for file in (DEPLOYMENTS / "kubernetes").glob("*.yaml")}
    others = {one["path"] for one in kustomization["replacements"]} | {"kustomization.yaml"}
    assert files - {*kustomization["resources"]} == others
    images = {image["name"] for image in kustomization["images"]}
    assert {container["image"] for container in containers()} == {"postgres:16", *images}


@pytest.mark.process
def test_a_folder_of_ones_own_brings_image_and_settings(tmp_path: Path) -> None:
    """The README's kustomization, beside a checkout, is one that kubectl takes."""
    if not (kubectl := shutil.which("kubectl")):
        pytest.skip("there is no kubectl on this machine")
    shutil.copytree(DEPLOYMENTS / "kubernetes", tmp_path / "ragmetrics/deployments/kubernetes")
    [own] = [one for one in blocks(DEPLOYMENTS / "README.md") if one.name == "kustomization.yaml"]
    (tmp_path / own.name).write_text(own.text)
    (tmp_path / "ragmetrics.yaml").write_text("dataset: towers\n")
    made = subprocess.run(
        [kubectl, "kustomize", str(tmp_path)], check=True, capture_output=True, text=True
    )
    all_of_it = list(yaml.safe_load_all(made.stdout))
    assert {one["metadata"]["namespace"] for one in all_of_it} == {"ragmetrics"}
    [settings] = [one for one in all_of_it if one["kind"] == "ConfigMap"]
    assert settings["data"] == {"ragmetrics.yaml": "dataset: towers\n"}
    assert made.stdout.count("image: registry.example.com/ragmetrics:0.1.0") == 3
    # And the runs have the image that deploys them.
    assert made.stdout.count("value: registry.example.com/ragmetrics:0.1.0") == 1


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


TRIAL = yaml.safe_load((DEPLOYMENTS / "docker-compose.trial.yaml").read_text(encoding="utf-8"))


def test_the_trial_needs_nothing_but_itself() -> None:
    """No file of secrets, no address but its own services' and this machine's, and its bucket is
    that of its settings, which the program that fills it makes."""
    services = TRIAL["services"]
    assert {"s3", "sample", "server", "deploy", "worker"} == set(services)
    for service in services.values():
        assert "env_file" not in service
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        for host in re.findall(r"://([a-z]+\w*):\d", str(service)):
            assert host in services
        for name, how in service.get("depends_on", {}).items():
            needed = "healthcheck" if how["condition"] == "service_healthy" else "command"
            assert services[name][needed]
    text = (DEPLOYMENTS / "trial/ragmetrics.yaml").read_text(encoding="utf-8")
    settings = Settings(**yaml.safe_load(text))
    program = (DEPLOYMENTS / "trial/fill_bucket.py").read_text(encoding="utf-8")
    [bucket] = re.findall(r'^BUCKET = "(.*)"$', program, re.MULTILINE)
    assert settings.store == f"s3://{bucket}/ragmetrics"
    assert settings.dashboard_url == f"http://127.0.0.1:5000/{bucket}/ragmetrics/dashboard"
    assert settings.logs.startswith(f"s3://{bucket}/logs/")


@pytest.mark.parametrize("service", sorted(TRIAL["services"]))
def test_the_programs_of_the_trial_are_there(service: str) -> None:
    """Each command names a program of this environment, or a file of the image."""
    program, *arguments = TRIAL["services"][service]["command"]
    found = shutil.which(program, path=f"{Path(sys.executable).parent}:/bin:/usr/bin")
    if found is None and program == "moto_server":
        skip_or_fail("no moto_server: make venv")
    assert found
    assert all((ROOT / one).is_file() for one in arguments if one.startswith("deployments/"))
    extras = TRIAL["services"][service]["build"]["args"]["EXTRAS"]
    assert extras == "flows,trial"
