"""The page of index builds: what it says of each gate, and how a reader comes to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from markupsafe import escape

from ragmetrics.comparison import build_path, save_failed_gate, save_gate
from ragmetrics.comparison.gate.store import save_compared
from ragmetrics.config import make_settings
from ragmetrics.dashboard import gate_markdown, rebuild_dashboard, refresh_builds
from ragmetrics.dashboard.pages import builds
from ragmetrics.pipeline import run_night
from ragmetrics.records import Comparison, FailedGate, Gate
from ragmetrics.storage import Files, open_store
from tests.fakes.comparisons import comparison
from tests.fakes.gated import gate, incomparable, metric_verdict, passed, promoted, undecided
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import HOSTILE
from tests.fakes.page_writing import write_build, write_builds
from tests.fakes.pages import Outline, text


@pytest.fixture
def site(tmp_path: Path) -> Files:
    """An empty site."""
    return Files(str(tmp_path / "site"))


def page(site: Files, *gates: Gate, lost: tuple[FailedGate, ...] = ()) -> str:
    """The page of these gates, newest first as given."""
    path = write_builds(site, gates, lost, "helpdesk")
    assert path == "builds.html"
    return site.read(path).decode()


def build_page(site: Files, one: Gate, found: Comparison | None = None) -> str:
    """The page of one build."""
    return site.read(write_build(site, one, found)).decode()


def test_every_build_has_a_line_that_leads_to_its_page(site: Files) -> None:
    """Newest first, with verdict and numbers, or why nothing was compared."""
    html = page(site, incomparable(), promoted(), gate())
    read = text(html)
    assert "All builds, newest first: 1 held" in read
    assert "nothing compared: build idx-45: no log at builds/idx-45/" in read
    assert html.index("idx-45") < html.index("idx-44") < html.index("idx-43")
    for name in ("idx-45", "idx-44", "idx-43"):
        assert f'href="builds/{name}.html"' in html
        assert f'id="build-{name}"' in html


def test_every_gate_has_its_verdict_and_evidence(site: Files) -> None:
    """Means, drop with interval, limit, questions; what fell; who judged; where the logs are."""
    read = text(build_page(site, gate()))
    for told in (
        "Hold: 1 of 2 metrics is significantly worse.",
        "Index build idx-43 · before build idx-42",
        "Context recall fell by 0.107, more than 0.05",
        "0.821 → 0.714",
        "−0.107 [−0.143, −0.071]",
        "How do I get refund 0?",
        "builds/idx-43/",
        "lexical",
        "took 1 min 15 s",
    ):
        assert told in read, told
    assert "Build idx-45: no log at builds/idx-45/" in text(build_page(site, incomparable()))


def test_a_build_that_was_compared_shows_where_and_by_which_contexts(site: Files) -> None:
    """As the page of any comparison does; without it the questions that fell stand open."""
    read = text(build_page(site, gate(), comparison()))
    for told in ("By section: 1 worse", "− left rank 1 kb-1", "Only before3"):
        assert told in read, told
    assert "Only before" not in text(build_page(site, gate()))
    assert '<details class="fold" open>' in build_page(site, gate())


def test_the_line_of_a_build_shows_the_metric_that_speaks_for_the_verdict(site: Files) -> None:
    """A held build's line is of a metric that holds it, not of the first."""
    metrics = [passed("context_relevance"), metric_verdict("context_recall")]
    table = page(site, gate(metrics=metrics)).split("<tbody>")[1]
    assert "recall" in table.split("</tbody>")[0]
    assert "relevance" not in table.split("</tbody>")[0]


def test_questions_still_needed_are_said(site: Files) -> None:
    """Inconclusive is no dead end where more questions would tell."""
    few = metric_verdict(verdict="inconclusive", further=84, low=-0.01)
    read = text(build_page(site, gate(verdict="inconclusive", further=84, metrics=[few])))
    assert "About 84 more questions would decide." in read
    assert "not surely by more than allowed about 84 more questions would decide" in read


def test_missing_questions_stand_beside_the_compared_ones(site: Files) -> None:
    """They can be why a build without any drop is inconclusive."""
    few = metric_verdict(verdict="inconclusive", missing=40)
    assert "40 missing" in text(page(site, gate(verdict="inconclusive", metrics=[few])))


def test_lost_events_stand_first(site: Files) -> None:
    """An event that could not be followed is on the page, with why and what it carried."""
    read = text(page(site, gate(), lost=(undecided(),)))
    assert "index build: build: not there" in read
    assert '{"dataset": "helpdesk"}' in read
    assert read.index("No verdict") < read.index("idx-43")
    assert "index build: build: not there" in text(page(site, lost=(undecided(),)))


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "..", "<b>", "x" * 300, "ü 🙂", "-", ".x"])
def test_any_name_is_safe_as_a_file(site: Files, name: str) -> None:
    """A verdict may hold anything by way of a name: its page stays in its folder."""
    path = write_build(site, gate(name), None)
    assert path == build_path(name)
    assert path.removeprefix("builds/").removesuffix(".html").replace("-", "").isalnum()
    assert path.isascii()
    assert len(path) < 100
    assert site.exists(path)
    assert build_path(name) != build_path(f"{name}!")


