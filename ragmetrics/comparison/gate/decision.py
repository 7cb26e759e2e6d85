"""A gate from logs to verdict: the functions of the flow's tasks, and a gate without Prefect.

stage_gate -> score (run x metric family x shard) -> decide_gate

gates/BUILD.json                          the verdict
gates/compared/BUILD.json                 the detailed comparison of the builds
gates/rows/..., gates/scores/...          rows and scores, apart from those of nights
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count

from ragmetrics.comparison.gate.auto_replay import replay_missing
from ragmetrics.comparison.gate.build_comparison import compare_builds
from ragmetrics.comparison.gate.golden_checks import never_asked, obstacles_of, read_golden
from ragmetrics.comparison.gate.question_scores import (
    Compared,
    SideScores,
    compare_sides,
    find_fallen,
    find_movements,
    load_side,
)
from ragmetrics.comparison.gate.reasons import cleaned, reasons, too_much_quarantined, unread
from ragmetrics.comparison.gate.rules import gate_rules, gate_run_settings
from ragmetrics.comparison.gate.staging import BuildSide, StagedGate, stage_gate
from ragmetrics.comparison.gate.verdict import conclude, weigh
from ragmetrics.comparison.replay.run import Progress
from ragmetrics.config import Settings
from ragmetrics.errors import (
    InputError,
    JudgePending,
    JudgeRefused,
    RagmetricsError,
    StoreError,
)
from ragmetrics.judges import deadline_at, use_deadline
from ragmetrics.model import Comparison, Gate, IndexBuild, Source, WorseQuestion
from ragmetrics.scoring import (
    Part,
    Staged,
    judge_info,
    metric_fingerprints,
    score_families,
    score_parts,
)
from ragmetrics.storage import RunRef, load_gate, load_gates, open_store, save_compared, save_gate

log = logging.getLogger(__name__)


def gate_parts(settings: Settings, staged: StagedGate) -> list[tuple[RunRef, list[Part]]]:
    """The parts to score, per run; none where nothing can be compared."""
    return [(one.ref, _parts(settings, one)) for one in staged.runs]


def _parts(settings: Settings, staged: Staged) -> list[Part]:
    families = score_families(gate_run_settings(settings))
    return [(family, shard) for family in families for shard in range(staged.ref.shards)]


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
        raise InputError(_verdict_stays(known, gate))
    gate = _as_known(gate, known)
    try:
        save_compared(files, gate.build, found)  # first: the verdict triggers the page
    except StoreError as error:  # the verdict's page has no comparison then
        log.error("the comparison of build %s is not stored: %s", gate.build, error)
        gate = gate.model_copy(update={"problems": [*gate.problems, *cleaned([str(error)])]})
    save_gate(files, gate)
    return gate


def run_gate(settings: Settings, build: IndexBuild, progress: Progress | None = None) -> Gate:
    """Run a gate from logs to verdict, without Prefect.

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
    staged = stage_gate(settings, build)
    run, main_store = gate_run_settings(settings), open_store(settings)
    todo = [(one, _parts(settings, one)) for one in staged.runs]
    report = _part_progress(progress, sum(len(parts) for _, parts in todo))
    problems: list[RagmetricsError] = []
    try:
        for one, parts in todo:
            problems += score_parts(run, one, parts, done=report, kept=main_store, until=until)
    except JudgeRefused as error:
        problems.append(error)
    for problem in problems:
        if isinstance(problem, JudgePending):
            raise problem
    return decide_gate(settings, staged, [str(problem) for problem in problems])


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
    metrics = [rule.metric for rule in rules]
    before, after = (load_side(settings, run, side, metrics, now) for side in _sides(staged))
    golden, movements = read_golden(settings), find_movements(settings, prints)
    compared = compare_sides(
        rules,
        before,
        after,
        prints,
        by_default=settings.gate.rules is None,
        whole=_serving_source(staged) is not None,
        golden=golden.questions,
        movements=movements,
    )
    verdicts = weigh(
        compared.evidence,
        min_questions=settings.gate.min_questions,
        max_missing=settings.gate.max_missing,
    )
    scored = list(zip(_sides(staged), (before, after), strict=True))
    obstacles = [*_obstacles(settings, staged, compared), *obstacles_of(settings, golden, scored)]
    verdict, further = conclude(verdicts, obstacles)
    why = reasons(verdict, verdicts, obstacles, compared.missing_why, settings.gate)
    unasked = never_asked(golden, *scored[0])
    failed = dict.fromkeys([*problems, *before.problems, *after.problems])
    gate = _undecided(settings, staged).model_copy(
        update={
            "verdict": verdict,
            "reasons": [*why, *cleaned([*_left_out(staged, compared), *unasked])],
            "further": further,
            "metrics": verdicts,
            "fallen": _fallen(run, staged, compared, before, after),
            "missing": len(compared.missing),
            "missing_why": compared.missing_why,
            "usage": before.usage + after.usage,
            "problems": cleaned(list(failed)),
            "finished_at": now,
        }
    )
    names = [one.metric for one in compared.evidence]
    sides = _sides(staged)
    return gate, compare_builds(settings, run, sides, (before, after), names, movements)


