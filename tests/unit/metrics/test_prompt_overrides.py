"""The user's own wording of prompts: what a folder may hold, and which rows it applies to."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from ragmetrics.config import load_settings, make_settings
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.errors import SettingsError
from ragmetrics.logs import NightInputs
from ragmetrics.metrics import (
    GRADE,
    NEEDED,
    SUPPORT,
    PromptOverrides,
    as_yaml,
    file_name,
    find_file,
    metrics,
    prompts_of,
    read_folder,
    select,
)
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS
from ragmetrics.records import Ask, Embed, Prompt, Text, dump_json
from ragmetrics.scoring import chosen_metrics, plan_run
from tests.fakes.logs import NIGHT
from tests.fakes.processes import ROOT

ALL = prompts_of(metrics().values())
REPLACEABLE = [prompt for prompt in ALL.values() if not prompt.verbatim]
VERBATIM = Prompt("theirs", 1, Text, "Say {word}.", verbatim=True)
AWKWARD = [
    "no", "1889-05-15", "~", "a: b # c", "- x", "'\"", "{}", "\tx", "x\n\n  y \n", " x", "\n x",
    "🗼 塔 برج", "\x85", "\u2028", "\ufeff", "\x00\x07", "a\r\nb", "%TAG", "&a *a", "`n`",
]  # fmt: skip


def write(folder: Path, *names: str, **changes: Any) -> Path:
    """Files of these names, as an export of `grade` with changed keys; None removes a key."""
    folder.mkdir(exist_ok=True)
    for name in names:
        prompt = ALL.get(name.partition(".")[0], GRADE)
        content = {**yaml.safe_load(as_yaml(prompt)), "instruction": f"From {name}.", **changes}
        kept = {key: value for key, value in content.items() if value is not None}
        (folder / name).write_text(yaml.safe_dump(kept, allow_unicode=True), encoding="utf-8")
    return folder


def sent(overrides: PromptOverrides, language: str | None) -> str:
    """The instruction of `grade` that a row of this language is judged by."""
    return overrides.of(GRADE, language).instruction.strip()


# Writing and reading


@pytest.mark.parametrize("prompt", REPLACEABLE, ids=lambda prompt: prompt.name)
def test_an_exported_prompt_is_the_prompt(prompt: Prompt, tmp_path: Path) -> None:
    """Reading what was exported sends the same text, so that no score changes its fingerprint."""
    (tmp_path / file_name(prompt.name)).write_text(as_yaml(prompt), encoding="utf-8")
    found = PromptOverrides.load(tmp_path, ALL).of(prompt, "en")
    assert (found.digest, found.system) == (prompt.digest, prompt.system)


@given(
    instruction=st.text() | st.lists(st.sampled_from(AWKWARD)).map("".join),
    texts=st.lists(st.text() | st.sampled_from(AWKWARD), min_size=1),
    number=st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
)
def test_no_text_is_changed_by_its_file(
    instruction: str, texts: list[str], number: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever people, or a judge, may write: YAML gives back the very same."""
    prompt = replace(
        QUESTIONS,
        instruction=f"x{instruction}x",
        examples=(
            (
                {"response": texts[0], "language": "no", "n": number},
                {"questions": texts, "noncommittal": True},
            ),
        ),
    )
    folder = tmp_path_factory.mktemp("prompts")
    (folder / "questions.yaml").write_text(as_yaml(prompt), encoding="utf-8", newline="\n")
    assert PromptOverrides.load(folder, ALL).of(QUESTIONS, None).digest == prompt.digest


def test_the_instruction_is_a_block_that_people_can_edit() -> None:
    """Line by line, as the prompt has it; letters of any script stand as they are."""
    text = as_yaml(replace(GRADE, instruction="Bewerte:\n0: schlecht für塔\n"), "de")
    assert f"language: de\nbased_on: {GRADE.version}\n" in text
    assert "instruction: |\n  Bewerte:\n  0: schlecht für塔\nexamples:\n" in text


# Which rows


