"""The table of incidents on the overview."""

from __future__ import annotations

from ragmetrics.dashboard.incident_lines import incident_lines
from ragmetrics.dashboard.night_status import find_night_status
from tests.fakes.nights import finding, night


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
