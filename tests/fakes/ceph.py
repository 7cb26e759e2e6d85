"""Ceph's S3 gateway with one monitor and one store in memory: it evaluates policies as AWS does.

moto ignores conditions and knows no difference between a key that is missing and one that may not
be known to be missing. Debian has all that is needed: `apt-get install radosgw ceph-mon ceph-osd`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]

from tests.fakes.http_server import free_port
from tests.fakes.offline import skip_or_fail
from tests.fakes.prefect_live import started

PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "monmaptool")
OWNER, WORKER = "owner", "worker"
"""Users of the gateway: the bucket's owner, who may give rights, and one who has none."""
_SECRET = "gateway-secret"
_CAPABILITIES = (
    ("mon.", "mon", "allow *"),
    ("client.admin", "mon", "allow *", "osd", "allow *"),
    ("osd.0", "mon", "allow profile osd", "osd", "allow *"),
)
_SETTINGS = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{monitor}/0]
keyring = {folder}/keyring
run dir = {folder}
admin socket =
log file = {folder}/$name.log
mon cluster log file = {folder}/cluster.log
pid file =
mon data = {folder}/mon
mon data avail crit = 0
mon data avail warn = 0
osd data = {folder}/osd
osd objectstore = memstore
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
paxos propose interval = 0.05
paxos min wait = 0.01
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{gateway}
rgw init timeout = 1200
"""


@dataclass(frozen=True)
class Ceph:
    """A gateway under way, with the users OWNER and WORKER."""

    endpoint: str

    def client(self, service: str, user: str = OWNER) -> Any:
        """boto3's client as one of the users."""
        keys = {"aws_access_key_id": user, "aws_secret_access_key": _SECRET}
        session = boto3.Session(**keys, region_name="us-east-1")
        return session.client(service, endpoint_url=self.endpoint)

    def environment(self, user: str = WORKER) -> dict[str, str]:
        """The environment in which boto3 and s3fs are a user of it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": user,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def allow(self, policy: str) -> None:
        """Give WORKER the rights of one policy of AWS's form, and take all others."""
        self.client("iam").put_user_policy(UserName=WORKER, PolicyName="its", PolicyDocument=policy)

    def empty(self, bucket: str) -> None:
        """Make a bucket of OWNER, with nothing in it."""
        client = self.client("s3")
        client.create_bucket(Bucket=bucket)
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for item in page.get("Contents", ()):
                client.delete_object(Bucket=bucket, Key=item["Key"])


@contextmanager
def ceph() -> Iterator[Ceph]:
    """A gateway with nothing in it, which ends with the block. It takes about seven seconds to
    start on an idle machine, and is waited for as long as its processes live.
    """
    if lacking := [program for program in PROGRAMS if not shutil.which(program)]:
        skip_or_fail(f"no {lacking[0]}: apt-get install radosgw ceph-mon ceph-osd")
    with tempfile.TemporaryDirectory(prefix="ragmetrics-ceph-") as name, ExitStack() as running:
        folder, monitor, gateway = Path(name), free_port(), free_port()
        environment = {**os.environ, "CEPH_CONF": str(folder / "ceph.conf")}
        _configure(folder, monitor, gateway)

        def run(*command: str) -> None:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=600)
            assert done.returncode == 0, f"{command}: {done.stderr.decode('utf-8', 'replace')}"

        def start(*command: str) -> subprocess.Popen[bytes]:
            output = folder / f"{command[0]}.out"
            return running.enter_context(started([*command], folder, environment, output))

        monitors = ["--monmap", str(folder / "monmap"), "--keyring", str(folder / "keyring")]
        run("ceph-mon", "--mkfs", "-i", "a", *monitors)
        processes = [start("ceph-mon", "-i", "a", "-f")]
        run("ceph", "osd", "new", osd := str(uuid.uuid4()))
        run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        processes += [start("ceph-osd", "-i", "0", "-f")]
        processes += [start("radosgw", "-n", "client.admin", "-f")]
        server = Ceph(f"http://127.0.0.1:{gateway}")
        _wait_for(server, processes, folder)
        for user, more in ((OWNER, ["--caps", "user-policy=*"]), (WORKER, [])):
            keys = ["--uid", user, "--access-key", user, "--secret-key", _SECRET]
            create = ["user", "create", "--display-name", user, *keys, *more]
            run("radosgw-admin", "-n", "client.admin", *create)
        yield server


def _configure(folder: Path, monitor: int, gateway: int) -> None:
    """Write settings, keys and the list of monitors."""
    values = {"folder": folder, "monitor": monitor, "gateway": gateway, "fsid": uuid.uuid4()}
    (folder / "ceph.conf").write_text(_SETTINGS.format(**values))
    for data in ("mon", "osd", "rgw"):
        (folder / data).mkdir()
    keyring = str(folder / "keyring")
    for number, (name, *capabilities) in enumerate(_CAPABILITIES):
        create = [] if number else ["--create-keyring"]
        pairs = zip(capabilities[::2], capabilities[1::2], strict=True)
        caps = [part for of, what in pairs for part in ("--cap", of, what)]
        command = ["ceph-authtool", keyring, *create, "--gen-key", "-n", name, *caps]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    at = ["--addv", "a", f"[v2:127.0.0.1:{monitor}]", "--fsid", str(values["fsid"])]
    command = ["monmaptool", "--create", *at, str(folder / "monmap")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _wait_for(server: Ceph, processes: list[subprocess.Popen[bytes]], folder: Path) -> None:
    """Wait until the gateway answers."""
    while True:
        if any(process.poll() is not None for process in processes):
            texts = [file.read_text("utf-8", "replace")[-2_000:] for file in folder.glob("*.log")]
            raise RuntimeError("\n".join(["Ceph ended by itself", *texts]))
        try:
            with urllib.request.urlopen(server.endpoint, timeout=30):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
