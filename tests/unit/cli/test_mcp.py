"""`ragmetrics mcp`: what an agent is told of a store that an earlier version wrote."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from ragmetrics.cli.mcp import Answers, server_of
from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.messages import FORMATS
from tests.fakes.command import Run
from tests.fakes.store_reading import unpacked

Told = Callable[..., str]
SERVICED = "How often is machine M-024 of the pumps serviced, and what is replaced?"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stores of a release."""
    return unpacked(tmp_path_factory.mktemp("stores"))


@pytest.fixture
def of(stores: Path) -> Callable[..., Answers]:
    """The answers over one of the stores, with more settings."""

    def answers(name: str = "plain", **more: object) -> Answers:
        settings: Settings = make_settings({"store": str(stores / name / "store"), **more})
        return Answers(settings)

    return answers


def shown(blocks: object) -> str:
    """An answer as the agent reads it."""
    return str(FORMATS.find("agent").render(blocks))


def test_a_night_is_told_as_on_its_page(of: Callable[..., Answers]) -> None:
    """What happened and where, then the mean of each metric; by default the newest night."""
    told = shown(of().night())
    assert told.startswith("Night of 2026-11-13: 3 alerts firing.\n")
    assert "Where: Context recall: ⟦section=kilns⟧." in told
    assert "- Context recall: state firing, mean 0.648 [0.523, 0.756]" in told
    assert "- ⟦section=kilns⟧: metric Context recall" in told
    assert shown(of().night(date(2026, 11, 12))).startswith("Night of 2026-11-12: ")


def test_an_incident_has_its_numbers_and_the_id_of_its_alert(of: Callable[..., Answers]) -> None:
    """That `ragmetrics alerts` accepts, and who silenced it."""
    told = shown(of().incidents())
    assert "\nContext recall fell\n" in told
    assert "- Alert: ef6a336b\n" in told
    assert "- Silenced: acknowledged by Ada: the index is being rebuilt" in told
    assert "- Drop: 0.32 [0.20, 0.43]" in told


def test_a_night_without_incidents_says_so(of: Callable[..., Answers]) -> None:
    """In place of an empty list."""
    assert shown(of().incidents(date(2026, 11, 2))).endswith("There is no incident.")


def test_why_compares_a_night_with_the_one_before(of: Callable[..., Answers]) -> None:
    """After its story: each metric, and the questions that fell most."""
    told = shown(of().why())
    assert "When: Fell on 2026-11-12." in told
    assert "Before: ⟦night 2026-11-12 (run bb35d01f0d)⟧" in told
    assert f"- ⟦{SERVICED}⟧: ⟦Context recall⟧ 1.000 → 0.000" in told
    assert "No earlier night compares" in shown(of().why(date(2026, 11, 2)))


def test_a_question_is_found_by_its_id_or_by_words(of: Callable[..., Answers]) -> None:
    """With its scores, what was expected and what was retrieved."""
    told = shown(of().question("11-024"))
    assert told.startswith(f"⟦{SERVICED}⟧\n")
    assert "- Context recall: value 0.000, before 1.000, nights before " in told
    assert "Retrieved: 3 passages\n- rank 1 ⟦" in told
    assert told == shown(of().question("replaced m-024"))


def test_words_of_several_questions_give_a_list(of: Callable[..., Answers]) -> None:
    """Of their ids, the worst first; words of none are an error."""
    told = shown(of().question("how often"))
    assert f"- id ⟦11-024⟧: ⟦{SERVICED}⟧" in told
    assert told.endswith("\nand 34 more")
    with pytest.raises(InputError, match=r"none of the 54 questions that the night of 2026-11-13"):
        of().question("zeppelin")


def test_compare_reads_the_store_alone(of: Callable[..., Answers], tmp_path: Path) -> None:
    """Nights and runs, but no log, wherever an agent says that one is."""
    told = shown(of().compare("2026-11-11", "aafe6e93ed"))
    assert "are significantly worse." in told
    log = tmp_path / "log.jsonl"
    log.write_text("{}\n", "utf-8")
    for side in (str(log), "build:nobody", "s3://bucket/", "2026-11-31"):
        with pytest.raises(InputError):
            of().compare(side, "2026-11-13")


@pytest.mark.parametrize("more", [{"redact": True}, {"alerts": {"redact": True}}])
def test_texts_are_hidden_where_settings_hide_them(
    of: Callable[..., Answers], more: dict[str, object]
) -> None:
    """Of pages or of messages: an answer leaves this machine too."""
    hidden = of(**more)
    blocks = [
        *hidden.why(),
        *hidden.question("11-024"),
        *hidden.compare("2026-11-11", "2026-11-13"),
    ]
    told = shown(blocks)
    assert "machine M-" not in told
    assert "Id: 11-024" in told
    with pytest.raises(InputError):
        hidden.question("serviced")


def test_a_store_that_hides_texts_stays_so(of: Callable[..., Answers]) -> None:
    """Whatever the settings at hand say."""
    assert "machine M-" not in shown(of("redacted", redact=False).why())


def test_a_night_or_store_that_is_not_there_is_an_error(
    of: Callable[..., Answers], tmp_path: Path
) -> None:
    """It names the newest night."""
    with pytest.raises(InputError, match=r"no night 2020-01-01; the newest is 2026-11-13"):
        of().night(date(2020, 1, 1))
    with pytest.raises(InputError, match=r"the store has no night yet"):
        Answers(make_settings({"store": str(tmp_path)})).night()


def test_without_the_extra_the_command_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence."""
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    ended = run("mcp")
    assert ended.code == 2
    assert 'needs an extra: pip install "retrieval-nightly[mcp]"' in " ".join(ended.err.split())


def test_every_tool_says_that_it_only_reads(of: Callable[..., Answers]) -> None:
    """And what each of its parameters is."""
    import asyncio

    tools = asyncio.run(server_of(of()).list_tools())
    assert [tool.name for tool in tools] == ["night", "incidents", "why", "question", "compare"]
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.description
        for parameter in tool.input_schema["properties"].values():
            assert parameter["description"]
