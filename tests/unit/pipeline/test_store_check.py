"""Damaged files of a store: doctor names each, and the night scores, publishes and alerts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from ragmetrics.config import make_settings
from ragmetrics.delivery import load_alerts
from ragmetrics.delivery.state_fold import STATE_FILE
from ragmetrics.pipeline import examine
from ragmetrics.pipeline.store_check import check_store, problem_of
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, open_store
from tests.fakes.damaged_night import ScoredNight, run, scored_night
from tests.fakes.damaging import WAYS, damage, kinds
from tests.fakes.slack import SlackServer


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScoredNight]:
    """The night upon the fixture store, scored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path.cwd())
        yield scored_night(tmp_path_factory.mktemp("store"))


@pytest.fixture
def night(scored: ScoredNight, slack_server: SlackServer) -> ScoredNight:
    """The same upon a store that is whole."""
    scored.restore()
    return scored


def test_a_whole_store_has_no_damaged_file(night: ScoredNight) -> None:
    """Of any kind."""
    assert check_store(open_store(night.settings)).damaged == ()


def test_the_newest_files_of_each_kind_are_read(tmp_path: Path) -> None:
    """Of many equal ones a hundred, and all of a kind with few; doctor says of how many."""
    files = Files(str(tmp_path))
    for number in range(150):
        files.write(f"gates/idx-{number:03}.json", b"{}")
    for path in ("topics/model.json", "topics/words.txt", "gates/compared/idx-1.json"):
        files.write(path, b"{}")
    for number in range(150):
        os.utime(tmp_path / f"gates/idx-{number:03}.json", (number, number))
    looked = check_store(files)
    assert (looked.read, looked.of) == (102, 152)
    named = {text.partition(":")[0] for text in looked.damaged}
    assert named == {f"gates/idx-{number:03}.json" for number in range(50, 150)} | {
        "topics/model.json",
        "gates/compared/idx-1.json",
    }
    (check,) = [
        result
        for result in examine(make_settings({"store": str(tmp_path)}), date(2026, 11, 19))
        if result.name == "store"
    ]
    assert "; looked at 102 of 152 files; 102 damaged files" in check.text


KINDS = kinds()
SAYS_NOTHING = {
    ("alerts/silences", "empty"): "a silence is removed by being emptied",
    ("alerts/outbox", "empty"): "so is a message",
    ("gates", "empty"): "and a verdict",
    ("history", "without fields"): "an index of another version is made again",
    ("history", "another version"): "likewise",
    ("rows", "without fields"): "no run is reused",
    ("rows", "another version"): "likewise",
    ("alerts/state.json", "without fields"): "as in a store without alerts; the night knows better",
}
UNSEEN = ("corpus.bin", "quarantine/")
"""Files that are made again, or that no night reads."""


def is_seen(path: str, way: str) -> bool:
    """Whether such damage can be seen."""
    known = any(path.startswith(begin) and way == one for begin, one in SAYS_NOTHING)
    return not known and not any(one in path for one in UNSEEN)


@pytest.mark.parametrize("path", KINDS.values(), ids=list(KINDS))
def test_every_damaged_file_is_recognised(night: ScoredNight, path: str) -> None:
    """Each kind of file of the fixture store, damaged in nine ways."""
    files, missed = open_store(night.settings), []
    data = files.read(path)
    for way in (one for one in WAYS if is_seen(path, one)):
        damage(night.store / path, way)
        info = files.info(path)
        found = [problem_of(files, info)] if info else check_store(files).damaged
        if not any(one.startswith(path) for one in found):
            missed.append(way)
        if way != "a folder":
            files.write(path, data)
    assert missed == []


def test_doctor_warns_of_damaged_alert_states(night: ScoredNight) -> None:
    """In its line about the store."""
    damage(night.store / STATE_FILE, "another type")
    (check,) = [one for one in examine(night.settings, night.day) if one.name == "store"]
    assert check.state == "warning"
    assert "1 damaged file, without which nights go on: alerts/state.json: not a" in check.text


CASES = [(path, [*WAYS][number % len(WAYS)]) for number, path in enumerate(KINDS.values())]


@pytest.mark.parametrize(
    ("path", "way"),
    CASES,
    ids=[f"{kind}-{way}" for kind, (_, way) in zip(KINDS, CASES, strict=True)],
)
def test_a_night_goes_on_without_a_file(night: ScoredNight, path: str, way: str) -> None:
    """It is scored, published and told, whatever is damaged; tests/system tries all ways."""
    manifest, delivery = night.run_damaged(path, way)
    assert manifest.metrics[0].scored
    assert delivery.errors == () or way == "a folder"


Whole = tuple[Manifest, list[str], dict[str, tuple[object, ...]]]


@pytest.fixture(scope="module")
def whole(scored: ScoredNight) -> Whole:
    """The night upon the whole store: its manifest, its messages, and the alert states."""
    scored.restore()
    with SlackServer().running() as slack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLACK_WEBHOOK_URL", slack.url)
        manifest, _ = run(scored.settings, scored.day)
        return manifest, [one["text"] for one in slack.delivered], meaning(scored)


@pytest.mark.parametrize("way", WAYS)
def test_damaged_alert_states_of_an_earlier_version_change_nothing(
    night: ScoredNight, whole: Whole, slack_server: SlackServer, way: str
) -> None:
    """The message is that of a whole store, and so are the states; the night says so."""
    expected, texts, states = whole
    manifest, _ = night.run_damaged(STATE_FILE, way)
    assert [one["text"] for one in slack_server.delivered] == texts
    assert meaning(night) == states
    assert "the states of alerts follow from the manifests" in manifest.damaged[0]
    assert [one.state for one in manifest.findings] == [one.state for one in expected.findings]


def test_alert_states_of_an_earlier_version_may_be_removed(
    night: ScoredNight, whole: Whole, slack_server: SlackServer
) -> None:
    """No message is repeated, none is missing."""
    _, texts, states = whole
    night.restore()
    (night.store / STATE_FILE).unlink()
    manifest, _ = run(night.settings, night.day)
    assert [one["text"] for one in slack_server.delivered] == texts
    assert (meaning(night), manifest.damaged) == (states, [])


def meaning(night: ScoredNight) -> dict[str, tuple[object, ...]]:
    """What the alert states mean for the next night."""
    found = load_alerts(open_store(night.settings)).states
    return {key: (one.state, one.since, one.told, one.nights) for key, one in found.items()}


def test_a_repeated_night_sends_nothing_again_without_alert_states(
    night: ScoredNight, slack_server: SlackServer
) -> None:
    """What was delivered says so."""
    run(night.settings, night.day)
    slack_server.delivered.clear()
    damage(night.store / STATE_FILE, "garbage")
    run(night.settings, night.day)
    assert slack_server.delivered == []
