"""The Slack message: what it says, and what it never lets through."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
import slackblocks
from hypothesis import given, settings, strategies as st

from ragmetrics.messages import FORMATS, Message, compose
from ragmetrics.messages.blocks import bullets
from ragmetrics.records import (
    BudgetReport,
    ComparedMeans,
    Finding,
    JudgeInfo,
    Manifest,
    SampledMean,
    Segment,
    Source,
    SpendLimits,
    Summary,
    WorstRow,
)
from ragmetrics.records.judging import Usage
from tests.fakes.examples import examples
from tests.fakes.formats import slack_blocks, slack_json, slack_text, terminal_text
from tests.fakes.nights import fall

NIGHT = date(2026, 11, 19)
BILLING = Segment(tag="section", value="billing")
HOSTILE = [
    "<!channel> wake up",
    "<script>alert(1)</script>",
    "x" * 1_000_000,
    "```` *bold* _it_ ~no~ `code` ```",
    "null \x00 and escape \x1b[31m",
    "\u202eevil\u2066 bidi\u200b",
    "@here @channel #general https://evil.example :fire: <https://evil.example|ok>",
    "> quote\n> quote",
    "&amp; &lt;!here&gt;",
    "\ud800 lone surrogate",
    "",
]


def a_finding(**update: Any) -> Finding:
    """A drop of recall that fired."""
    values: dict[str, Any] = {
        "key": "docs/context_recall/all/drop",
        "kind": "metric",
        "level": "breach",
        "rule": "context_recall: drop of more than 0.05 against the 7 nights before",
        "message": "context_recall fell from 0.821 to 0.714",
        "metric": "context_recall",
        "mean": 0.714,
        "low": 0.68,
        "high": 0.748,
        "n": 1_240,
        "questions": 880,
        "baseline": 0.821,
        "baseline_label": "7 nights before",
        "means": ComparedMeans(before=0.823, now=0.716, questions=840, paired=True),
        "drop": 0.107,
        "drop_low": 0.071,
        "drop_high": 0.143,
        "limit": 0.05,
        "state": "firing",
        "transition": "fired",
        "since": NIGHT,
    }
    return Finding(**{**values, **update})


def a_summary(mean: float | None, segment: Segment | None = None, n: int = 300) -> Summary:
    """Recall over all rows or a segment."""
    return Summary(
        metric="context_recall",
        segment=segment,
        mean=mean,
        low=mean,
        high=mean,
        scored=n,
        questions=n,
        status={},
        fingerprint="f",
    )


def a_manifest(hostile: str | None = None, **update: Any) -> Manifest:
    """A night with segments and worst rows; `hostile` stands in for all text of users."""
    say = (lambda text: hostile) if hostile is not None else (lambda text: text)
    values = ["billing", "returns", "api", "setup"]
    base = Manifest(
        dataset="docs",
        date=NIGHT,
        run="r1",
        started_at=datetime(2026, 11, 20, 2, tzinfo=UTC),
        finished_at=datetime(2026, 11, 20, 3, tzinfo=UTC),
        ragmetrics="0.1.0",
        source=Source(
            logs="logs", files=1, rows=1_240, quarantined=3, index_builds={say("idx-42"): 1_240}
        ),
        judge=JudgeInfo(name=say("lexical"), fingerprint="f", note=say("A baseline.")),
        shards=1,
        metrics=[a_summary(0.714, n=1_240)],
        segments=[
            a_summary(0.5 + 0.1 * i, Segment(tag="section", value=say(v)))
            for i, v in enumerate(values)
        ],
        findings=[],
        worst=[
            WorstRow(
                id=f"row-{i}",
                metric="context_recall",
                value=i / 10,
                user_input=say(f"How do I get refund {i}?"),
            )
            for i in range(5)
        ],
        usage=Usage(),
    )
    return base.model_copy(update=update)


def write(*findings: Finding, manifest: Manifest | None = None, **options: Any) -> Message:
    """The message of these findings, which has to be there."""
    given = {"dashboard": "https://ragmetrics.example/docs", "redact": False, **options}
    message = compose(manifest or a_manifest(), findings, **given)
    assert message is not None
    return message


def validate(message: Message) -> None:
    """Rebuild the message with slackblocks, which knows Slack's limits; check those it does not."""

    def text(data: dict[str, Any]) -> slackblocks.Text:
        return slackblocks.Text.from_dict(data)

    def block(data: dict[str, Any]) -> slackblocks.Block:
        match data["type"]:
            case "section":
                fields = [text(one) for one in data.get("fields", [])] or None
                return slackblocks.SectionBlock(text(data["text"]), fields=fields)
            case "actions":
                buttons = [
                    slackblocks.Button(text(element["text"]), url=element["url"])
                    for element in data["elements"]
                ]
                return slackblocks.ActionsBlock(buttons)
            case _:
                return slackblocks.Block.from_dict(data)

    blocks = slack_blocks(message)
    slackblocks.WebhookMessage(text=slack_text(message), blocks=[block(one) for one in blocks])
    assert message.text.strip()
    assert "\n" not in message.text
    assert len(slack_json(message)) < 13_000
    slack_json(message).encode()


