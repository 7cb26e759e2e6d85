"""Calibrations on the dashboard: their page, and what a night's page says of its judge."""

from __future__ import annotations

import json
import logging
import re
from datetime import timedelta
from pathlib import Path

import pytest

from ragmetrics.config import JudgeSettings, make_settings
from ragmetrics.dashboard import calibration_markdown, refresh_dashboard
from ragmetrics.dashboard.calibration import segment_tables, standings, trusted
from ragmetrics.dashboard.pages.calibration import MOST_IN_FULL, drift_figure, reliability_figure
from ragmetrics.judges import Corpus
from ragmetrics.judges.factory import make_judge
from ragmetrics.people import History, calibrate, load_history
from ragmetrics.pipeline import run_night
from ragmetrics.records import (
    BrokenFile,
    Calibration,
    DriftUnknown,
    Figure,
    JudgeInfo,
    Manifest,
    MetricCalibration,
    MetricDrift,
)
from ragmetrics.scoring.metric_choice import panel_fingerprint
from ragmetrics.storage import Files, Runs, open_store
from tests.builders import night_settings
from tests.fakes.calibrations import (
    FIRST,
    agreement,
    calibration,
    drift_between,
    history,
    in_language,
    measured,
)
from tests.fakes.command import Run
from tests.fakes.labelled import make_labelled, write_judge
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import HOSTILE, night
from tests.fakes.page_writing import write_calibrations, write_night
from tests.fakes.pages import Outline, text


@pytest.fixture
def site(tmp_path: Path) -> Files:
    """An empty site."""
    return Files(str(tmp_path / "site"))


def page(site: Files, known: History) -> str:
    """The page of calibrations."""
    path = write_calibrations(site, known, "helpdesk")
    assert path is not None
    return site.read(path).decode()


def page_of_night(site: Files, *calibrations: Calibration, judge: JudgeInfo | None = None) -> str:
    """The page of a night by a judge, where these calibrations are known."""
    manifest = night(**({"judge": judge} if judge else {}))
    return site.read(write_night(site, manifest, [], [], calibrations)).decode()


def cells(html: str) -> str:
    """The words of a page with a space between cells."""
    return text(html.replace("<", " <"))


