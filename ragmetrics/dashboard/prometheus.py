"""The newest night for Prometheus: a file in its text format, or a push to a Pushgateway.

metrics.prom

All metrics are gauges whose names begin with `ragmetrics_`: a night is a state, and nothing counts
up from one night to the next. An unknown value is left out, and never 0. Numbers of segments have
names of their own, so a sum or a mean over all series of a name makes sense.

A push replaces all that the Pushgateway has for the same job and dataset, so repeating it changes
nothing. A failed push is logged as an error; the night is published all the same.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, TypeAlias
from urllib.error import HTTPError

from ragmetrics.config import PushSettings, fill_headers
from ragmetrics.dashboard.night_status import (
    LABELS,
    RuleState,
    by_state,
    find_night_status,
    rule_state,
)
from ragmetrics.records import Finding, Manifest, Summary, alert_id
from ragmetrics.storage import Files
from ragmetrics.text import clean, finite

if TYPE_CHECKING:
    from prometheus_client import Metric

PATH = "metrics.prom"
MOST_METRICS = 100
MOST_SEGMENTS = 500
"""Most pairs of a metric and a segment, with four series each."""
MOST_ALERTS = 500
ALERT_STATES: dict[RuleState, int] = {
    "ok": 0,
    "uncompared": 1,
    "no_data": 2,
    "pending": 3,
    "firing": 4,
}
"""A worse state has a larger number, so `max` over alerts is their common state."""
PAUSES = (1.0, 4.0)
"""Seconds before the second and the third attempt of a push."""
LONGEST = 120
_DIGEST_BYTES = 16
"""Bytes of a digest. Logs may be hostile, and nobody finds two texts with one digest of 16."""
_WITH_DIGEST = re.compile(rf"~[0-9a-f]{{{2 * _DIGEST_BYTES}}}\Z")
log = logging.getLogger(__name__)

Sample: TypeAlias = tuple[tuple[str, ...], float | None]
"""The values of the labels, and the value, if it is known."""
_Family: TypeAlias = tuple[str, str, tuple[str, ...], Iterable[Sample]]
"""A family's name without prefix, its help text, its labels without `dataset`, and its samples."""


class NightMetrics:
    """A night as prometheus_client collects it: its metrics that have a sample.

    `dataset` is the first label of each.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def collect(self) -> Iterator[Metric]:
        """The metrics as objects of prometheus_client."""
        from prometheus_client.core import GaugeMetricFamily

        dataset = label(self._manifest.dataset)
        for source in (_night, _scores, _alerts, _usage):
            for name, text, labels, samples in source(self._manifest):
                gauge = GaugeMetricFamily(f"ragmetrics_{name}", text, labels=["dataset", *labels])
                for values, value in samples:
                    if value is not None and finite(value) is not None:
                        gauge.add_metric([dataset, *values], float(value))
                if gauge.samples:
                    yield gauge


def metrics_text(manifest: Manifest) -> bytes:
    """A night in Prometheus's text format. It contains tags from logs, and no question."""
    from prometheus_client import generate_latest

    return generate_latest(NightMetrics(manifest))


def write_metrics(site: Files, newest: Manifest) -> None:
    """Write the newest night for Prometheus, beside the overview."""
    site.write(PATH, metrics_text(newest))


def _single(name: str, text: str, value: float | None) -> _Family:
    return name, text, (), [((), value)]


def _night(manifest: Manifest) -> Iterator[_Family]:
    begun = datetime.combine(manifest.date, datetime.min.time(), UTC).timestamp()
    finished = manifest.finished_at.timestamp()
    now, source, judge = find_night_status(manifest).state, manifest.source, manifest.judge
    identity = (label(judge.name), label(judge.fingerprint), label(manifest.ragmetrics))
    yield _single("night_timestamp_seconds", "The newest night: its day at 00:00 UTC.", begun)
    yield _single("run_finished_timestamp_seconds", "When the run of that night ended.", finished)
    yield (
        "night_state",
        "The state of the night: 1 for its state, 0 for the others.",
        ("state",),
        [((state,), state == now) for state in LABELS],
    )
    yield (
        "judge_info",
        "The judge: 1. Scores of different fingerprints cannot be compared.",
        ("judge", "fingerprint", "version"),
        [(identity, 1)],
    )
    yield _single("rows", "Rows that were read.", source.rows)
    yield _single("rows_quarantined", "Rows that could not be read.", source.quarantined)
    broken, problems = len(source.broken), len(manifest.problems)
    yield _single("files_broken", "Log files that could not be read to the end.", broken)
    yield _single("problems", "Parts that were not scored, or not by all judges.", problems)


def _scores(manifest: Manifest) -> Iterator[_Family]:
    metrics = manifest.metrics[:MOST_METRICS]
    segments = [segment for segment in manifest.segments if segment.segment]
    shown = segments[:MOST_SEGMENTS]
    yield from _means("", "over all rows", ("metric",), metrics)
    people = [(_place(metric), metric.people) for metric in metrics if metric.people]
    for name, text in (
        ("mean", "The mean that people would give to all rows"),
        ("low", "Lower end of the 95% interval of people's mean"),
        ("high", "Upper end of the 95% interval of people's mean"),
    ):
        samples = [(place, getattr(one, name)) for place, one in people]
        yield f"people_{name}", f"{text}, by labelled rows.", ("metric",), samples
    yield (
        "metric_rows",
        "Rows by their status in the metric.",
        ("metric", "status"),
        [
            ((label(metric.metric), label(status)), rows)
            for metric in metrics
            for status, rows in sorted(metric.status.items())
        ],
    )
    names, where = ("metric", "tag", "value"), "where a tag has this value"
    yield from _means("segment_", where, names, shown)
    rows = [(_place(one), one.scored) for one in shown]
    yield "segment_rows_scored", f"Rows that have a score, {where}.", names, rows
    if segments:
        omitted = len(segments) - len(shown)
        yield _single("segments_omitted", "Segments that are left out here.", omitted)


