"""The table of incidents on the overview."""

from __future__ import annotations

from ragmetrics.dashboard.incident_lines import incident_lines
from ragmetrics.dashboard.night_status import find_night_status
from ragmetrics.records import ComparedMeans, LostPassages
from tests.fakes.nights import fall, finding, night


def test_an_incident_has_its_end() -> None:
    """The newest stands first; one that still fires has no end."""
    fired = finding(level="breach", state="firing", transition="fired")
    over = finding(transition="resolved")
    nights = [night(0, findings=[fired]), night(1, findings=[over]), night(2, findings=[fired])]
    newest, first = incident_lines([(one, find_night_status(one)) for one in nights])
    assert (newest.night, newest.ended) == (nights[2].date, None)
    assert (first.night, first.ended) == (nights[0].date, nights[1].date)
    assert first.what


def test_a_quiet_night_is_no_incident() -> None:
    """Nor is one whose alert only goes on."""
    still = finding(level="breach", state="firing")
    assert (
        incident_lines(
            [(one, find_night_status(one)) for one in (night(), night(1, findings=[still]))]
        )
        == []
    )


def test_an_alert_of_an_earlier_version_has_its_end() -> None:
    """It resolves under the key of today, and an earlier incident keeps its own end."""
    old = finding(level="breach", state="firing", transition="fired", key="old")
    over = finding(transition="resolved", key="old")
    again = finding(
        level="breach", state="firing", transition="fired", key="new", renamed_from="old"
    )
    ended = finding(transition="resolved", key="new", renamed_from="old")
    alike = finding(transition="resolved", key="old")

    def ends(*findings: object) -> list[object]:
        nights = [night(n, findings=[one]) for n, one in enumerate(findings)]
        lines = incident_lines([(one, find_night_status(one)) for one in nights])
        return [one.ended and (one.ended - nights[0].date).days for one in lines]

    assert ends(old, ended) == [1]
    assert ends(old, over, again, ended) == [3, 1]
    both = night(1, findings=[ended, alike.model_copy(update={"transition": None})])
    first = night(findings=[old])
    (line,) = incident_lines([(one, find_night_status(one)) for one in (first, both)])
    assert line.ended is None


def test_a_row_tells_only_of_what_fired() -> None:
    """What is pending, what no rule watches and what was lost have their places in the night."""
    means = ComparedMeans(before=0.879, now=0.637, questions=80, paired=True)
    pending = finding(
        "mrr", level="suspect", state="pending", mean=0.637, drop=0.24, means=means, key="mrr"
    )
    fired = finding(
        None,
        kind="quarantine",
        level="breach",
        transition="fired",
        key="quarantine",
        message="60 of 200 rows are in quarantine",
    )
    tonight = night(
        findings=[pending, fired],
        falls=[fall("faithfulness")],
        lost_passages=LostPassages(questions=9, needed=9, fallen=3, lost=3, sentence="3 are gone"),
    )
    (line,) = incident_lines([(tonight, find_night_status(tonight))])
    assert (line.what, line.where, line.why) == ("60 of 200 rows are in quarantine.", "", "")
