"""Checks of a night: each is one file of `checks/`, or an entry point of another package.

A check returns findings of its own kind. All else that depends on the kind is said here too: its
limit, its words, what it explains, and what it does to other alerts. So no reader of a finding
compares its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.errors import InputError
from ragmetrics.plugins import Kind, UnusablePlugin
from ragmetrics.records import Finding, Level, Manifest, Severity
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.rule_check import RuleCheck

RULES_ORDER = 100
"""The place of the findings of rules among those of checks."""
Stage: TypeAlias = Literal["night", "scores", "rules"]
Need: TypeAlias = Literal["rows", "earlier nights", "labels", "a judge's level"]
Evaluate: TypeAlias = Callable[["Tonight"], Iterable[Finding]]
Title: TypeAlias = str | Callable[[Finding, int], str]
Explains: TypeAlias = Callable[[Finding, Finding, Manifest], bool]


@dataclass(frozen=True)
class Limit:
    """The limit of a check, from `least` to `most`. `alerts: checks: NAME: LIMIT` changes it.

    A bundled check of earlier versions has its `default` in the settings (`limit_keys`): a new one
    gives it here.
    """

    default: float = 0.0
    least: float = 0.0
    most: float = 1.0


@dataclass(frozen=True)
class Sample:
    """A finding of a made-up night, whose message `ragmetrics alerts preview --sample` shows."""

    title: str
    rule: str
    message: str
    level: Level = "breach"
    key: str = ""
    """The end of its key, after the name of the check."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the finding."""
    night: Mapping[str, Any] = field(default_factory=dict)
    """Fields in which the night differs from the other samples."""


@dataclass(frozen=True, eq=False)
class Check:
    """A check of a night; `@check(...)` makes one of a function that returns its findings.

    The first paragraph of its docstring is the definition for the glossary. The function returns an
    `ok` finding too: without one, a firing alert cannot resolve. Level `breach` fires at once,
    `suspect` on the second night in a row.
    """

    name: str
    """The kind of its findings, and the beginning of their keys."""
    title: Title = ""
    """A few words for the title of a message, or a function of the finding and the number of
    metrics that have the same; empty: the name."""
    evaluate: Evaluate = field(default=lambda _: ())
    stage: Stage = "night"
    """When it is asked: `night` on every night; `scores` only on nights whose rules are evaluated,
    before them; `rules` after them."""
    after_rules: Evaluate = field(default=lambda _: ())
    """What it also returns after the rules."""
    needs: Sequence[Need] = ("rows",)
    """What a night has to have, that it is asked: rows to score, published nights before, labels of
    people, a labelled set that its judges scored before.
    """
    order: int = 95
    """Its place among the findings of a night, and among the causes that explain others."""
    cause_order: int | None = None
    """Its place among causes, where it is another one."""
    severity: Severity = "warning"
    """Severity of its findings, unless it says another one."""
    limit: Limit | None = None
    explains: Explains | None = None
    """Whether a finding of it explains another one in a night; that one is folded into it."""
    several: str = ""
    """How a message about several metrics begins: `judge {judge} failed in {metrics} metrics`."""
    lasting: bool = True
    """Whether it may last for weeks. One that does not last keeps unchecked alerts open."""
    halts: bool = False
    """Whether no rule is checked at its level `no_data`, which is then worse than a breach."""
    lacks: Literal["", "scores", "rows"] = ""
    """What the night lacks where it is not ok: all scores of a metric, or some rows."""
    needs_verdicts: bool = False
    """Whether its `no_data` means that the judge gave no verdicts."""
    ends_comparison: bool = False
    """Whether scores of the metrics in `affects` from before and after it are not comparable."""
    sample: Sample | None = None

    def __call__(self, evaluate: Evaluate) -> Check:
        """The check by a function, as `@check(...)` decorates one."""
        return replace(self, evaluate=evaluate)

    @property
    def term(self) -> str:
        """Its name as people read it: `stale log`."""
        return self.name.replace("_", " ")

    @property
    def definition(self) -> str:
        """What it is, in one or two sentences: the beginning of its docstring."""
        return " ".join((self.evaluate.__doc__ or "").partition("\n\n")[0].split())

    @property
    def cause_place(self) -> int:
        """Its place among causes."""
        return self.order if self.cause_order is None else self.cause_order

    def title_of(self, finding: Finding, metrics: int) -> str:
        """The title of one finding, which `metrics` metrics have."""
        title = self.title or self.term
        return title if isinstance(title, str) else title(finding, metrics)

    def skips(self, night: NightContext, settings: AlertSettings) -> bool:
        """Whether it is not asked on a night: for lack of what it needs, or of a limit."""
        has: Mapping[Need, object] = {
            "rows": not night.manifest.source.problem,
            "earlier nights": night.history or night.earlier,
            "labels": night.manifest.labels,
            "a judge's level": night.drifts or night.fixed_sets,
        }
        off = self.limit is not None and self.limit_of(settings) is None
        return off or not all(has[need] for need in self.needs)

    def key(self, dataset: str, end: str = "") -> str:
        """The key of an alert; `end` tells several of the check apart."""
        return "/".join(filter(None, (dataset, self.name, end)))

    def finding(
        self, dataset: str, level: Level, rule: str, message: str, *, key: str = "", **fields: Any
    ) -> Finding:
        """A finding of the check in a dataset. `key` ends its key."""
        fixed = {"key": self.key(dataset, key), "kind": self.name, "severity": self.severity}
        said = {"level": level, "rule": rule, "message": message}
        return Finding.model_validate({**fixed, **said, **fields})

    def made(self, finding: object, manifest: Manifest) -> bool:
        """Whether something is a finding of the check in a night, by its kind and its key."""
        if not isinstance(finding, Finding) or finding.kind != self.name:
            return False
        return f"{finding.key}/".startswith(f"{self.key(manifest.dataset)}/")

    def sample_finding(self, dataset: str) -> Finding:
        """The finding of its sample. Raises ValueError without one."""
        if (sample := self.sample) is None:
            raise ValueError(f"check {self.name} has no sample")
        said = sample.level, sample.rule, sample.message
        return self.finding(dataset, *said, key=sample.key, **sample.fields)

    def limit_of(self, settings: AlertSettings) -> float | None:
        """Its limit in the settings; None: it has none, or is not watched."""
        return settings.limit(self.name, self.limit.default) if self.limit else None


