"""What Prometheus is told of a night: which metrics there are, with which labels.

All are gauges that begin with `ragmetrics_`: a night is a state, and nothing is counted up from one
to the next. What is not known is left out, and never 0. A segment's numbers have names of their
own, so that a sum or a mean over all series of a name makes sense.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.error import HTTPError

from ragmetrics.alerts import alert_id
from ragmetrics.config import PushSettings, fill_headers
from ragmetrics.model import Finding, Manifest, Summary
from ragmetrics.report.night_status import (
    LABELS,
    RuleState,
    by_state,
    find_night_status,
    rule_state,
)
from ragmetrics.storage import Files
from ragmetrics.text import clean, finite

if TYPE_CHECKING:
    from prometheus_client import Metric

PATH = "metrics.prom"
MOST_METRICS = 100
MOST_SEGMENTS = 500
"""Of metrics and segments together, four series each."""
MOST_ALERTS = 500
ALERT_STATES: dict[RuleState, int] = {
    "ok": 0,
    "uncompared": 1,
    "no_data": 2,
    "pending": 3,
    "firing": 4,
}
"""Worse is more, so that `max` over alerts is the state of them all."""

Labelled = tuple[tuple[str, ...], float | None]
"""The values of the labels, and that of the sample; None where it is not known."""


@dataclass(frozen=True)
class Family:
    """One metric: its name, what it is, and a sample for each combination of labels."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: tuple[tuple[tuple[str, ...], float], ...]


class NightMetrics:
    """A night as prometheus_client collects it."""

    def __init__(self, manifest: Manifest) -> None:
        self._families = families(manifest)

    def collect(self) -> Iterable[Metric]:
        """Its metrics, as that library has them."""
        from prometheus_client.core import GaugeMetricFamily

        for family in self._families:
            gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
            for values, value in family.samples:
                gauge.add_metric(values, value)
            yield gauge


def metrics_text(manifest: Manifest) -> bytes:
    """A night in Prometheus's text format; of logged texts it has tags, and no question."""
    from prometheus_client import generate_latest

    return generate_latest(NightMetrics(manifest))


def write_metrics(site: Files, newest: Manifest) -> None:
    """Write the newest night for Prometheus, beside the overview."""
    site.write(PATH, metrics_text(newest))


def families(manifest: Manifest) -> list[Family]:
    """The metrics of a night that have a sample, each with the label `dataset` before others."""
    every = [*_night(manifest), *_scores(manifest), *_alerts(manifest), *_asked(manifest)]
    return [one for one in every if one.samples]


def _family(
    manifest: Manifest, name: str, told: str, labels: Sequence[str], samples: Iterable[Labelled]
) -> Family:
    dataset = label(manifest.dataset)
    known = (
        ((dataset, *values), float(value))
        for values, value in samples
        if finite(value) is not None and value is not None
    )
    return Family(f"ragmetrics_{name}", told, ("dataset", *labels), tuple(known))


def _night(manifest: Manifest) -> Iterator[Family]:
    def one(name: str, told: str, value: float) -> Family:
        return _family(manifest, name, told, (), [((), value)])

    begun = datetime.combine(manifest.date, datetime.min.time(), UTC).timestamp()
    yield one("night_timestamp_seconds", "The newest night: its day at 00:00 UTC.", begun)
    finished = manifest.finished_at.timestamp()
    yield one("run_finished_timestamp_seconds", "When the run of that night ended.", finished)
    now = find_night_status(manifest).state
    yield _family(
        manifest,
        "night_state",
        "How the night stands: 1 of the state that it is in, 0 of the others.",
        ("state",),
        [((state,), state == now) for state in LABELS],
    )
    yield _family(
        manifest,
        "judge_info",
        "Who judged: 1. Scores of different fingerprints do not compare.",
        ("judge", "fingerprint", "version"),
        [(tuple(map(label, _judge(manifest))), 1)],
    )
    source = manifest.source
    yield one("rows", "Rows that were read.", source.rows)
    yield one("rows_quarantined", "Rows that could not be read.", source.quarantined)
    yield one("files_broken", "Log files that could not be read to the end.", len(source.broken))
    yield one("problems", "Parts that could not be scored, or not by all.", len(manifest.problems))


def _judge(manifest: Manifest) -> tuple[str, str, str]:
    return manifest.judge.name, manifest.judge.fingerprint, manifest.ragmetrics


def _scores(manifest: Manifest) -> Iterator[Family]:
    metrics = manifest.metrics[:MOST_METRICS]
    yield from _means(manifest, "", "over all rows", metrics)
    yield _family(
        manifest,
        "metric_rows",
        "Rows by what became of them in the metric.",
        ("metric", "status"),
        [
            ((label(one.metric), label(status)), rows)
            for one in metrics
            for status, rows in sorted(one.status.items())
        ],
    )
    segments = [one for one in manifest.segments if one.segment]
    shown = segments[:MOST_SEGMENTS]
    yield from _means(manifest, "segment_", "where a tag has this value", shown)
    yield _family(
        manifest,
        "segment_rows_scored",
        "Rows that have a score, where a tag has this value.",
        ("metric", "tag", "value"),
        [(_place(one), one.scored) for one in shown],
    )
    omitted = [((), len(segments) - len(shown))] if segments else []
    yield _family(manifest, "segments_omitted", "Segments left out here.", (), omitted)


