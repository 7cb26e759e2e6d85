"""`doctor`: checks whether a night would work, as far as that costs nothing.

It lists the logs and reads the first rows, writes and removes a file in the store, and asks the
judges' endpoints, Slack and Prefect whether they know the key. It sends no message.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from ragmetrics.config import JUDGES, PRESETS, TARGETS, JudgeSettings, Settings
from ragmetrics.dashboard import PAGES
from ragmetrics.delivery import channels, target_problems, waiting
from ragmetrics.errors import InputError, RagmetricsError, StoreError
from ragmetrics.http import run_coroutine
from ragmetrics.judges import Embedder, check_judges, make_embedder, make_judges, probe_judge
from ragmetrics.logs import GoldenSet, ReadCounts, find_inputs, find_logs, golden_set
from ragmetrics.metrics import METRICS
from ragmetrics.people import ask_canaries, read_labels
from ragmetrics.pipeline.doctor_logs import logs_text
from ragmetrics.pipeline.doctor_rules import DoctorWarning, rules_text
from ragmetrics.pipeline.prefect_events import EventError, check_api, events_api
from ragmetrics.pipeline.store_check import check_store, sentence
from ragmetrics.plugins import Kind
from ragmetrics.records import LEAST_RIGHT, LogRow
from ragmetrics.rules import CHECKS, check_rules, shutdown_of
from ragmetrics.scoring import check_judging, chosen_metrics
from ragmetrics.storage import Files, open_store
from ragmetrics.text import plural
from retrieval_nightly import replaced

_WRITTEN = ("rows", "scores", "runs", "alerts", "dashboard")
"""Folders of the store that every night writes to; a bucket may refuse some of them."""

_NEVER_THERE = ".missing"
"""A file that nobody writes."""
SECONDS = 20.0
"""Longest time that a judge or an embedder may take."""
_ROWS = 200
"""Rows whose language is looked at."""

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    state: State
    text: str


def examine(
    settings: Settings, day: date, *, ask: bool = False, file: str | None = None
) -> Iterator[Check]:
    """Check settings, logs, golden set, labels, store, logs of builds, judges, channels and
    Prefect, one by one.

    `day` is the night whose logs are looked for. With `ask`, each judge and embedder behind a
    network gets one small request, and a judge ten more (canaries): a fraction of a cent. `file` is
    the settings file; empty: there is none, and these are the default settings.
    """
    if file == "":
        text = f"no ragmetrics.yaml in {Path.cwd()}: these are the default settings"
        yield Check("settings file", "warning", text)
    yield from _installation(settings)
    valid = _checked("settings", partial(_settings, settings, file))
    yield valid
    for kind, named in _plugins_of(settings):
        if kind.foreign_names or kind.problems(()):
            yield _checked(f"{kind.noun}s of other packages", partial(_plugins, kind, named))
    yield _checked("logs", partial(logs_text, settings, day))
    if valid.state != "failed":  # rules of settings that are wrong say nothing
        yield _checked("alert rules", partial(rules_text, settings, day))
    if settings.golden:
        yield _checked("golden set", partial(_golden, settings))
    if settings.labels:
        yield _checked("labels", partial(_labels, settings))
    yield _checked("store", partial(_store, settings))
    builds = Files(settings.gate.folder, settings.storage_options)
    if builds.local is None or builds.local.exists():
        yield _checked("gate logs", partial(_gate_logs, settings, builds))
    for judge in settings.panel:
        asked = day if ask else None
        yield _checked(f"judge {judge.name}", partial(judge_text, settings, judge, asked))
    if _embeds(settings):
        yield _checked("embeddings", partial(_embeddings, settings, ask))
    yield from _deliveries(settings)


def _deliveries(settings: Settings) -> Iterator[Check]:
    """Where messages, scores and events of a night go."""
    for channel in channels(settings.alerts, open_store(settings)):
        yield _checked(channel.name, partial(_channel, channel))
    for name, problem in target_problems(settings).items():
        yield _checked(f"write-back to {name}", partial(_target, settings, name, problem))
    if os.environ.get("PREFECT_API_URL"):
        yield _checked("Prefect", _prefect)


def _installation(settings: Settings) -> Iterator[Check]:
    """That another project has replaced files of ours, or that a check of another package cannot be
    used, where it is so.
    """
    if warning := replaced():
        yield Check("installation", "failed", warning)
    for problem in CHECKS.problems(settings.alerts.checks):
        yield Check("checks of other packages", "warning", problem)


def _checked(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, "ok", look())
    except DoctorWarning as warning:
        return Check(name, "warning", str(warning))
    except RagmetricsError as error:
        return Check(name, "failed", str(error))


def _target(settings: Settings, name: str, problem: str) -> str:
    """What a tracing tool lacks, or what waits for it. A night works without it."""
    late = [one for one in waiting(open_store(settings)) if one.target == name]
    text = (
        f"{plural(len(late), 'night')} to be sent; {late[0].problem}" if late else "nothing waits"
    )
    if problem or late:
        raise DoctorWarning(problem or text)
    return f"the settings are complete; {text}"


def _settings(settings: Settings, file: str | None) -> str:
    check_rules(settings)
    also = check_judging(settings)
    check_judges(settings)
    where = f"{file}: " if file else ""
    text = f"{where}data set {settings.dataset}, {plural(len(settings.metrics), 'metric')}"
    return f"{text}; {also}" if also else text


def _plugins_of(settings: Settings) -> Iterator[tuple[Kind[Any], set[str]]]:
    """The kinds of plugins, each with the names in the settings."""
    metrics = ([item] if isinstance(item, str) else item for item in settings.metrics)
    yield METRICS, {name for names in metrics for name in names}
    yield JUDGES, {judge.kind.name for judge in settings.panel}
    yield PRESETS, {settings.preset} if settings.preset else set()
    yield PAGES, {*settings.pages}
    yield TARGETS, {*settings.write_back.targets} if settings.write_back else set()


def _plugins(kind: Kind[Any], named: set[str]) -> str:
    """The named ones of other packages can be used, and the others take no name of these."""
    left_out = kind.problems(())
    broken = kind.problems(named)[len(left_out) :]
    if broken:
        raise InputError("; ".join(broken))
    if left_out:
        raise DoctorWarning("; ".join(left_out))
    installed = {*kind.foreign_names}
    used = len(named & installed)
    return f"{used} of {len(installed)} are named in the settings; these can be used"


def _golden(settings: Settings) -> str:
    golden = GoldenSet(golden_set(settings))
    questions = len(golden.questions)
    if golden.rejected or not questions:
        reason = golden.rejected[0].reason if golden.rejected else "it has no question"
        raise InputError(f"{len(golden.rejected):,} rows cannot be read: {reason}")
    if golden.counts.note:
        raise DoctorWarning(f"{questions:,} questions\n{golden.counts.note}")
    return f"{questions:,} questions at {settings.golden}"


def _labels(settings: Settings) -> str:
    """How many labels can be read. A night works without them."""
    try:
        labels = read_labels(settings)
    except InputError as error:
        raise DoctorWarning(f"{error}; a night works without labels") from None
    text = f"{plural(len(labels.labels), 'label')} at {labels.place}"
    if labels.rejected or labels.problem or not labels.labels:
        reasons = [one for one in (labels.problem, *labels.rejected) if one]
        lost = f"{labels.rejected.total():,} cannot be read"
        raise DoctorWarning("; ".join([text, lost, *reasons[:3]]))
    return text


def _store(settings: Settings) -> str:
    files = open_store(settings)
    if folder := files.local:
        existed = folder.exists()
        files.check_writable(".")
        if not existed:
            folder.rmdir()
    else:
        for prefix in _WRITTEN:
            files.check_writable(prefix)
    _check_missing(files)
    text, looked = f"{files.uri()} can be read and written", check_store(files)
    if looked.of:
        text += f"; looked at {looked.read:,} of {plural(looked.of, 'file')}"
    if looked.damaged:
        count = plural(len(looked.damaged), "damaged file")
        listed = sentence(looked.damaged)
        raise DoctorWarning(f"{text}; {count}, without which nights go on: {listed}")
    if files.local is None and not settings.dashboard_url:
        text += "; without dashboard_url, messages have no link that people can open"
        raise DoctorWarning(text)
    return text


def _gate_logs(settings: Settings, builds: Files) -> str:
    """Look at the folder of `gate: logs:`. A gate with a retriever writes there too."""
    find_logs(settings.gate.place_of("none"), settings.storage_options)
    _check_missing(builds)
    if settings.retriever is None:
        return f"{builds.uri()} can be read"
    builds.check_writable(".")
    return f"{builds.uri()} can be read and written"


def _check_missing(files: Files) -> None:
    """Raise InputError where a bucket answers for a file that does not exist as for one that may
    not be read: nothing that is written once could begin.
    """
    try:
        files.find(_NEVER_THERE)
    except StoreError as error:
        if not isinstance(error.__cause__, PermissionError):
            raise
        raise InputError(
            f"{error}: there is no such file, and the bucket has to say so (404): allow "
            "s3:GetObject, and s3:ListBucket where a request has no s3:prefix (StringLikeIfExists "
            "in deployments/aws/worker-policy.json)"
        ) from None


def _embeds(settings: Settings) -> bool:
    try:
        return any(metric.embeds for metric in chosen_metrics(settings))
    except InputError:  # the first check has said so
        return False


def _embeddings(settings: Settings, ask: bool) -> str:
    brief = {"retries": 0, "deadline_seconds": SECONDS}
    judges = tuple(one.model_copy(update=brief) for one in settings.panel)
    embedder = make_embedder(settings.model_copy(update={"judges": judges}))
    if embedder.cacheable and not ask:  # only vectors of a network are cached
        return f"{embedder.name}; it was not asked (--ask)"
    return f"{embedder.name} gave a vector of {run_coroutine(_embed(embedder)):,} numbers"


async def _embed(embedder: Embedder) -> int:
    try:
        return len(await embedder.embed("word"))
    finally:
        await embedder.close()


def _prefect() -> str:
    try:
        return check_api(events_api())
    except EventError as error:
        if error.transient:  # its server may be started later
            raise DoctorWarning(str(error)) from None
        raise


def _channel(channel: Any) -> str:
    if channel.missing_variable:
        raise DoctorWarning(f"{channel.missing_variable} is not set: messages wait in the store")
    return str(channel.verify())


def judge_text(settings: Settings, judge: JudgeSettings, day: date | None) -> str:
    """What the judge's endpoint said; with a `day` also what it says of the canaries, in the
    language of that night's log. Raises DoctorWarning for one that fails them, or whose model ends
    soon.
    """
    text = _answers(settings, judge, day)
    if ending := shutdown_of(judge, datetime.now(UTC).date(), settings):
        raise DoctorWarning(f"{text}; {ending}")
    return text


def _answers(settings: Settings, judge: JudgeSettings, day: date | None) -> str:
    if not judge.remote:
        (local,) = make_judges(settings.model_copy(update={"judges": (judge,)}))
        return f"{local.name} runs on this machine"
    text = run_coroutine(probe_judge(judge, ask=day is not None))
    if judge.begins_with_row:
        text += "; prompts begin with the row (prompt_layout)"
    if not day:
        return text
    brief = judge.model_copy(update={"retries": 0, "deadline_seconds": SECONDS})
    asked = ask_canaries(settings, brief, _languages(settings, day))
    if asked is None:
        return text
    report, _ = asked
    least = settings.alerts.limit("canaries", LEAST_RIGHT)
    text += f"; {report.text}"
    if report.fails(least):
        advice = "scores by it would mean nothing, so take another model, or a larger one"
        raise DoctorWarning(f"{text}, at least {least:g} are needed: {advice}")
    if report.right < least:  # some have no reply
        raise DoctorWarning(f"{text}; doctor waits {SECONDS:g} s, a night waits `deadline_seconds`")
    return text


def _languages(settings: Settings, day: date) -> list[str | None]:
    """The languages of the first rows of a night; none where these cannot be read."""
    try:
        (logs,) = find_inputs(settings.model_copy(update={"golden": None}), day).logs
        some = list(islice(logs.read(ReadCounts()), _ROWS))
    except RagmetricsError:  # the check of the logs has said so
        return []
    return [row.language for row in some if isinstance(row, LogRow)]
