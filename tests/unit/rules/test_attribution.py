"""Which values of the tags carry a drop: parts that sum to it, and names only where it is sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragmetrics.rules.attribution import Attribution, Contributor, TaggedRows, attribute_drop

SECTIONS = ("billing", "setup", "api", "legal")


def rows(values: Sequence[float], prefix: str = "q", **tags: Sequence[str | None]) -> TaggedRows:
    """One row per question."""
    return TaggedRows([f"{prefix}{i}" for i in range(len(values))], values, tags)


def carried(before: TaggedRows, now: TaggedRows) -> Attribution:
    """The parts, which there must be."""
    found = attribute_drop(before, now)
    assert found is not None
    return found


def the(found: Attribution, value: str | None) -> Contributor:
    """The part of one value."""
    (one,) = [carrier for carrier in found.carriers if carrier.value == value]
    return one


def names(found: Attribution) -> list[str | None]:
    """The values named."""
    return [one.value for one in found.named]


def nights(
    fall: Mapping[str, float], *, per: int = 40, paired: bool = True, seed: int = 1
) -> tuple[TaggedRows, TaggedRows]:
    """Two nights with so many questions per section, some of which fell."""
    random = np.random.default_rng(seed)
    sections = [name for name in SECTIONS for _ in range(per)]
    base = random.uniform(0.4, 0.9, len(sections))
    other = base if paired else random.uniform(0.4, 0.9, len(sections))
    lost = np.array([fall.get(name, 0.0) for name in sections])
    noise = random.normal(0, 0.05, (2, len(sections)))
    before = rows(base + noise[0], section=sections)
    now = rows(other - lost + noise[1], "q" if paired else "n", section=sections)
    return before, now


# Who carries it


@pytest.mark.parametrize("paired", [True, False])
def test_the_section_that_fell_carries_the_drop(paired: bool) -> None:
    """It alone is named, with nearly the whole share."""
    found = carried(*nights({"api": 0.3}, paired=paired))
    assert found.paired == paired
    assert names(found) == ["api"]
    assert found.carriers[0].value == "api"
    assert found.carriers[0].share == pytest.approx(1.0, abs=0.25)
    assert found.carriers[0].drop == pytest.approx(0.3, abs=0.06)


@pytest.mark.parametrize("paired", [True, False])
def test_two_sections_carry_it_together(paired: bool) -> None:
    """Each against the rest, though the rest holds the other."""
    found = carried(*nights({"api": 0.3, "legal": 0.3}, paired=paired))
    assert sorted(str(name) for name in names(found)) == ["api", "legal"]


@pytest.mark.parametrize("paired", [True, False])
def test_a_drop_everywhere_is_carried_by_nobody(paired: bool) -> None:
    """All fell alike: no section is named, and the shares are what they weigh."""
    found = carried(*nights(dict.fromkeys(SECTIONS, 0.2), paired=paired))
    assert names(found) == []
    assert found.drop == pytest.approx(0.2, abs=0.05)
    if paired:
        assert [carrier.share for carrier in found.carriers] == pytest.approx([0.25] * 4, abs=0.05)


def test_tags_are_one_family() -> None:
    """A tag that has nothing to do with the drop names nothing beside the one that has."""
    before, now = nights({"api": 0.3})
    coin = [str(i % 2) for i in range(len(before.values))]
    sides = [TaggedRows(s.questions, s.values, {**s.tags, "coin": coin}) for s in (before, now)]
    found = carried(*sides)
    assert [(one.tag, one.value) for one in found.named] == [("section", "api")]


# Weights, new and gone


def test_more_rows_of_a_poor_kind_are_mix() -> None:
    """Nothing got worse: there are only more of the questions that were always poor."""
    random = np.random.default_rng(3)

    def night(poor: int, prefix: str) -> TaggedRows:
        kind = ["poor"] * poor + ["good"] * (300 - poor)
        level = np.where(np.array(kind) == "poor", 0.3, 0.9)
        return rows(level + random.normal(0, 0.05, 300), prefix, kind=kind)

    found = carried(night(60, "a"), night(180, "b"))
    assert found.drop == pytest.approx(0.24, abs=0.02)
    within = sum(carrier.within for carrier in found.carriers)
    assert abs(within) < 0.02
    assert sum(carrier.mix for carrier in found.carriers) == pytest.approx(0.24, abs=0.02)
    assert sorted(str(name) for name in names(found)) == ["good", "poor"]


def test_a_value_that_is_gone_carries_what_it_was_better_by() -> None:
    """The good source is no longer there, so the poor one weighs more: mix, half and half."""
    sources = ["handbook"] * 100 + ["wiki"] * 100
    values = np.repeat([0.9, 0.5], 100) + np.tile([-0.05, 0.05], 100)
    before = rows(values, "a", source=sources)
    now = rows(values[100:], "b", source=["wiki"] * 100)
    found = carried(before, now)
    gone = the(found, "handbook")
    assert (gone.within, gone.drop, gone.questions) == (0.0, None, 0)
    assert (gone.mix, the(found, "wiki").mix) == pytest.approx((0.1, 0.1))
    assert found.drop == pytest.approx(0.2)
    assert gone.named


@pytest.mark.parametrize("prefix", ["q", "other"], ids=["paired", "unpaired"])
def test_a_new_index_build_is_named_where_all_rows_are_its_own(prefix: str) -> None:
    """Every row of tonight comes from a build that no row of before came from."""
    values = np.tile([0.7, 0.9], 50)
    before = rows(values, index_build=["b1"] * 100)
    now = rows(values - np.tile([0.2, 0.1], 50), prefix, index_build=["b2"] * 100)
    found = carried(before, now)
    new = the(found, "b2")
    assert (new.is_new, new.named, new.share) == (True, True, pytest.approx(1.0))
    assert new.drop == pytest.approx(0.15)
    assert names(found) == ["b2"]


@pytest.mark.parametrize("prefix", ["q", "other"], ids=["paired", "unpaired"])
def test_a_new_build_on_half_of_the_rows_is_told_from_the_old_one(prefix: str) -> None:
    """The rows that still come from the old build did not fall."""
    random = np.random.default_rng(4)
    values = random.uniform(0.6, 0.9, 200)
    builds = ["b1", "b2"] * 100
    now = values - np.where(np.array(builds) == "b2", 0.3, 0.0) + random.normal(0, 0.03, 200)
    found = carried(rows(values, index_build=["b1"] * 200), rows(now, prefix, index_build=builds))
    assert names(found) == ["b2"]
    assert the(found, "b2").is_new
    assert the(found, "b2").share == pytest.approx(1.0, abs=0.2)


def test_a_value_that_always_has_all_rows_is_not_tested() -> None:
    """It is the whole drop, and explains nothing."""
    before, now = rows([0.9, 0.8, 0.9], language=["en"] * 3), rows([0.1] * 3, language=["en"] * 3)
    (only,) = carried(before, now).carriers
    assert (only.share, only.p_value, only.named) == (pytest.approx(1.0), None, False)


def test_rows_without_the_tag_are_a_value_of_their_own() -> None:
    """NaN, as pandas has it, and None are the same: no tag."""
    before = rows([0.9, 0.8, 0.9, 0.7] * 10, section=["api", None, "api", None] * 10)
    tags: list[str | None] = ["api", float("nan"), "api", None] * 10  # type: ignore[list-item]
    now = rows([0.9, 0.2, 0.8, 0.1] * 10, section=tags)
    found = carried(before, now)
    assert {carrier.value for carrier in found.carriers} == {"api", None}
    assert names(found) == [None]


def test_one_question_in_several_values_shares_its_vote() -> None:
    """Two rows of a question, one per region: what the region's own row lost counts half."""
    questions = [f"q{i // 2}" for i in range(80)]
    regions = ["eu", "us"] * 40
    jitter = np.tile([0.01, -0.01, 0.0, 0.02], 20)
    before = TaggedRows(questions, 0.8 + jitter, {"region": regions})
    now = TaggedRows(questions, np.tile([0.4, 0.8], 40) + jitter, {"region": regions})
    found = carried(before, now)
    assert found.drop == pytest.approx(0.2)
    assert the(found, "eu").within == pytest.approx(0.2, abs=0.01)
    assert names(found) == ["eu"]


