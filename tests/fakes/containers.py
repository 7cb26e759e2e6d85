"""What deployments/ says of containers, and the environment that each would have.

Compose and Kubernetes fill in variables and Secrets by rules of their own; those that the files use
are followed here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.fakes.processes import ROOT

DEPLOYMENTS = ROOT / "deployments"
COMPOSE = yaml.safe_load((DEPLOYMENTS / "docker-compose.yaml").read_text(encoding="utf-8"))
_INTERPOLATED = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")
_EXPANDED = re.compile(r"\$\((\w+)\)")

EnvFiles = Mapping[str, Mapping[str, str]]
"""By name: `ragmetrics.env` and `server.env`."""


def objects() -> list[dict[str, Any]]:
    """Everything that the Kubernetes files hold."""
    files = sorted((DEPLOYMENTS / "kubernetes").glob("*.yaml"))
    found = [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
    return [one for one in found if isinstance(one, dict)]  # replacements are a list


def kind(*wanted: str) -> list[dict[str, Any]]:
    """The Kubernetes objects of some kinds."""
    return [one for one in objects() if one["kind"] in wanted]


def pool_template() -> dict[str, Any]:
    """The work pool of Kubernetes, as deploy.sh fills it in."""
    text = (DEPLOYMENTS / "kubernetes/pool.json").read_text(encoding="utf-8")
    filled = text.replace("@IMAGE@", "ragmetrics").replace("@NAMESPACE@", "ragmetrics")
    template: dict[str, Any] = json.loads(filled)
    return template


def run_job() -> dict[str, Any]:
    """The Job of a run: what the worker fills in is left out, but for the image."""
    job: dict[str, Any] = pool_template()["job_configuration"]["job_manifest"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    container |= {"name": "run", "image": "ragmetrics", "env": []}
    return job


def pods() -> list[dict[str, Any]]:
    """What runs containers in Kubernetes: the objects, and the Job of a run."""
    return [*kind("Deployment", "StatefulSet", "Job"), run_job()]


def containers() -> list[dict[str, Any]]:
    """All containers of the Kubernetes files."""
    return [one for pod in pods() for one in pod["spec"]["template"]["spec"]["containers"]]


def in_compose(service: str, files: EnvFiles) -> dict[str, str]:
    """The environment of a service: its `env_file`, over which goes `environment`, filled in from
    server.env. Raises ValueError where a variable that has to be there is not.
    """
    one = COMPOSE["services"][service]
    own = files[Path(one["env_file"]).name] if "env_file" in one else {}

    def value(found: re.Match[str]) -> str:
        name, sign, rest = found.groups()
        if given := files["server.env"].get(name):
            return given
        if sign == "?":
            raise ValueError(f"{name}: {rest}")
        return rest or ""

    given = {name: _INTERPOLATED.sub(value, text) for name, text in one["environment"].items()}
    return {**own, **given}


def in_kubernetes(container: str, files: EnvFiles) -> dict[str, str]:
    """The environment of a container: `envFrom`, over which goes `env`. Raises KeyError where a
    Secret, made of the file of its name, lacks a key.
    """
    [one] = [one for one in containers() if one["name"] == container]
    secrets = {"ragmetrics": files["ragmetrics.env"], "server": files["server.env"]}
    given: dict[str, str] = {}
    for entry in one["env"]:
        if "fieldRef" in entry.get("valueFrom", {}):
            given[entry["name"]] = "ragmetrics"  # the namespace
        elif "valueFrom" in entry:
            key = entry["valueFrom"]["secretKeyRef"]
            given[entry["name"]] = secrets[key["name"]][key["key"]]
        else:
            text = entry["value"]
            given[entry["name"]] = _EXPANDED.sub(lambda found: given[found[1]], text)
    own = (secrets[entry["secretRef"]["name"]] for entry in one.get("envFrom", ()))
    return {name: text for some in (*own, given) for name, text in some.items()}