def acting(message: Message) -> list[str]:
    """What of a message's text acts as Slack's markup or hides in it, with where it stands."""
    return acting_in([slack_text(message), *mrkdwn(slack_blocks(message))])


def acting_in(shown: list[str]) -> list[str]:
    """The same of texts."""
    marks = ("<", "https://", "@here", ":fire:", *"~`\x00\x1b\u202e\u200b")
    found = [f"{mark} in {text!r}" for text in shown for mark in marks if mark in text]
    return found + [f"* in {text!r}" for text in shown if text.count("*") % 2]


def mrkdwn(value: Any) -> Iterator[str]:
    """Every mrkdwn text of the blocks."""
    if isinstance(value, dict) and value.get("type") == "mrkdwn":
        assert value["verbatim"]
        yield value["text"]
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from mrkdwn(item)


def test_no_transition_no_message() -> None:
    """Findings without a transition are not worth a message."""
    quiet = a_finding(transition=None)
    assert compose(a_manifest(), [quiet], dashboard=None, redact=False) is None
    assert compose(a_manifest(), [], dashboard=None, redact=False) is None


def test_fired_message_says_what_and_how_much() -> None:
    """A drop is told with its numbers, segments, questions, build, judge and link."""
    message = write(a_finding())
    validate(message)
    assert terminal_text(message) == EXPECTED
    assert message.text == (
        "🔴 Critical: Context recall fell: 0.823 → 0.716 over the same 840 questions; "
        "mean of all rows 0.714 (docs, night of 2026-11-19)"
    )


def test_what_of_a_move_is_mix_stands_beside_the_drop() -> None:
    """The means fell by more than like for like; where nothing is mix nothing is said."""
    text = " ".join(
        mrkdwn(slack_blocks(write(a_finding(drop=0.08, mix=0.027, mix_tags=["section"]))))
    )
    assert "*Mix*\n0.027 of the fall of 0.107 is due to the mix of tag section" in text
    assert "*Mix*" not in " ".join(mrkdwn(slack_blocks(write(a_finding()))))


