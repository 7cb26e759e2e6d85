"""Fixtures: real servers on localhost, a browser, Prefect, and an environment without accounts.

A test that uses one of them, or starts a process or a server itself, has the mark `process`.
`make test-fast` runs the tests of tests/unit that do not have it.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings as hypothesis_settings

sys.path.insert(0, str(Path(__file__).parents[1]))  # flows, tasks and tests are not in the wheel

from ragmetrics.storage import Files
from tests.fakes.browsing import ARGUMENTS, Visit
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.command import Ended, Run
from tests.fakes.in_process import alone
from tests.fakes.offline import isolate, skip_or_fail, unplug
from tests.fakes.prefect_database import write_database
from tests.fakes.processes import ROOT, running
from tests.fakes.retriever import SearchServer
from tests.fakes.slack import SlackServer

# As in CI: a machine that stalls fails no property.
hypothesis_settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# For `make test-fast`: the same twenty each time. `make test` tries the usual hundred, at random
# but in CI, where a change fails by what it does and not by what was drawn (Hypothesis' own `ci`).
hypothesis_settings.register_profile(
    "fast",
    parent=hypothesis_settings.get_profile("default"),
    max_examples=20,
    derandomize=True,
)
SERVERS = {"judge_process", "search_process", "s3_endpoint", "slack_server", "start_judge"}
OUTSIDE = SERVERS | {"chromium", "prefect_server"}
"""Fixtures that start a process or a server."""
UNIT = ROOT / "tests" / "unit"
LONG = (
    "e2e/test_denied.py",
    "e2e/test_nightly.py",
    "e2e/test_demo.py",
    "simulations/test_false_alarms.py",
    "e2e/test_dagster.py",
    "e2e/test_airflow.py",
    "e2e/test_write_back_phoenix.py",
    "e2e/test_write_back_mlflow.py",
    "e2e/test_late_data.py",
    "e2e/test_overview.py",
    "e2e/test_announced_nights.py",
    "e2e/test_calibrate_flow.py",
    "e2e/test_redacted_site.py",
    "e2e/test_hostile_night.py",
    "e2e/test_index_gate_trials.py",
    "e2e/test_first_contact.py",
    "e2e/test_axe.py",
    "e2e/test_dashboard.py",
    "system/test_deploying_doc.py",
    "system/test_index_build.py",
    "system/test_deployments.py",
    "system/test_zombie.py",
    "system/test_killed_flow.py",
    "system/test_year.py",
    "system/test_damaged_store.py",
    "system/test_two_at_once.py",
    "system/test_dask.py",
    "system/test_ray.py",
    "system/test_bucket_failures.py",
    "system/test_automations.py",
)
"""Files that take minutes begin first: a worker of pytest-xdist takes whole files, and one of these
at the end is waited for by all."""
PATIENCE = 120_000
"""Milliseconds that a browser has for one step: on a busy machine not its own thirty seconds."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--first-case`: of a test with parameters, only its first case is run."""
    parser.addoption("--first-case", action="store_true", help="of each test, run its first case")


