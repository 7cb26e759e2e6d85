"""A night of many languages: each row's sentences are those of its own language's rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ragmetrics
from pysbd_fast import LANGUAGES
from ragmetrics.pipeline import run_night
from ragmetrics.text import sentences
from tests.builders import night_settings
from tests.fakes.logs import NIGHT, write_jsonl

TEXTS: dict[str, tuple[str, str]] = {
    "am": ("ግንቡ በ1889 ተከፈተ።", "ሰማዩ ዛሬ ሰማያዊ ነው።"),
    "ar": ("متى افتتح البرج؟", "افتتح سنة 1889."),
    "bg": ("Кулата е открита през 1889 г. в Париж.", "Днес небето е синьо."),
    "da": ("Tårnet åbnede kl. 10 den 15. maj 1889.", "Himlen er blå i dag."),
    "de": ("Dr. Huber eröffnete den Turm am 15. Mai 1889.", "Der Himmel ist heute blau."),
    "el": ("Πότε άνοιξε ο πύργος;", "Άνοιξε το 1889."),
    "en": ("Mr. Eiffel opened the tower in 1889.", "The sky is blue today."),
    "es": ("La torre abre, según la pág. 12, en 1889.", "Hoy el cielo es azul."),
    "fa": ("برج باز شد؟", "بله، در ۱۸۸۹."),
    "fr": ("La tour a ouvert au chap. 3 en 1889.", "Le ciel est bleu."),
    "hi": ("मीनार 1889 में खुली थी।", "आज आसमान नीला है।"),
    "hy": ("Աշտարակը բացվել է 1889 թվականին։", "Այսօր երկինքը կապույտ է։"),
    "it": ("Il sig. Rossi aprì la torre nel 1889.", "Oggi il cielo è blu."),
    "ja": ("館長は「塔は高い。古い。」と1889年に書いた。", "今日は空が青い。"),
    "kk": ("Мұнараны т.б. Абай 1889 жылы ашты.", "Бүгін аспан көк."),
    "mr": ("मनोरा 1889 मध्ये उघडला.", "आज आकाश निळे आहे."),
    "my": ("မျှော်စင်ကို 1889 တွင် ဖွင့်ခဲ့သည်။", "ကောင်းကင်သည် အပြာရောင်ဖြစ်သည်။"),
    "nl": ("De toren ging in afl. 3 open.", "De lucht is vandaag blauw."),
    "pl": ("Wieżę, np. tę, otwarto w 1889 roku.", "Dziś niebo jest niebieskie."),
    "ru": ("Башню открыли в 1889 г. Париж ликовал.", "Сегодня небо голубое."),
    "sk": ("Vežu otvoril doc. Novák v roku 1889.", "Dnes je obloha modrá."),
    "ur": ("مینار 1889 میں کھلا۔", "آج آسمان نیلا ہے۔"),
    "zh": ("《塔。1889年》是一本书。", "今天天空是蓝色的。"),
    # Those that pysbd has no rules for
    "ko": ("탑은 1889년에 문을 열었다.", "오늘 하늘은 파랗다."),
    "sv": ("Tornet öppnades 1889.", "Himlen är blå idag."),
}
LACKING = sorted(set(TEXTS) - set(LANGUAGES))
UNSPACED = ("ja", "zh")
AS_ENGLISH = ("en", "mr", *LACKING)
"""Whose sentences here, by chance or kinship, end where English ones would."""


def joined(language: str) -> str:
    """The two sentences as one text."""
    return ("" if language in UNSPACED else " ").join(TEXTS[language])


def row(language: str) -> dict[str, Any]:
    """A row that asks for what the first sentence says."""
    text = joined(language)
    return {
        "id": language,
        "user_input": f"{TEXTS[language][0][:-1]}?",
        "retrieved_contexts": [text],
        "reference": text,
        "language": language,
    }


@pytest.mark.parametrize("language", TEXTS)
def test_sentences_are_those_of_the_language(language: str) -> None:
    """English rules would cut nearly all of these texts elsewhere."""
    assert sentences(joined(language), language) == TEXTS[language]
    assert (sentences(joined(language), "en") == TEXTS[language]) == (language in AS_ENGLISH)


@pytest.fixture(scope="module")
def night() -> ragmetrics.Result:
    """A row in each language, and each of those that pysbd lacks once more."""
    rows = [row(language) for language in TEXTS]
    again = [{**row(language), "id": f"{language} again"} for language in LACKING]
    metrics = ["context_relevancy", "context_relevancy_chunks", "context_recall"]
    return ragmetrics.evaluate([*rows, *again], metrics)


def test_the_night_covers_every_language_of_pysbd() -> None:
    """And two that it has no rules for."""
    assert set(LANGUAGES) < set(TEXTS)
    assert (len(TEXTS), LACKING) == (25, ["ko", "sv"])


@pytest.mark.parametrize("language", TEXTS)
def test_every_row_is_scored_by_its_own_sentences(night: ragmetrics.Result, language: str) -> None:
    """Two sentences each; the reference, which is what was retrieved, is recalled in full."""
    scores = night.scores()
    mine = scores[scores["id"] == language].set_index("metric")
    assert set(mine["status"]) == {"scored"}
    assert mine.loc["context_relevancy", "details"]["sentences"] == [2]
    assert mine.loc["context_recall", "details"]["attributed"] == [True, True]
    assert mine.loc["context_recall", "value"] == 1.0
    assert mine["value"].between(0, 1).all()


def test_the_fallback_is_counted_once_for_each_text(night: ragmetrics.Result) -> None:
    """However many rows and metrics split it; nothing else was split plainly."""
    assert night.manifest.source.rows == len(TEXTS) + len(LACKING)
    assert night.manifest.splits == {"language": len(LACKING)}
    assert night.as_json()["splits"] == {"language": len(LACKING)}


def test_the_dashboard_has_a_table_by_language(tmp_path: Path) -> None:
    """More languages than other tags may have values; what was split plainly is counted."""
    rows = [{**row(language), "id": f"{language}-{n}"} for language in TEXTS for n in range(2)]
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "rows.jsonl", rows)
    settings = night_settings(tmp_path, metrics=["context_relevancy", "context_recall"], rules=[])
    manifest = run_night(settings, NIGHT).manifest
    by_language = {
        summary.segment.value: summary.scored
        for summary in manifest.segments
        if summary.segment
        and summary.segment.tag == "language"
        and summary.metric == "context_recall"
    }
    assert by_language == dict.fromkeys(sorted(TEXTS), 2)
    page = (tmp_path / "store" / "dashboard" / NIGHT.isoformat() / "index.html").read_text()
    assert "<bdi>language</bdi></caption>" in page
    assert "2 texts (language)" in page
