"""Settings: what ragmetrics.yaml may say, and what a person sees who mistypes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.config import Settings, api_key, load_settings, make_settings, with_overrides
from ragmetrics.errors import SettingsError


def load(tmp_path: Path, text: str, **overrides: object) -> Settings:
    """The settings of a file with this text."""
    file = tmp_path / "ragmetrics.yaml"
    file.write_text(text, encoding="utf-8")
    return load_settings(file, **overrides)


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    """Nothing has to be set: the lexical judge, a local store, six metrics."""
    settings = load(tmp_path, "")
    assert settings.judge.name == "lexical"
    assert settings.store == str(tmp_path / "ragmetrics-store")
    assert len(settings.metrics) == 6


def test_relative_paths_are_beside_the_file(tmp_path: Path) -> None:
    """Cron's working directory does not matter; absolute paths and addresses stay."""
    settings = load(tmp_path, "logs: logs/{date}.jsonl\nstore: s3://bucket/x\ngolden: /data/g.csv")
    assert settings.logs == str(tmp_path / "logs/{date}.jsonl")
    assert settings.store == "s3://bucket/x"
    assert settings.golden == "/data/g.csv"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("recorded:replies.jsonl", "{folder}/replies.jsonl"),
        ("recorded:/data/replies.jsonl", "/data/replies.jsonl"),
        ("local:./model", "{folder}/model"),
        ("local:all-mpnet-base-v2", "all-mpnet-base-v2"),
    ],
)
def test_files_of_judges_are_beside_the_file(tmp_path: Path, name: str, place: str) -> None:
    """Of the judge and of each of a panel; the name of a model is no file."""
    wanted = f"{name.partition(':')[0]}:{place.format(folder=tmp_path)}"
    assert load(tmp_path, f"judge: {name}").judge.name == wanted
    panel = load(tmp_path, f"judges: [lexical, '{name}']").judges
    assert [one.name for one in panel] == ["lexical", wanted]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour: red", "colour: there is no such key"),
        ("judge:\n  modle: gpt", "judge.modle: there is no such key"),
        ("judge: gpt-4", "judge.name: should be "),
        ("judge: {temperature: 3}", "judge.temperature: "),
        ("alerts: {rules: [{metric: context_recall}]}", "a rule needs min or max_drop"),
        (
            "alerts: {rules: [{metric: a, max_drop: 0.1, versus: lastweek}]}",
            "alerts.rules.0.versus: should be previous, trailing:N, pinned:RUN or serving",
        ),
        ("alerts: {rules: [{metric: a, max_drop: .inf}]}", "alerts.rules.0.max_drop: "),
        ("alerts: {rules: [{metric: a, min: -.inf}]}", "alerts.rules.0.min: "),
        ("alerts: {rules: [{metric: a, min: 0.5, clear: .nan}]}", "alerts.rules.0.clear: "),
        ("columns: {question: q}", "columns: question: not a row field"),
        ("shards: 0", "shards: "),
        ("dataset: a/b", "dataset: "),
        ("- a\n- b", "should be a mapping of keys to values"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_mistake_is_told_by_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    """The error names the file, the key, and what is wrong with it."""
    with pytest.raises(SettingsError) as error:
        load(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "ragmetrics.yaml"))
    assert message in str(error.value)


@pytest.mark.parametrize(
    "logs",
    ["{date}.jsonl", "{date:%Y/%m/%d}/", "y={date:%Y}/m={date:%m}/d={date:%d}/", "{date:%Y%j}",
     "{date:%y%m%d}", "all.jsonl"],
)  # fmt: skip
def test_a_place_of_logs_has_the_whole_date_or_none(logs: str) -> None:
    """One that is the same every night is replaced or grows."""
    assert make_settings({"logs": logs}).logs == logs


@pytest.mark.parametrize(
    ("logs", "nights"),
    [
        ("{date:%d}.jsonl", "2024-01-01 and 2024-02-01"),
        ("{date:%m-%d}.jsonl", "2024-01-01 and 2025-01-01"),
        ("{date:%Y/%m}/", "2024-01-01 and 2024-01-02"),
        ("{date:%y%m}{date:%H}.jsonl", "2024-01-01 and 2024-01-02"),
        ("{date:%A}.jsonl", "2024-01-01 and 2024-01-08"),
    ],
)
def test_a_date_that_several_nights_share_is_an_error(logs: str, nights: str) -> None:
    """The log of the first would be that of the second."""
    with pytest.raises(SettingsError, match=f"logs: the same for {nights}: a date needs a year"):
        make_settings({"logs": logs})


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """One line, with the path."""
    with pytest.raises(SettingsError, match=r"nosuch\.yaml: no such settings file"):
        load_settings(tmp_path / "nosuch.yaml")


def test_overrides_replace_keys_of_the_file(tmp_path: Path) -> None:
    """A flag of the command line goes before the file."""
    settings = load(tmp_path, "judge: openai\ndataset: mine", judge="lexical")
    assert (settings.judge.name, settings.dataset) == ("lexical", "mine")


