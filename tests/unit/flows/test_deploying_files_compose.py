"""Containers of Compose and of the trial: what they are given, and what they refer to."""

from __future__ import annotations

import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from ragmetrics.config import Settings
from tests.fakes.containers import (
    COMPOSE,
    DEPLOYMENTS,
    containers,
    in_compose,
    in_kubernetes,
    kind,
    objects,
)
from tests.fakes.deployed import (
    KEYS,
    PASSWORD,
    Environment,
    env_files,
    in_a_terminal,
    prefect_settings,
    readme_server,
)
from tests.fakes.offline import skip_or_fail
from tests.fakes.processes import ROOT

IN_CONTAINERS = [in_compose, in_kubernetes]


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


def test_no_image_is_named_latest() -> None:
    """Compose and Kubernetes name the version, or what is built stands beside a number."""
    [kustomization] = [one for one in objects() if one["kind"] == "Kustomization"]
    tags = [image["newTag"] for image in kustomization["images"]]
    names = [container["image"] for container in (*containers(), *COMPOSE["services"].values())]
    assert not [name for name in (*tags, *names) if "latest" in name]
    assert tags == [metadata.version("retrieval-nightly")]
    assert f"${{RAGMETRICS_VERSION:-{tags[0]}}}" in COMPOSE["x-ragmetrics"]["image"]


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
