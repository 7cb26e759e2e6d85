"""The text of a first settings file, with a comment on each choice."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import yaml

from ragmetrics.config import Settings, is_lexical
from ragmetrics.metrics import find_metric
from ragmetrics.pipeline.init.rule_limits import RuleLimit
from ragmetrics.rules import blind_text

_TEXT = "tag:yaml.org,2002:str"
_WIDTH = 92
"""Characters of a comment's line."""


class _Dumper(yaml.SafeDumper):
    """Quotes texts, whatever style others registered for all dumpers, as Prefect's command does."""


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(_TEXT, text))

_ALERTS = re.compile(r"^alerts:[ \t]*(?:#.*)?\n(?P<indent>[ \t]+)(?=\S)", re.M)
"""The key `alerts` of a file, up to the first of its keys."""
_BRACE = re.compile(r"^alerts:[ \t]*\{", re.M)
"""The key `alerts` with its keys in braces, up to the first of them."""
_EMPTY = re.compile(r"^alerts:[ \t]*(?:null|~)?[ \t]*(?:#.*)?(?:\n|\Z)", re.M)
"""The key `alerts` without a value."""


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
    split: bool
    """True where the log is one export of many days."""
    rows: int
    nights: int
    health: Sequence[str]
    """The metrics of retrieval's health that the log can feed."""
    references: bool
    """True where rows of the log have right answers."""


def settings_text(first: FirstSettings) -> str:
    """The file's text. All values are quoted as YAML needs it; names come from logs."""
    head = "# Written by `ragmetrics init`. docs/reference/settings.md has all settings."
    return "\n".join([head, *_parts(first, {})]) + "\n"


def completed_text(before: str, known: Mapping[str, Any], first: FirstSettings) -> str:
    """The text of a file that exists, with what it lacks at its end. Its lines stay as they are.

    Rules become the first key of `alerts:`, where it is a key of a line of its own without rules.
    """
    text = before if before.endswith("\n") or not before else f"{before}\n"
    alerts = known.get("alerts") or {}
    if "alerts" in known and "rules" not in alerts and first.limits:
        text = _with_rules(text, _alerts(first), is_empty=known["alerts"] is None)
    if parts := [part for part in _parts(first, known) if part]:
        text += "\n".join(["", "# Added by `ragmetrics init`.", *parts]) + "\n"
    return text


def _with_rules(text: str, lines: Sequence[str], *, is_empty: bool) -> str:
    """The text with the lines of rules as the first key of its `alerts:`."""
    rules = [line for line in lines if line.startswith("  ")]
    block = "".join(f"{line}\n" for line in rules)
    if is_empty:
        return _EMPTY.sub(lambda _: f"alerts:\n{block}", text, count=1)
    items = "".join(
        f"{line.replace('- {', '{', 1)}{'' if '#' in line else ','}\n" for line in rules[1:]
    )
    text = _BRACE.sub(lambda _: f"alerts: {{\n  rules: [\n{items}  ],\n  ", text, count=1)
    return _ALERTS.sub(
        lambda place: (
            place[0].removesuffix(place["indent"])
            + "".join(f"{place['indent']}{line.removeprefix('  ')}\n" for line in rules)
            + place["indent"]
        ),
        text,
        count=1,
    )


def rules_line(first: FirstSettings) -> str:
    """The rules in one line, for a file that has to be completed by hand."""
    rules = (line.partition("- ")[2] for line in _alerts(first) if line.startswith("    - "))
    return f"rules: [{', '.join(rules)}]"


def _parts(first: FirstSettings, known: Collection[str]) -> list[str]:
    """The lines of all keys that are not `known`."""
    judged = {"judge", "judges"} & {*known}
    dataset = _line("dataset", first.dataset, "name of what is evaluated; part of every alert")
    store = _line("store", first.store, "scores, replies, dashboard, alerts")
    parts = [] if "dataset" in known else [dataset]
    parts += _logs(first, known)
    parts += [] if "store" in known else [store]
    if first.health and "metrics" not in known:
        said = "those of a judge, and the health of retrieval, which costs nothing"
        parts.append(
            _line("metrics", [*Settings.model_fields["metrics"].default, *first.health], said)
        )
    parts += [] if known else [_golden(first.references)]
    parts += [] if judged else ["", *_judge(first.judge)]
    return parts + ([] if "alerts" in known else ["", *_alerts(first)])


def _line(key: str, value: Any, comment: str = "") -> str:
    text = yaml.dump({key: value}, Dumper=_Dumper, width=10_000, allow_unicode=True).rstrip("\n")
    return f"{text}    # {comment}" if comment else text


def _golden(references: bool) -> str:
    use = "fills in what the log lacks" if references else "context_recall needs them"
    return f"# golden: golden.jsonl    # right answers by question; {use}"


def _logs(first: FirstSettings, known: Collection[str]) -> list[str]:
    comment = "every night reads this; write {date} where the name of a night's log has its date"
    if first.dated:
        comment = "{date} is the night, such as 2026-11-19"
    elif first.split:
        comment = "one export of many days"
    lines = [] if "logs" in known else [_line("logs", first.logs, comment)]
    if first.split and "split_nights" not in known:
        lines.append(_line("split_nights", True, "a night has the rows whose time is on its day"))
    for key, value in first.layout.items():
        if key == "columns" and key not in known:
            lines.append("# For each field of a row, the key of the log that has it.")
        lines += [] if key in known else [_line(key, value)]
    return lines


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
    share = "" if limit.max_share is None else f", max_share: {limit.max_share:g}"
    limits = f"max_drop: {limit.max_drop:g}{share}"
    least = f"min: {limit.least:g}, " if limit.least and lexical else ""
    severity = "" if limit.severity == "critical" else f", severity: {limit.severity}"
    metric = find_metric(limit.metric)
    better = metric.higher_is_better if metric else True
    change = {True: "drop", False: "rise", None: "change"}[better]
    sees = (
        f"Mean now {limit.mean:.2g}. A {change} of {limit.detects:.2g} is found on the first night "
        f"in 80% of cases; {limit.false_alarms_text}."
        if limit.sees
        else f"{blind_text(limit.metric, limit.mean, limit.detects, able)}."
    )
    return [
        *(f"    # {line}" for line in wrap(sees, _WIDTH)),
        f"    - {{metric: {limit.metric}, {least}{limits}{severity}}}",
    ]