def test_the_environment_goes_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deployment can change one key without another file."""
    monkeypatch.setenv("RAGMETRICS_JUDGE__MODEL", "local-model")
    monkeypatch.setenv("RAGMETRICS_DATASET", "theirs")
    settings = load(tmp_path, "judge: {name: openai, model: gpt}\ndataset: mine")
    assert (settings.judge.name, settings.judge.model) == ("openai", "local-model")
    assert settings.dataset == "theirs"


@pytest.mark.parametrize("part", ["judge", "embeddings"])
def test_the_environment_adds_to_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """`judge: openai` and a model in the environment: still openai, with that model."""
    monkeypatch.setenv(f"RAGMETRICS_{part.upper()}__MODEL", "local-model")
    chosen = getattr(load(tmp_path, f"{part}: openai"), part)
    assert (chosen.name, chosen.model) == ("openai", "local-model")


def test_the_environment_has_keys_of_single_judges_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As all keys that are no text."""
    monkeypatch.setenv("RAGMETRICS_JUDGE__THRESHOLDS", "[0.2, 0.6]")
    judge = load(tmp_path, "judge: {name: rerank, base_url: http://127.0.0.1:9}").judge
    assert judge.model_dump()["thresholds"] == (0.2, 0.6)
    monkeypatch.delenv("RAGMETRICS_JUDGE__THRESHOLDS")
    monkeypatch.setenv("RAGMETRICS_JUDGE__FROM", '{"name": "openai", "model": "gpt-x"}')
    teacher = load(tmp_path, "judge: learned").judge.teacher
    assert teacher and (teacher.name, teacher.model) == ("openai", "gpt-x")


def test_settings_do_not_change() -> None:
    """Settings are built at the edge and passed down; nobody changes them on the way."""
    with pytest.raises(ValueError, match="frozen"):
        make_settings({}).dataset = "other"


def test_a_key_never_shows() -> None:
    """A secret comes from the environment, and prints as stars."""
    key = api_key("KEY", {"KEY": " sk-secret\n"})
    assert key is not None
    assert key.get_secret_value() == "sk-secret"
    assert "secret" not in f"{key} {key!r}"


@pytest.mark.parametrize("environment", [{}, {"KEY": ""}, {"KEY": "  "}])
def test_a_blank_key_is_no_key(environment: dict[str, str]) -> None:
    """An empty variable, as compose files set it, is as good as none."""
    assert api_key("KEY", environment) is None


def test_a_panel_takes_the_place_of_the_judge() -> None:
    """`judges` names several, each by name or by a mapping."""
    settings = make_settings({"judges": ["lexical", {"name": "openai", "repeats": 3}]})
    assert [(one.name, one.repeats) for one in settings.panel] == [("lexical", 1), ("openai", 3)]
    assert [one.name for one in make_settings({}).panel] == ["lexical"]


def test_judge_and_judges_exclude_each_other() -> None:
    """Whoever writes both is told, not half obeyed."""
    with pytest.raises(SettingsError, match="set either judge or judges"):
        make_settings({"judge": "openai", "judges": ["lexical", "openai"]})


def test_another_judge_takes_the_place_of_the_panel() -> None:
    """One named later, as on the command line, judges alone; a list is a panel."""
    settings = make_settings({"judges": ["lexical", "openai"], "aggregate": "median"})
    alone = with_overrides(settings, "openai", model="m-1")
    assert [(one.name, one.model) for one in alone.panel] == [("openai", "m-1")]
    both = with_overrides(alone, ["lexical", {"name": "openai", "model": "m-2"}])
    assert [one.name for one in both.panel] == ["lexical", "openai"]


def test_a_model_for_a_panel_says_nothing() -> None:
    """It is not clear whose it should be."""
    with pytest.raises(SettingsError, match="model: the settings name several judges"):
        with_overrides(make_settings({"judges": ["lexical", "openai"]}), None, model="m-1")


@pytest.mark.parametrize("text", ["budget:", "budget: {}", 'budget: ""', "budget: {max_usd: }"])
def test_an_empty_budget_is_none(tmp_path: Path, text: str) -> None:
    """A key whose lines are commented out bounds nothing."""
    assert not load(tmp_path, text).budget.binds


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("50", r"budget: should be a mapping such as \{max_requests: 1000\}"),
        ("[50]", "budget: should be a mapping"),
        ("{max_requests: true}", "budget.max_requests: should be a number"),
        ("{max_usd: .inf}", "budget.max_usd: should be a finite number"),
        ("{max_usd: .nan}", "budget.max_usd: should be a finite number"),
    ],
)
def test_a_budget_that_bounds_nothing_is_told(tmp_path: Path, budget: str, told: str) -> None:
    """What looks like a limit and is none would cost money."""
    with pytest.raises(SettingsError, match=told):
        load(tmp_path, f"budget: {budget}")


def test_a_budget_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all values are text."""
    monkeypatch.setenv("RAGMETRICS_BUDGET__MAX_REQUESTS", "50")
    assert load(tmp_path, "").budget.max_requests == 50
    assert load(tmp_path, "budget:").budget.max_requests == 50
