"""What the containers of deployments/ do, done without containers.

The server runs on a real PostgreSQL with the variables that Compose sets, and the script that
deploys with no more programs than the image has.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.fakes.clone import fresh_clone
from tests.fakes.containers import DEPLOYMENTS, in_compose
from tests.fakes.postgres import Postgres, postgres
from tests.fakes.prefect_live import Live, prefect_live
from tests.fakes.slack import SlackServer

PASSWORD = "a@b/c:d#e%20f+?=&$'"
IN_SLIM = ("sh", "pwd", "dirname", "sed", "mktemp")
"""What deploying takes of the image's system, which has no git."""


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    """A PostgreSQL whose password would break a URL."""
    with postgres(PASSWORD) as server:
        yield server


@pytest.fixture(scope="module")
def live(database: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Prefect's server as Compose starts it, but for the address of the database."""
    files = {"server.env": {"POSTGRES_PASSWORD": PASSWORD}, "ragmetrics.env": {}}
    given = in_compose("server", files)
    here = {
        "PREFECT_SERVER_DATABASE_HOST": "127.0.0.1",
        "PREFECT_SERVER_DATABASE_PORT": str(database.port),
    }
    assert set(here) - {"PREFECT_SERVER_DATABASE_PORT"} <= set(given)
    with prefect_live(tmp_path_factory.mktemp("prefect"), **{**given, **here}) as server:
        yield server


class Container:
    """One that deploys: the image's files and programs, and the environment that it is given."""

    def __init__(self, folder: Path, live: Live) -> None:
        self._app = fresh_clone(folder / "app")
        self._live = live
        programs = folder / "bin"
        programs.mkdir()
        for program in IN_SLIM:
            (programs / program).symlink_to(shutil.which(program) or "")
        self._path = f"{Path(sys.executable).parent}:{programs}"

    def deploy(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script to its end."""
        return subprocess.run(
            ["sh", "deployments/deploy.sh"],
            cwd=self._app,
            env={**self._live.environment, "PATH": self._path, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def made(self) -> tuple[int, set[str]]:
        """How many deployments the server has, and which automations of ours."""
        deployments = self._live.post("/deployments/filter")
        automations = self._live.post("/automations/filter")
        names = (automation["name"] for automation in automations)
        return len(deployments), {name for name in names if name.startswith("ragmetrics: ")}


@pytest.fixture
def container(live: Live, tmp_path: Path) -> Container:
    """A new one."""
    return Container(tmp_path, live)


def test_the_server_keeps_what_it_knows_in_postgresql(live: Live, database: Postgres) -> None:
    """Its tables are there, and what is set by the API is in them: the password went through."""
    assert live.get("/ready")
    live.post("/variables/", {"name": "kept", "value": "in PostgreSQL"})
    assert database.sql("select value from variable where name = 'kept'") == '"in PostgreSQL"'


def test_the_page_works_at_any_address(live: Live, browser: Any) -> None:
    """Opened at another name than the server's own, both of Prefect's pages ask that name alone."""
    page = browser.new_page()
    for path in ("/runs", "/v2/runs"):
        with page.expect_request(lambda request: "/api/" in request.url) as asked:
            page.goto(f"http://localhost:{live.port}{path}")
        assert urlsplit(asked.value.url).hostname == "localhost"
        assert asked.value.response().ok


def test_without_slack_deploying_ends_before_it_begins(container: Container) -> None:
    """Where nobody said that nobody need be told: one sentence with the fix, exit code 2, which
    Kubernetes does not try again, and nothing on the server."""
    before = container.made()
    ended = container.deploy()
    assert ended.returncode == 2
    assert "SLACK_WEBHOOK_URL is not set" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not ended.stdout
    assert container.made() == before


def test_deploying_may_go_without_slack(container: Container, live: Live) -> None:
    """The variable left empty says so: all is deployed and planned; crashed runs are run again."""
    ended = container.deploy(SLACK_WEBHOOK_URL="")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Without Slack nobody is notified" in ended.stdout
    restart = {f"ragmetrics: {name}" for name in ("run crashed", "run stuck", "zombie run")}
    assert container.made() == (5, restart)
    live.wait_for(lambda: live.flow_runs(state_type="SCHEDULED"))


def test_deploying_again_changes_what_changed(
    container: Container, slack_server: SlackServer
) -> None:
    """With Slack the other automations come; a third time nothing does."""
    for state, others in ((" created", 5), (" unchanged", 8)):
        ended = container.deploy(SLACK_WEBHOOK_URL=slack_server.url)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        said = ended.stdout.replace("successfully created", "")
        assert said.count(state) >= others
        deployments, automations = container.made()
        assert (deployments, len(automations)) == (5, 7)


def test_in_kubernetes_each_run_is_a_job_of_the_image(container: Container, live: Live) -> None:
    """The pool has image and namespace of the container that deploys, also a second time."""
    live.cli("work-pool", "delete", "ragmetrics")
    for version in ("0.1.0", "0.2.0"):
        image = f"registry.example.com/ragmetrics:{version}"
        where = {"RAGMETRICS_IMAGE": image, "RAGMETRICS_NAMESPACE": "rag"}
        ended = container.deploy(SLACK_WEBHOOK_URL="", RAGMETRICS_POOL="kubernetes", **where)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        pool = live.get("/work_pools/ragmetrics")
        assert pool["type"] == "kubernetes"
        chosen = pool["base_job_template"]["variables"]["properties"]
        assert (chosen["image"]["default"], chosen["namespace"]["default"]) == (image, "rag")


def test_an_address_that_is_none_ends_it_too(container: Container) -> None:
    """Another try would end the same."""
    ended = container.deploy(SLACK_WEBHOOK_URL="hooks.slack.com/services/T0/secret")
    assert ended.returncode == 2
    assert "is not set to the address of a Slack webhook" in ended.stderr


def readme_command(program: str) -> list[str]:
    """What the README has people run in the container of the database."""
    text = (DEPLOYMENTS / "README.md").read_text(encoding="utf-8")
    [found] = re.findall(rf"exec -T postgres ({program} .*?) [<>] prefect\.dump", text)
    return str(found).split()


def test_a_backup_brings_the_database_back() -> None:
    """The README's two commands: what was written after the copy is gone, tables of a newer server
    included, and what was there before is back."""
    with postgres(PASSWORD) as database:
        database.sql("create table variable (value text); insert into variable values ('before')")
        copy = database.run(*readme_command("pg_dump"))
        database.sql("create table newer (value text); update variable set value = 'after'")
        database.run(*readme_command("pg_restore"), given=copy)
        assert database.sql("select value from variable") == "before"
        assert database.sql("select to_regclass('newer') is null") == "t"
