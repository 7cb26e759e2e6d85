"""`also` in the settings of a judge: where it has an effect, and what it may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import JudgeSettings, load_settings, make_settings, with_overrides
from ragmetrics.errors import SettingsError

DECIDES: dict[str, Any] = {"name": "decision", "also": {"name": "openai", "model": "chat"}}


def names(judges: tuple[JudgeSettings, ...]) -> list[str]:
    """The names of judges."""
    return [judge.name for judge in judges]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"judge": {"name": "openai", "also": "lexical"}}, "also: has no effect: the judge openai"),
        ({"judge": DECIDES | {"also": DECIDES}}, "also: has no `also` and no `replaces` in it"),
        (
            {"judge": DECIDES | {"also": {"name": "openai", "replaces": "lexical"}}},
            "also: has no `also` and no `replaces` in it",
        ),
        ({"judge": DECIDES | {"also": {"name": "openai", "round": True}}}, "judge.also: round: "),
        ({"judge": DECIDES | {"also": "gpt"}}, "judge.also.name: should be decision, learned"),
        ({"judges": [DECIDES, "lexical"]}, "judges: also: has no effect in a panel"),
    ],
)
def test_a_mistake_is_told_with_its_place(values: dict[str, Any], told: str) -> None:
    """A second judge of the second judge is one too."""
    with pytest.raises(SettingsError, match=told):
        make_settings(values)


def test_both_judges_are_those_of_the_night() -> None:
    """With prices, keys and limits of their own; the first one alone decides the metrics' form."""
    settings = make_settings({"judge": DECIDES})
    assert names(settings.panel) == ["decision", "openai"]
    assert (settings.joined, settings.decides, settings.is_paid) == ("also", True, True)
    changed = settings.with_panel([one.model_copy(update={"retries": 0}) for one in settings.panel])
    assert [judge.retries for judge in changed.panel] == [0, 0]


def test_a_replaced_judge_has_its_own() -> None:
    """Without one it has that of today, asked at once, if it cannot score every metric."""
    batch = {"name": "openai-batch", "model": "chat"}
    for old, also, panel in (
        ("lexical", "openai", ["lexical"]),
        ("decision", "openai", ["decision", "openai"]),
        ("decision", batch, ["decision", "openai"]),
        (DECIDES, "lexical", ["decision", "openai"]),
    ):
        replaced = make_settings({"judge": DECIDES | {"also": also, "replaces": old}}).replaced
        assert replaced is not None and names(replaced.panel) == panel


def test_another_judge_on_the_command_line_leaves_it_out() -> None:
    """Another model of the same kind keeps it."""
    settings = make_settings({"judge": DECIDES})
    assert names(with_overrides(settings, "openai").panel) == ["openai"]
    assert names(with_overrides(settings, model="sol").panel) == ["decision", "openai"]
    assert names(with_overrides(settings, ["decision", "lexical"]).panel) == ["decision", "lexical"]
    with pytest.raises(SettingsError, match="has no effect in a panel"):
        with_overrides(settings, [DECIDES, "lexical"])


def test_a_recording_is_looked_for_beside_the_settings(tmp_path: Path) -> None:
    """As that of the first judge."""
    file = tmp_path / "ragmetrics.yaml"
    file.write_text("judge: {name: decision, also: 'recorded:replies.jsonl'}")
    _, also = load_settings(file).panel
    assert also.name == f"recorded:{tmp_path / 'replies.jsonl'}"
