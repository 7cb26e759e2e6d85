"""The order of the system tests: files that take minutes begin first. And Ceph's gateway.

A worker of pytest-xdist takes whole files here, so that a cluster is started once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.ceph import Ceph, ceph

LONG = (
    "test_deploying_doc.py",
    "test_index_build.py",
    "test_deployments.py",
    "test_zombie.py",
    "test_killed_flow.py",
    "test_year.py",
    "test_two_at_once.py",
    "test_dask.py",
    "test_ray.py",
    "test_bucket_failures.py",
    "test_automations.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first."""
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONG)))


@pytest.fixture(scope="session")
def gateway() -> Iterator[Ceph]:
    """One S3 server that evaluates policies, for all tests of this process."""
    with ceph() as server:
        yield server