def test_a_sampled_night_says_so_beside_the_judge() -> None:
    """Whoever reads the means should know that the budget left rows out."""
    report = BudgetReport(
        limits=SpendLimits(max_requests=9),
        estimated=Usage(),
        share=0.4,
        spent=Usage(),
        rows_over=744,
    )
    for budget, told in (
        (report, "Judge: lexical (A baseline.); over budget: 744 rows"),
        (report.model_copy(update={"share": 1, "rows_over": 0}), "Judge: lexical (A baseline.)"),
    ):
        manifest = a_manifest().model_copy(update={"budget": budget})
        message = compose(manifest, [a_finding()], dashboard=None, redact=False)
        assert message is not None
        validate(message)
        assert terminal_text(message).endswith(told)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (20_000, "estimated from 1,240 of 20,000 rows"),
        (None, "estimated from 1,240 rows"),
        (1_240, "1,240 rows"),
    ],
)
def test_a_mean_of_a_sample_is_called_an_estimate(rows: int | None, said: str) -> None:
    """Beside the finding, and of its segments; not where every row was judged."""
    sample = SampledMean(
        rows=rows, mean=0.7, low=0.6, high=0.8, weight=0.4, spread=0.3, correlation=0.5
    )
    whole = a_manifest()
    sampled = whole.model_copy(
        update={
            "metrics": [metric.model_copy(update={"sample": sample}) for metric in whole.metrics],
            "segments": [one.model_copy(update={"sample": sample}) for one in whole.segments],
        }
    )
    message = write(a_finding(), manifest=sampled)
    validate(message)
    text = terminal_text(message)
    assert f"Scored: {said}, 880 questions" in text
    assert "Where: section=billing (0.50, estimated)" in text
    assert "Mean of all rows: 0.714 [0.680, 0.748]" in text


EXPECTED = """\
🔴 Critical: Context recall fell

docs, night of 2026-11-19, 1,240 rows, 3 quarantined, index build idx-42

What: Context recall fell from 0.82 to 0.72 over the same 840 questions (allowed drop
0.05).

Where: section=billing (0.50), section=returns (0.60), section=api (0.70).

When: Firing since 2026-11-19, this night.

Rule: Context recall: drop of more than 0.05 against the 7 nights before
  Mean of all rows: 0.714 [0.680, 0.748]
  Scored: 1,240 rows, 880 questions
  Compared: 0.823 → 0.716 over the same 840 questions (7 nights before)
  Drop: 0.107 [0.071, 0.143]

Worst questions
• 0.000 “How do I get refund 0?” (row-0)
• 0.100 “How do I get refund 1?” (row-1)
• 0.200 “How do I get refund 2?” (row-2)

Open the dashboard https://ragmetrics.example/docs

Judge: lexical (A baseline.)"""


def test_the_worst_questions_lead_to_their_traces() -> None:
    """Where the settings name a tracing tool and the row its trace; the ids are no texts."""
    whole = a_manifest()
    worst = [
        row.model_copy(update={"trace_url": f"https://traces.example/{place}" if place else ""})
        for place, row in enumerate(whole.worst)
    ]
    text = terminal_text(write(a_finding(), manifest=whole.model_copy(update={"worst": worst})))
    assert text.count("https://traces.example/") == 2
    assert "https://traces.example/" not in terminal_text(write(a_finding()))


def test_where_lower_is_better_the_worst_are_the_highest() -> None:
    """Segments and questions alike."""
    whole = a_manifest()
    flipped = whole.model_copy(
        update={
            name: [summary.model_copy(update={"higher_is_better": False}) for summary in summaries]
            for name, summaries in (("metrics", whole.metrics), ("segments", whole.segments))
        }
    )
    text = terminal_text(write(a_finding(), manifest=flipped))
    assert "Where: section=setup (0.80).\n" in text
    assert "Worst questions\n• 0.400 “How do I get refund 4?” (row-4)\n• 0.300" in text


