"""The minimum detectable effect beside each metric: on the night's page and on the terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from scipy import stats

from ragmetrics.cli import print_summary
from ragmetrics.cli.table import make_console
from ragmetrics.dashboard.cards import cards
from ragmetrics.records import Manifest, Segment
from ragmetrics.storage import Files
from tests.fakes.nights import finding, night, summary
from tests.fakes.page_writing import write_night
from tests.fakes.past import NOISY, a_night, metric_findings, recall, scores, uneven


def detects(manifest: Manifest) -> str:
    """What the first card says."""
    return cards(manifest, [])[0].detects


def printed(manifest: Manifest) -> str:
    """The table of a night on a terminal of 80 columns."""
    console = make_console(file=io.StringIO(), width=80)
    print_summary(console, manifest)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_mean_says_what_it_could_tell_from_a_level() -> None:
    """Of forty questions with a spread of 0.2: about 2.5 standard errors, and a little for what
    was not seen.
    """
    (one,) = a_night(scores(NOISY)).manifest.metrics
    assert one.mde == pytest.approx(2.5 * 0.2 / 40**0.5, rel=0.1)


def test_a_drop_says_what_its_rule_could_show() -> None:
    """Questions that fell nearly alike show far less than their means, which differ: little more
    than the limit, which the estimate has to be above.
    """
    now = [value - 0.09 - 0.02 * (place % 4 < 2) for place, value in enumerate(NOISY)]
    tonight, earlier = a_night(scores(now)), a_night(scores(NOISY), ago=1)
    (found,) = metric_findings(recall(max_drop=0.05), tonight, earlier)
    assert found.mde == pytest.approx(0.05 + 0.85 * 0.01 / 40**0.5, abs=0.001)
    assert (found.mde or 1.0) < (tonight.manifest.metrics[0].mde or 0.0)


def test_more_rules_show_less() -> None:
    """Each of ten rules has to be surer than one alone: at 0.001 in place of 0.01, and of either a
    third, as `for: 2` makes three comparisons."""
    tonight, earlier = a_night(scores(uneven(0.1))), a_night(scores([0.5] * 20), ago=1)
    (alone,) = metric_findings(recall(max_drop=0.01), tonight, earlier)
    ten = [rule for place in range(10) for rule in recall(max_drop=0.01 + place / 1_000)]
    among = metric_findings(ten, tonight, earlier)[0]
    errors = [
        float(stats.t.ppf(1 - alpha / 3, 19) + stats.t.ppf(0.8, 19)) for alpha in (0.01, 1e-3)
    ]
    assert alone.mde is not None
    assert among.mde == pytest.approx(alone.mde * errors[1] / errors[0])


def test_a_card_says_it_in_words() -> None:
    """Where a rule compared the whole night with others, that comparison's; else the mean's."""
    plain = night(metrics=[summary("context_recall", 0.9, mde=0.0312)], findings=[])
    assert detects(plain) == "smallest detectable drop 0.031"
    compared = finding(mde=0.012, drop=0.001, baseline=0.9, baseline_label="7 nights before")
    watched = plain.model_copy(update={"findings": [compared]})
    assert detects(watched) == "smallest detectable drop 0.012 compared with 7 nights before"
    of_segment = compared.model_copy(update={"segment": Segment(tag="team", value="a")})
    assert "0.031" in detects(plain.model_copy(update={"findings": [of_segment]}))


def test_the_page_of_the_night_shows_it(tmp_path: Path) -> None:
    """On the card of the metric."""
    files = Files(str(tmp_path))
    one = night(metrics=[summary("context_recall", 0.9, mde=0.0312)], findings=[], worst=[])
    page = files.read(write_night(files, one, [], [])).decode()
    assert "Smallest detectable drop 0.031" in page


def test_where_lower_is_better_a_rise_is_seen() -> None:
    """That is what would be worse."""
    one = summary("noise_sensitivity", 0.2, mde=0.05, higher_is_better=False)
    assert detects(night(metrics=[one], findings=[])) == "smallest detectable rise 0.050"


def test_the_table_has_a_column_for_it() -> None:
    """With a line that says what it means; nights of an earlier version have neither."""
    shown = printed(night(metrics=[summary("context_recall", 0.9, mde=0.0312)], findings=[]))
    assert shown.split()[:5] == ["metric", "mean", "95%", "interval", "smallest"]
    assert "0.031" in shown
    assert "found with a probability of 80%" in shown
    assert "detectable" not in printed(night(metrics=[summary("context_recall", 0.9)], findings=[]))