def test_only_shared_questions_count_where_they_pair() -> None:
    """New questions change the mix, not what is explained."""
    before, now = nights({"api": 0.3})
    more = TaggedRows(
        [*now.questions, "x", "y"],
        [*now.values, 0.0, 0.0],
        {"section": [*now.tags["section"], "z", "z"]},
    )
    assert carried(before, more) == carried(before, now)


# Nothing to say


def test_too_few_questions_say_nothing() -> None:
    """One question on a side: None."""
    assert attribute_drop(rows([0.5]), rows([0.4], "n")) is None
    assert attribute_drop(rows([]), rows([])) is None


def test_nothing_that_dropped_has_no_shares() -> None:
    """A share of no drop is no number, and who rose carries nothing."""
    found = carried(*nights(dict.fromkeys(SECTIONS, -0.1)))
    assert {carrier.share for carrier in found.carriers} == {None}
    assert names(found) == []


# Always


sides = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.floats(0, 1), st.sampled_from(["x", "y", "z", None])),
    min_size=2,
    max_size=15,
)


@given(sides, sides, st.booleans())
def test_the_parts_sum_to_the_drop(
    first: list[tuple[str, float, str | None]],
    second: list[tuple[str, float, str | None]],
    apart: bool,
) -> None:
    """Whatever the questions, their repeats and their values: no part of the drop is lost."""
    before = TaggedRows(
        *(list(column) for column in list(zip(*first, strict=True))[:2]),
        {"t": [r[2] for r in first]},
    )
    asked = [("other " if apart else "") + row[0] for row in second]
    now = TaggedRows(asked, [row[1] for row in second], {"t": [row[2] for row in second]})
    found = attribute_drop(before, now)
    if found is not None:
        assert sum(one.within + one.mix for one in found.carriers) == pytest.approx(found.drop)
        assert all(one.p_value is None or 0 <= one.p_value <= 1 for one in found.carriers)


def test_nobody_is_named_by_chance() -> None:
    """A drop that is everywhere, over and over: a name in at most 5%; 200 trials allow for 20."""
    everywhere = dict.fromkeys(SECTIONS, 0.1)
    for paired in (True, False):
        named = sum(
            bool(carried(*nights(everywhere, paired=paired, seed=seed)).named)
            for seed in range(200)
        )
        assert named <= 20