def test_a_file_without_a_language_is_for_all_rows(tmp_path: Path) -> None:
    """Whatever their language; prompts without a file stay as they are."""
    overrides = PromptOverrides.load(write(tmp_path / "p", "grade.yaml"), ALL)
    assert {sent(overrides, tag) for tag in (None, "en", "de-AT")} == {"From grade.yaml."}
    assert overrides.of(SUPPORT, "de") is SUPPORT


def test_a_file_with_a_language_is_for_its_rows(tmp_path: Path) -> None:
    """And others are judged by the built-in prompt."""
    overrides = PromptOverrides.load(write(tmp_path / "p", "grade.de.yaml"), ALL)
    assert sent(overrides, "de") == "From grade.de.yaml."
    assert overrides.of(GRADE, "fr") is overrides.of(GRADE, None) is GRADE


@pytest.mark.parametrize(
    ("language", "file"),
    [
        ("de", "grade.de.yaml"),
        ("DE", "grade.de.yaml"),
        ("de-CH", "grade.de.yaml"),
        ("de_AT", "grade.de-AT.yaml"),
        ("de-AT-1996", "grade.de-AT.yaml"),
        ("den", "grade.yaml"),
        ("", "grade.yaml"),
        (None, "grade.yaml"),
    ],
)
def test_the_nearest_file_is_used(tmp_path: Path, language: str | None, file: str) -> None:
    """The row's own tag, then the tag without its last part, and so on to the file for all."""
    folder = write(tmp_path / "p", "grade.yaml", "grade.de.yaml", "grade.de-AT.yaml")
    assert sent(PromptOverrides.load(folder, ALL), language) == f"From {file}."


def test_only_the_words_change(tmp_path: Path) -> None:
    """Verdict, check, baseline and evidence stay; one object serves all requests."""
    overrides = PromptOverrides.load(write(tmp_path / "p", "support.yaml"), ALL)
    found = overrides.of(SUPPORT, "de")
    assert found is overrides.of(SUPPORT, "fr")
    assert found != SUPPORT
    words = ("instruction", "examples", "rubric")
    assert replace(found, **{name: getattr(SUPPORT, name) for name in words}) == SUPPORT


# Mistakes


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("grade.yaml", {"instructions": "x"}, "instructions: there is no such key"),
        ("grade.yaml", {"instruction": " \n"}, "instruction: is blank"),
        ("grade.yaml", {"instruction": None}, "instruction: not there"),
        ("grade.yaml", {"examples": None}, "examples: not there"),
        ("grade.yaml", {"name": "support"}, "name: 'support' in a file of this name"),
        ("grades.yaml", {"name": "grades"}, "name: no prompt 'grades'; there are: .*grade, "),
        ("theirs.yaml", {"name": "theirs"}, "name: 'theirs' is fixed wording and cannot be"),
        ("grade.yml", {}, "its name should end in .yaml"),
        ("grade.de.yaml", {"language": "fr"}, "language: 'fr' in .* named grade.fr.yaml"),
        ("grade.yaml", {"language": "de"}, "language: 'de' in a file of this name"),
        ("grade.d.yaml", {}, "language: 'd' in the file's name is not a language tag"),
        ("grade.yaml", {"based_on": "first"}, "based_on: "),
    ],
)
def test_a_mistake_is_told_by_file_and_key(
    tmp_path: Path, name: str, changes: dict[str, Any], message: str
) -> None:
    """The night does not begin with a prompt that is not what it seems."""
    folder = write(tmp_path / "p", name, **changes)
    with pytest.raises(SettingsError, match=f"{name}: {message}"):
        PromptOverrides.load(folder, {**ALL, "theirs": VERBATIM})


GOOD = {"question": "?", "contexts": ["a"], "sentences": ["b", "c"]}