def _means(
    manifest: Manifest, prefix: str, where: str, summaries: Sequence[Summary]
) -> Iterator[Family]:
    names = ("metric", "tag", "value") if prefix else ("metric",)
    for name, told, values in (
        ("mean", "Mean of the metric", [one.mean for one in summaries]),
        ("low", "Lower end of the 95% interval of the mean", [one.low for one in summaries]),
        ("high", "Upper end of the 95% interval of the mean", [one.high for one in summaries]),
    ):
        samples = zip(map(_place, summaries), values, strict=True)
        yield _family(manifest, f"{prefix}score_{name}", f"{told} {where}.", names, samples)


def _place(one: Summary) -> tuple[str, ...]:
    segment = (label(one.segment.tag), label(one.segment.value)) if one.segment else ()
    return (label(one.metric), *segment)


def _alerts(manifest: Manifest) -> Iterator[Family]:
    shown = by_state(manifest.findings)[:MOST_ALERTS]
    states = ", ".join(f"{value} {LABELS[state]}" for state, value in ALERT_STATES.items())
    labels = ("alert", "kind", "metric", "segment", "severity", "rule")
    yield _family(
        manifest,
        "alert_state",
        f"The state of a rule: {states}.",
        labels,
        [(_rule(one), ALERT_STATES[rule_state(one)]) for one in shown],
    )
    yield _family(
        manifest,
        "alert_silenced",
        "Whether people acknowledged or snoozed the alert: 1, else 0.",
        labels,
        [(_rule(one), one.silence is not None) for one in shown],
    )
    yield _family(
        manifest,
        "alert_escalated",
        "Whether the firing alert got worse on this night than people were last told: 1, else 0.",
        labels,
        [(_rule(one), one.transition == "escalated") for one in shown],
    )


def _rule(one: Finding) -> tuple[str, ...]:
    place = (one.metric or "", str(one.segment or ""))
    return (alert_id(one.key), one.kind, *map(label, place), one.severity, label(one.rule))


def _asked(manifest: Manifest) -> Iterator[Family]:
    usage = manifest.usage
    free = not (usage.prompt_tokens or usage.completion_tokens)
    for name, told, value in (
        ("judge_requests", "Requests to judges that are reached over a network.", usage.requests),
        ("judge_known", "Answers that were in the store already.", usage.answered_from_store),
        ("judge_prompt_tokens", "Tokens sent, those in a cache too.", usage.prompt_tokens),
        ("judge_cached_tokens", "Of them, those in the endpoint's cache.", usage.cached_tokens),
        ("judge_completion_tokens", "Tokens of replies.", usage.completion_tokens),
        ("cost_usd", "What the night cost; absent without a price.", 0.0 if free else usage.usd),
    ):
        yield _family(manifest, name, told, (), [((), value)])


LONGEST = 120


_DIGEST_BYTES = 16
"""So many that nobody finds two texts of one digest, who may write what is logged."""


_ROOM_FOR_DIGEST = 2 * _DIGEST_BYTES + 2


_WITH_DIGEST = re.compile(rf"~[0-9a-f]{{{2 * _DIGEST_BYTES}}}\Z")


def label(text: str) -> str:
    """A text without controls and direction marks, of at most 120 characters.

    One that is changed by that, or ends as if it had been, gets a digest of what it was, so that
    two texts never become one series: Prometheus refuses a whole file for that. Quotes and
    backslashes are escaped where the file is written.
    """
    told = clean(text, LONGEST)
    if told == text and not _WITH_DIGEST.search(text):
        return told
    whole = text.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(whole, digest_size=_DIGEST_BYTES).hexdigest()
    return f"{clean(text, LONGEST - _ROOM_FOR_DIGEST)} ~{digest}".strip()


PAUSES = (1.0, 4.0)
"""Seconds before the second and the third attempt."""


log = logging.getLogger(__name__)


def push_metrics(
    settings: PushSettings, newest: Manifest, environment: Mapping[str, str] = os.environ
) -> str | None:
    """Push the newest night; return why it could not be, which is logged as an error.

    Lost connections and server errors are tried again after each of the PAUSES. No value of an
    environment variable is in the reason.
    """
    secrets: set[str] = set()
    try:
        own, secrets = fill_headers(settings.headers_env, environment)
        _until_taken(lambda: _push(settings, newest, own))
    except (OSError, HTTPException, ValueError) as error:
        reason = clean(_without(secrets, str(error)), 300) or type(error).__name__
        problem = f"metrics of {newest.date} are not pushed to {settings.url}: {reason}"
        log.error("%s", problem)
        return problem
    log.info("metrics of %s pushed to %s", newest.date, settings.url)
    return None


def _until_taken(send: Callable[[], None]) -> None:
    for pause in PAUSES:
        try:
            return send()
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code < 500 and error.code != 429:
                raise
        time.sleep(pause)
    return send()


def _push(settings: PushSettings, newest: Manifest, own: Mapping[str, str]) -> None:
    from prometheus_client import push_to_gateway
    from prometheus_client.exposition import default_handler
    from prometheus_client.openmetrics import exposition as openmetrics

    night = NightMetrics(newest)

    def handler(
        url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        if settings.format == "openmetrics":
            headers = [("Content-Type", openmetrics.CONTENT_TYPE_LATEST)]
            data = openmetrics.generate_latest(night)  # type: ignore[no-untyped-call]
        return default_handler(url, method, timeout, [*headers, *own.items()], data)

    push_to_gateway(
        settings.url,
        job=settings.job,
        registry=night,
        grouping_key={"dataset": label(newest.dataset)},
        timeout=settings.timeout_seconds,
        handler=handler,
    )


def _without(secrets: set[str], text: str) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