check = Check


def _refusal(plugin: Check) -> str:
    """Why a check of another package cannot be used: it says more than its own alert, or needs what
    no night has. A process that has not loaded the package must decide the same about all others.
    """
    plain = Check(plugin.name)
    other = [name for name in _OF_OTHERS if getattr(plugin, name) != getattr(plain, name)]
    if not isinstance(plugin.title, str):
        other.append("a function as title")
    if other:
        return f"only a bundled check may have {', '.join(other)}"
    known = get_args(Need)
    if isinstance(plugin.needs, list | tuple) and all(need in known for need in plugin.needs):
        return ""
    return f"needs: should be a list of some of: {', '.join(known)}"


_OF_OTHERS = (
    *("explains", "several", "cause_order", "lasting", "halts", "lacks"),
    *("needs_verdicts", "ends_comparison"),
)
"""What a check says about other alerts, and about numbers."""
CHECKS = Kind("ragmetrics.checks", "ragmetrics.rules.checks", Check, "check", _refusal)


@dataclass(frozen=True)
class Tonight:
    """What a check is asked about: the night, and after the rules also what they found.

    `manifest.source` has the counts of what was read. Tonight's rows are in the table of each of
    `night.scores`, also those without a value: `MetricScores.table` names its columns.
    """

    check: Check
    settings: AlertSettings
    night: NightContext
    rules: Sequence[Rule] = ()
    cases: Sequence[RuleCheck] = ()
    findings: Sequence[Finding] = ()
    """The findings of the rules."""

    @property
    def manifest(self) -> Manifest:
        """The night's manifest so far."""
        return self.night.manifest

    @property
    def limit(self) -> float:
        """The limit of the check."""
        limit = self.check.limit_of(self.settings)
        if limit is None:
            raise InputError(f"check {self.check.name} has no limit")
        return limit

    @property
    def history(self) -> Sequence[Manifest]:
        """The earlier nights, as far back as they were read."""
        return self.night.history or self.night.earlier

    @property
    def key(self) -> str:
        """The key of the alert of a check that has one."""
        return self.check.key(self.manifest.dataset)

    @property
    def is_open(self) -> bool:
        """Whether this alert was not ok on the last night."""
        last = self.history[-1].findings if self.history else []
        return any(finding.key == self.key and finding.state != "ok" for finding in last)

    @property
    def is_over(self) -> bool:
        """Whether this alert is open, and about a judge that is not tonight's."""
        judge = self.manifest.judge.fingerprint
        return self.is_open and self.history[-1].judge.fingerprint != judge

    def finding(
        self, level: Level, rule: str, message: str, *, key: str = "", **fields: Any
    ) -> Finding:
        """A finding of the check. `key` ends its key; `fields` are other fields of the record."""
        return self.check.finding(self.manifest.dataset, level, rule, message, key=key, **fields)