@pytest.mark.parametrize(
    ("data", "verdict", "message"),
    [
        (GOOD, {"supported": [1]}, "output: supported: 1 verdicts for 2 sentences"),
        (GOOD, {"supported": [1, 2]}, r"output: support: supported.1: "),
        (GOOD, {"support": [1, 0]}, "output.support: there is no such key"),
        (GOOD, {}, "output.supported: not there"),
        (GOOD, {"supported": [1, 0], "why": "x"}, "output.why: there is no such key"),
        ({**GOOD, "sentences": 2}, {"supported": [1, 0]}, "input: not an input of support: Type"),
        ({**GOOD, "more": 1}, {"supported": [1, 0]}, "input.more: there is no such key"),
        ({"question": "?"}, {"supported": [1]}, "input.contexts: not there"),
    ],
)
def test_an_example_fits_the_verdict(
    tmp_path: Path, data: dict[str, Any], verdict: dict[str, Any], message: str
) -> None:
    """An example that breaks the prompt's own rules would teach the judge to break them."""
    folder = write(tmp_path / "p", "support.yaml", examples=[{"input": data, "output": verdict}])
    with pytest.raises(SettingsError, match=f"support.yaml: examples.0.{message}"):
        PromptOverrides.load(folder, ALL)


@pytest.mark.parametrize("text", ["a: [", "- x", "", "name: \x00", "based_on: 2026-02-31"])
def test_a_file_that_is_no_mapping_is_told(tmp_path: Path, text: str) -> None:
    """As one line that names it."""
    (tmp_path / "grade.yaml").write_text(text)
    with pytest.raises(SettingsError, match=r"grade.yaml: .") as error:
        PromptOverrides.load(tmp_path, ALL)
    assert "\n" not in str(error.value)


def test_a_file_that_is_nested_too_deeply_is_told(tmp_path: Path) -> None:
    """As any other problem of that file."""
    (tmp_path / "grade.yaml").write_text("[" * 3_000)
    (one,) = read_folder(tmp_path, ALL)
    assert one.problem == "cannot be read: line 1, column 51: it is nested too deeply"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), ["x", float("-inf")]])
def test_an_example_holds_numbers_that_json_has(tmp_path: Path, value: Any) -> None:
    """YAML's .nan and .inf could not be sent."""
    examples = [{"input": {"question": "?", "context": value}, "output": {"grade": 2}}]
    (one,) = read_folder(write(tmp_path / "p", "grade.yaml", examples=examples), ALL)
    assert one.problem.startswith("examples.0.input.context.")
    assert "finite number" in one.problem


def test_a_file_is_found_however_its_language_is_written(tmp_path: Path) -> None:
    """One for the same rows is the same file; where there is none, it is named as asked for."""
    write(tmp_path / "p", "grade.zh-Hans.yaml", "grade.yaml")
    for tag in ("zh-hans", "zh_HANS", "zh-Hans"):
        assert find_file(tmp_path / "p", "grade", tag).name == "grade.zh-Hans.yaml"
    assert find_file(tmp_path / "p", "grade", "zh").name == "grade.zh.yaml"
    assert find_file(tmp_path / "p", "support", "zh-hans").name == "support.zh-hans.yaml"
    assert find_file(tmp_path / "nosuch", "grade", "de").name == "grade.de.yaml"


def test_two_files_for_the_same_rows_are_told(tmp_path: Path) -> None:
    """Neither could be said to win."""
    folder = write(tmp_path / "p", "grade.pt-BR.yaml", "grade.pt_BR.yaml")
    first, second = read_folder(folder, ALL)
    assert (first.problem, second.problem) == ("", "is for the same rows as grade.pt-BR.yaml")


def test_a_folder_without_prompts_is_told(tmp_path: Path) -> None:
    """A wrong path must not pass for the built-in wording; other files do not matter."""
    with pytest.raises(SettingsError, match=r"prompts: .*nosuch: No such file"):
        PromptOverrides.load(tmp_path / "nosuch", ALL)
    (tmp_path / "README.md").touch()
    with pytest.raises(SettingsError, match=r"holds no \.yaml file"):
        PromptOverrides.load(tmp_path, ALL)


def test_norwegian_is_a_language(tmp_path: Path) -> None:
    """YAML takes a bare `no` for false."""
    folder = write(tmp_path / "p", "grade.no.yaml", language=False)
    assert sent(PromptOverrides.load(folder, ALL), "no") == "From grade.no.yaml."


@pytest.mark.parametrize(
    ("based_on", "told"),
    [(None, False), (GRADE.version, False), (GRADE.version + 1, True), (0, True)],
)
def test_a_file_from_another_version_is_outdated(
    tmp_path: Path, based_on: int | None, told: bool
) -> None:
    """It goes on to be used; people decide what of the new prompt they want."""
    (one,) = read_folder(write(tmp_path / "p", "grade.yaml", based_on=based_on), ALL)
    assert bool(one.outdated) is told
    assert not one.problem