class TestPage:
    def test_without_calibrations_the_page_says_so(self, site: Files) -> None:
        """The header of every page leads to it."""
        path = write_calibrations(site, History())
        assert "No judge has been compared with labels yet" in site.read(path or "").decode()

    def test_every_figure_stands_with_its_interval(self, site: Files) -> None:
        """Units, statuses, kappas, AUC, the confusion table and the reliability table."""
        html = page(site, history(calibration()))
        told = cells(html)
        for words in (
            "100 contexts of 50 rows, 25.0% with a positive label, 3 unreadable verdict",
            "AUC, pooled 0.800 [0.75, 0.85]",
            "AUC, within row 0.800 [0.75, 0.85]",
            "kappa, quadratic 0.600 [0.55, 0.65]",
            "Cohen's kappa 0.600 [0.55, 0.65]",
            "Krippendorff's α 0.600",
            "Spearman 0.600",
            "accuracy 0.600",
            "calibration error 0.111",
            "label 0 60 80.0% 9 12.0% 6 8.0% label 1 5 20.0% 7 28.0% 13 52.0%",
            "0.8 to 0.9 30 0.850 0.600 [0.40, 0.80]",
            "use the strengths that the judge gives",
            "a baseline",
        ):
            assert words in told

    def test_a_fit_is_shown_with_its_calibration_error(self, site: Files) -> None:
        """The error of the strengths, that of the probabilities, and the name for the settings."""
        error = {"calibration_error": Figure(value=0.21, low=0.2, high=0.22)}
        fitted = Figure(value=0.034, low=0.02, high=0.06)
        metric = measured(overall=agreement(figures=error), error_after_fit=fitted)
        told = cells(page(site, history(calibration(metrics=[metric], fit="fit-c09b8a91486c"))))
        assert "calibration error 0.210 [0.20, 0.22]" in told
        assert "calibration error , fitted 0.034 [0.02, 0.06]" in told
        assert "calibration error 0.111" not in told
        assert "judge: calibration: fit-c09b8a91486c" in told

    def test_the_level_of_a_judge_is_shown_night_by_night(self, site: Files) -> None:
        """The mean verdict on a set that stays the same, beside the mean of people's labels."""
        known = history(*(calibration(week) for week in range(3)))
        (one,) = standings(known)
        levels = [(point.level, point.labelled) for point in one.points("context_relevance")]
        assert levels == [(pytest.approx(0.27), pytest.approx(0.25))] * 3
        told = cells(page(site, known))
        assert "Mean verdict (of people)" in told
        assert told.count("0.270 (0.250)") == 3

    def test_a_judge_that_drifted_stands_out(self, site: Files) -> None:
        """In words, with a sign, before the others, and in the trend."""
        known = history(
            calibration(judge="openai:a"),
            calibration(),
            calibration(1),
            drifted=("context_relevance",),
        )
        html = page(site, known)
        told = text(html)
        assert "1 drifted" in told
        assert "−0.300 [−0.35, −0.25]" in told
        assert told.index("lexical") < told.index("openai:a")
        assert '<tr class="is-firing">' in html
        assert "is-firing" not in page(site, history(calibration(), calibration(1)))

    def test_nothing_is_said_of_drift_after_one_calibration(self, site: Files) -> None:
        """It says so, and draws no trend."""
        told = text(page(site, history(calibration())))
        assert "first calibration" in told
        assert "Over time" not in told

    @pytest.mark.parametrize(
        ("untold", "words"),
        [
            ("too_few", "too few to tell"),
            ("nothing_shared", "no data: no unit was judged both times"),
            ("set_changed", "no data: the labelled set has changed"),
        ],
    )
    def test_where_nothing_can_be_told_of_drift_nothing_is_green(
        self, site: Files, untold: DriftUnknown, words: str
    ) -> None:
        """The state says why."""
        first, second = calibration(), calibration(1)
        silent = MetricDrift(metric="context_relevance", untold=untold)
        drift = drift_between(first, second).model_copy(update={"metrics": [silent]})
        html = page(site, History((first, second), (drift,)))
        assert words in text(html)
        assert "is-no_data" in html
        assert "is-ok" not in html
        assert "no drift shown" not in text(html)

    def test_a_metric_without_verdicts_says_so(self, site: Files) -> None:
        """It has a card with the counts, and no figure."""
        silent = measured(overall=None, status={"judge_failed": 12})
        told = text(page(site, history(calibration(metrics=[silent]))))
        assert "No unit got a verdict: 12 judge failed." in told
        assert "incomplete" in told

    def test_a_set_without_anything_to_hold_says_why(self, site: Files) -> None:
        """Skipped metrics, rejected rows and broken files, with their reasons."""
        found = calibration(
            metrics=[],
            skipped={"context_recall": "no row has labels.statement_support"},
            rejected={"labels: too few": 4},
            broken=[BrokenFile(file="a.jsonl", line=3, reason="cut off")],
        )
        told = text(page(site, history(found)))
        for words in ("no metric compared", "labels.statement_support", "4 rows: labels"):
            assert words in told
        assert "cut off" in told

    def test_hostile_text_is_inert(self, site: Files) -> None:
        """Names of judges and tags, notes and reasons are text, whatever they hold."""
        plain, bad = (
            page(
                site,
                history(
                    calibration(
                        judge=JudgeInfo(name=word, fingerprint=word, note=word),
                        source=word,
                        metrics=[_by_language(word)],
                        skipped={"context_recall": word},
                        rejected={word: 1},
                    )
                ),
            )
            for word in ("harmless", HOSTILE)
        )
        assert Outline(bad).tags == Outline(plain).tags
        assert "alert(1)" in text(bad)
        assert "\x00" not in bad

    def test_many_judges_stay_few_in_full(self, site: Files) -> None:
        """All have a line with their figures; charts and tables are drawn of the first."""
        many = [
            calibration(name=f"set-{a}", judge=f"judge-{b}") for a in range(5) for b in range(30)
        ]
        html = page(site, history(*many))
        assert html.count('<section class="judge"') == MOST_IN_FULL
        assert len(re.findall(r'id="set-\d-[0-9a-f]{8}"', html)) == len(many)
        assert f"The first {MOST_IN_FULL} are shown in full" in text(html)
        assert len(html) < 400_000
        twice = [*many, *(calibration(name=f"other-{n}") for n in range(60))]
        assert "10 more judges on sets not shown" in text(page(site, history(*twice)))

    def test_figures_end_no_script(self, site: Files) -> None:
        """Charts are JSON, one for reliability and one for the trend."""
        html = page(site, history(calibration(), calibration(1)))
        islands = re.findall(r'data-figure="[^"]+">(.*?)</script>', html)
        assert [len(json.loads(one)["data"]) for one in islands] == [1, 2]