def test_a_metric_with_a_unit_is_told_in_it() -> None:
    """Its means, by how much it rose, and its worst rows, which come after shares."""
    rise = {"means": ComparedMeans(before=59.19, now=90.29, questions=58, paired=True)}
    rise |= {"drop": 31.1, "drop_low": 25.12, "drop_high": 37.07, "mean": 92.7, "rise": True}
    slow = a_finding(metric="retrieval_latency_ms", key="docs/retrieval_latency_ms", **rise)
    whole = a_manifest()
    worst = whole.worst[0].model_copy(update={"id": "w", "metric": slow.metric, "value": 240.8})
    told = whole.model_copy(update={"worst": [worst, whole.worst[0]]})
    text = terminal_text(write(a_finding(), slow, manifest=told))
    assert "Compared: 59 ms → 90 ms over the same 58 questions" in text
    assert "Rise: 31 ms [25 ms, 37 ms]" in text
    assert "Mean of all rows: 93 ms" in text
    assert text.index("Context recall “") < text.index("241 ms Retrieval latency “")


def test_what_differs_within_a_message_is_named() -> None:
    """Builds with their rows where there are several, metrics where two fell."""
    source = a_manifest().source.model_copy(update={"index_builds": {"idx-42": 900, "idx-41": 340}})
    fired = [a_finding(), a_finding(metric="faithfulness", key="b")]
    text = terminal_text(write(*fired, manifest=a_manifest(source=source)))
    assert "index build idx-42 (900 rows), idx-41 (340 rows)" in " ".join(text.split())
    assert "Context recall fell\nRule: Context recall: drop of" in text
    assert "Faithfulness fell\n" in text
    assert "Where: Context recall: section=billing (0.50), section=returns (0.60)" in text
    assert "• 0.000 Context recall “How do I get refund 0?” (row-0)" in text


def test_only_segments_below_all_rows_are_among_the_lowest() -> None:
    """The one segment that all rows are of says nothing of where."""
    means = {"golden": 0.714, "api": 0.9, "billing": 0.5}
    segments = [a_summary(mean, Segment(tag="source", value=v)) for v, mean in means.items()]
    text = terminal_text(write(a_finding(), manifest=a_manifest(segments=segments)))
    assert "Where: source=billing (0.50).\n" in text
    assert "source=golden" not in text
    assert "source=api" not in text


def test_where_data_are_lacking_no_segment_is_the_worst() -> None:
    """Nothing is known to have fallen, so there is nowhere to look."""
    text = terminal_text(
        write(a_finding(level="no_data", message="recall: 3 rows scored, 20 needed"))
    )
    assert "3 rows scored" in text
    assert "Worst" not in text


def test_what_fell_without_a_rule_is_said_too() -> None:
    """It sends no message of its own, but none leaves it out, and least of all a good one."""
    fallen = fall("faithfulness", 0.9, 0.6)
    manifest = a_manifest(falls=[fallen])
    assert compose(manifest, [], dashboard=None, redact=False) is None
    message = write(a_finding(transition="resolved", state="ok", level="ok"), manifest=manifest)
    validate(message)
    text = " ".join(terminal_text(message).split())
    assert "What: Faithfulness fell by 0.30, 0.90 → 0.60 (no alert rule)." in text


def test_segment_is_named() -> None:
    """A finding about a segment says so in its title, and the header counts segments."""
    one = a_finding(segment=BILLING)
    assert "Context recall fell in a segment" in write(one).text
    assert "Mean of its rows:" in terminal_text(write(one))
    assert "Mean of all rows:" not in terminal_text(write(one))
    other = Segment(tag="section", value="api")
    text = terminal_text(write(one, a_finding(segment=other, key="b")))
    assert "Context recall fell in 2 segments" in text
    assert "Context recall fell in section=billing" in text


def test_min_rule_is_low() -> None:
    """Without a baseline nothing fell: the metric is low."""
    key, lacks = "docs/context_recall/all/min 0.8", {"baseline_label": None, "means": None}
    finding = a_finding(key=key, baseline=None, drop=None, severity="warning", **lacks)
    text = terminal_text(write(finding))
    assert text.startswith("🟡 Warning: Context recall is low")
    assert "Drop" not in text


