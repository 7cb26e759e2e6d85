"""The process of a temporary Prefect server: `python -P server_process.py FILE-DESCRIPTOR`. Without
a socket's file descriptor it gives PREFECT_HOME a database and ends.

A new database takes Prefect 80 migrations, longer than all else of a small night. So the first one
that a version of Prefect makes here is kept as a template, before anything is written to it, and a
new home of Prefect gets a copy. The standard library is imported alone until the database is there.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import shutil
import sqlite3
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from runpy import run_module


def prepare(home: Path) -> None:
    """Give a home of Prefect its database, if it has none. Of two that begin at once, one waits:
    Prefect's migrations fail where another process migrates too.
    """
    database = home / "prefect.db"
    home.mkdir(parents=True, exist_ok=True)
    folder = _cache() or home
    with (folder / "prefect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if database.exists():
            return
        template = folder / f"prefect-{version('prefect')}.db"
        if template.exists():
            copy = home / "prefect.db.part"
            shutil.copyfile(template, copy)
            copy.replace(database)
        else:
            _migrate()
            _keep(database, template)


def _cache() -> Path | None:
    """The folder of templates in the user's cache; None if it cannot be written."""
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(cache) / "ragmetrics"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a user without a home
        return None
    return folder if os.access(folder, os.W_OK) else None


def _migrate() -> None:
    from prefect.server.database import provide_database_interface

    asyncio.run(provide_database_interface().create_db())


def _keep(database: Path, template: Path) -> None:
    """Keep a new database as a template, unless Prefect's settings name another database."""
    if not database.exists():
        return
    part = template.with_suffix(".part")
    part.unlink(missing_ok=True)
    connection = sqlite3.connect(database)
    connection.execute("VACUUM INTO ?", (str(part),))
    connection.close()
    part.replace(template)


def _end_with_parent() -> None:
    """End when standard input closes: of a run that is killed, nothing else stops the server."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Prepare the home, and serve Prefect's API on the socket that the parent process opened."""
    gc.set_threshold(100_000, 50, 100)  # a fifth of the time of imports is the search for cycles
    if sys.argv[1:]:
        _end_with_parent()
    prepare(Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser())
    if sys.argv[1:]:
        options = ["--fd", sys.argv[1], "--log-level", "error", "--lifespan", "on"]
        sys.argv = ["uvicorn", "--factory", "prefect.server.api.server:create_app", *options]
        run_module("uvicorn", run_name="__main__")


if __name__ == "__main__":
    main()
