"""The objects for Kubernetes: they refer to what there is, and may do what they have to."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest
import yaml

from ragmetrics.config import Settings
from tests.fakes.console import blocks
from tests.fakes.containers import (
    DEPLOYMENTS,
    containers,
    in_kubernetes,
    kind,
    objects,
    pods,
    pool_template,
    run_job,
)
from tests.fakes.deployed import DOCUMENT, KEYS, README, env_files
from tests.fakes.offline import skip_or_fail


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
