"""The trial without a cloud: what its steps do on a real S3 server."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
import s3fs
from moto.server import ThreadedMotoServer

from tests.fakes.processes import ROOT


@pytest.fixture
def server() -> Iterator[str]:
    """An S3 server that checks no key, as the trial starts it."""
    started = ThreadedMotoServer(port=0)
    started.start()
    host, port = started.get_host_and_port()
    yield f"http://{host}:{port}"
    started.stop()


def status(url: str) -> int:
    """The status of an address as a browser asks for it, without a key."""
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.process
def test_a_browser_reads_the_dashboard_of_the_trial_and_nothing_else(server: str) -> None:
    """Ten nights are in the bucket; pages open without a key, records and logs do not."""
    keys = {"AWS_ACCESS_KEY_ID": "trial", "AWS_SECRET_ACCESS_KEY": "trial"}
    environment = {
        **os.environ,
        **keys,
        "AWS_ENDPOINT_URL": server,
        "AWS_DEFAULT_REGION": "us-east-1",
        "PYTHONPATH": str(ROOT),
    }
    script = ROOT / "deployments" / "trial" / "fill_bucket.py"
    for _ in range(2):  # it may be repeated
        subprocess.run([sys.executable, str(script)], env=environment, check=True, timeout=240)
    storage = s3fs.S3FileSystem(
        key="trial", secret="trial", endpoint_url=server, skip_instance_cache=True
    )
    assert len(storage.glob("trial/logs/*/*")) == 10
    storage.pipe_file("trial/ragmetrics/dashboard/index.html", b"<p>night")
    storage.pipe_file("trial/ragmetrics/runs/night.json", b"{}")
    assert status(f"{server}/trial/ragmetrics/dashboard/index.html") == 200
    assert status(f"{server}/trial/ragmetrics/runs/night.json") == 403
    assert status(f"{server}/trial/golden.jsonl") == 403
