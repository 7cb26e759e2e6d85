"""A night upon the fixture store with any one file damaged, in all nine ways: some five minutes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.damaged_night import ScoredNight, scored_night
from tests.fakes.damaging import WAYS, kinds
from tests.fakes.slack import SlackServer

KINDS = kinds()


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScoredNight]:
    """The night upon the fixture store, scored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path.cwd())
        yield scored_night(tmp_path_factory.mktemp("store"))


@pytest.mark.parametrize("path", KINDS.values(), ids=list(KINDS))
def test_a_night_goes_on_without_a_file(
    scored: ScoredNight, slack_server: SlackServer, path: str
) -> None:
    """It is scored, published and told."""
    for way in WAYS:
        manifest, delivery = scored.run_damaged(path, way)
        assert manifest.metrics[0].scored, way
        assert delivery.errors == () or way == "a folder", way
