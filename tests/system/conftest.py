"""Servers for the system tests: Ceph's gateway, and a bucket that a module's tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes import s3
from tests.fakes.ceph import Ceph, ceph
from tests.fakes.clients import Bucket


@pytest.fixture(scope="session")
def gateway() -> Iterator[Ceph]:
    """One S3 server that evaluates policies, for all tests of this process."""
    with ceph() as server:
        yield server


@pytest.fixture(scope="module")
def bucket(s3_endpoint: str) -> Iterator[Bucket]:
    """A bucket for all tests of a module; the environment holds what reaches it."""
    s3.empty(s3_endpoint)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in s3.environment(s3_endpoint).items():
            environment.setenv(name, value)
        yield s3.make_bucket(s3_endpoint)
    s3.empty(s3_endpoint)