def _undecided(settings: Settings, staged: StagedGate) -> Gate:
    """The verdict where nothing can be compared."""
    judge, _ = judge_info(gate_run_settings(settings))
    return Gate(
        dataset=staged.build.dataset,
        build=staged.build.build,
        serving=staged.serving,
        verdict="inconclusive",
        reasons=cleaned(staged.problems),
        quarantined=_source(staged.now).quarantined,
        logs=staged.now.logs,
        content=staged.content,
        serving_logs=staged.before.logs if staged.before else None,
        judge=judge,
        source=_source(staged.now),
        serving_source=_serving_source(staged),
        started_at=staged.started_at,
        finished_at=datetime.now(UTC),
        redact=settings.redact,
    )


def _sides(staged: StagedGate) -> tuple[BuildSide, BuildSide]:
    """The serving build's side, and the new build's."""
    if staged.before is None:
        raise ValueError("no serving build is staged")
    return staged.before, staged.now


def _source(side: BuildSide) -> Source:
    return side.staged.source if side.staged else Source(logs=side.logs, files=0, rows=0)


def _serving_source(staged: StagedGate) -> Source | None:
    before = staged.before
    return before.staged.source if before and before.staged else None


def _obstacles(settings: Settings, staged: StagedGate, compared: Compared) -> list[str]:
    """Reasons against a promotion that do not depend on the numbers."""
    before, now = _sides(staged)
    found = [*unread(now.build, _source(now)), *unread(before.build, _serving_source(staged))]
    for side, source in (("new", _source(now)), ("serving", _serving_source(staged))):
        found += too_much_quarantined(side, source, settings.gate.max_missing)
    if not compared.evidence:
        found.append(f"no question of build {before.build} can be scored by the gate's metrics")
    return found


def _left_out(staged: StagedGate, compared: Compared) -> list[str]:
    if not compared.evidence:
        return []
    before, _ = _sides(staged)
    return [
        f"{metric} is not compared: no row of build {before.build} has what it needs"
        for metric in compared.left_out
    ]


def _fallen(
    run: Settings,
    staged: StagedGate,
    compared: Compared,
    before: SideScores,
    after: SideScores,
) -> list[WorseQuestion]:
    if staged.now.staged is None:
        return []
    metrics = [one.metric for one in compared.evidence]
    return find_fallen(open_store(run), staged.now.staged.ref, metrics, before, after)


def _verdict_stays(known: Gate, gate: Gate) -> str:
    return (
        f"build {gate.build} has the verdict {known.verdict} against {known.serving}, which stays: "
        f"nothing can be decided now: {'; '.join(gate.reasons)}"
    )


def _as_known(gate: Gate, known: Gate | None) -> Gate:
    """A gate with the message state of the stored gate, where it says nothing new.

    A repeated gate equals the stored one. A build that is still held, or undecided for the same
    reasons, needs no further message. Another build of the same name, and a metric that dropped
    further than in the last message, need one.
    """
    if known is None:
        return gate
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


def _dropped_more(known: Gate, gate: Gate) -> bool:
    """Whether a held build is news: its log changed, another metric holds it, or a drop grew by
    more than its limit.
    """
    if known.content and known.content != gate.content:
        return True
    drops = {one.metric: one.drop or 0.0 for one in known.metrics if one.verdict == "hold"}
    return any(
        one.metric not in drops or (one.drop or 0.0) - drops[one.metric] > one.max_drop
        for one in gate.metrics
        if one.verdict == "hold"
    )


__all__ = [
    "StagedGate",
    "decide_gate",
    "gate_parts",
    "gate_run_settings",
    "load_gate",
    "load_gates",
    "run_gate",
    "save_gate",
    "stage_gate",
]
