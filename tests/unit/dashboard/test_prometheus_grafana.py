"""The dashboard for Grafana: it can be imported, and asks for what is there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from ragmetrics.dashboard.night_status import LABELS
from ragmetrics.dashboard.prometheus import ALERT_STATES, NightMetrics
from ragmetrics.records.judging import Usage
from tests.fakes.nights import ten_nights
from tests.fakes.processes import ROOT

FILE = ROOT / "deployments/grafana-dashboard.json"
BOARD: dict[str, Any] = json.loads(FILE.read_text())
NAME = re.compile(r"\bragmetrics_\w+")
EXPORTED = {
    family.name: family
    for family in NightMetrics(
        ten_nights()[-1].model_copy(update={"usage": Usage(usd=1.0, requests=1)})
    ).collect()
}


def queries() -> Iterator[str]:
    """All that it asks Prometheus: of its variables, and of its panels."""
    yield from (one["query"]["query"] for one in variables() if one["type"] == "query")
    yield from (target["expr"] for panel in BOARD["panels"] for target in panel["targets"])


def variables() -> list[dict[str, Any]]:
    """Its variables."""
    return list(BOARD["templating"]["list"])


def test_every_metric_that_it_asks_for_is_exported() -> None:
    """And every metric that is exported, but for three that are for alarms, is shown."""
    asked = {name for query in queries() for name in NAME.findall(query)}
    assert asked <= set(EXPORTED)
    assert set(EXPORTED) - asked == {
        "ragmetrics_alert_escalated",
        "ragmetrics_run_finished_timestamp_seconds",
        "ragmetrics_segments_omitted",
    }


def test_it_asks_by_labels_that_there_are() -> None:
    """In selectors, and in what a series is called."""
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            known = {
                name
                for metric in NAME.findall(target["expr"])
                for name in EXPORTED[metric].samples[0].labels
            }
            asked = re.findall(r"[{,](\w+)(?:=~|!=|=)", target["expr"])
            asked += re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            assert set(asked) <= known, target


def test_the_data_source_is_chosen_in_grafana() -> None:
    """By a variable: no panel names one of somebody's installation."""
    [source] = [variable for variable in variables() if variable["type"] == "datasource"]
    assert source["query"] == "prometheus"
    found = re.findall(r'"uid": "([^"]+)"', FILE.read_text())
    assert set(found) == {"${datasource}", BOARD["uid"]}
    assert BOARD["id"] is None


def test_panels_do_not_overlap() -> None:
    """Ids are unique, and all fit into the 24 columns of Grafana's grid."""
    places = [panel["gridPos"] for panel in BOARD["panels"]]
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in combinations(places, 2):
        apart = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert apart or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"], (a, b)


def test_states_have_the_words_of_the_dashboard() -> None:
    """Each number of an alert's state stands for the same word as on our pages."""
    words = {str(value): LABELS[state] for state, value in ALERT_STATES.items()}
    mapped = [
        panel["fieldConfig"]["defaults"]["mappings"]
        for panel in BOARD["panels"]
        if "mappings" in panel["fieldConfig"]["defaults"]
    ]
    assert len(mapped) == 2
    for [mapping] in mapped:
        assert {value: one["text"] for value, one in mapping["options"].items()} == words


def test_every_panel_says_what_it_shows() -> None:
    """In a title, and in a line that Grafana shows on hover."""
    assert all(panel["title"] and panel["description"] for panel in BOARD["panels"])
