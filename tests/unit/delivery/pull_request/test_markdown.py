"""What a pull request shows of a comparison: its conclusion, and texts that stay texts."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.delivery import comparison_result, drop_conclusion, gate_result
from ragmetrics.delivery.pull_request.markdown import COMMENT_LIMIT
from ragmetrics.messages import with_display_names
from ragmetrics.messages.formats.pull_request import quoted as code
from ragmetrics.metrics import display_name
from ragmetrics.records import (
    ComparedSide,
    Comparison,
    Gate,
    JudgeInfo,
    MetricChange,
    MovedQuestion,
    Segment,
)
from tests.fakes.gated import gate, incomparable, promoted

HOSTILE = (
    "@everyone <img src=x onerror=alert(1)> | `x` [a](javascript:1) #1 **b** https://evil.example"
)


def change(low: float, high: float, **more: Any) -> MetricChange:
    """A change with its interval."""
    middle = (low + high) / 2
    numbers = {"mean_a": 0.8, "mean_b": 0.8 + middle, "difference": middle, "questions": 50}
    p = 0.001 if high < 0 or low > 0 else 0.5
    found = {"metric": "context_relevance", "low": low, "high": high, "p_adjusted": p}
    return MetricChange(**{**numbers, **found, **more})


def comparison(*changes: MetricChange, name: str = "a.jsonl") -> Comparison:
    """A comparison with these changes."""
    side = ComparedSide(
        name=name, dataset="d", judge=JudgeInfo(name="lexical", fingerprint="f"), rows=50
    )
    return Comparison(a=side, b=side, metrics=list(changes))


# What is concluded


@pytest.mark.parametrize(
    ("low", "high", "conclusion"),
    [
        (-0.2, -0.08, "failed"),
        (-0.04, 0.04, "passed"),
        (-0.04, -0.01, "passed"),  # worse, and surely by less than the limit
        (-0.2, 0.1, "inconclusive"),
        (-0.09, -0.001, "inconclusive"),
    ],
)
def test_a_drop_fails_passes_or_is_inconclusive(low: float, high: float, conclusion: str) -> None:
    """By its interval and the limit of 0.05."""
    assert drop_conclusion(change(low, high), 0.05) == conclusion


def test_where_lower_is_better_a_rise_is_a_drop() -> None:
    """The same interval, the other way round."""
    assert drop_conclusion(change(0.08, 0.2, higher_is_better=False), 0.05) == "failed"
    assert drop_conclusion(change(-0.2, -0.08, higher_is_better=False), 0.05) == "passed"


def test_what_could_not_be_compared_is_inconclusive() -> None:
    """Two judges, say; the reason is in the report."""
    other = MetricChange(metric="context_recall", reason="scored by two judges")
    result = comparison_result(comparison(change(-0.01, 0.01), other), 0.05)
    assert result.conclusion == "inconclusive"
    assert "scored by two judges" in unescape(result.markdown)


def test_a_comparison_of_no_metric_is_inconclusive() -> None:
    """A check that compares nothing does not pass."""
    assert comparison_result(comparison(), 0.05).conclusion == "inconclusive"


@given(
    st.floats(-1, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.booleans(),
)
def test_a_higher_limit_is_never_stricter(
    middle: float, width: float, limit: float, more: float, higher_is_better: bool
) -> None:
    """For any interval: what passes still passes, and what did not fail does not fail."""
    one = change(middle - width, middle + width, higher_is_better=higher_is_better)
    before, after = drop_conclusion(one, limit), drop_conclusion(one, limit + more)
    order = ("failed", "inconclusive", "passed")
    assert order.index(after) >= order.index(before)


@pytest.mark.parametrize(
    ("made", "conclusion"),
    [(promoted(), "passed"), (gate(), "failed"), (incomparable(), "inconclusive")],
)
def test_a_gate_is_shown_by_its_verdict(made: Gate, conclusion: str) -> None:
    """Its reasons, and the change of each metric."""
    result = gate_result(made)
    assert result.conclusion == conclusion
    shown = unescape(result.markdown)
    names = {verdict.metric: display_name(verdict.metric) for verdict in made.metrics}
    assert all(name in shown for name in names.values())
    assert all(with_display_names(reason, names)[1:] in shown for reason in made.reasons)


def test_questions_that_got_worse_follow_the_metric() -> None:
    """Where lower is better, they are those whose value rose."""
    moved = [
        MovedQuestion(metric="noise", user_input=text, id=text, value_a=a, value_b=b)
        for text, a, b in (("rose", 0.1, 0.9), ("sank", 0.9, 0.1))
    ]
    found = comparison(change(0.1, 0.3, metric="noise", higher_is_better=False))
    markdown = comparison_result(found.model_copy(update={"moved": moved}), 0.05).markdown
    assert ("rose" in markdown, "sank" in markdown) == (True, False)


# What is written


def test_a_text_of_a_log_stays_text() -> None:
    """No sign of it is one of Markdown or HTML, and nothing in inline code is a mention."""
    shown = code(HOSTILE)
    inside = shown.removeprefix("<code>").removesuffix("</code>").replace("<!---->", "")
    assert not re.search(r"[^\w &#;]", inside)
    assert "&#64;<!---->" in shown  # GitHub makes links of addresses in HTML code too
    assert unescape(inside) == HOSTILE


@given(st.text(max_size=300))
def test_no_text_can_leave_its_code(text: str) -> None:
    """For any text: a line without signs but references."""
    inside = code(text).removeprefix("<code>").removesuffix("</code>").replace("<!---->", "")
    assert "\n" not in inside
    assert all(one.isalnum() or one in " &#;" for one in inside)


def test_a_hostile_name_cannot_write_into_the_report() -> None:
    """The names of logs and the reasons of metrics are hostile as well."""
    hostile = MetricChange(metric="m", reason=f"\n\n# Passed\n{HOSTILE}")
    markdown = comparison_result(comparison(hostile, name=HOSTILE), 0.05).markdown
    assert "# Passed" not in markdown
    assert_in_code_alone(markdown)


def assert_in_code_alone(markdown: str) -> None:
    """Outside code the mention would be one, also as a character reference."""
    assert "<img" not in markdown
    assert "everyone" in markdown
    assert "everyone" not in re.sub(r"<code>.*?</code>", "", markdown)


def test_a_hostile_segment_cannot_write_into_the_heading() -> None:
    """The worst segment is named at the top: its value is a tag of the log."""
    segment = Segment(tag="team", value=HOSTILE)
    found = comparison(change(-0.3, -0.1, segment=segment))
    assert_in_code_alone(comparison_result(found, 0.05).markdown)


def test_a_hostile_build_cannot_write_into_the_heading() -> None:
    """Names of builds and all other texts of a gate."""
    assert_in_code_alone(gate_result(gate(build=HOSTILE, say=HOSTILE, serving=HOSTILE)).markdown)


def test_a_long_report_is_cut_between_its_parts() -> None:
    """GitHub refuses more than 65,536 characters."""
    many = [change(-0.3, -0.1, metric=f"metric_{n}") for n in range(3_000)]
    markdown = comparison_result(comparison(*many), 0.05).markdown
    assert len(markdown) <= COMMENT_LIMIT + 100
    assert "too long" in markdown
