"""A gate from logs to verdict: the functions of the flow's tasks, and a gate without Prefect.

stage_gate -> score (run x metric family x shard) -> decide_gate

gates/BUILD.json                          the verdict
gates/compared/BUILD.json                 the detailed comparison of the builds
gates/rows/..., gates/scores/...          rows and scores, apart from those of nights
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count

from ragmetrics.comparison.comparison import make_comparison
from ragmetrics.comparison.gate.build_logs import replay_missing
from ragmetrics.comparison.gate.question_scores import (
    SideScores,
    compare_sides,
    find_fallen,
    find_movements,
    golden_obstacles,
    load_side,
    not_compared,
)
from ragmetrics.comparison.gate.staging import (
    BuildSide,
    StagedGate,
    gate_rules,
    gate_run_settings,
    stage_gate,
)
from ragmetrics.comparison.gate.store import load_gate, save_compared, save_gate
from ragmetrics.comparison.gate.verdict import conclude, weigh
from ragmetrics.comparison.gate.verdict_words import (
    cleaned,
    lost_from_index,
    reasons,
    too_much_quarantined,
    unchanged_retrieval,
    unread,
)
from ragmetrics.comparison.lost_passages import lost_between
from ragmetrics.comparison.nights import ROWS
from ragmetrics.comparison.replay.run import Progress
from ragmetrics.comparison.sides import ScoredSide, scored_side, shown_tags
from ragmetrics.config import Settings
from ragmetrics.errors import InputError, JudgePending, JudgeRefused, RagmetricsError, StoreError
from ragmetrics.logs import GoldenSet, golden_set
from ragmetrics.records import (
    Comparison,
    Gate,
    IndexBuild,
    JudgeMovement,
    Source,
    Stage,
    build_words,
    deadline_at,
    use_deadline,
)
from ragmetrics.scoring import Part, judge_info, list_parts, metric_fingerprints, score_parts
from ragmetrics.storage import Files, RunRef, open_store

log = logging.getLogger(__name__)


def gate_parts(settings: Settings, staged: StagedGate) -> list[tuple[RunRef, list[Part]]]:
    """The parts to score, per run; none where nothing can be compared."""
    scored = gate_run_settings(settings)
    return [(run.ref, [*list_parts(scored, run)]) for run in staged.runs]


def decide_gate(settings: Settings, staged: StagedGate, problems: Sequence[str] = ()) -> Gate:
    """Compare the two builds, write the verdict to `gates/BUILD.json` and return it.

    `problems` say why parts could not be scored; their rows count as `judge_failed`. A repeat on
    the same scores gives the same record, with its confirmed messages.

    Raises InputError where the build has a verdict and this gate decides nothing: a mistake in a
    later command, or a lost golden set, does not revoke a verdict.
    """
    gate, found = _undecided(settings, staged), None
    if staged.runs:
        gate, found = _compared(settings, staged, problems)
    files = open_store(settings)
    known = load_gate(files, gate.build)
    nothing_new = not staged.runs or (known is not None and gate.content == known.content)
    if known and known.is_decided and not gate.is_decided and nothing_new:
        raise InputError(
            f"build {gate.build} has the verdict {known.verdict} against {known.serving}, which "
            f"stays: nothing can be decided now: {'; '.join(gate.reasons)}"
        )
    gate = _as_known(gate, known)
    try:
        save_compared(files, gate.build, found)  # first: the verdict triggers the page
    except StoreError as error:  # the verdict's page has no comparison then
        log.error("the comparison of build %s is not stored: %s", gate.build, error)
        gate = gate.model_copy(update={"problems": [*gate.problems, *cleaned([str(error)])]})
    save_gate(files, gate)
    return gate


def run_gate(
    settings: Settings,
    build: IndexBuild,
    progress: Progress | None = None,
    *,
    before: str | None = None,
    kept: Files | None = None,
) -> Gate:
    """Run a gate from logs to verdict, without Prefect.

    `before` is a log that is compared with `build.logs`, in place of the serving build. Replies of
    judges are kept in `kept`, or else in the store.

    A build without a log is asked the golden questions first, where the settings name a retriever.
    If a judge refuses while scoring, the gate is inconclusive. `progress` is called with the
    current work, its finished items and its total: first questions, then parts with their metrics.
    Retriever and judges are asked until the settings' deadline; the verdict then uses the answers
    so far. Raises what `run_replay` and `stage_gate` raise. Raises JudgePending, without a
    verdict, where batches take longer than the settings allow.
    """
    until = datetime.now(UTC) + settings.deadline
    with use_deadline(deadline_at(until)):
        replay_missing(settings, build, progress)
        staged = stage_gate(settings, build, before=before)
        problems = _score(settings, staged, progress, kept or open_store(settings), until)
        return decide_gate(settings, staged, problems)


def _score(
    settings: Settings,
    staged: StagedGate,
    progress: Progress | None,
    kept: Files,
    until: datetime,
) -> list[str]:
    """Score the runs of both sides; return why parts could not be scored."""
    run = gate_run_settings(settings)
    todo = [parts for _, parts in gate_parts(settings, staged)]
    report = _part_progress(progress, sum(map(len, todo)))
    problems: list[RagmetricsError] = []
    try:
        for side, parts in zip(staged.runs, todo, strict=True):
            problems += score_parts(run, side, parts, done=report, kept=kept, until=until)
    except JudgeRefused as error:
        problems.append(error)
    for problem in problems:
        if isinstance(problem, JudgePending):
            raise problem
    return [str(problem) for problem in problems]


def _part_progress(progress: Progress | None, parts: int) -> Callable[[Sequence[str]], None]:
    numbers = count(1)
    if progress and parts:
        progress("judging", 0, parts)

    def report(family: Sequence[str]) -> None:
        if progress:
            progress(", ".join(family), next(numbers), parts)

    return report


def _compared(
    settings: Settings, staged: StagedGate, problems: Sequence[str]
) -> tuple[Gate, Comparison | None]:
    """The verdict on builds that can be compared, with their detailed comparison."""
    run, now = gate_run_settings(settings), datetime.now(UTC)
    rules, prints = gate_rules(settings), metric_fingerprints(run)
    before, after = (
        load_side(settings, run, side, [rule.metric for rule in rules], now)
        for side in (staged.before, staged.now)
        if side
    )
    golden, movements = GoldenSet(golden_set(settings)), find_movements(settings, prints)
    compared = compare_sides(
        rules,
        before,
        after,
        prints,
        by_default=settings.gate.rules is None,
        golden=golden.questions,
        movements=movements,
    )
    same = unchanged_retrieval(before.side.source, after.side.source)
    verdicts = weigh(
        compared.evidence,
        min_questions=settings.gate.min_questions,
        max_missing=settings.gate.max_missing,
        identical=bool(same),
    )
    metrics = [verdict.metric for verdict in verdicts]
    obstacles = [
        *_obstacles(settings, before.side, after.side, metrics),
        *golden_obstacles(settings, golden, (before, after)),
    ]
    detailed = _in_detail(settings, run, before, after, metrics, movements)
    gone = lost_from_index(detailed.lost_passages if detailed else None)
    verdict, further = conclude(verdicts, obstacles, gone)
    missing = compared.missing_why
    title = before.side.title
    why = reasons(verdict, verdicts, obstacles, missing, settings, gone, serving=title)
    # What decided stands first: unchanged retrieval decides nothing where something was in the way.
    because = [*same, *why] if verdict == "promote" else [*why, *same]
    failed = dict.fromkeys([*problems, *before.problems, *after.problems])
    gate = _undecided(settings, staged).model_copy(
        update={
            "verdict": verdict,
            "reasons": [*because, *cleaned(not_compared(golden, before, compared))],
            "further": further,
            "metrics": verdicts,
            "fallen": find_fallen(open_store(run), metrics, before, after),
            "lost_passages": detailed.lost_passages if detailed else None,
            "missing": len(compared.missing),
            "missing_why": missing,
            "usage": before.usage + after.usage,
            "problems": cleaned(list(failed)),
            "finished_at": now,
        }
    )
    return gate, detailed


def _obstacles(
    settings: Settings, before: BuildSide, now: BuildSide, metrics: Sequence[str]
) -> list[str]:
    """Reasons in the logs against a promotion; they do not depend on the numbers."""
    found = [*unread(now.title, now.source), *unread(before.title, before.source)]
    for side in (now, before):
        found += too_much_quarantined(side.title, side.source, settings.gate.max_missing)
    if not metrics:
        found.append(f"no question of {before.title} can be scored by the gate's metrics")
    return found


def _in_detail(
    settings: Settings,
    run: Settings,
    before: SideScores,
    now: SideScores,
    metrics: Sequence[str],
    movements: Mapping[str, JudgeMovement | None],
) -> Comparison | None:
    """Compare the serving build (A) with the new one (B), by the gate's metrics that both have.

    None where there is no such metric. `run` are the settings of the gate's own runs, `movements`
    the judge's movement from night to night.
    """
    a, b = (_scored(settings, run, one) for one in (before, now))
    if a is None or b is None or now.manifest is None:
        return None
    names = [metric for metric in metrics if metric in a.scores and metric in b.scores]
    tags = shown_tags(now.manifest)
    if not names:
        return None
    found = make_comparison(a, b, names, tags, rows=ROWS, movements=movements)
    worse = bool(found.significantly_worse())
    lost = lost_between(settings, a, b, worse=worse, build=now.side.build)
    return found.model_copy(update={"lost_passages": lost})


def _scored(settings: Settings, run: Settings, scores: SideScores) -> ScoredSide | None:
    """A build's run, or its rows in the nights that it served; None where these are not stored."""
    side, of_run = scores.side, scores.manifest is not None
    if not scores.nights:
        return None
    return scored_side(
        side.logs if side.is_log else f"{build_words(side.build)} ({side.logs})",
        open_store(run if of_run else settings),
        scores.nights,
        scores.tables,
        None if of_run else side.build,
    )


