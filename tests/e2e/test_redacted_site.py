"""`redact: true` over whole nights: no published byte holds a word of what was logged.

The words are made up, one for each field, and looked for in all that leaves the store: the site
and its data, Prometheus' text, messages, artifacts. The same nights without the setting show that
they would be found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import load_settings
from ragmetrics.dashboard import (
    gate_markdown,
    night_markdown,
    night_summary,
    rebuild_dashboard,
    redacted,
)
from ragmetrics.delivery import Delivery
from ragmetrics.pipeline import NIGHTS as DEMO_NIGHTS, NightResult, run_night, unpack_demo
from ragmetrics.storage import Files, Runs, open_store
from ragmetrics.storage.parts import StoredPart
from tests.fakes.clients import JudgeServer
from tests.fakes.every_text import NIGHTS, Told, tell_everything
from tests.fakes.slack import SlackServer

LOGGED = {
    "user_input": "zanthoril",
    "long word": "quibberang",
    "retrieved_contexts": "morvulex",
    "response": "tesquandra",
    "reference": "wilfobrant",
    "reference_contexts": "hexombidle",
    "reason": "plurgentix",
    "event": "drabzotule",
    "label key": "vyndakrope",
}
"""A word of each text that is to be hidden;"""
NAMED = {
    "id": "kethry-id",
    "context id": "kethry-kb",
    "tag key": "kethry-tag",
    "tag value": "kethry-value",
    "index_build": "kethry-build",
    "language": "en",
    "file name": "kethry-file",
    "set name": "kethry-set",
}
"""names, which stay."""
MOST = 3_000
"""Characters of a prompt that the judge takes: of a longer one it says so, and quotes it."""
ANY = re.compile("|".join(LOGGED.values()), re.IGNORECASE)


def words(field: str) -> str:
    """A text of the field's own word, among others that hide nothing."""
    if field in NAMED:
        return NAMED[field]
    word = LOGGED[field]
    return f"{word} " * 2_000 if field == "long word" else f"The {word.title()} and 2 {word}s."


@dataclass(frozen=True)
class Published:
    """What a store tells the world, by what it stands in."""

    texts: dict[str, str]

    @property
    def leaks(self) -> dict[str, set[str]]:
        """Where words of the log stand."""
        found = {name: set(map(str.lower, ANY.findall(text))) for name, text in self.texts.items()}
        return {name: leaked for name, leaked in found.items() if leaked}


Publish = Callable[..., Published]


@pytest.fixture
def publish(
    tmp_path_factory: pytest.TempPathFactory,
    judge_server: JudgeServer,
    slack_server: SlackServer,
) -> Publish:
    """Runs the nights and gathers what they publish."""
    judge_server.faults(max_prompt_chars=MOST, quotes=True)

    def run(**change: Any) -> Published:
        slack_server.delivered.clear()
        alerts = {
            "rules": [{"metric": "context_recall", "min": 0.95, "min_rows": 4}],
            "max_judge_failures": 0.9,
            **change.pop("alerts", {}),
        }
        folder = tmp_path_factory.mktemp("told")
        told = tell_everything(folder, words, judge_server.base_url, alerts=alerts, **change)
        rebuild_dashboard(open_store(told.settings), open_store(told.settings).at("dashboard"))
        return Published(
            {**_files(told), **_beside(told), "Slack": json.dumps(slack_server.delivered)}
        )

    return run


def _files(told: Told) -> dict[str, str]:
    return {
        str(path.relative_to(told.site)): path.read_text("utf-8")
        for path in told.site.rglob("*")
        if path.is_file() and not path.name.startswith("plotly")
    }


def _beside(told: Told) -> dict[str, str]:
    """What is no file: artifacts, the page for e-mail, and the sentence that a night ends with."""
    files, link = open_store(told.settings), "https://dash.example"
    gate = redacted(told.gate, told.settings.redact)
    found = {"gate artifact": gate_markdown(gate, link)}
    for night in NIGHTS:
        manifest = Runs(files).current(night)
        assert manifest is not None
        found[f"{night} artifact"] = night_markdown(files, manifest, link)
        found[f"{night} e-mail"] = night_summary(files, night).decode()
        found[f"{night} ending"] = "; ".join(
            NightResult(manifest, Delivery(None, sent=False)).shortfalls
        )
    return found


def test_no_published_byte_holds_a_word_of_the_log(publish: Publish) -> None:
    """Of questions, contexts, responses, references, of what the judge quoted of them in its
    refusals, of keys of rows that could not be read, and of what an event carried. Names and scores
    stay: ids, tags, index builds and files are how a row is found again; hashes tell equal texts.
    """
    told = publish(redact=True)
    assert told.leaks == {}
    rows = told.texts[f"{NIGHTS[1]}/rows.html"]
    for name in ("id", "context id", "tag key", "tag value"):
        assert NAMED[name] in rows, name
    assert re.search(r"\[[0-9a-f]{16}\]", rows)
    assert "context_recall" in rows
    assert NAMED["file name"] in told.texts[f"{NIGHTS[1]}/index.html"]


def test_without_the_setting_the_words_are_there(publish: Publish) -> None:
    """Else the search would find nothing whatever leaked."""
    found = publish().leaks
    shown = {word for leaked in found.values() for word in leaked}
    assert shown == set(LOGGED.values()) - {LOGGED["reference_contexts"]}  # are shown nowhere
    assert LOGGED["user_input"] in found["Slack"]
    assert {"index.html", "builds.html", "calibration.html"} & set(found)


def test_messages_alone_can_be_redacted(publish: Publish) -> None:
    """`alerts: redact` hides from Slack what `redact` hides, and leaves the pages as they are."""
    found = publish(alerts={"redact": True}).leaks
    assert "Slack" not in found
    assert f"{NIGHTS[1]}/rows.html" in found


def test_no_page_made_since_the_setting_has_a_sentence_of_the_logs(tmp_path: Path) -> None:
    """Neither those of the night that ran with it, nor any after all was rebuilt, though the night
    before ran without it.
    """
    plain = load_settings(unpack_demo(tmp_path))
    hidden = plain.model_copy(update={"redact": True})
    first, second = DEMO_NIGHTS[:2]
    files = Files(plain.store)
    run_night(plain, first)
    said = _said(files)
    assert len(said) > 100
    shown = _published(files.at("dashboard"), str(first))
    assert any(text in shown for text in said)
    run_night(hidden, second)
    said |= _said(files)
    rebuilt = files.at("elsewhere")
    rebuild_dashboard(files, rebuilt)
    for published in (_published(files.at("dashboard"), str(second)), _published(rebuilt)):
        assert [text for text in said if text in published] == []


def _published(site: Files, folder: str = "") -> str:
    """The text of all files of a site, or of one of its folders."""
    paths = (info.path for info in site.below(folder))
    return "".join(site.read(path).decode() for path in paths if "plotly" not in path)


def _said(files: Files) -> set[str]:
    """The beginnings of all texts in the logs of the nights of a store."""
    parts = [
        StoredPart(files, info.path)
        for manifest in Runs(files).nights()
        for info in files.below(f"rows/dt={manifest.date}")
        if info.path.endswith(".parquet")
    ]
    rows = chain.from_iterable(batch for part in parts for batch in part.row_batches())
    return {text[:30] for row in rows for text in row.texts if len(text) >= 12}
