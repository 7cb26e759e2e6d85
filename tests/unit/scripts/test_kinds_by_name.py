"""The search for code that asks for a plugin by its name finds each way to ask; there is none."""

from __future__ import annotations

import pytest

from scripts.kinds_by_name import findings, judges, main, uses, uses_in_page


@pytest.mark.parametrize(
    "source",
    [
        "x = judge.name == 'rerank'",
        "x = judge.name not in ('lexical', 'learned')",
        "x = 'openai-batch' == judge.name",
        "x = judge.name.startswith('recorded:')",
        "x = isinstance(judge, RecordedJudge)",
        "x = isinstance(judge, (int, base.LearnedJudge, LexicalJudge))",
        "match judge.name:\n    case 'local':\n        pass",
        "x = {'local': 1}.get('local')",
    ],
)
def test_each_way_to_ask_is_found(source: str) -> None:
    """By a comparison, by the beginning of the name, or by the class."""
    assert list(uses(source, judges()))


@pytest.mark.parametrize(
    "source",
    ["x = judge.kind.writes", "x = 'rerank'", "x = isinstance(judge, KnowsLayout)", "x = y == 'a'"],
)
def test_what_asks_for_an_ability_is_not(source: str) -> None:
    """A name may be written and shown."""
    assert not list(uses(source, judges()))


@pytest.mark.parametrize(
    "source",
    [
        "x = finding.kind == 'quarantine'",
        "x = finding.kind in ('metric', 'quarantine')",
        "x = 'quarantine' != finding.cause.kind",
        "LASTING = ('quarantine',)\nx = finding.kind in LASTING",
        "match finding.kind:\n    case 'quarantine':\n        pass",
    ],
)
def test_each_comparison_of_a_findings_kind_is_found(source: str) -> None:
    """Also with a name that the module gives to texts."""
    assert "quarantine" in [name for _, name in uses(source, findings())]


def test_a_level_of_a_findings_name_is_none() -> None:
    """`no_data` is both."""
    assert not list(uses("x = finding.level == 'no_data'", findings()))


@pytest.mark.parametrize(
    "source",
    [
        '{% if one.kind == "quarantine" %}bad{% endif %}',
        '{{ all | selectattr("kind", "equalto", "quarantine") | list }}',
        'if (one.kind !== "quarantine") bad();',
    ],
)
def test_a_page_that_compares_a_kind_is_found(source: str) -> None:
    """In templates and in scripts."""
    assert list(uses_in_page(source, findings())) == [(1, "quarantine")]


def test_no_code_asks_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """`make check` runs the same search."""
    assert main() == 0, capsys.readouterr().out
