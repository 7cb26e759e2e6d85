"""What a firing alert says besides its numbers: since which night, and what carries the drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from ragmetrics.config import AlertSettings
from ragmetrics.records import ContributorShare, DatedChange, Finding, Manifest
from ragmetrics.rules import evaluate_rules
from ragmetrics.rules.root_cause import explain_root_cause
from ragmetrics.scoring import MetricScores
from tests.fakes.formats import terminal_text
from tests.fakes.past import (
    NOISY,
    TONIGHT,
    a_night,
    fallen,
    hold,
    recall,
    scores,
    story,
    view,
)
from tests.unit.messages.test_night_message import a_finding, validate, write

SECTIONS = ["billing"] * 20 + ["api"] * 20
RULE = recall(max_drop=0.05, versus="trailing:7")


def of_sections(billing: float = 0.0, api: float = 0.0, **more: Any) -> MetricScores:
    """A night of forty questions, each section so much below the usual."""
    values = [*fallen(billing, NOISY[:20]), *fallen(api, NOISY[20:])]
    return scores(values, section=SECTIONS, **more)


def days(count: int, *places: int) -> list[date]:
    """The dates of some nights of a story of so many."""
    return [TONIGHT - timedelta(count - 1 - place) for place in places]


def test_a_firing_alert_says_since_when_and_what_carries_it() -> None:
    """In the record, and in plain words in its message."""
    told = story(RULE, *[of_sections()] * 4, of_sections(billing=0.3))
    (night,) = days(5, 4)
    assert told[4].change == DatedChange(first=night, nights=[night])
    assert told[4].carriers is not None
    (carrier,) = told[4].carriers
    assert (carrier.tag, carrier.value, carrier.questions) == ("section", "billing", 20)
    assert carrier.share == pytest.approx(1.0)
    assert told[4].message.endswith(f"; fell on {night}; attributed to section=billing")


def test_nights_that_are_ok_are_not_looked_into() -> None:
    """Neither is a night that only may be poor: nobody is told of it."""
    told = story(RULE, *[of_sections()] * 3)
    assert {(one.change, one.carriers) for one in told} == {(None, None)}
    tonight, earlier = a_night(of_sections()), a_night(of_sections(), ago=1)
    night, read = view(tonight, earlier), list[str]()
    findings = evaluate_rules(AlertSettings(rules=tuple(RULE)), night)

    def load(one: Manifest, metric: str) -> MetricScores:
        read.append(metric)
        return earlier.scores[metric]

    assert explain_root_cause(replace(night, load=load), findings) == findings
    assert read == []


def test_a_drop_that_is_everywhere_is_carried_by_nobody() -> None:
    """And that is said: there is no section to look into first."""
    told = story(RULE, *[of_sections()] * 4, of_sections(billing=0.2, api=0.2))
    assert told[4].carriers == []
    assert told[4].message.endswith("; no single tag or index build explains it")


def test_without_tags_nothing_is_said_of_carriers() -> None:
    """There is nothing that could carry it."""
    told = story(RULE, *[NOISY] * 4, fallen(0.2))
    assert told[4].carriers == []
    assert told[4].message.endswith(f"fell on {TONIGHT}")


def test_a_new_index_build_is_named() -> None:
    """All rows of the night are of it, and fell."""
    nights = [of_sections(index_build="b1")] * 4
    told = story(RULE, *nights, of_sections(0.2, 0.2, index_build="b2"))
    assert told[4].carriers is not None
    assert [(carrier.tag, carrier.value, carrier.is_new) for carrier in told[4].carriers] == [
        ("index_build", "b2", True)
    ]
    assert told[4].message.endswith("; attributed to new index build b2")


def test_the_date_stays_while_the_alert_lasts() -> None:
    """On the tenth night of a spell too: the nights around its beginning are those that tell."""
    told = story(RULE, *[of_sections()] * 4, *[of_sections(billing=0.3)] * 10)
    assert {one.change.first for one in told[4:] if one.change} == set(days(14, 4))
    assert all(one.change and one.carriers for one in told[4:])


def test_an_alert_that_fires_late_is_dated_to_the_night_of_the_fall() -> None:
    """A line that was crossed by a fall three nights ago, when `for` made it fire tonight."""
    rule = recall(min=0.7, **{"for": 3})
    low: Sequence[MetricScores] = [of_sections(billing=0.28)] * 3
    told = story(rule, *[of_sections()] * 4, *low)
    assert [one.state for one in told[3:]] == ["ok", "pending", "pending", "firing"]
    assert told[6].change is not None
    assert told[6].change.first == days(7, 4)[0]
    assert [str(one) for one in told[6].carriers or []] == ["section=billing"]


def test_a_rule_on_one_segment_is_explained_within_it() -> None:
    """Its own tag carries everything, and is not told."""
    rule = recall(max_drop=0.05, versus="trailing:7", by="section")
    nights = [a_night(of_sections(), ago=ago) for ago in (3, 2, 1)]
    tonight = a_night(of_sections(billing=0.3))
    night = view(tonight, *nights)
    found = [one for one in evaluate_rules(AlertSettings(rules=tuple(rule)), night) if one.segment]
    firing = [one.model_copy(update={"state": "firing"}) for one in found if one.level != "ok"]
    (billing,) = explain_root_cause(night, firing)
    assert str(billing.segment) == "section=billing"
    assert billing.change is not None
    assert billing.carriers == []


def test_a_resolved_alert_is_not_explained() -> None:
    """The level is back."""
    told = story(RULE, *[of_sections()] * 4, of_sections(billing=0.3), of_sections())
    assert (told[5].transition, told[5].change) == ("resolved", None)


def test_text_of_logs_is_cleaned_in_messages() -> None:
    """A tag's value may hold anything."""
    evil = ["\x1b[31mbilling\n<!channel>"] * 20 + ["api"] * 20
    nights = [scores(NOISY, section=evil)] * 4
    told = story(RULE, *nights, scores([*fallen(0.3, NOISY[:20]), *NOISY[20:]], section=evil))
    assert "section= [31mbilling <!channel>" in told[4].message
    assert "\x1b" not in told[4].message
    message = terminal_text(write(told[4].model_copy(update={"transition": "fired"})))
    assert "\x1b" not in message