def pytest_configure(config: pytest.Config) -> None:
    """Isolate this process, and the servers it starts, before anything imports Prefect."""
    home = tempfile.mkdtemp(prefix="ragmetrics-tests-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    isolate(os.environ, prefect_home=home)
    unplug()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Search no garbage in what imports make: nearly all of it lives to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests whose fixtures start a process or a server, and put the long files first."""
    if config.getoption("--first-case"):
        cases = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
        config.hook.pytest_deselected(items=list(set(items).difference(cases.values())))
        items[:] = reversed(cases.values())
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get("/".join(item.path.parts[-2:]), len(LONG)))
    for item in items:
        if OUTSIDE.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.process)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A unit test without the mark fails where it starts a process or a server."""
    marked = item.get_closest_marker("process") is not None
    with alone(refuse=not marked and UNIT in item.path.parents):
        return (yield)


@pytest.fixture(scope="session")
def judge_process() -> Iterator[JudgeServer]:
    """One judge for all tests of this process, as the last test left it."""
    with running("tests.fakes.judge") as port:
        yield JudgeServer(port)


@pytest.fixture
def judge_server(judge_process: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    """A judge at its best, with no request counted; any OPENAI_API_KEY, which is set, will do."""
    judge_process.reset()
    monkeypatch.setenv("OPENAI_API_KEY", "testing")
    return judge_process


@pytest.fixture
def start_judge() -> Iterator[Callable[[], JudgeServer]]:
    """Starts one more judge at each call, for tests that need several."""
    with ExitStack() as stack:
        yield lambda: JudgeServer(stack.enter_context(running("tests.fakes.judge")))


@pytest.fixture(scope="session")
def search_process() -> Iterator[SearchServer]:
    """One search for all tests of this process, as the last test left it."""
    with running("tests.fakes.retriever") as port:
        yield SearchServer(port)


@pytest.fixture
def search_server(search_process: SearchServer) -> SearchServer:
    """A search at its best, with no request counted."""
    search_process.reset()
    return search_process


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """One S3 server for all tests of this process."""
    with running("tests.fakes.s3") as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def s3(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket, with the environment set to reach it. Any key is let in."""
    from tests.fakes import s3 as fake_s3

    fake_s3.empty(s3_endpoint)
    _set(monkeypatch, fake_s3.environment(s3_endpoint))
    yield fake_s3.make_bucket(s3_endpoint)
    fake_s3.empty(s3_endpoint)


@pytest.fixture
def s3_strict(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """The same, but signatures are checked: with a wrong secret in the environment, a real 403."""
    from tests.fakes import s3 as fake_s3

    key, secret = fake_s3.make_user()
    _set(monkeypatch, fake_s3.environment(s3.endpoint, key, secret))
    fake_s3.check_signatures(s3.endpoint)
    return fake_s3.open_bucket(s3.endpoint)


@pytest.fixture
def slack_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlackServer]:
    """A Slack webhook that records what is posted; SLACK_WEBHOOK_URL is set to it."""
    with SlackServer().running() as server:
        monkeypatch.setenv("SLACK_WEBHOOK_URL", server.url)
        yield server


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """An empty store, in a folder."""
    return Files(str(tmp_path))


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Runs the command line in this process, from `main` on, in an empty folder."""
    from ragmetrics.cli import app as cli

    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))

    def ragmetrics(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["ragmetrics", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return ragmetrics


@pytest.fixture
def without_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nights write no pages, which take half of a small night's time, but in tests with the mark
    `pages`: for files whose tests read manifests and messages. `pages(DATE)` is for one night.
    """
    from ragmetrics.pipeline import nightly

    show, mark = nightly.show_run, request.node.get_closest_marker("pages")

    def show_some(settings: Any, manifest: Any, **options: Any) -> None:
        if mark and manifest.date in (mark.args or [manifest.date]):
            show(settings, manifest, **options)

    monkeypatch.setattr(nightly, "show_run", show_some)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium, for Playwright's `executable_path`."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None) or _playwright_chromium()
    if found is None:
        skip_or_fail(
            "no Chromium: apt-get install chromium, or .venv/bin/playwright install chromium"
        )
    return found


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """One browser for all tests of a file."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        new_context, new_page = started.new_context, started.new_page
        started.new_context = lambda **options: _patient(new_context(**options))
        started.new_page = lambda **options: _patient(new_page(**options))
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A fresh page; parametrise indirectly to set options of the browser's context."""
    context = browser.new_context(**getattr(request, "param", {}))
    visit = Visit(context.new_page())
    visit.watch()
    yield visit
    context.close()


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Prefect server with an empty database, for tests that run flows; takes seconds."""
    from prefect.testing import utilities

    folder = tmp_path_factory.mktemp("prefect")
    write_database(folder / "prefect-test.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utilities, "mkdtemp", lambda: str(folder))
        with utilities.prefect_test_harness(server_startup_timeout=120):
            yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of labelled data beside the checkout, or where RAGMETRICS_DATA says."""
    folder = Path(os.environ.get("RAGMETRICS_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no labelled data in {folder}; RAGMETRICS_DATA names another folder")
    return folder


def _patient(opened: Any) -> Any:
    """A context or a page of the browser, with time for each step."""
    opened.set_default_timeout(PATIENCE)
    return opened


def _set(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def _playwright_chromium() -> str | None:
    """The browser that `playwright install` downloaded, if it did."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None
