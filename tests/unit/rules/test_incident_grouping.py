"""Incidents: what explains what, told once and with nothing lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from ragmetrics.records import Finding, JudgeInfo, Manifest, Segment, Source
from ragmetrics.rules import Incident, incidents
from tests.fakes.examples import examples
from tests.fakes.nights import finding, night, summary

SEGMENT = Segment(tag="section", value="billing")
GONE = Source(logs="logs/", files=0, rows=0, problem="no log file")


def health(kind: str, level: str = "breach", metric: str | None = None, **change: Any) -> Finding:
    """What a check of logs or judge says."""
    told = {"key": f"{kind}/{metric}", "kind": kind, "state": "firing", "rule": kind, **change}
    return finding(metric, level, **{"message": f"{metric}: {kind}", **told})


def blind(metric: str = "context_recall", number: int = 0, **change: Any) -> Finding:
    """An alert that fires and was not checked."""
    told = {"key": f"{metric}/{number}", "state": "firing", "for_nights": 0}
    return finding(metric, "no_data", **{**told, **change})


def shape(found: list[Incident]) -> list[tuple[str, int, int]]:
    """Of each incident the key of its cause, how many are like it, and how many it explains."""
    return [(one.cause.key, len(one.alike), len(one.explained)) for one in found]


def test_a_missing_log_explains_all_that_has_no_data() -> None:
    """Wherever it stands among the others."""
    gone = health("no_data", "no_data")
    many = [blind(number=n) for n in range(8)]
    for findings in ([gone, *many], [*many, gone]):
        (incident,) = incidents(findings, night(source=GONE))
        assert (incident.cause, len(incident.explained)) == (gone, 8)
        assert incident.folded == "explains 8 more alerts without data: context_recall (8)"


def test_rows_that_are_all_in_quarantine_explain_that_there_are_none() -> None:
    """And through that all that has no data."""
    found = [health("no_data", "no_data"), health("quarantine"), blind()]
    source = GONE.model_copy(update={"quarantined": 20})
    assert shape(incidents(found, night(source=source))) == [("quarantine/None", 0, 2)]


def test_too_few_rows_are_explained_where_the_log_lacks_them() -> None:
    """And not where its metric did not apply to most of the rows that are there."""
    few = finding("context_recall", "no_data", key="few", state="firing", message="9 rows scored")
    for status, explained in (({"scored": 9}, True), ({"scored": 9, "not_applicable": 90}, False)):
        ill = night(metrics=[summary("context_recall", 0.9, scored=9, status=status)])
        for cause in (health("quarantine"), health("no_data")):
            assert len(incidents([cause, few], ill)) == (1 if explained else 2)


def test_a_removed_rule_is_not_explained_by_a_cut_log() -> None:
    """It is not checked because nobody asks for it any more."""
    assert len(incidents([health("no_data"), blind()], night())) == 2


def test_a_judge_that_is_down_is_one_incident() -> None:
    """With the rules on its metrics and its labelled set; a metric of another kind stands alone."""
    found = [
        health("judge_failures", metric="context_recall"),
        health("judge_failures", metric="context_relevance"),
        blind("context_recall"),
        blind("context_relevance", segment=SEGMENT),
        health("judge_drift", "no_data"),
        blind("hit_rate"),
    ]
    down, alone = incidents(found, night())
    assert shape([down, alone]) == [("judge_failures/context_recall", 1, 3), ("hit_rate/0", 0, 0)]
    assert down.message == ("judge lexical failed in 2 metrics; context_recall: judge_failures")
    assert down.folded == (
        "the same in context_relevance; explains 3 more alerts without data: context_recall, "
        "context_relevance, judge drift"
    )


def test_a_judge_of_a_panel_explains_the_metrics() -> None:
    """Its finding is a warning; the incident is as grave as what it explains."""
    panel = JudgeInfo(name="a + b", fingerprint="f", panel=["a", "b"])
    judge = health("judge_failures", key="judge=a", severity="warning", message="a: down")
    metrics = [health("judge_failures", metric=name) for name in ("context_recall", "hit_rate")]
    (incident,) = incidents([*metrics, judge], night(judge=panel))
    assert (incident.message, incident.severity) == ("a: down", "critical")
    assert len(incident.explained) == 2


def test_two_checks_of_one_judge_are_one_drift() -> None:
    """Of a panel they may be of two judges."""
    found = [
        health("judge_drift", key=key, message=key, severity="warning") for key in ("set", "level")
    ]
    assert shape(incidents(found, night())) == [("set", 1, 0)]
    panel = JudgeInfo(name="a + b", fingerprint="f", panel=["a", "b"])
    assert len(incidents(found, night(judge=panel))) == 2


def test_rules_on_the_same_rows_are_one_where_they_changed_together() -> None:
    """The drop is told; a rule on a segment, or one that fired before, stands by itself."""
    low = finding(level="breach", key="low", transition="fired")
    drop = finding(
        level="breach", key="drop", transition="fired", drop=0.1, rule="context_recall: drop of 0.1"
    )
    before = finding(level="breach", key="before")
    part = finding(level="breach", key="part", transition="fired", segment=SEGMENT)
    found = incidents([low, drop, before, part], night())
    assert shape(found) == [("drop", 1, 0), ("before", 0, 0), ("part", 0, 0)]
    assert found[0].folded == "also its rule: below 0.8"


def test_what_is_fine_explains_nothing() -> None:
    """Each check of a good night stands by itself."""
    names = "context_recall", "context_relevance"
    fine = [health("judge_failures", "ok", name, state="ok") for name in names]
    ok = [finding(name, key=f"{name}/{n}") for name in names for n in range(2)]
    assert len(incidents([*fine, *ok], night())) == 6


def test_a_judge_that_is_back_is_one_resolution() -> None:
    """Its metrics resolve together; one that was fine before stands by itself."""
    back = [
        health("judge_failures", "ok", name, state="ok", transition=transition)
        for name, transition in (
            ("context_recall", "resolved"),
            ("context_relevance", "resolved"),
            ("faithfulness", None),
        )
    ]
    first, second = incidents(back, night())
    assert [one.metric for one in first.alike] == ["context_relevance"]
    assert second.cause.metric == "faithfulness"


def test_what_fired_is_heard_whatever_explains_it() -> None:
    """An incident is told as the loudest of its findings."""
    old, new = health("no_data", "no_data"), blind(transition="fired")
    (incident,) = incidents([old, new], night(source=GONE))
    assert (incident.cause.transition, incident.transition) == (None, "fired")


def test_the_reason_of_all_stands_once() -> None:
    """What is folded is said without the end that it has in common with the cause."""
    why = "rows got no usable verdict: the judge has no such model"
    names = "context_recall", "context_relevance"
    found = [health("judge_failures", metric=name, message=f"{name}: 9 {why}") for name in names]
    (incident,) = incidents(found, night())
    assert incident.beside(incident.alike[0]) == "context_relevance"


FINDINGS = st.builds(
    finding,
    metric=st.sampled_from(["context_recall", "context_relevance", None]),
    level=st.sampled_from(["ok", "suspect", "breach", "no_data"]),
    kind=st.sampled_from(
        ["metric", "no_data", "quarantine", "judge_failures", "judge_drift", "stale_labels"]
    ),
    state=st.sampled_from(["ok", "pending", "firing"]),
    transition=st.sampled_from([None, "fired", "reminded", "resolved"]),
    segment=st.sampled_from([None, SEGMENT]),
)


@given(st.lists(FINDINGS, max_size=12), st.sampled_from([GONE, Source(logs="l", files=1, rows=9)]))
@settings(max_examples=examples(200), deadline=None)
def test_nothing_is_lost_and_nothing_told_twice(found: list[Finding], source: Source) -> None:
    """Each finding stands in one incident; what resolved is with nothing that did not."""
    told: Manifest = night(source=source)
    out = incidents(found, told)
    assert sorted(map(id, found)) == sorted(id(f) for one in out for f in one.findings)
    for incident in out:
        assert len({f.transition == "resolved" for f in incident.findings}) == 1