def test_a_message_says_where_and_why() -> None:
    """What fell most with both means, then the build and the night; no shares, which overlap."""
    change = DatedChange(first=TONIGHT - timedelta(1), nights=[TONIGHT - timedelta(1), TONIGHT])
    carriers = [
        ContributorShare(
            tag="section", value="billing", share=0.62, questions=40, before=0.95, now=0.05
        ),
        ContributorShare(tag="index_build", value="idx-42", share=0.3, questions=90, is_new=True),
        ContributorShare(tag="channel", value=None, share=0.1, questions=9),
    ]
    message = write(a_finding(change=change, carriers=carriers))
    validate(message)
    shown = " ".join(terminal_text(message).split())
    assert "Where: section=billing (0.95 → 0.05), rows without channel." in shown
    assert (
        "It came with the new index build idx-42. When: Fell on "
        f"{TONIGHT - timedelta(1)} (possibly" in shown
    )


def test_a_reminder_tells_them_too() -> None:
    """In its one line, which is longer than those of alerts that are only listed."""
    message = "context_recall fell from 0.821 to 0.714; " + "x" * 200 + "; fell on 2026-11-18"
    assert "fell on 2026-11-18" in terminal_text(
        write(a_finding(transition="reminded", message=message))
    )


def test_manifests_of_before_stay_readable() -> None:
    """A finding without the new fields has none."""
    old = hold(RULE, a_night(scores(NOISY)))[-1].model_dump(mode="json")
    for name in ("change", "carriers", "mde"):
        old.pop(name)
    found = Finding.model_validate(old)
    assert (found.change, found.carriers, found.mde) == (None, None, None)
