"""rules/night_check.py: checks of a night, those of other packages too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import AlertSettings, make_settings
from ragmetrics.delivery.message_samples import sample_messages
from ragmetrics.errors import InputError, SettingsError
from ragmetrics.pipeline import run_night
from ragmetrics.records import Finding, Manifest
from ragmetrics.rules import CHECKS, check_of, check_rules
from ragmetrics.testing import check_check
from tests.builders import night_values
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.plugins import plugin_site

pytestmark = pytest.mark.usefixtures("without_pages")

HOUSE = '''
from ragmetrics.rules import Limit, Sample, check


@check(
    "few_rows",
    "few rows",
    limit=Limit(30, 1, 1_000),
    sample=Sample("Few rows", "at least 30 rows", "12 rows, fewer than 30"),
)
def few_rows(tonight):
    """The log has fewer rows than a night should have.

    One finding a night.
    """
    rows = tonight.manifest.source.rows
    level = "breach" if rows < tonight.limit else "ok"
    yield tonight.finding(level, f"at least {tonight.limit:g} rows", f"{rows} rows")
'''
Evaluate = Callable[..., Manifest]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install packages, as `plugin_site` says."""
    with plugin_site(tmp_path, monkeypatch) as put:
        yield put


@pytest.fixture
def evaluate(tmp_path: Path) -> Evaluate:
    """The manifest of a night of twelve rows, by some checks in the settings."""

    def run(rules: Sequence[Mapping[str, Any]] = (), **checks: float | None) -> Manifest:
        write_jsonl(tmp_path / f"logs/dt={NIGHT}/log.jsonl", make_rows(12))
        values = night_values(
            tmp_path,
            dataset="demo",
            metrics=["context_relevance"],
            alerts={"checks": checks, "rules": rules},
            shards=1,
        )
        return run_night(make_settings(values), NIGHT).manifest

    return run


def of_kind(manifest: Manifest, kind: str) -> list[Finding]:
    """The findings of a kind."""
    return [finding for finding in manifest.findings if finding.kind == kind]


def test_a_check_of_another_package_is_asked_where_it_is_named(
    install: Callable[..., None], evaluate: Evaluate
) -> None:
    """Its finding is in the manifest, its sample among the messages; without its name it is not
    even loaded.
    """
    install("ragmetrics.checks", "house", HOUSE, "few_rows")
    assert not of_kind(evaluate(), "few_rows")
    assert "few_rows" not in CHECKS.used_names
    (finding,) = of_kind(evaluate(few_rows=None), "few_rows")
    assert (finding.key, finding.level, finding.state) == ("demo/few_rows", "breach", "firing")
    assert (finding.severity, finding.message) == ("warning", "12 rows")
    check_check(CHECKS.find("few_rows"))
    assert "Few rows" in [title for title, _ in sample_messages()]


def test_the_settings_change_its_limit(install: Callable[..., None], evaluate: Evaluate) -> None:
    """Within the bounds that it says."""
    install("ragmetrics.checks", "house", HOUSE, "few_rows")
    assert of_kind(evaluate(few_rows=10), "few_rows")[0].level == "ok"
    with pytest.raises(InputError, match="checks: few_rows: should be from 1 to 1000"):
        evaluate(few_rows=0)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit(1)\n", "check 'few_rows' of house cannot be imported"),
        (HOUSE.replace("rows = tonight", "rows = yesterday"), "failed: NameError"),
        (HOUSE.replace("yield tonight.finding(level", "yield str(level"), "failed: TypeError"),
        (HOUSE.replace("yield tonight.finding", "yield "), "something else than findings"),
        (f'{HOUSE}    yield tonight.finding("ok", "", "")', "returned two findings of one key"),
        (HOUSE.replace('"few rows",', "halts=True,"), "only a bundled check may have halts"),
        (HOUSE.replace('"few rows",', 'needs="rows",'), "needs: should be a list of some of: rows"),
        (HOUSE.replace('"few rows",', 'needs=["moon"],'), "needs: should be a list of some of"),
    ],
    ids=["import", "error", "call", "no finding", "twice", "too much", "a word", "unknown"],
)
def test_a_broken_one_costs_itself_alone(
    install: Callable[..., None], evaluate: Evaluate, source: str, reason: str
) -> None:
    """The night is scored, all other checks are there, and a warning says what is wrong."""
    install("ragmetrics.checks", "house", source, "few_rows")
    manifest = evaluate(few_rows=None)
    (finding,) = of_kind(manifest, "few_rows")
    assert reason in finding.message
    assert (finding.severity, finding.state) == ("warning", "firing")
    assert manifest.metrics[0].scored == 12
    assert of_kind(manifest, "quarantine")


def test_a_finding_about_a_metric_leaves_its_rules(
    install: Callable[..., None], evaluate: Evaluate
) -> None:
    """Only a bundled check says that a metric cannot be trusted tonight."""
    source = HOUSE.replace('f"{rows} rows")', 'f"{rows} rows", metric="context_relevance")')
    install("ragmetrics.checks", "house", source, "few_rows")
    manifest = evaluate(rules=[{"metric": "context_relevance", "min": 0.1}], few_rows=None)
    assert of_kind(manifest, "few_rows")[0].metric == "context_relevance"
    assert of_kind(manifest, "metric")


def test_no_check_has_the_name_of_rules(install: Callable[..., None]) -> None:
    """Its findings would count as those of rules."""
    install("ragmetrics.checks", "house", HOUSE.replace("few_rows", "metric"), "metric")
    settings = make_settings({"alerts": {"checks": {"metric": None}, "rules": []}})
    with pytest.raises(InputError, match="checks: metric: findings of rules have this name"):
        check_rules(settings)


def test_a_switch_is_no_limit() -> None:
    """`quarantine: true` would be a limit of 100%, which never fires."""
    with pytest.raises(SettingsError, match=r"alerts\.checks\.quarantine: should be a number"):
        make_settings({"alerts": {"checks": {"quarantine": True}}})


def test_an_unknown_name_is_an_error_of_the_settings() -> None:
    """The night does not begin, and the message names the checks that there are."""
    settings = make_settings({"alerts": {"checks": {"few_rows": 3}, "rules": []}})
    with pytest.raises(InputError, match=r"no check 'few_rows'; there are: .*quarantine"):
        check_rules(settings)


def test_a_limit_for_a_check_without_one_is_an_error() -> None:
    """Rather than a number that nothing reads."""
    settings = make_settings({"alerts": {"checks": {"no_data": 3}, "rules": []}})
    with pytest.raises(InputError, match="no_data has no limit"):
        check_rules(settings)


def test_the_limit_of_a_bundled_check_has_two_keys() -> None:
    """The one beside the others comes first, and the one of earlier versions is still read."""
    quarantine = CHECKS.find("quarantine")
    assert quarantine.limit_of(AlertSettings(max_quarantined=0.2)) == 0.2
    both = AlertSettings(max_quarantined=0.2, checks={"quarantine": 0.3})
    assert quarantine.limit_of(both) == both.limit("quarantine") == 0.3
    declines = AlertSettings(slow_decline=None)
    assert (declines.limit("slow_decline"), declines.limit("few_rows", 30)) == (None, 30)


def test_a_kind_that_this_version_does_not_know_is_read_and_named() -> None:
    """As in a store that a package wrote which is not installed here."""
    raw = {"key": "demo/few_rows", "kind": "few_rows", "level": "ok", "rule": "", "message": ""}
    check = check_of(Finding.model_validate(raw))
    assert (check.term, check.halts, check.lasting) == ("few rows", False, True)