def test_a_drop_that_nothing_compares_with_is_told_by_its_reason() -> None:
    """A message that an earlier run of the night owed: the mean has no limit that it is below."""
    lacks = {"baseline": None, "baseline_label": None, "drop": None, "means": None}
    reason = "context_recall: nothing to compare with yet: no earlier night"
    text = terminal_text(write(a_finding(message=reason, **lacks)))
    assert text.startswith("🔴 Critical: Context recall fell")
    assert "Context recall: nothing to compare with yet: no earlier night" in text
    assert "limit" not in text


def test_a_metric_that_fell_is_named_once() -> None:
    """And its numbers stand once, whatever rules fired on it: the drop, as it is low by that."""
    low = a_finding(key="min", rule="context_recall: below 0.8", drop=None, means=None)
    for fired in ([a_finding(), low], [low, a_finding()]):
        message = write(*fired)
        validate(message)
        assert message.text.startswith(
            "🔴 Critical: Context recall fell: 0.823 → 0.716 over the same 840 questions; "
            "mean of all rows 0.714 (docs"
        )
        text = " ".join(terminal_text(message).split())
        assert "Rules: Context recall: drop of more than 0.05 against the 7 nights" in text
        assert "before; below 0.8" in text
        for label in ("Mean of all rows:", "Scored:", "When:", "Compared:", "Drop:"):
            assert text.count(label) == 1, label


@pytest.mark.parametrize(
    ("update", "title"),
    [
        ({"kind": "quarantine", "metric": None}, "quarantined rows"),
        ({"kind": "judge_failures"}, "judge failures in Context recall"),
        ({"kind": "no_data", "metric": None, "level": "no_data"}, "no data"),
        ({"kind": "no_data", "metric": None}, "broken logs"),
        ({"level": "no_data"}, "no data for Context recall"),
    ],
)
def test_findings_in_words(update: dict[str, Any], title: str) -> None:
    """Findings that are no means are told by their sentence."""
    message = write(a_finding(mean=None, message="12 of 100 rows & more", **update))
    validate(message)
    assert terminal_text(message).startswith(f"🔴 Critical: {title}\n")
    assert "12 of 100 rows & more\nSince 2026-11-19" in terminal_text(message)


def test_resolved_and_closed() -> None:
    """A resolved alert is back to normal; one that is no longer judged is closed, not normal."""
    done = {"transition": "resolved", "state": "ok"}
    message = write(
        a_finding(**done, level="ok", message="context_recall went from 0.8 to 0.8"),
        a_finding(**done, level="no_data", mean=None, message="x: not checked since 2026-11-10"),
    )
    validate(message)
    text = terminal_text(message)
    assert text.startswith("🟢 Resolved: Context recall\n")
    back = "Context recall went 0.82 → 0.72 (840 questions asked on both; allowed drop 0.05;"
    assert f"Back to normal • {back} was firing since 2026-11-19)" in " ".join(text.split())
    assert "Closed\n• x: not checked since 2026-11-10, was firing since 2026-11-19" in text
    assert "Worst questions" not in text


def test_reminder_and_still_firing() -> None:
    """A reminder lists all that still fires, with since when."""
    message = write(a_finding(transition="reminded"), a_finding(transition=None, message="other"))
    validate(message)
    text = terminal_text(message)
    assert text.startswith("🔔 Reminder: Context recall fell\n")
    assert (
        "• Context recall fell from 0.821 to 0.714, firing since 2026-11-19\n• other, firing"
        in text
    )


def test_redacted_message_has_ids_only() -> None:
    """With `redact` no question is in the message, and the row ids are."""
    message = write(a_finding(), redact=True)
    assert "refund" not in slack_json(message)
    assert "• 0.000 (row-0)" in terminal_text(message)