def _by_language(value: str) -> MetricCalibration:
    return measured(segments=[in_language(value, 0.8), in_language("en", 0.8)])


class TestStandings:
    def test_the_newest_speaks_for_a_judge_on_a_set(self) -> None:
        """Those before are its history; sets last calibrated come first."""
        found = standings(
            history(calibration(0), calibration(2), calibration(5, name="new"), calibration(3))
        )
        assert [one.newest.name for one in found] == ["new", "towers"]
        assert found[1].newest.at == FIRST + timedelta(weeks=3)
        assert [point.calibration.at for point in found[1].points("context_relevance")] == [
            FIRST + timedelta(weeks=week) for week in (0, 2, 3)
        ]

    def test_a_changed_judge_or_prompt_is_marked(self) -> None:
        """Where the fingerprint of either is another than before."""
        other = JudgeInfo(name="lexical", fingerprint="f2")
        (one,) = standings(
            history(
                calibration(),
                calibration(1, judge=other),
                calibration(2, judge=other, metrics=[measured(fingerprint="p2")]),
                calibration(3, judge=other, metrics=[measured(fingerprint="p2")]),
            )
        )
        points = one.points("context_relevance")
        assert [point.changed for point in points] == [False, True, True, False]
        assert len(drift_figure(points)["layout"]["shapes"]) == 2

    def test_languages_come_first_and_worse_ones_are_shaded(self) -> None:
        """Only what is significantly below the AUC of all units."""
        found = calibration(
            metrics=[
                measured(
                    segments=[
                        in_language("low", 0.5),
                        in_language("near", 0.78),
                        in_language("a", 0.8, "branch"),
                    ]
                )
            ]
        )
        first, second = segment_tables(found)
        assert (first.tag, second.tag) == ("language", "branch")
        shades = {value: cell.shade for value, (cell,) in first.lines if cell}
        assert shades == {"low": 3, "near": 0}


class TestFigures:
    def test_reliability_is_drawn_with_intervals(self) -> None:
        """Observed by judged; the whiskers reach to the bounds."""
        overall = measured().overall
        assert overall
        (dots,) = reliability_figure(overall.reliability)["data"]
        assert (dots["x"], dots["y"]) == ([0.15, 0.85], [0.1, 0.6])
        assert dots["error_y"]["array"] == [0.1, 0.2]
        assert dots["error_y"]["arrayminus"] == [0.05, 0.2]

    def test_the_trend_has_kappa_auc_and_the_drift(self) -> None:
        """Two lines in time, and a mark where the judge drifted."""
        known = history(calibration(), calibration(1), drifted=("context_relevance",))
        kappa, auc, marks = drift_figure(standings(known)[0].points("context_relevance"))["data"]
        assert kappa["x"] == ["2026-11-02T04:00:00", "2026-11-09T04:00:00"] == auc["x"]
        assert (kappa["y"], auc["y"]) == ([0.6, 0.6], [0.8, 0.8])
        assert marks["x"] == ["2026-11-09T04:00:00"]