def test_only_the_pages_of_new_verdicts_are_written(tmp_path: Path) -> None:
    """A gate adds its own page; those of the others stay as they are, unless they are lost."""
    files = Files(str(tmp_path / "store"))
    site = files.at("dashboard")
    save_compared(files, "idx-43", comparison())
    save_gate(files, gate())
    refresh_builds(files)
    assert "Only before" in site.read("builds/idx-43.html").decode()
    site.write("builds/idx-43.html", b"as it was")
    save_gate(files, promoted())
    refresh_builds(files)
    assert site.read("builds/idx-43.html") == b"as it was"
    assert "Index build idx-44" in text(site.read("builds/idx-44.html").decode())
    site.remove("builds/idx-43.html")
    save_gate(files, incomparable())
    refresh_builds(files)
    assert "Index build idx-43" in text(site.read("builds/idx-43.html").decode())


def test_the_page_is_bounded_and_says_so(site: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of builds, and of events without a verdict, only what is shown is asked for."""
    monkeypatch.setattr(builds, "_MOST_LINES", 3)
    monkeypatch.setattr(builds, "_MOST_UNDECIDED", 2)
    gates = iter([gate(f"idx-{number}") for number in range(9, 0, -1)])
    lost = iter([undecided(f"lost {number}") for number in range(9, 0, -1)])
    write_builds(site, gates, lost, "helpdesk")
    read = text(site.read("builds.html").decode())
    assert "The newest builds, newest first: 3 held" in read
    assert "Older builds are not shown; their verdicts are in the store" in read
    assert ("idx-7 " in read, "idx-6 " in read) == (True, False)
    assert ("lost 8" in read, "lost 7" in read) == (True, False)
    assert (len(list(gates)), len(list(lost))) == (5, 7)
    assert "Older builds" not in text(page(site, gate()))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "< 0.0001"),
        (0.00009, "< 0.0001"),
        (0.0001, "0.0001"),
        (0.7, "0.7"),
        (0.03125, "0.031"),
        (None, "–"),
    ],
)
def test_a_q_is_on_hover_and_never_rounded_to_nothing(
    site: Files, value: float | None, told: str
) -> None:
    """No test is sure: a drop that could hardly be chance has a p below what is shown."""
    read = build_page(site, gate(metrics=[metric_verdict(p_value=value)]))
    assert (f'title="q {escape(told)}"' in read) == (value is not None)


def test_hostile_text_stays_text(site: Files) -> None:
    """No element of the page comes from a log, an event or a verdict."""
    hostile = page(site, gate(say=HOSTILE), lost=(undecided(HOSTILE, carried=HOSTILE),))
    tame = page(site, gate(say="x"), lost=(undecided("x", carried="x"),))
    assert Outline(hostile).tags == Outline(tame).tags
    assert "{{ 7 * 7 }}" in hostile
    hostile = build_page(site, gate(say=HOSTILE), comparison(HOSTILE))
    tame = build_page(site, gate(say="x"), comparison("x"))
    assert Outline(hostile).tags == Outline(tame).tags
    assert "{{ 7 * 7 }}" in hostile


def test_without_builds_the_page_says_so(site: Files) -> None:
    """The header of every page leads to it."""
    path = write_builds(site, [])
    assert "No index build has been gated yet" in site.read(path or "").decode()


def test_the_overview_links_to_it_where_there_are_gates(tmp_path: Path) -> None:
    """Before the first night, after a night, and when the site is made anew elsewhere."""
    settings = make_settings(
        {"dataset": "helpdesk", "logs": str(tmp_path / "logs"), "store": str(tmp_path / "store")}
    )
    files = open_store(settings)
    save_gate(files, gate())
    refresh_builds(files)
    assert 'href="builds.html"' in files.read("dashboard/index.html").decode()
    write_jsonl(tmp_path / "logs" / "rows.jsonl", make_rows(4))
    run_night(settings, NIGHT)
    assert 'href="builds.html"' in files.read("dashboard/index.html").decode()
    elsewhere = Files(str(tmp_path / "elsewhere"))
    rebuild_dashboard(files, elsewhere)
    assert "idx-43" in elsewhere.read("builds.html").decode()


def test_a_store_without_gates_has_a_page_that_says_so(tmp_path: Path) -> None:
    """The header leads to it before the first gate, and then it shows what was lost."""
    files = Files(str(tmp_path / "store"))
    refresh_builds(files)
    assert "No index build has been gated yet" in files.read("dashboard/builds.html").decode()
    save_failed_gate(files, undecided())
    refresh_builds(files)
    assert "No index build has been gated yet" not in files.read("dashboard/builds.html").decode()


def test_the_artifact_has_verdict_numbers_and_the_way_to_the_page() -> None:
    """In Prefect's markdown, where no text of a log begins a link, a cell or a heading."""
    told = gate_markdown(gate(), "https://dash.example/builds.html#build-idx-43")
    assert told.startswith("## ❌ Index build idx-43 compared with idx-42: hold\n")
    row = "| Context recall | hold | 0.821 | 0.714 | 0.107 [0.071, 0.143] | 0.05 | 150 |"
    assert row in told.replace("\\", "")
    assert "[Open the dashboard](<https://dash.example/builds.html#build-idx-43>)" in told
    hostile = gate_markdown(gate(say=HOSTILE), "store/builds.html")
    assert "<script>" not in hostile.replace("\\<", "")
    assert "none" not in gate_markdown(incomparable(), "x")
