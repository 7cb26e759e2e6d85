"""The database of a new home of Prefect: migrated once for a version, then copied."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flows import server_process
from flows.server_process import prepare


@pytest.fixture
def migrations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """The databases that were migrated, in a cache without a template: here, one table is made."""
    made: list[Path] = []

    def migrate() -> None:
        (home,) = [home for home in tmp_path.glob("home*") if not (home / "prefect.db").exists()]
        connection = sqlite3.connect(home / "prefect.db")
        connection.execute("CREATE TABLE flow (id)")
        connection.close()
        made.append(home)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(server_process, "_migrate", migrate)
    return made


def tables(home: Path) -> list[tuple[str]]:
    """The tables of the database of a home."""
    connection = sqlite3.connect(home / "prefect.db")
    try:
        return connection.execute("SELECT name FROM sqlite_master").fetchall()
    finally:
        connection.close()


def test_the_second_new_home_gets_a_copy(migrations: list[Path], tmp_path: Path) -> None:
    """Prefect's migrations run once."""
    for home in (tmp_path / "home-1", tmp_path / "home-2"):
        prepare(home)
        assert tables(home) == [("flow",)]
    assert migrations == [tmp_path / "home-1"]


def test_of_two_at_once_on_a_new_home_one_migrates(migrations: list[Path], tmp_path: Path) -> None:
    """Two migrations at once fail: an index exists already."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(prepare, [tmp_path / "home"] * 4))
    assert migrations == [tmp_path / "home"]


def test_a_database_that_is_there_stays(migrations: list[Path], tmp_path: Path) -> None:
    """It is the server that brings an older one up to date."""
    prepare(tmp_path / "home-1")
    (tmp_path / "home-2").mkdir()
    (tmp_path / "home-2" / "prefect.db").write_bytes(b"older")
    prepare(tmp_path / "home-2")
    assert (tmp_path / "home-2" / "prefect.db").read_bytes() == b"older"
    assert len(migrations) == 1


def test_another_version_of_prefect_has_another_template(
    monkeypatch: pytest.MonkeyPatch, migrations: list[Path], tmp_path: Path
) -> None:
    """Its tables differ."""
    prepare(tmp_path / "home-1")
    monkeypatch.setattr(server_process, "version", lambda _: "99")
    prepare(tmp_path / "home-2")
    assert len(migrations) == 2


def test_without_a_cache_the_lock_is_in_the_home(
    monkeypatch: pytest.MonkeyPatch, migrations: list[Path], tmp_path: Path
) -> None:
    """In a container the user may have no folder of their own."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    prepare(tmp_path / "home")
    assert tables(tmp_path / "home") == [("flow",)]
    assert (tmp_path / "home" / "prefect.lock").exists()
    assert len(migrations) == 1
