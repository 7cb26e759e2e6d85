"""A server for the system tests: Ceph's gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.ceph import Ceph, ceph


@pytest.fixture(scope="session")
def gateway() -> Iterator[Ceph]:
    """One S3 server that evaluates policies, for all tests of this process."""
    with ceph() as server:
        yield server