def test_the_example_of_the_docs_is_a_good_file(tmp_path: Path) -> None:
    """docs/how-to/prompts.md shows a file that can be used as it stands."""
    page = (ROOT / "docs/how-to/prompts.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(name: .*?)```", page, re.DOTALL)
    (tmp_path / "grade.de.yaml").write_text(text, encoding="utf-8")
    assert sent(PromptOverrides.load(tmp_path, ALL), "de").startswith("Bewerte, wie gut")


# Metrics and settings


def test_without_prompts_nothing_changes() -> None:
    """A digest is that of name, version, parameters and the prompts' own digests."""
    chosen = chosen_metrics(make_settings({"metrics": ["context_recall"]}))
    parts = dump_json(["context_recall", chosen[0].version, {}, [SUPPORT.digest]])
    assert chosen[0].digest == hashlib.blake2b(parts.encode(), digest_size=6).hexdigest()
    assert PromptOverrides(()).of(GRADE, "de") is GRADE


def digests(folder: Path) -> dict[str, str]:
    """Digest by metric."""
    settings = make_settings({"prompts": str(folder)})
    return {metric.name: metric.digest for metric in chosen_metrics(settings)}


def test_scores_by_other_words_have_another_fingerprint(tmp_path: Path) -> None:
    """Of the metrics that send them, whatever the language, and of no others."""
    before = {one.name: one.digest for one in select(DEFAULT_METRICS)}
    replaced = digests(write(tmp_path / "a", "grade.yaml"))
    translated = digests(write(tmp_path / "b", "grade.de.yaml"))
    both = digests(write(tmp_path / "b", "grade.fr.yaml"))
    for name in ("context_relevance", "context_precision"):
        assert len({found[name] for found in (before, replaced, translated, both)}) == 4
        before[name] = both[name]
    assert both == before


def test_an_export_that_nobody_changed_keeps_the_fingerprints(tmp_path: Path) -> None:
    """A trend line breaks where words change, not where they are moved."""
    for prompt in REPLACEABLE:
        (tmp_path / file_name(prompt.name)).write_text(as_yaml(prompt), encoding="utf-8")
    assert digests(tmp_path) == {one.name: one.digest for one in select(DEFAULT_METRICS)}


def test_other_words_are_another_run(tmp_path: Path) -> None:
    """A night repeated with other prompts is scored anew."""
    runs = set()
    for values in ({}, {"prompts": str(write(tmp_path / "p", "grade.yaml"))}):
        runs.add(plan_run(make_settings(values), NIGHT, NightInputs((), None), "judge").run)
    assert len(runs) == 2


def test_requests_go_out_in_the_words_of_the_row(tmp_path: Path) -> None:
    """`Metric.overridden` changes the prompt of a request and nothing else."""
    settings = make_settings({"prompts": str(write(tmp_path / "p", "grade.de.yaml"))})
    one = next(metric for metric in chosen_metrics(settings) if metric.name == "context_relevance")
    request = Ask(GRADE, {"question": "?", "context": "x"}, repeat=(1,))
    worded = one.overridden(request, "de")
    assert isinstance(worded, Ask)
    assert (worded.data, worded.repeat) == (request.data, request.repeat)
    assert worded.prompt.instruction == "From grade.de.yaml."
    assert worded.key != request.key
    unchanged: list[Ask | Embed] = [Ask(NEEDED, {}), Embed("x")]
    assert one.overridden(request, "fr") is request
    assert all(one.overridden(other, "de") is other for other in unchanged)


def test_the_folder_is_beside_the_settings(tmp_path: Path) -> None:
    """Like every relative path in `ragmetrics.yaml`."""
    write(tmp_path / "words", "grade.yaml")
    (tmp_path / "ragmetrics.yaml").write_text("prompts: words\nmetrics: [context_relevance]")
    settings = load_settings(tmp_path / "ragmetrics.yaml")
    assert settings.prompts == str(tmp_path / "words")
    (one,) = chosen_metrics(settings)
    assert sent(one.overrides, "en") == "From grade.yaml."
