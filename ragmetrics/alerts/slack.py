"""Transitions become one Slack message, which is sent or raises.

Text of users (questions, tags, ids, paths) passes through `escape`, after which nothing of it
can act as markup. Slack's limits on blocks hold by construction.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterable, Sequence
from http.client import HTTPException, InvalidURL
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr
from slack_sdk.errors import SlackClientError
from slack_sdk.http_retry import (
    ConnectionErrorRetryHandler,
    FixedValueRetryIntervalCalculator,
    HttpRequest,
    HttpResponse,
    RateLimitErrorRetryHandler,
    RetryState,
)
from slack_sdk.http_retry.builtin_handlers import ServerErrorRetryHandler
from slack_sdk.webhook import WebhookClient

from ragmetrics.alerts.state import Message
from ragmetrics.errors import RagmetricsError
from ragmetrics.records import Finding, Manifest

SHOWN = 4
"""Fired findings shown with all their numbers; Slack rejects messages beyond about 12,000
characters, whatever its limits per block."""
LISTED = 10
LIST_LENGTH = 1_200
LONGEST_WAIT = 10
"""Seconds: a longer Retry-After is left to the next run."""

Block = dict[str, Any]

_SAFE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "*": "∗", "~": "∼", "`": "ˋ", "@": "@\u2060"}
)
_OUTER_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_EMOJI_COLON = re.compile(r":(?=[\w+'-]+:)")
_CUT_ENTITY = re.compile(r"&[a-z]*$")
_JOINERS = "\u200c\u200d"
"""Zero-width, but part of how Persian, Hindi and emoji are written."""


class SlackError(RagmetricsError):
    """Slack did not confirm a message; `transient` says if the next try may go through."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


def compose(
    manifest: Manifest,
    findings: Sequence[Finding],
    *,
    dashboard: str | None,
    redact: bool,
    run_url: str | None = None,
) -> Message | None:
    """The message of a night; None when no finding has a transition.

    `dashboard` and `run_url` become buttons where a browser can open them, else text.
    `redact` shows row ids in place of questions.
    """
    fired = sorted((f for f in findings if f.transition == "fired"), key=_loudest_first)
    reminded = [f for f in findings if f.transition == "reminded"]
    resolved = [f for f in findings if f.transition == "resolved"]
    if not (fired or reminded or resolved):
        return None
    still = [f for f in findings if f.state == "firing" and f.transition != "fired"]
    metrics = {f.metric: None for f in fired + reminded if f.kind == "metric" and f.metric}
    title = _title(fired, reminded, resolved)
    numbers = f": {_change(fired[0])}" if len(fired) == 1 and fired[0].mean is not None else ""
    night = f" ({manifest.dataset}, night of {manifest.date})"
    blocks = [
        {"type": "header", "text": _plain(title)},
        _context(_night(manifest)),
        *map(_section, fired[:SHOWN]),
        *_list("Fired too", map(_line, fired[SHOWN:])),
        *_list("Still firing", map(_line, still)),
        *_list("Back to normal", (_line(f) for f in resolved if f.level == "ok")),
        *_list("Closed", (_line(f) for f in resolved if f.level != "ok")),
        *_list("Lowest segments", _segments(manifest, list(metrics))),
        *_list("Lowest rows" if redact else "Worst questions", _worst(manifest, metrics, redact)),
        *_links({"dashboard": dashboard, "run": run_url}),
        _context(f"Judge: {escape(manifest.judge.name, 80)}. {escape(manifest.judge.note, 400)}"),
    ]
    return Message(text=escape(title + numbers + night, 300), blocks=blocks)