@cache
def bundled_checks() -> Sequence[Check]:
    """The checks of this project in their order."""
    return sorted(CHECKS.bundled.values(), key=lambda check: check.order)


def used_checks() -> list[Check]:
    """The bundled checks, and those of other packages that this process has loaded."""
    loaded = map(_check_of, CHECKS.used_names)
    return sorted(filter(None, loaded), key=lambda check: (check.order, check.name))


def check_of(finding: Finding) -> Check:
    """The check of a finding; a plain one for a kind that this process does not know."""
    return _check_of(finding.kind) or Check(finding.kind)


def _check_of(kind: str) -> Check | None:
    if kind not in CHECKS.used_names:
        return None
    try:
        return CHECKS.find(kind)
    except UnusablePlugin:
        return None


def suppresses_rules(finding: Finding) -> bool:
    """Whether no rule is checked because of a finding."""
    return finding.level == "no_data" and check_of(finding).halts


def suppresses_metric(finding: Finding) -> bool:
    """Whether no rule on its metric is checked because of a finding of a bundled check."""
    return finding.level == "breach" and finding.kind in CHECKS.bundled_names


def check_limits(settings: AlertSettings) -> None:
    """Raise InputError for a limit in `alerts: checks` that no check has, or that is beyond it."""
    for name, value in settings.checks.items():
        if Check(name).finding("", "ok", "", "").is_rule:
            raise InputError(f"alerts: checks: {name}: findings of rules have this name")
        try:
            limit = CHECKS.find(name).limit
        except UnusablePlugin:
            continue  # the night says so
        if value is None:
            continue
        if limit is None:
            raise InputError(f"alerts: checks: {name} has no limit; write {name}: null")
        if not limit.least <= value <= limit.most:
            raise InputError(
                f"alerts: checks: {name}: should be from {limit.least:g} to {limit.most:g}"
            )


def are_alike(one: Finding, other: Finding) -> bool:
    """Whether both findings have the same problem, now or as a resolution."""
    over = one.transition == other.transition == "resolved"
    return one.level == other.level and (over or one.level not in ("ok", "no_data"))


def lacks_data(finding: Finding) -> bool:
    """Whether a finding could not be evaluated tonight and was not closed."""
    return finding.level == "no_data" and finding.transition != "resolved"


def lacks_rows(finding: Finding, night: Manifest) -> bool:
    """Whether a rule has too few rows although most rows of its metric were scored: then the log
    lacks rows, not the metric.
    """
    summary = night.summary(finding.metric or "")
    if not (finding.is_rule and finding.for_nights and lacks_data(finding)) or summary is None:
        return False
    return 2 * summary.scored >= sum(summary.status.values())


def is_for_lack_of_logs(cause: Finding, finding: Finding, night: Manifest) -> bool:
    """Whether missing, old or broken logs explain that another finding has no data or few rows."""
    if lacks_data(cause):
        return lacks_data(finding)
    return cause.level == "breach" and lacks_rows(finding, night)
