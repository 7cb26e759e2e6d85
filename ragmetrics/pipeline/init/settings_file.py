"""The text of a first settings file, with a comment on each choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import yaml

from ragmetrics.config import is_lexical
from ragmetrics.pipeline.init.rule_limits import RuleLimit
from ragmetrics.rules import blind_text

_WIDTH = 92
"""Characters of a comment's line."""


@dataclass(frozen=True)
class FirstSettings:
    """What the file says."""

    dataset: str
    logs: str
    store: str
    layout: Mapping[str, Any]
    """`preset`, `columns` and `context_separator`."""
    judge: str
    limits: Sequence[RuleLimit]
    dated: bool
    """True where the location of the logs has a date."""
    rows: int
    nights: int
    references: bool
    """True where rows of the log have right answers."""


def settings_text(first: FirstSettings) -> str:
    """The file's text. All values are quoted as YAML needs it; names come from logs."""
    parts = [
        "# Written by `ragmetrics init`. docs/reference/settings.md has all settings.",
        _line("dataset", first.dataset, "name of what is evaluated; part of every alert"),
        *_logs(first),
        _line("store", first.store, "scores, replies, dashboard, alerts"),
        _golden(first.references),
        "",
        *_judge(first.judge),
        "",
        *_alerts(first),
    ]
    return "\n".join(parts) + "\n"


def _line(key: str, value: Any, comment: str = "") -> str:
    text = yaml.safe_dump({key: value}, width=10_000, allow_unicode=True).rstrip("\n")
    return f"{text}    # {comment}" if comment else text


def _golden(references: bool) -> str:
    use = "fills in what the log lacks" if references else "context_recall needs them"
    return f"# golden: golden.jsonl    # right answers by question; {use}"


def _logs(first: FirstSettings) -> list[str]:
    comment = (
        "{date} is the night, such as 2026-11-19"
        if first.dated
        else "every night reads this; write {date} where the name of a night's log has its date"
    )
    lines = [_line("logs", first.logs, comment)]
    if "columns" in first.layout:
        lines.append("# For each field of a row, the key of the log that has it.")
    return [*lines, *(_line(key, value) for key, value in first.layout.items())]


def _judge(name: str) -> list[str]:
    if is_lexical(name):
        return [
            "# The lexical judge compares words: free, local, a first impression. An LLM judges",
            "# meaning: `name: openai` with the key in OPENAI_API_KEY, and base_url for others.",
            "judge: lexical",
        ]
    return [
        "# Any OpenAI-compatible endpoint. The key is read from OPENAI_API_KEY.",
        "judge:",
        f"  name: {name}",
        "  model: gpt-6-luna",
        "  # base_url: https://llm.example.com/v1",
        "# sample: {rows: 500}    # judge a part of the rows; the free judge scores all of them",
    ]


def _alerts(first: FirstSettings) -> list[str]:
    head = "# Messages go to Slack where SLACK_WEBHOOK_URL is set."
    if not first.limits:
        return [head, "# The sample is too small to measure its variance: the default rules apply."]
    rows = f"{first.rows:,} rows" + (f" of {first.nights} nights" if first.nights > 1 else "")
    lines = [
        head,
        f"# The limits follow from the variance of {rows}, scored by the lexical judge.",
        "# A mean may fall by max_drop, and by no more than this share of the seven nights before.",
        "alerts:",
        "  rules:",
    ]
    able = [limit.metric for limit in first.limits if limit.sees]
    for limit in first.limits:
        lines += _rule(limit, is_lexical(first.judge), able)
    return lines


def _rule(limit: RuleLimit, lexical: bool, able: Sequence[str]) -> list[str]:
    """One rule. Levels differ between judges, so `min` stands only for the judge that scored."""
    limits = f"max_drop: {limit.max_drop:g}, max_share: {limit.max_share:g}"
    least = f"min: {limit.least:g}, " if limit.least and lexical else ""
    severity = "" if limit.severity == "critical" else f", severity: {limit.severity}"
    sees = (
        f"Mean now {limit.mean:.2g}. A drop of {limit.detects:.2g} is found on the first night in "
        f"80% of cases; {limit.false_alarms_text}."
        if limit.sees
        else f"{blind_text(limit.metric, limit.mean, limit.detects, able)}."
    )
    return [
        *(f"    # {line}" for line in wrap(sees, _WIDTH)),
        f"    - {{metric: {limit.metric}, {least}{limits}{severity}}}",
    ]
