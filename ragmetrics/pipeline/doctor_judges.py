"""What `doctor` says of a judge."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import islice

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import RagmetricsError
from ragmetrics.http import run_coroutine
from ragmetrics.judges import make_judges, probe_judge
from ragmetrics.logs import ReadCounts, find_inputs
from ragmetrics.people import ask_canaries
from ragmetrics.pipeline.doctor_rules import DoctorWarning
from ragmetrics.records import LEAST_RIGHT, LogRow
from ragmetrics.rules import shutdown_of

SECONDS = 20.0
"""Longest time that a judge or an embedder may take."""
_ROWS = 200
"""Rows whose language is looked at."""


def judge_text(settings: Settings, judge: JudgeSettings, day: date | None) -> str:
    """What the judge's endpoint said; with a `day` also what it says of the canaries, in the
    language of that night's log. Raises DoctorWarning for one that fails them, or whose model ends
    soon.
    """
    text = _answers(settings, judge, day)
    if ending := shutdown_of(judge, datetime.now(UTC).date(), settings):
        raise DoctorWarning(f"{text}; {ending}")
    return text


def _answers(settings: Settings, judge: JudgeSettings, day: date | None) -> str:
    if not judge.remote:
        (local,) = make_judges(settings.model_copy(update={"judges": (judge,)}))
        return f"{local.name} runs on this machine"
    text = run_coroutine(probe_judge(judge, ask=day is not None))
    if judge.begins_with_row:
        text += "; prompts begin with the row (prompt_layout)"
    if not day:
        return text
    brief = judge.model_copy(update={"retries": 0, "deadline_seconds": SECONDS})
    asked = ask_canaries(settings, brief, _languages(settings, day))
    if asked is None:
        return text
    report, _ = asked
    least = settings.alerts.limit("canaries", LEAST_RIGHT)
    text += f"; {report.text}"
    if report.fails(least):
        advice = "scores by it would mean nothing, so take another model, or a larger one"
        raise DoctorWarning(f"{text}, at least {least:g} are needed: {advice}")
    if report.right < least:  # some have no reply
        raise DoctorWarning(f"{text}; doctor waits {SECONDS:g} s, a night waits `deadline_seconds`")
    return text


def _languages(settings: Settings, day: date) -> list[str | None]:
    """The languages of the first rows of a night; none where these cannot be read."""
    try:
        (logs,) = find_inputs(settings.model_copy(update={"golden": None}), day).logs
        some = list(islice(logs.read(ReadCounts()), _ROWS))
    except RagmetricsError:  # the check of the logs has said so
        return []
    return [row.language for row in some if isinstance(row, LogRow)]