def test_a_redacted_message_has_no_word_of_the_judge() -> None:
    """An endpoint that takes no request may answer with that request in its error."""
    echo = "the judge answered 422: bad input: How do I get refund 7?"
    failed = a_finding(
        kind="judge_failures", mean=None, message=f"recall: 30 of 100 rows: {echo}", n=100
    )
    manifest = a_manifest(problems=[echo])
    assert "refund 7" in terminal_text(write(failed, manifest=manifest))
    shown = terminal_text(write(failed, manifest=manifest, redact=True))
    assert "refund" not in shown
    assert re.search(r"recall: 30 of 100 rows: the judge answered 422: \[[0-9a-f]{16}\]", shown)


@pytest.mark.parametrize("place", ["s3://bucket/dashboard/index.html", "/srv/__store__/x.html"])
def test_places_no_browser_opens_are_text(place: str) -> None:
    """Slack rejects paths as button addresses: they are shown as they are."""
    message = write(a_finding(), dashboard=place)
    validate(message)
    assert not [block for block in slack_blocks(message) if block["type"] == "actions"]
    assert f"Dashboard: {place}" in terminal_text(message)


def test_run_url_is_a_second_button() -> None:
    """The run is linked beside the dashboard; an address too long for a button is text."""
    message = write(a_finding(), run_url="http://prefect.example/run/1")
    assert "Open the run http://prefect.example/run/1" in terminal_text(message)
    long = write(a_finding(), dashboard="https://e.example/" + "x" * 3_000)
    validate(long)


def test_many_findings_are_grouped_and_cut() -> None:
    """Two hundred findings of each kind fit in one message that counts the rest."""
    findings = [
        a_finding(key=str(i), metric=f"metric_{i}", transition=transition, state=state)
        for i in range(200)
        for transition, state in [("fired", "firing"), (None, "firing"), ("resolved", "ok")]
    ]
    message = write(*findings)
    validate(message)
    assert len(slack_blocks(message)) < 20
    assert "🔴 Critical: Metric 0 fell, Metric 1 fell and 198 more" in terminal_text(message)
    assert "and 186 more" in terminal_text(message)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert(text: str) -> None:
    """Nothing that users wrote acts as markup, and all limits hold."""
    manifest = a_manifest(text)
    segment = Segment(tag="section", value=text)
    fired = [
        a_finding(segment=segment, rule=text, message=text, baseline_label=text, mean=mean)
        for mean in (0.7, 0.7, 0.7, None, None, None)
    ]
    message = write(*fired, manifest=manifest)
    validate(message)
    assert acting(message) == []
    assert "\x1b" not in terminal_text(message)


def test_text_that_acts_as_markup_is_seen() -> None:
    """The check of the tests on hostile text can fail."""
    assert acting_in(["look :fire:", "*one <!channel>"]) == [
        ":fire: in 'look :fire:'",
        "< in '*one <!channel>'",
        "* in '*one <!channel>'",
    ]


@given(st.text(), st.integers(10, 200))
@settings(max_examples=examples(300))
def test_escaped_text_is_one_short_line_without_marks(text: str, limit: int) -> None:
    """Escaped text keeps within its limit, whole entities included."""
    safe = FORMATS.find("slack").escape(text, limit)  # type: ignore[call-arg]
    assert len(safe) <= limit
    assert not set(safe) & set("<>*~`\n\r")
    for part in safe.split("&")[1:]:
        assert part.startswith(("amp;", "lt;", "gt;"))


def test_names_keep_their_underscores() -> None:
    """Underscores inside words are no style in Slack; metric names read as they are."""
    escape = FORMATS.find("slack").escape
    assert escape("context_relevancy_chunks") == "context_relevancy_chunks"
    assert "_" not in escape("_not italic_ __x__")


def test_terminal_wraps_and_decodes() -> None:
    """Long lines wrap at 88 columns, bullets keep their indent, texts are as logged."""
    lines = terminal_text(Message("", bullets("T & <b>", ["word " * 40]))).splitlines()
    assert lines[0] == "T & <b>"
    assert max(map(len, lines)) <= 88
    assert lines[2].startswith("  word")
