"""What `doctor` says of a night's logs: where they are, and what can be read of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import date, timedelta
from itertools import islice

from ragmetrics.config import Settings, log_files_of_day
from ragmetrics.errors import InputError
from ragmetrics.logs import GoldenSet, LogSet, ReadCounts, find_inputs, find_logs, golden_set
from ragmetrics.pipeline.doctor_rules import DoctorWarning, lacking_tags
from ragmetrics.records import FIELDS, LogRow, Rejected
from ragmetrics.scoring import chosen_metrics
from ragmetrics.text import plural

_ROWS = 200
_DAYS_BACK = 7
_TIMELESS = "no row has a time, so a log of another night may go unnoticed"


def logs_text(settings: Settings, day: date) -> str:
    """Where the logs are, and what can be read. Raises InputError, or DoctorWarning."""
    inputs = find_inputs(settings.model_copy(update={"golden": None}), day)
    (logs,) = inputs.logs
    if inputs.problem:
        newest = _newest_day(settings, day)
        raise InputError(inputs.problem + (f"; there are logs of {newest}" if newest else ""))
    counts, size = ReadCounts(), sum(info.size for info in logs.infos)
    many = plural(len(logs.infos), "file")
    where = f"{many} with {size / 1e6:,.1f} MB at {logs.files.uri()}"
    try:
        return f"{where}; {_first_rows(settings, logs, counts)}"
    except (InputError, DoctorWarning) as error:
        raise type(error)(f"{where}; {error}") from None


def _newest_day(settings: Settings, day: date) -> str:
    """The newest day before `day` with log files, or an empty text."""
    for back in range(1, _DAYS_BACK + 1):
        earlier = day - timedelta(days=back)
        place = log_files_of_day(settings.logs, earlier)
        if place == log_files_of_day(settings.logs, day):
            return ""
        if find_logs(place, settings.storage_options)[1]:
            return earlier.isoformat()
    return ""


def _first_rows(settings: Settings, logs: LogSet, counts: ReadCounts) -> str:
    """Read the first rows. Raises InputError where too many cannot be read, DoctorWarning where a
    metric cannot be computed.
    """
    golden = GoldenSet(golden_set(settings)) if settings.golden else None
    some = list(islice(logs.read(counts), _ROWS))
    rows = [golden.join(one)[0] if golden else one for one in some if isinstance(one, LogRow)]
    if not some:
        raise InputError(f"there is no row {'of that night ' if logs.between else ''}in them")
    share = "all" if len(rows) == len(some) else f"{len(rows):,}"
    text = f"{share} of the first {plural(len(some), 'row')} can be read"
    reasons = Counter(one.reason for one in some if isinstance(one, Rejected))
    if reasons:
        reason, count = reasons.most_common(1)[0]
        text += f", most often: {reason} ({count:,})"
    note = f"\n{counts.note}" if counts.note else ""
    if sum(reasons.values()) > settings.alerts.limit("quarantine") * len(some) or not rows:
        raise InputError(text + note)
    filled = {name for row in rows for name in FIELDS if getattr(row, name) not in (None, "")}
    tags = {tag for row in rows for tag in row.tags}
    text += "" if "timestamp" in filled else f"; {_TIMELESS}"
    if missing := _lacking(settings, filled, tags):
        raise DoctorWarning("; ".join([text, *missing]) + note)
    if counts.dropped or note:
        dropped = "".join(f"; left out: {reason}" for reason in counts.dropped)
        raise DoctorWarning(text + dropped + note)
    return text


def log_remarks(settings: Settings, filled: Collection[str], tags: Collection[str]) -> list[str]:
    """What `doctor` says of a log whose rows have these fields and tags; none of an empty log."""
    if not filled:
        return []
    timeless = [] if "timestamp" in filled else [_TIMELESS]
    return [*timeless, *_lacking(settings, filled, tags)]


def _lacking(settings: Settings, filled: Collection[str], tags: Collection[str]) -> list[str]:
    """Which fields and tags of metrics and rules no row has."""
    fieldless = (
        f"no row has {', '.join(metric.lacks(filled))} for {metric.name}"
        for metric in chosen_metrics(settings)
        if not metric.fits(filled)
    )
    return [*fieldless, *lacking_tags(settings, tags)]