def send(
    message: Message, webhook: SecretStr, *, timeout: int = 10, retries: int = 1, pause: float = 1
) -> None:
    """Post to an incoming webhook; return only when Slack confirmed it.

    `timeout` (seconds) bounds one attempt. Rate limits, server errors and lost connections are
    tried again `retries` times, after `pause` seconds or what a rate limit asks for. Raises
    SlackError otherwise: transient when a later run may get through. The webhook is in no
    error text and no log.
    """
    url = webhook.get_secret_value()
    interval = FixedValueRetryIntervalCalculator(pause)
    try:
        path = urlsplit(url).path
        response = WebhookClient(
            url,
            timeout=timeout,
            logger=logging.Logger("silent", logging.CRITICAL + 1),  # its own would log the URL
            retry_handlers=[
                _RateLimit(retries),
                ServerErrorRetryHandler(retries, interval),
                ConnectionErrorRetryHandler(retries, interval),
            ],
        ).send(text=message.text, blocks=message.blocks, unfurl_links=False)
    except (InvalidURL, SlackClientError, ValueError, LookupError) as error:
        raise SlackError(f"the Slack webhook cannot be used: {type(error).__name__}") from None
    except (OSError, HTTPException) as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise SlackError(f"Slack cannot be reached: {reason}", transient=True) from None
    if response.status_code == 200 and response.body.strip() == "ok":
        return
    answer = response.body.replace(url, "***").replace(path if len(path) > 1 else url, "***")
    raise SlackError(
        f"Slack did not take the message: status {response.status_code}, {clean(answer, 200)!r}",
        transient=response.status_code == 429 or response.status_code >= 500,
    )