class TestNight:
    def test_a_night_says_how_far_its_judge_agrees_with_people(self, site: Files) -> None:
        """With the day, and a link to the judge on the page of calibrations."""
        found = calibration()
        html = page_of_night(site, found)
        words = (
            "people on towers, 2026-11-02, quadratic kappa: Context relevance (graded) 0.60 "
            "[0.55, 0.65]"
        )
        assert words in text(html)
        (link,) = re.findall(r'href="\.\./calibration\.html#([^"]+)"', html)
        assert f'id="{link}"' in page(site, history(found))

    def test_another_judge_says_nothing_of_it(self, site: Files) -> None:
        """Neither fingerprint nor name is that of the night's judge."""
        other = calibration(judge=JudgeInfo(name="openai:x", fingerprint="other"))
        assert "with people on" not in page_of_night(site, other)

    def test_a_namesake_stands_in_and_is_named_as_such(self, site: Files) -> None:
        """The very judge goes first, however much older."""
        same = calibration()
        namesake = calibration(1, judge=JudgeInfo(name="lexical", fingerprint="f2"))
        assert "by other settings of this judge" in text(page_of_night(site, namesake))
        assert "by other settings" not in text(page_of_night(site, namesake, same))

    def test_of_a_panel_every_judge_is_told(self, site: Files) -> None:
        """Each is calibrated on its own."""
        panel = JudgeInfo(name="mean of a, b", fingerprint="f9", panel=["a", "b"])
        told = text(
            page_of_night(site, calibration(judge="a"), calibration(judge="b"), judge=panel)
        )
        assert "2026-11-02, a judge named a, quadratic" in told
        assert "by other settings" not in told
        assert "2026-11-02, a judge named b, quadratic" in told

    def test_a_judge_under_also_is_told_too(self, site: Files) -> None:
        """Each by its name; of a namesake it says so."""
        also = JudgeInfo(name="b", fingerprint="f2", metrics=["context_entity_recall"])
        judge = JudgeInfo(name="a", fingerprint="f1", also=also)
        before = JudgeInfo(name="b", fingerprint="f3")
        known = [calibration(judge="a"), calibration(judge=before)]
        told = text(page_of_night(site, *known, judge=judge))
        assert "2026-11-02, a judge named a, quadratic" in told
        assert "2026-11-02, a judge named b, by other settings of this judge, quadratic" in told

    def test_repeats_do_not_hide_a_judge(self) -> None:
        """A judge asked three times a night is calibrated once."""
        corpus = Corpus()
        asked = make_judge(JudgeSettings(name="lexical"), corpus)
        often = panel_fingerprint([asked.fingerprint], [3], "mean")
        known = calibration(judge=JudgeInfo(name="lexical", fingerprint=asked.fingerprint))
        for print_, exact in ((often, True), ("f3", False)):
            judge = JudgeInfo(name="lexical (3 times)", fingerprint=print_)
            (found,) = trusted(night(judge=judge), [known])
            assert found.exact is exact

    def test_the_calibration_nearest_in_time_is_told(self) -> None:
        """A night of long ago was not scored by the judge of today."""
        (found,) = trusted(night(), [calibration(week) for week in (0, 1, 2, 30)])
        assert found.calibration.at == FIRST + timedelta(weeks=1)


