"""The headline: a night is fine only where a rule compared something, and nothing else fell."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ragmetrics.cli.output import summary as tables
from ragmetrics.cli.table import make_console
from ragmetrics.dashboard.night_status import find_night_status
from ragmetrics.dashboard.summaries import summary_markdown
from ragmetrics.delivery import Delivery
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.pipeline import NightResult
from ragmetrics.records import Finding, Manifest, Segment
from ragmetrics.storage import Files
from tests.fakes.nights import FIRST, fall, finding, night
from tests.fakes.page_writing import write_night, write_overview
from tests.unit.dashboard.test_refresh import text
from tests.unit.rules.test_rules import NOISY, a_night, hold, recall, scores

SEGMENT = Segment(tag="section", value="billing")
FALL = fall("context_relevance", 0.89, 0.58)


def waiting(**change: Any) -> Finding:
    """What a rule on a drop says of the first night."""
    told: dict[str, Any] = {
        "key": "context_recall/max_drop",
        "rule": "context_recall: drop of more than 0.05 against the 7 nights before",
        "message": "context_recall: nothing to compare with yet: no earlier night",
        "compared": False,
    }
    return finding(**{**told, **change})


def printed(*nights: Manifest) -> str:
    """What the terminal shows of nights."""
    out = io.StringIO()
    console = make_console(file=out, width=300)
    tables.print_nights(console, [NightResult(one, Delivery(None, sent=False)) for one in nights])
    return " ".join(out.getvalue().split())


# What fell without a rule


def test_a_fall_is_said_in_place_of_fine() -> None:
    """With the metric, how far, and that no rule watches it; the means stand below."""
    told = find_night_status(night(falls=[FALL]))
    assert told.sentence == (
        "Night of 2026-11-10: no rule fired; Context relevance (graded) fell by 0.31 "
        "[0.25, 0.37] (no alert rule)."
    )
    assert told.headline == "Context relevance (graded) fell from 0.89 to 0.58."
    assert told.story.what == (
        "Context relevance (graded) fell by 0.31, 0.89 → 0.58 (no alert rule).",
    )


def test_several_falls_are_counted() -> None:
    """The headline stays short, and each has its line."""
    told = find_night_status(
        night(falls=[FALL, FALL.model_copy(update={"metric": "faithfulness"})])
    )
    assert told.words == "no rule fired; 2 metrics got significantly worse"
    assert len(told.story.what) == 2


def test_a_fall_stands_beside_an_alert() -> None:
    """What fires is the headline, and the fall is not lost."""
    told = find_night_status(night(recall=0.7, falls=[FALL]))
    assert (told.state, told.words) == ("firing", "1 alert firing")
    assert told.story.what[1] == (
        "Context relevance (graded) fell by 0.31, 0.89 → 0.58 (no alert rule)."
    )


def test_all_that_show_a_night_show_its_falls(tmp_path: Path) -> None:
    """The overview, the night's page with a badge on the card, the artifact and the terminal."""
    site, fell = Files(str(tmp_path)), night(falls=[FALL])
    short = "Context relevance (graded) fell by 0.31, 0.89 → 0.58 (no alert rule)."
    for path in (write_overview(site, [fell]), write_night(site, fell, [], [])):
        page = site.read(path).decode()
        assert short in text(page)
        assert '<span class="badge is-fell">' in page
        assert "−0.31 [−0.37, −0.25] compared with 7 nights before" in page
    assert "compared with 7 nights before (mean of all rows 0.890)" in text(page)
    assert short in summary_markdown(fell, "https://example.com/").replace("\\", "")
    assert "Context relevance (graded) fell by 0.31" in printed(fell)


# What no rule compared


def test_the_first_night_of_a_drop_rule_is_not_compared_yet() -> None:
    """It is no alert and no message, and neither is it fine."""
    tonight = a_night(scores(NOISY))
    findings = hold(recall(max_drop=0.05), tonight)
    _, findings = advance_states(AlertStates(), findings, tonight.manifest.date, 7)
    assert not any(one.transition for one in findings)
    told = find_night_status(tonight.manifest.model_copy(update={"findings": findings}))
    assert (told.state, told.words) == (
        "uncompared",
        "scored, but no rule has an earlier night to compare with",
    )
    assert "not compared yet: no earlier night" in told.findings[0].message


def test_the_second_night_is_compared() -> None:
    """Then the rule says ok, and the night is fine."""
    tonight = a_night(scores(NOISY))
    findings = hold(recall(max_drop=0.05), tonight, a_night(scores(NOISY), ago=1))
    assert (
        find_night_status(tonight.manifest.model_copy(update={"findings": findings})).words
        == "fine"
    )


def test_the_tables_say_not_compared_yet(tmp_path: Path) -> None:
    """The rule's badge and reason on both pages, and its metric on the terminal."""
    site, first = Files(str(tmp_path)), night(findings=[waiting(), finding("context_relevance")])
    overview = (
        site.read(write_overview(site, [first])).decode().split('<table class="rules lines">')[1]
    )
    table = site.read(write_night(site, first, [], [])).decode().split('<table class="rules">')[1]
    for rules in (overview.split("</table>")[0], table.split("</table>")[0]):
        assert text(rules).count("not compared yet") == 1
        assert "nothing to compare with yet: no earlier night" in text(rules)
    assert "not compared yet: Context recall" in printed(first)


def test_one_rule_that_compared_is_enough_for_no_alarm() -> None:
    """The others are counted; a segment that is new does not spoil a night."""
    ok = finding("context_relevance", drop=0.0)
    told = find_night_status(night(findings=[waiting(), ok]))
    assert (told.state, told.sentence) == (
        "ok",
        f"Night of {FIRST}: no rule fired, 1 rule not compared yet.",
    )
    assert find_night_status(night(findings=[waiting(segment=SEGMENT), ok])).words == "fine"


def test_a_floor_alone_makes_no_first_night_green() -> None:
    """A mean above its limit says nothing of a drop, which no night can show yet."""
    floor = finding("context_relevance")
    assert find_night_status(night(findings=[waiting(), floor])).state == "uncompared"


def test_checks_of_logs_and_judge_are_no_rules() -> None:
    """They say that the night can be judged, and nothing of its scores."""
    check = finding(kind="quarantine", rule="at most 5% quarantined", metric=None)
    told = find_night_status(night(findings=[check]))
    assert (told.state, told.words) == ("unwatched", "scored, but no rule watches it")


def test_rules_with_too_few_rows_compared_nothing() -> None:
    """Segments that are all too small leave a night that nobody judged."""
    small = finding(level="no_data", segment=SEGMENT)
    assert find_night_status(night(findings=[small])).state == "uncompared"