class _RateLimit(RateLimitErrorRetryHandler):
    """Waits as long as a rate limit asks for, unless that is too long for a nightly."""

    def _can_retry(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        if response is None or response.status_code != 429:
            return False
        headers = {name.lower(): values[0] for name, values in response.headers.items()}
        wait = headers.get("retry-after", "1")
        return wait.isdecimal() and int(wait) <= LONGEST_WAIT


def clean(text: str, limit: int) -> str:
    """One line of at most `limit` visible characters: no controls, no bidi marks."""
    spaced = (" " if unicodedata.category(c) == "Cc" else c for c in text[: 8 * limit])
    kept = (c for c in spaced if c in _JOINERS or unicodedata.category(c) not in ("Cf", "Cs"))
    line = " ".join("".join(kept).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def escape(text: str, limit: int) -> str:
    """`clean` text for mrkdwn, where nothing of it is a mention, a link, an emoji or a style.

    Slack has no escape for its style marks, so they are replaced by look-alikes. Underscores
    inside words stay: they are no style there.
    """
    line = _EMOJI_COLON.sub("∶", _OUTER_UNDERSCORE.sub("ˍ", clean(text, limit)))
    safe = line.replace("://", ":\u2060//").translate(_SAFE)
    return safe if len(safe) <= limit else _CUT_ENTITY.sub("", safe[: limit - 1]) + "…"


def _loudest_first(finding: Finding) -> tuple[bool, bool]:
    return finding.severity != "critical", finding.segment is not None


def _title(
    fired: Sequence[Finding], reminded: Sequence[Finding], resolved: Sequence[Finding]
) -> str:
    if fired:
        sign = {"critical": "🔴 Critical", "warning": "🟡 Warning"}[fired[0].severity]
    else:
        sign = "🔔 Reminder" if reminded else "🟢 Resolved"
    groups: dict[str, list[Finding]] = {}
    for finding in fired or reminded or resolved:
        groups.setdefault(_what(finding), []).append(finding)
    whats = [_where(what, group) for what, group in groups.items()]
    more = f" and {len(whats) - 2} more" if len(whats) > 2 else ""
    return clean(f"{sign}: {', '.join(whats[:2])}{more}", 150)


def _what(finding: Finding) -> str:
    """What happened, in two or three words."""
    metric = finding.metric or "rows"
    if finding.kind == "quarantine":
        return "rows in quarantine"
    if finding.kind == "judge_failures":
        return f"judge failures in {metric}"
    if finding.kind == "no_data":
        return "broken logs" if finding.level == "breach" else "no data"
    if finding.state != "firing":
        return metric
    if finding.level == "no_data":
        return f"no data for {metric}"
    return f"{metric} {'is low' if finding.baseline is None else 'fell'}"


def _where(what: str, group: Sequence[Finding]) -> str:
    if any(finding.segment is None for finding in group):
        return what
    return f"{what} in {'a segment' if len(group) == 1 else f'{len(group)} segments'}"


def _change(finding: Finding) -> str:
    before = "" if finding.baseline is None else f"{finding.baseline:.3f} → "
    return f"{before}{finding.mean:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"


def _section(finding: Finding) -> Block:
    """One fired finding with all its numbers, or in words where it has none."""
    segment = f" in {escape(str(finding.segment), 80)}" if finding.segment else ""
    title = f"*{escape(_what(finding), 80)}*{segment}"
    if finding.mean is None or finding.level == "no_data":
        since = f"\nsince {finding.since}" if finding.since else ""
        return _text(f"{title}\n{escape(finding.message, 400)}{since}")
    against = f" against {escape(finding.baseline_label, 60)}" if finding.baseline_label else ""
    fields = {
        "Mean": _change(finding) + _interval(finding.low, finding.high) + against,
        "Drop": ""
        if finding.drop is None
        else f"{finding.drop:.3f}{_interval(finding.drop_low, finding.drop_high)}",
        "Rows": f"{finding.n:,} rows, {finding.questions:,} questions",
        "Rule": escape(finding.rule, 120),
        "Since": str(finding.since or ""),
    }
    shown = [_mrkdwn(f"*{label}*\n{value}") for label, value in fields.items() if value]
    return {**_text(title), "fields": shown}


def _line(finding: Finding) -> str:
    was = "was firing since" if finding.transition == "resolved" else "firing since"
    since = f", {was} {finding.since}" if finding.since else ""
    return escape(finding.message, 250) + since


def _night(manifest: Manifest) -> str:
    source = manifest.source
    builds = sorted(source.index_builds.items(), key=lambda build: -build[1])
    named = [f"{escape(name, 60)} ({rows:,} rows)" for name, rows in builds[:3]]
    more = f" and {len(builds) - 3} more" if len(builds) > 3 else ""
    return ", ".join(
        [
            f"{escape(manifest.dataset, 80)}, night of {manifest.date}",
            f"{source.rows:,} rows",
            *([f"{source.quarantined:,} in quarantine"] if source.quarantined else []),
            *([f"index build {', '.join(named)}{more}"] if named else []),
        ]
    )


def _segments(manifest: Manifest, metrics: Sequence[str]) -> list[str]:
    lines = []
    for metric in metrics[:3]:
        whole = manifest.summary(metric)
        scored = [
            (s.mean, s) for s in manifest.segments if s.metric == metric and s.mean is not None
        ]
        for mean, summary in sorted(scored, key=lambda pair: pair[0])[:3]:
            where = f"{escape(metric, 60)}, {escape(str(summary.segment), 80)}"
            overall = f"; all rows {whole.mean:.3f}" if whole and whole.mean is not None else ""
            lines.append(f"{where}: {mean:.3f} ({summary.scored:,} rows{overall})")
    return lines


def _worst(manifest: Manifest, metrics: Iterable[str], redact: bool) -> list[str]:
    rows = sorted((r for r in manifest.worst if r.metric in metrics), key=lambda row: row.value)
    once = {row.id: row for row in reversed(rows)}
    lines = []
    for row in sorted(once.values(), key=lambda row: row.value)[:3]:
        question = "" if redact else f"“{escape(row.user_input, 150)}” "
        lines.append(f"{row.value:.3f} {escape(row.metric, 60)} {question}({escape(row.id, 60)})")
    return lines


def _links(links: dict[str, str | None]) -> list[Block]:
    """Buttons for web addresses; other places as plain text to copy, as no browser opens them."""
    buttons, texts = [], []
    for name, target in links.items():
        if target and re.fullmatch(r"https?://\S{1,2900}", target):
            buttons.append({"type": "button", "text": _plain(f"Open the {name}"), "url": target})
        elif target:
            texts.append(_plain(clean(f"{name.capitalize()}: {target}", 500)))
    return [
        *([{"type": "actions", "elements": buttons}] if buttons else []),
        *([{"type": "context", "elements": texts}] if texts else []),
    ]


def _list(title: str, lines: Iterable[str]) -> list[Block]:
    """A section of bullets, cut with a count of the rest; nothing where there is no line."""
    lines = list(lines)
    if not lines:
        return []
    shown = f"*{title}*"
    count = 0
    for line in lines[:LISTED]:
        if len(shown) + len(line) > LIST_LENGTH:
            break
        shown += f"\n• {line}"
        count += 1
    more = f"\nand {len(lines) - count} more" if count < len(lines) else ""
    return [_text(shown + more)]


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _text(text: str) -> Block:
    return {"type": "section", "text": _mrkdwn(text)}


def _context(text: str) -> Block:
    return {"type": "context", "elements": [_mrkdwn(text)]}


__all__ = ["Message", "SlackError", "clean", "compose", "escape", "send"]