class TestHistory:
    def test_each_comparison_is_made_once(self, kept: Files) -> None:
        """It is kept beside the calibrations and found from then on."""
        (first,) = load_history(kept).drifts
        (info,) = kept.below("calibrations/drift")
        marked = first.model_copy(update={"metrics": []})
        kept.write(info.path, marked.model_dump_json().encode())
        assert load_history(kept).drifts == [marked]

    def test_a_comparison_that_is_out_of_date_is_made_anew(self, kept: Files) -> None:
        """One with an older calibration than that before, or of another version."""
        found = load_history(kept)
        (drift,), (info,) = found.drifts, kept.below("calibrations/drift")
        other = drift.model_copy(update={"before": FIRST - timedelta(weeks=1)})
        for data in (other.model_dump_json().encode(), b"{}"):
            kept.write(info.path, data)
            assert load_history(kept) == found

    def test_lost_verdicts_cost_one_comparison(
        self, kept: Files, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is logged, and the calibrations are shown all the same."""
        lost = next(info for info in kept.below("calibrations") if ".parquet" in info.path)
        kept.remove(lost.path)
        with caplog.at_level(logging.ERROR):
            found = load_history(kept)
        assert (len(found.calibrations), found.drifts) == (2, [])
        assert "drift at" in caplog.text


class TestWriting:
    def test_the_command_refreshes_the_page(self, run: Run, tmp_path: Path) -> None:
        """After storing; the site's first page links to it before there is any night."""
        labelled = write_jsonl(tmp_path / "towers.jsonl", make_labelled(10))
        assert run("calibrate", labelled, "--store", tmp_path / "store").code == 0
        site = Files(str(tmp_path / "store" / "dashboard"))
        assert "towers" in site.read("calibration.html").decode()
        assert 'href="calibration.html"' in site.read("index.html").decode()

    def test_the_dashboard_of_calibrations_alone_can_be_written(
        self, run: Run, kept: Files, tmp_path: Path
    ) -> None:
        """A store without nights is a store."""
        assert run("dashboard", kept.root, "--out", tmp_path / "out").code == 0
        assert (tmp_path / "out" / "calibration.html").is_file()

    def test_refreshing_tells_the_newest_night(self, tmp_path: Path) -> None:
        """Its page says what is known of its judge now, and the overview links to the rest."""
        write_jsonl(tmp_path / "logs" / f"{NIGHT}.jsonl", make_rows(10))
        settings = night_settings(tmp_path, logs="logs/{date}.jsonl", metrics=["context_relevance"])
        run_night(settings, NIGHT)
        labelled = write_jsonl(tmp_path / "towers.jsonl", make_labelled(10))
        files = open_store(settings)
        calibrate(settings, [str(labelled)], files=files)
        refresh_dashboard(files)
        site = files.at("dashboard")
        assert "with people on" in site.read(f"{NIGHT}/index.html").decode()
        assert 'href="calibration.html"' in site.read("index.html").decode()

    def test_a_night_shows_a_calibration_that_ended_while_it_was_published(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It has its line on the page of calibrations and on the night's own, not a night later."""
        write_jsonl(tmp_path / "logs" / f"{NIGHT}.jsonl", make_rows(10))
        settings = night_settings(tmp_path, logs="logs/{date}.jsonl", metrics=["context_relevance"])
        labelled = write_jsonl(tmp_path / "towers.jsonl", make_labelled(10))
        files, save = open_store(settings), Runs.save

        def save_late(runs: Runs, manifest: Manifest) -> None:
            calibrate(settings, [str(labelled)], files=runs.files)
            save(runs, manifest)

        monkeypatch.setattr(Runs, "save", save_late)
        run_night(settings, NIGHT)
        site = files.at("dashboard")
        assert "towers" in site.read("calibration.html").decode()
        assert "with people on" in site.read(f"{NIGHT}/index.html").decode()

    def test_the_artifact_has_the_figures_and_the_drift(self) -> None:
        """As a table of markdown, in which no name is markup."""
        first, second = calibration(judge="a|b"), calibration(1, judge="a|b")
        told = calibration_markdown(
            [first, second],
            [None, drift_between(first, second, "context_relevance")],
            "https://dash.example/calibration.html",
        )
        assert "1 of 2 calibrations show drift" in told
        assert "a\\|b drifted on" in told
        told = told.replace("\\", "")
        assert "a|b drifted on towers since 2026-11-02: context_relevance" in told
        row = "| towers | a|b | context_relevance | 0.600 [0.55, 0.65] | 0.800 [0.75, 0.85] | 100 |"
        assert f"{row} not compared |" in told
        assert f"{row} drifted |" in told
        assert "(<https://dash.example/calibration.html>)" in told


@pytest.fixture
def kept(tmp_path: Path) -> Files:
    """A store with two calibrations of one judge, a week apart."""
    files = Files(str(tmp_path / "store"))
    labelled = write_jsonl(tmp_path / "towers.jsonl", make_labelled(10))
    settings = make_settings({"judge": write_judge(tmp_path / "judge.jsonl", labelled)})
    for week in range(2):
        calibrate(settings, [str(labelled)], now=FIRST + timedelta(weeks=week), files=files)
    return files