def _undecided(settings: Settings, staged: StagedGate) -> Gate:
    """The verdict where nothing can be compared."""
    judge, _ = judge_info(gate_run_settings(settings))
    source = staged.now.source or Source(logs=staged.now.logs, files=0, rows=0)
    return Gate(
        dataset=staged.build.dataset,
        build=staged.build.build,
        serving=staged.serving,
        verdict="inconclusive",
        reasons=cleaned(staged.problems),
        quarantined=source.quarantined,
        logs=staged.now.logs,
        content=staged.content,
        serving_logs=staged.before.logs if staged.before else None,
        judge=judge,
        source=source,
        serving_source=staged.before.source if staged.before else None,
        started_at=staged.started_at,
        finished_at=datetime.now(UTC),
        built_at=staged.build.built,
        redact=settings.redact,
    )


def _as_known(gate: Gate, known: Gate | None) -> Gate:
    """A gate with the message state of the stored gate, where it says nothing new.

    A repeated gate equals the stored one. A build that is still held, or undecided for the same
    reasons, needs no further message. Another build of the same name, and a metric that dropped
    further than in the last message, need one.
    """
    if known is None:
        return gate
    if gate.content and known.content == gate.content:  # the same build, announced once more
        gate = gate.model_copy(update={"built_at": _first(known.built_at, gate.built_at)})
    times = {"started_at": gate.started_at, "finished_at": gate.finished_at}
    messages = {"told": gate.told, "heard": gate.heard}
    if known.model_copy(update=times | messages) == gate:
        return known
    if (known.verdict, known.serving, known.content) == (gate.verdict, gate.serving, gate.content):
        # Otherwise an old build that is gated again would count as promoted last.
        gate = gate.model_copy(update={"finished_at": known.finished_at})
    same = (known.verdict, known.serving) == (gate.verdict, gate.serving) and (
        not _dropped_more(known, gate) if gate.verdict == "hold" else known.reasons == gate.reasons
    )
    return gate.model_copy(update={"told": known.told, "heard": known.heard}) if same else gate


def _first(known: datetime | None, now: datetime | None) -> datetime | None:
    """The earlier of two times of a build, of which either may be unknown."""
    return min((moment for moment in (known, now) if moment), default=None)


def _stages(gate: Gate) -> set[Stage]:
    """The stages at which passages were lost for which a build is held."""
    return {one.stage for one in gate.lost_passages.stages_gone} if gate.lost_passages else set()


def _dropped_more(known: Gate, gate: Gate) -> bool:
    """Whether a held build is news: its log changed, another metric or loss of passages holds it,
    or a drop grew by more than its limit.
    """
    if (known.content and known.content != gate.content) or _stages(gate) - _stages(known):
        return True
    drops = {one.metric: one.drop or 0.0 for one in known.metrics if one.verdict == "hold"}
    return any(
        metric.metric not in drops or (metric.drop or 0.0) - drops[metric.metric] > metric.max_drop
        for metric in gate.metrics
        if metric.verdict == "hold"
    )
