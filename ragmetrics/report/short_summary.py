"""A night in short, for people who are not on the dashboard: in Prefect, and in an inbox."""

from __future__ import annotations

from datetime import date

from ragmetrics.alerts import silences, with_silences
from ragmetrics.errors import InputError
from ragmetrics.model import Manifest
from ragmetrics.report.redacting import redacted
from ragmetrics.report.summary_lines import summary_markdown, summary_page
from ragmetrics.storage import Files, in_full, outlines, run_of

_EARLIER = 60
"""Nights in which the newest one that compares is looked for."""


def night_markdown(files: Files, manifest: Manifest, link: str) -> str:
    """The headline of a run as markdown, with a link to its page."""
    told = redacted(manifest, manifest.redacts)
    return summary_markdown(told, link, _before(files, manifest.date))


def night_summary(files: Files, day: date) -> bytes:
    """The page of a night that can be sent by e-mail; raises InputError where it is not there."""
    found = run_of(files, day)
    if found is None:
        known = outlines(files, last=1)
        newest = f"; the newest is {known[-1].date}" if known else ""
        raise InputError(f"{files.uri()}: there is no night {day}{newest}")
    last = in_full(files, outlines(files, last=1))
    hide = any(one.redacts for one in [found, *last])
    told = redacted(with_silences(found, silences(files)), hide)
    return summary_page(told, _before(files, day))


def _before(files: Files, day: date) -> list[Manifest]:
    return outlines(files, before=day, last=_EARLIER)