def _means(
    prefix: str, where: str, names: tuple[str, ...], summaries: Sequence[Summary]
) -> Iterator[_Family]:
    for name, text, values in (
        ("mean", "Mean of the metric", [summary.mean for summary in summaries]),
        ("low", "Lower end of the 95% interval of the mean", [one.low for one in summaries]),
        ("high", "Upper end of the 95% interval of the mean", [one.high for one in summaries]),
    ):
        samples = zip(map(_place, summaries), values, strict=True)
        yield f"{prefix}score_{name}", f"{text} {where}.", names, samples


def _place(one: Summary) -> tuple[str, ...]:
    segment = (label(one.segment.tag), label(one.segment.value)) if one.segment else ()
    return (label(one.metric), *segment)


def _alerts(manifest: Manifest) -> Iterator[_Family]:
    shown = by_state(manifest.findings)[:MOST_ALERTS]
    states = ", ".join(f"{value} {LABELS[state]}" for state, value in ALERT_STATES.items())

    def family(name: str, text: str, value: Callable[[Finding], float]) -> _Family:
        labels = ("alert", "kind", "metric", "segment", "severity", "rule")
        return f"alert_{name}", text, labels, [(_rule(one), value(one)) for one in shown]

    yield family(
        "state", f"The state of a rule: {states}.", lambda one: ALERT_STATES[rule_state(one)]
    )
    yield family(
        "silenced",
        "Whether people acknowledged or snoozed the alert: 1, else 0.",
        lambda one: one.silence is not None,
    )
    yield family(
        "escalated",
        "Whether the firing alert is worse than at its last notification: 1, else 0.",
        lambda one: one.transition == "escalated",
    )


def _rule(one: Finding) -> tuple[str, ...]:
    place = (one.metric or "", str(one.segment or ""))
    return (alert_id(one.key), one.kind, *map(label, place), one.severity, label(one.rule))


def _usage(manifest: Manifest) -> Iterator[_Family]:
    usage = manifest.usage
    cost = usage.usd if usage.prompt_tokens or usage.completion_tokens else 0.0
    stored = usage.answered_from_store
    yield _single("judge_requests", "Requests to judges over a network.", usage.requests)
    yield _single("judge_known", "Answers that were in the store already.", stored)
    sent, cached, replies = usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens
    yield _single("judge_prompt_tokens", "Tokens of prompts, including cached ones.", sent)
    yield _single("judge_cached_tokens", "Tokens of prompts in the endpoint's cache.", cached)
    yield _single("judge_completion_tokens", "Tokens of replies.", replies)
    yield _single("cost_usd", "What the night cost; absent without a price.", cost)


def label(text: str) -> str:
    """A text as a label value: one line of at most 120 characters, without controls.

    A text that this changes, or that ends like a digest, gets a digest of the whole text. So
    different texts have different labels: Prometheus refuses a file in which two series are equal.
    prometheus_client escapes quotes and backslashes.
    """
    shown = clean(text, LONGEST)
    if shown == text and not _WITH_DIGEST.search(text):
        return shown
    whole = text.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(whole, digest_size=_DIGEST_BYTES).hexdigest()
    return f"{clean(text, LONGEST - len(digest) - 2)} ~{digest}".strip()


def push_metrics(
    settings: PushSettings, newest: Manifest, environment: Mapping[str, str] = os.environ
) -> str | None:
    """Push the newest night; return the reason if that fails, which is logged as an error too.

    Lost connections and server errors are tried again after each of the PAUSES. The reason contains
    no value of an environment variable.
    """
    secrets: set[str] = set()
    try:
        headers, secrets = fill_headers(settings.headers_env, environment)
        _retry(lambda: _push(settings, newest, headers))
    except (OSError, HTTPException, ValueError) as error:
        reason = str(error)
        for secret in sorted(secrets, key=len, reverse=True):
            reason = reason.replace(secret, "***")
        reason = clean(reason, 300) or type(error).__name__
        problem = f"metrics of {newest.date} are not pushed to {settings.url}: {reason}"
        log.error("%s", problem)
        return problem
    log.info("metrics of %s pushed to %s", newest.date, settings.url)
    return None


def _retry(send: Callable[[], None]) -> None:
    for pause in PAUSES:
        try:
            return send()
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code < 500 and error.code != 429:
                raise
        time.sleep(pause)
    return send()


def _push(settings: PushSettings, newest: Manifest, labels: Mapping[str, str]) -> None:
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
        return default_handler(url, method, timeout, [*headers, *labels.items()], data)

    push_to_gateway(
        settings.url,
        job=settings.job,
        registry=night,
        grouping_key={"dataset": label(newest.dataset)},
        timeout=settings.timeout_seconds,
        handler=handler,
    )
