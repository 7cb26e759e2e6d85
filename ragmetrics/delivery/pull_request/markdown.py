"""Renders a comparison or a gate as Markdown for a pull request.

Texts of logs are hostile: they are written as inline code in which each sign is a character
reference. So they can start no Markdown and no HTML, and neither GitHub nor GitLab reads mentions,
links or references to issues in code. Outside code a reference does not help: mentions and links
are looked for after references are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragmetrics.delivery.pull_request.check_result import CheckResult, Conclusion, drop_conclusion
from ragmetrics.records import Comparison, Gate, LostPassages, MetricChange
from ragmetrics.text import clean

COMMENT_LIMIT = 60_000
"""Most characters of a report; GitHub takes 65,536 in a comment."""
_MOST_QUESTIONS, _MOST_SEGMENTS = 5, 10
_TEXT = 200
_AT = f"&#{ord('@')};"
_SIGNS = {"passed": "✅", "failed": "❌", "inconclusive": "⚠️"}
_GATE: dict[str, Conclusion] = {
    "promote": "passed",
    "hold": "failed",
    "inconclusive": "inconclusive",
}


def comparison_result(found: Comparison, max_drop: float, link: str = "") -> CheckResult:
    """The check of a comparison: failed if a metric, or one in a segment, dropped significantly by
    more than `max_drop`; inconclusive if some metric may have, or if there is no metric at all.
    """
    by_metric = {one.metric: drop_conclusion(one, max_drop) for one in found.metrics}
    lower_is_better = {one.metric for one in found.metrics if not one.higher_is_better}
    worse = found.significantly_worse(max_drop)
    if worse:
        conclusion: Conclusion = "failed"
        most = max(worse, key=lambda one: one.loss or 0.0)
        where = f" of {most.segment}" if most.segment else ""
        said = f"{most.metric}{where} got worse by {most.loss or 0.0:.3f}, more than {max_drop:g}"
        said += f" (and {len(worse) - 1} more)" if len(worse) > 1 else ""
    elif open_ones := [name for name, one in by_metric.items() if one == "inconclusive"]:
        conclusion = "inconclusive"
        said = f"too few questions to rule out a drop of {max_drop:g}: {', '.join(open_ones)}"
    elif not found.metrics:
        conclusion, said = "inconclusive", "there is no metric to compare"
    else:
        conclusion, said = "passed", f"no metric got worse by more than {max_drop:g}"
    title = clean(f"Retrieval {conclusion}: {said}", 300)
    parts = [
        *_head(conclusion, f"Retrieval {conclusion}", said, link),
        f"A: {code(found.a.name)}, {found.a.rows:,} rows · "
        f"B: {code(found.b.name)}, {found.b.rows:,} rows",
        _table(
            ("", "metric", "A", "B", "B - A [95%]", "p", "questions"),
            [_change(one, by_metric[one.metric]) for one in found.metrics],
        ),
        *_lost(found.lost_passages),
        *_segments(worse),
        *_questions(
            f"{code(one.user_input)}: {code(one.metric)} {one.value_a:.3f} → {one.value_b:.3f}"
            for one in found.moved
            if (one.value_b < one.value_a) == (one.metric not in lower_is_better)
        ),
        *(f"> {code(notice, 300)}" for notice in (*found.problems, *found.notices)),
        f"<sub>Judge: {code(found.b.judge.name)}. p is adjusted for all changes.</sub>",
    ]
    return CheckResult(conclusion, title, _joined(parts), link if is_web_address(link) else "")


def gate_result(gate: Gate, link: str = "") -> CheckResult:
    """The check of a gate: promote is passed, hold is failed."""
    conclusion = _GATE[gate.verdict]
    against = f" against {gate.serving}" if gate.serving else ""
    said = f"Index build {gate.build}{against}: {gate.verdict}"
    title = clean(said, 300)
    rows = [
        (
            _SIGNS[_GATE[one.verdict]],
            code(one.metric),
            _number(one.before),
            _number(one.after),
            f"{_signed(_minus(one.drop))} [{_signed(_minus(one.high))}, {_signed(_minus(one.low))}]"
            if one.drop is not None
            else "–",
            f"{one.max_drop:g}",
            f"{one.questions:,}",
        )
        for one in gate.metrics
    ]
    parts = [
        *_head(conclusion, f"Gate: {gate.verdict}", said, link),
        *(f"- {code(reason, 500)}" for reason in gate.reasons),
        _table(("", "metric", "before", "after", "change [95%]", "limit", "questions"), rows),
        *_lost(gate.lost_passages),
        *_questions(
            f"{code(one.user_input)}: {code(one.metric)} {one.before:.3f} → {one.after:.3f}"
            for one in gate.fallen
        ),
        *(f"> {code(problem, 300)}" for problem in gate.problems),
        f"<sub>Judge: {code(gate.judge.name)}.</sub>",
    ]
    return CheckResult(conclusion, title, _joined(parts), link if is_web_address(link) else "")


def code(text: str, limit: int = _TEXT) -> str:
    """A text of a log as inline code, each sign of it as a character reference.

    An empty comment follows each `@`: GitHub makes links of e-mail addresses in HTML code too.
    """
    line = clean(text, limit)
    safe = (one if one.isalnum() or one == " " else f"&#{ord(one)};" for one in line)
    shown = "".join(safe).replace(_AT, f"{_AT}<!---->")
    return f"<code>{shown}</code>" if line else ""


def _head(conclusion: Conclusion, heading: str, said: str, link: str) -> list[str]:
    """The heading, which is ours, and one sentence with names of the log, as code."""
    lines = [f"## {_SIGNS[conclusion]} {heading}", code(said, 300)]
    if is_web_address(link):
        lines.append(f"[The whole comparison]({link})")
    return lines


def is_web_address(link: str) -> bool:
    """Whether a text is an address that can stand in a link of Markdown as it is."""
    return link.startswith(("https://", "http://")) and not set(link) & set(" <>()\"'\n\r")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _change(one: MetricChange, conclusion: Conclusion) -> tuple[str, ...]:
    if one.difference is None:
        why = code(one.reason, 300)
        return (
            _SIGNS["inconclusive"],
            code(one.metric),
            "–",
            "–",
            f"not compared: {why}",
            "–",
            "–",
        )
    return (
        _SIGNS[conclusion],
        code(one.metric),
        _number(one.mean_a),
        _number(one.mean_b),
        f"{_signed(one.difference)} [{_signed(one.low)}, {_signed(one.high)}]",
        _chance(one.p_adjusted),
        f"{one.questions:,}",
    )


def _lost(lost: LostPassages | None) -> list[str]:
    return [f"**Lost passages:** {code(lost.sentence, 600)}"] if lost and lost.sentence else []


def _segments(worse: Iterable[MetricChange]) -> list[str]:
    fell = [one for one in worse if one.segment]
    if not fell:
        return []
    lines = [
        f"- {code(str(one.segment))}: {code(one.metric)} {_signed(one.difference)}"
        f" [{_signed(one.low)}, {_signed(one.high)}]"
        for one in fell[:_MOST_SEGMENTS]
    ]
    return ["**Where it fell:**\n" + "\n".join(lines)]


def _questions(lines: Iterable[str]) -> list[str]:
    shown = list(dict.fromkeys(lines))[:_MOST_QUESTIONS]
    if not shown:
        return []
    listed = "\n".join(f"- {line}" for line in shown)
    return [f"<details><summary>Questions that fell most</summary>\n\n{listed}\n\n</details>"]


def _joined(parts: Iterable[str]) -> str:
    """The parts as one text; parts that would make it too long are left out."""
    text = ""
    for part in filter(None, parts):
        if len(text) + len(part) > COMMENT_LIMIT:
            return f"{text}\n… the rest is too long for a comment.\n"
        text += f"{part}\n\n"
    return text


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _chance(p: float | None) -> str:
    if p is None:
        return "–"
    return "&lt;0.001" if p < 0.001 else f"{p:.3f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 3) + 0.0:+.3f}"


def _minus(value: float | None) -> float | None:
    return None if value is None else -value
