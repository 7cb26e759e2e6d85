"""A PostgreSQL of this machine's packages, as an ordinary user's process, with nothing in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.http_server import free_port
from tests.fakes.offline import skip_or_fail
from tests.fakes.prefect_live import started

DEBIANS = Path("/usr/lib/postgresql")
USER = DATABASE = "prefect"
"""As the image `postgres` makes them of POSTGRES_USER and POSTGRES_DB."""


@dataclass(frozen=True)
class Postgres:
    """A server under way on 127.0.0.1."""

    port: int
    password: str
    programs: Path

    @property
    def prefect(self) -> dict[str, str]:
        """What a Prefect server needs to keep its database here, with time for each statement."""
        url = f"postgresql+asyncpg://{USER}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"
        return {
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": url,
            "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "120",
            "PREFECT_SERVER_DATABASE_TIMEOUT": "120",
        }

    def run(self, program: str, *arguments: str, given: bytes = b"") -> bytes:
        """Run one of PostgreSQL's programs against it; return what it printed."""
        done = subprocess.run(
            [self.programs / program, *arguments],
            env={"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGPASSWORD": self.password},
            input=given,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def sql(self, text: str) -> str:
        """What the database answers to an SQL text."""
        return self.run("psql", "-U", USER, "-d", DATABASE, "-qAtc", text).decode().strip()


@contextmanager
def postgres(password: str) -> Iterator[Postgres]:
    """A server with an empty database, which ends with the block."""
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="ragmetrics-postgres-") as name:
        folder = Path(name)
        (folder / "password").write_text(password)
        as_user: list[str] = []
        if os.geteuid() == 0:  # it refuses to run as root
            as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
            for path in (folder, folder / "password"):
                shutil.chown(path, "nobody", "nogroup")
        made = [programs / "initdb", "-D", folder / "data", "-U", USER, "--no-sync", "-E", "UTF8"]
        made += ["--locale=C.UTF-8", "--auth=scram-sha-256", "--pwfile", folder / "password"]
        subprocess.run([*as_user, *made], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        server = Postgres(free_port(), password, programs)
        command = [*as_user, str(programs / "postgres"), "-D", str(folder / "data")]
        for setting in (
            f"port={server.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={folder}",
            "fsync=off",
        ):
            command += ["-c", setting]
        with started(command, folder, os.environ, folder / "log") as process:
            try:
                _wait_for(server, process, folder / "log")
                server.run("createdb", "-U", USER, DATABASE)
                yield server
            finally:
                process.send_signal(signal.SIGINT)  # end connections, and leave no shared memory
                process.wait(60)


def _programs() -> Path:
    found = sorted(DEBIANS.glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "")]
    if not found[-1].is_file():
        skip_or_fail("there is no PostgreSQL on this machine")
    return found[-1].parent


def _wait_for(server: Postgres, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 180
    ready = [server.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(server.port)]
    while subprocess.run(ready).returncode:
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"PostgreSQL did not start\n{log.read_text('utf-8', 'replace')}")
        time.sleep(0.1)
