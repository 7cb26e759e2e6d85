"""Channels of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.config.alerts import CHANNELS
from ragmetrics.delivery import Delivery, channels, notify_channels
from ragmetrics.errors import SettingsError
from ragmetrics.storage import Files, Runs
from tests.fakes.hooks import Hook
from tests.fakes.nights import finding, night
from tests.fakes.plugins import plugin_site

PAGER = '''
from ragmetrics.config import ChannelSettings
from ragmetrics.delivery import ChannelKind


class PagerSettings(ChannelSettings):
    """A pager."""

    team: str
    """Who is paged."""


def send(message, settings, address):
    paged = f"{settings.team}: {message.text}"
    with open(address.get_secret_value(), "w") as file:
        file.write(paged)


def verify(settings, address):
    return f"the pager of {settings.team}"


pager = ChannelKind("pager", send, verify, "http://{host}/secret", PagerSettings)
'''
CHOSEN = {"kind": "pager", "url_env": "PAGER_URL", "team": "search"}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install packages, as `plugin_site` says; the address is a file."""
    monkeypatch.setenv("PAGER_URL", str(tmp_path / "paged.txt"))
    with plugin_site(tmp_path, monkeypatch) as put:
        yield put


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """A service that Apprise reaches."""
    with Hook().running() as hook:
        monkeypatch.setenv("TEAM_URL", hook.url)
        yield hook


def of(*entries: object) -> Settings:
    """Settings with some channels."""
    return make_settings({"alerts": {"channels": entries}})


def told(folder: Path, settings: Settings) -> Delivery:
    """What is delivered of a night on which an alert fires."""
    files = Files(str(folder / "store"))
    manifest = night(1, findings=[finding("context_recall", level="breach")])
    Runs(files).save(manifest)
    return notify_channels(settings, files, manifest)


def test_a_channel_of_another_package_gets_messages(
    install: Callable[..., None], tmp_path: Path
) -> None:
    """By its own settings, and loaded only where these name it."""
    install("ragmetrics.channels", "house", PAGER, "pager")
    assert "pager" not in CHANNELS.used_names
    settings = of(CHOSEN)
    assert not told(tmp_path, settings).errors
    assert (tmp_path / "paged.txt").read_text().startswith("search: ")
    (_, pager) = channels(settings.alerts, Files(str(tmp_path)))
    assert pager.verify() == "the pager of search"


@pytest.mark.process
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit(1)\n", "channel 'pager' of house cannot be imported"),
        (PAGER.replace("settings.team", "settings.place"), "channel pager failed: AttributeError"),
        (
            PAGER.replace("with open(", "with open('/none' + "),
            "channel pager failed: FileNotFoundError",
        ),
    ],
    ids=["import", "error", "secret"],
)
def test_a_broken_one_costs_only_its_messages(
    install: Callable[..., None], team: Hook, tmp_path: Path, source: str, reason: str
) -> None:
    """The night goes on, the other channel is told, and the address is in no error."""
    install("ragmetrics.channels", "house", source, "pager")
    done = told(tmp_path, of(CHOSEN, {"url_env": "TEAM_URL"}))
    (error,) = done.errors
    assert reason in error
    assert "kept for the next run" in error
    assert "paged.txt" not in error
    assert len(team.received) == 1


def test_a_wrong_entry_is_named_by_its_place(install: Callable[..., None]) -> None:
    """Whether the kind or one of its keys is wrong."""
    install("ragmetrics.channels", "house", PAGER, "pager")
    with pytest.raises(SettingsError, match=r"no channel 'fax'; there are: apprise, pager"):
        of({"kind": "fax", "url_env": "FAX_URL"})
    with pytest.raises(SettingsError, match="team"):
        of({"kind": "pager", "url_env": "PAGER_URL"})
