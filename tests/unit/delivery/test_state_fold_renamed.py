"""Rules without `versus` compared with the previous night once: their open alerts go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import AlertSettings, Rule, Settings, make_settings
from ragmetrics.delivery import load_alerts
from ragmetrics.delivery.state import AlertStates
from ragmetrics.delivery.state_fold import (
    STATE_FILE,
    alert_history,
    fold_states,
    recorded,
    with_keys_of_today,
)
from ragmetrics.errors import SettingsError
from ragmetrics.pipeline import run_night
from ragmetrics.records import AlertState, Finding, Manifest, Silence
from ragmetrics.rules import silence, silences
from ragmetrics.storage import Files, open_store
from tests.builders import night_settings
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import finding, night
from tests.fakes.slack import SlackServer

RECALL = "context_recall"
OLD, NEW = (f"max_drop 0.1 versus {versus}" for versus in ("previous", "trailing:7"))
DROP = {"metric": RECALL, "max_drop": 0.1}


def settings(folder: Path, rule: dict[str, Any]) -> Settings:
    """Settings with one rule."""
    return night_settings(
        folder, logs="logs/{date}.jsonl", dataset="demo", metrics=[RECALL], rules=[rule]
    )


def run(folder: Path, rule: dict[str, Any], *shares: float, first: int = 0) -> list[Manifest]:
    """Nights with so large a share of good rows."""
    found = []
    for number, good in enumerate(shares, first):
        day = NIGHT + timedelta(number)
        write_jsonl(folder / "logs" / f"{day}.jsonl", make_rows(100, good=good, night=day))
        found.append(run_night(settings(folder, rule), day).manifest)
    return found


def of_rule(manifest: Manifest) -> Finding:
    """The finding of the rule, of which there is one."""
    (found,) = [finding for finding in manifest.findings if finding.kind == "metric"]
    return found


def kinds(slack: SlackServer) -> Sequence[str]:
    """The messages that people got, each in its first words."""
    return [message["text"].partition(":")[0] for message in slack.delivered]


def test_a_firing_alert_goes_on_under_its_new_key(
    tmp_path: Path, slack_server: SlackServer
) -> None:
    """It is told once, stays acknowledged, and resolves once. An explicit `previous` has the keys
    and the states that an earlier version wrote for a rule without `versus`.
    """
    *_, fell = run(tmp_path, DROP | {"versus": "previous"}, 0.9, 0.9, 0.5)
    assert of_rule(fell).key == f"demo/{RECALL}/all/{OLD}"
    store = open_store(settings(tmp_path, DROP))
    told = Silence(key=of_rule(fell).key, at=datetime.now(UTC), since=of_rule(fell).since)
    silence(store, told)
    (still,) = run(tmp_path, DROP, 0.5, first=3)
    found = of_rule(still)
    assert (found.key, found.state) == (f"demo/{RECALL}/all/{NEW}", "firing")
    assert (found.transition, found.since) == (None, fell.date)
    assert found.baseline == pytest.approx(0.9), "the incident's nights are no baseline"
    assert [key for key in load_alerts(store).states if RECALL in key and "max" in key] == [
        found.key
    ]
    assert list(silences(store)) == [found.key]
    assert len(kinds(slack_server)) == 1
    (back,) = run(tmp_path, DROP, 0.9, first=4)
    assert of_rule(back).transition == "resolved"
    assert kinds(slack_server)[1:] == ["🟢 Resolved"]
    assert "not checked" not in json.dumps(slack_server.delivered)


def test_a_rule_that_says_previous_keeps_its_alert(tmp_path: Path) -> None:
    """Its key is as it was, and another rule without `versus` does not take its state."""
    rules = tuple(Rule.model_validate(rule) for rule in (DROP, DROP | {"versus": "previous"}))
    finding = (
        night().findings[0].model_copy(update={"metric": RECALL, "key": f"demo/{RECALL}/all/{OLD}"})
    )
    nights = [night(findings=[finding])]
    assert with_keys_of_today(rules, nights) == nights
    (moved,) = with_keys_of_today(rules[:1], nights)
    assert moved.findings[0].key == f"demo/{RECALL}/all/{NEW}"
    assert moved.findings[0].renamed_from == finding.key


def test_states_know_what_was_told_under_the_old_key() -> None:
    """Also where the first night under the new key sent no reminder, as in a snooze."""
    was = finding(level="breach", key="a versus previous", transition="fired", since=night(0).date)
    now = finding(level="breach", key="a versus trailing:7", renamed_from=was.key)
    nights = [night(0, findings=[was]), night(8, findings=[now])]
    told = recorded(nights[0])
    (state,) = fold_states(nights, told, 7).states.values()
    assert state.told == night(0).date
    moved = with_keys_of_today((Rule.model_validate(DROP),), nights[:1])
    assert fold_states([*moved, nights[1]], told, 7).states == {now.key: state}


def test_the_rules_know_states_that_were_stored_under_the_old_key(tmp_path: Path) -> None:
    """On the first night after `alerts/state.json` too, of which no night is folded anew."""
    files, rules = Files(str(tmp_path)), (Rule.model_validate(DROP),)
    was = (
        night().findings[0].model_copy(update={"metric": RECALL, "key": f"demo/{RECALL}/all/{OLD}"})
    )
    firing = AlertState(state="firing", judged="firing", since=night(0).date, finding=was)
    stored = AlertStates(night=night(0).date, states={was.key: firing})
    files.write(STATE_FILE, stored.model_dump_json().encode())
    history = alert_history(
        files, AlertSettings(rules=rules), night(1).date, [night(0, findings=[was])]
    )
    assert history.before.states == {f"demo/{RECALL}/all/{NEW}": firing}


def test_settings_that_named_the_default_beside_none_are_still_read() -> None:
    """They were two rules once, and are one now; two that say the same are refused as ever."""
    both = [DROP, DROP | {"versus": "trailing:7"}]
    rules = make_settings({"alerts": {"rules": both}}).alerts.rules
    assert rules == (Rule.model_validate(both[1]),)
    with pytest.raises(SettingsError, match="duplicate rule"):
        make_settings({"alerts": {"rules": [both[1], both[1]]}})
