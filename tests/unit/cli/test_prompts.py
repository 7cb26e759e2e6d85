"""`ragmetrics prompts`: export, check and adapt, as people run them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from ragmetrics.cli import prompts as cli_prompts
from ragmetrics.config import JudgeSettings
from ragmetrics.metrics import GRADE, SUPPORT, PromptOverrides, as_yaml, metrics, prompts_of
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS
from ragmetrics.records import Prompt
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl

ALL = prompts_of(metrics().values())
OUTDATED = f"based on version 99; the built-in is version {GRADE.version}"
COMMANDS: dict[str, Any] = dict(vars(typer.main.get_command(cli_prompts.app))["commands"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place for prompts, not there yet."""
    return tmp_path / "words"


@pytest.fixture
def judge(judge_server: JudgeServer) -> list[str]:
    """The flags that name the fake judge."""
    return ["--judge", "openai", "--base-url", judge_server.base_url]


@pytest.mark.parametrize("name", COMMANDS)
def test_everything_has_help(run: Run, name: str) -> None:
    """Every command and option says what it is for."""
    assert COMMANDS[name].help
    assert all(parameter.help for parameter in COMMANDS[name].params)
    ended = run("prompts", name, "--help")
    assert (ended.code, f"Usage: ragmetrics prompts {name}" in ended.out) == (0, True)


def first_words(prompt: Prompt[Any]) -> str:
    """How a prompt begins."""
    return " ".join(prompt.instruction.split()[:3])


# export


def test_export_writes_one_file_for_each_prompt(run: Run, folder: Path) -> None:
    """Of all metrics, and says what it wrote; check finds them good and complete."""
    ended = run("prompts", "export", "--dir", folder)
    assert ended.code == 0
    names = sorted(name for name, prompt in ALL.items() if not prompt.verbatim)
    assert sorted(file.stem for file in folder.iterdir()) == names
    assert ended.out.splitlines() == [f"written: {folder}/{name}.yaml" for name in names]
    assert run("prompts", "check", "--dir", folder).code == 0


def test_export_of_some_metrics(run: Run, folder: Path) -> None:
    """What they ask, each prompt once; a metric that asks nothing has nothing to export."""
    run("prompts", "export", "--dir", folder, "--metrics", "context_precision,context_relevance")
    assert [file.name for file in folder.iterdir()] == ["grade.yaml"]
    ended = run("prompts", "export", "--dir", folder, "--metrics", "mrr")
    assert ended.code == 2
    assert "ask nothing that can be put in other words" in ended.err


def test_export_keeps_what_people_wrote(run: Run, folder: Path) -> None:
    """Unless they force it."""
    what = ["prompts", "export", "--dir", folder, "--metrics", "context_relevance"]
    run(*what)
    (folder / "grade.yaml").write_text("mine")
    assert run(*what).out == f"left as it is: {folder}/grade.yaml (--force writes over it)\n"
    assert (folder / "grade.yaml").read_text() == "mine"
    run(*what, "--force")
    assert (folder / "grade.yaml").read_text() == as_yaml(GRADE)


def test_a_folder_that_cannot_be_written_is_told(run: Run, folder: Path) -> None:
    """As one line."""
    folder.touch()
    ended = run("prompts", "export", "--dir", folder)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ".yaml: File exists" in ended.err


# check


def make_files(folder: Path, **texts: str) -> None:
    """Files named `grade_de` for grade.de.yaml."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name.replace('_', '.')}.yaml").write_text(text)


def test_check_tells_which_rows_a_file_is_for(run: Run, folder: Path) -> None:
    """Those of its language that no other file is nearer to, and which metrics it changes."""
    text = as_yaml(GRADE)
    make_files(folder, grade=text, grade_de=text, **{"grade_de-AT": text, "grade_fr": text})
    ended = run("prompts", "check", "--dir", folder)
    metrics_of_grade = "for context_precision, context_relevance, worst_hop"
    assert ended.code == 0
    assert ended.out.splitlines() == [
        f"grade.de-AT.yaml: ok, rows in de-at, {metrics_of_grade}",
        f"grade.de.yaml: ok, rows in de but those in de-at, {metrics_of_grade}",
        f"grade.fr.yaml: ok, rows in fr, {metrics_of_grade}",
        f"grade.yaml: ok, all rows but those in de, de-at, fr, {metrics_of_grade}",
    ]


def test_check_finds_every_problem(run: Run, folder: Path) -> None:
    """One line a file, exit code 1."""
    make_files(folder, grade="name: grade", other="[]", support=as_yaml(ALL["support"]))
    ended = run("prompts", "check", "--dir", folder)
    assert ended.code == 1
    assert ended.out.splitlines()[0].startswith("grade.yaml: instruction: not there (and 1 more)")
    assert ended.out.splitlines()[1].startswith("other.yaml: ")
    assert ended.out.splitlines()[2].startswith("support.yaml: ok, all rows")


def test_check_warns_where_the_built_in_prompt_moved_on(run: Run, folder: Path) -> None:
    """That is no problem: the file goes on to be used."""
    make_files(folder, grade=as_yaml(GRADE, based_on=99))
    ended = run("prompts", "check", "--dir", folder)
    assert ended.code == 0
    assert f"{OUTDATED}: compare it with a new" in ended.out


def test_check_json_is_one_object(run: Run, folder: Path) -> None:
    """For programs."""
    make_files(folder, grade_de=as_yaml(GRADE, "de", based_on=99), other="{}")
    ended = run("prompts", "check", "--dir", folder, "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["folder"]) == (1, str(folder))
    assert told["files"][0] == {
        "file": "grade.de.yaml",
        "prompt": "grade",
        "language": "de",
        "rows": "rows in de",
        "metrics": ["context_precision", "context_relevance", "worst_hop"],
        "problem": None,
        "outdated": OUTDATED,
    }
    assert told["files"][1]["problem"].startswith("name: not there")


def test_check_of_the_settings(run: Run, tmp_path: Path, folder: Path) -> None:
    """The folder that they name."""
    make_files(folder, grade=as_yaml(GRADE))
    settings = tmp_path / "ragmetrics.yaml"
    settings.write_text("prompts: words")
    assert "grade.yaml: ok" in run("prompts", "check", "--settings", settings).out
    both = run("prompts", "check", "--settings", settings, "--dir", folder)
    assert (both.code, "say one of them" in both.err) == (2, True)
    settings.write_text("language: de")
    assert "names no folder of prompts" in run("prompts", "check", "--settings", settings).err


def test_check_of_the_settings_of_the_folder(run: Run, folder: Path) -> None:
    """`ragmetrics.yaml` names the folder of prompts, and --dir goes before it."""
    make_files(folder, grade=as_yaml(GRADE))
    Path("ragmetrics.yaml").write_text(f"prompts: {folder}\n")
    assert "grade.yaml: ok" in run("prompts", "check").out
    assert "grade.yaml" not in run("prompts", "check", "--dir", "elsewhere").out


def test_check_of_no_folder(run: Run, folder: Path) -> None:
    """Exit code 2."""
    ended = run("prompts", "check", "--dir", folder)
    assert ended.code == 2
    assert ended.err == f"ragmetrics: prompts: {folder}: No such file or directory\n"


# adapt


def test_adapt_translates_once_for_each_prompt(
    run: Run, folder: Path, judge: list[str], judge_server: JudgeServer
) -> None:
    """Of the default metrics; the files are good, and used for rows in that language."""
    ended = run("prompts", "adapt", "--language", "de", "--dir", folder, *judge)
    names = ["grade", "needed", "questions", "support"]
    assert ended.code == 0
    assert ended.out.splitlines() == [f"written: {folder}/{name}.de.yaml" for name in names]
    assert judge_server.stats()["requests"] == len(names)
    assert judge_server.stats()["last_chat"]["max_completion_tokens"] >= 4_000
    overrides = PromptOverrides.load(folder, ALL)
    assert overrides.of(GRADE, "de").instruction.startswith(f"[German (de)] {first_words(GRADE)}")
    assert overrides.of(GRADE, "en") is GRADE
    content = yaml.safe_load((folder / "questions.de.yaml").read_text())
    assert (content["language"], content["based_on"]) == ("de", QUESTIONS.version)
    assert content["examples"][0]["input"]["language"] == "de"


def test_adapt_keeps_what_is_there(
    run: Run, folder: Path, judge: list[str], judge_server: JudgeServer
) -> None:
    """Without asking for it again, unless people force it."""
    what = ["prompts", "adapt", "--language", "de", "--dir", folder, *judge]
    run(*what, "--metrics", "context_recall")
    assert run(*what, "--metrics", "context_recall").out == (
        f"left as it is: {folder}/support.de.yaml (--force translates it again)\n"
    )
    assert judge_server.stats()["requests"] == 1
    run(*what, "--metrics", "context_recall", "--force")
    assert judge_server.stats()["requests"] == 2


def test_adapt_knows_a_language_however_it_is_written(
    run: Run, folder: Path, judge: list[str], judge_server: JudgeServer
) -> None:
    """zh-hans is zh-Hans: a second file for the same rows would make the folder unusable."""
    what = ["prompts", "adapt", "--dir", folder, "--metrics", "context_recall", *judge]
    run(*what, "--language", "zh-Hans")
    again = run(*what, "--language", "zh-hans")
    there = f"{folder}/support.zh-Hans.yaml"
    assert again.out == f"left as it is: {there} (--force translates it again)\n"
    assert run(*what, "--language", "zh_hans", "--force").out == f"written: {there}\n"
    assert judge_server.stats()["requests"] == 2
    assert run("prompts", "check", "--dir", folder).code == 0


def test_adapt_translates_the_users_own_wording(run: Run, folder: Path, judge: list[str]) -> None:
    """Where the folder has a file for all rows; its version goes with it."""
    text = as_yaml(GRADE, based_on=99).replace(first_words(GRADE), "Grade how near")
    make_files(folder, grade=text)
    what = ["prompts", "adapt", "--language", "de", "--dir", folder]
    run(*what, "--metrics", "context_relevance", *judge)
    content = yaml.safe_load((folder / "grade.de.yaml").read_text())
    assert content["instruction"].startswith("[German (de)] Grade how near")
    assert content["based_on"] == 99
    (folder / "grade.yaml").write_text("{}")
    assert run(*what, "--metrics", "context_relevance", "--force", *judge).code == 2


def test_an_unreadable_translation_is_not_written(
    run: Run, folder: Path, judge: list[str], judge_server: JudgeServer
) -> None:
    """It is asked for again, then told; exit code 1."""
    judge_server.faults(nonsense=True)
    what = ["--dir", folder, "--metrics", "context_recall"]
    ended = run("prompts", "adapt", "--language", "de", *what, *judge)
    assert ended.code == 1
    assert ended.out.startswith(f"not written: {folder}/support.de.yaml: translation: ")
    assert judge_server.stats()["requests"] == 1 + JudgeSettings().reasks
    assert not folder.exists()


def test_adapt_follows_the_settings(
    run: Run, tmp_path: Path, folder: Path, judge_server: JudgeServer
) -> None:
    """Judge, metrics and folder."""
    settings = tmp_path / "ragmetrics.yaml"
    where = f"judge: {{name: openai, base_url: '{judge_server.base_url}'}}"
    settings.write_text(f"prompts: words\nmetrics: [context_recall]\n{where}")
    ended = run("prompts", "adapt", "--language", "pt-BR", "--settings", settings)
    assert ended.out == f"written: {folder}/support.pt-BR.yaml\n"


def test_adapt_needs_a_judge_and_a_language(run: Run, folder: Path, judge: list[str]) -> None:
    """The lexical judge has none; a language is a tag."""
    embedded = run("prompts", "adapt", "--language", "de", "--dir", folder)
    assert (embedded.code, "the lexical judge cannot translate" in embedded.err) == (2, True)
    wrong = run("prompts", "adapt", "--language", "in German", "--dir", folder, *judge)
    assert (wrong.code, "is no language tag, such as de or pt-BR" in wrong.err) == (2, True)
    assert not folder.exists()


# scoring


def test_a_night_is_judged_in_the_words_of_its_rows(
    run: Run, tmp_path: Path, folder: Path, judge: list[str], judge_server: JudgeServer
) -> None:
    """From adapt to score: German rows are judged by the German prompt."""
    run("prompts", "adapt", "--language", "de", "--dir", folder, *judge)
    (tmp_path / "ragmetrics.yaml").write_text("prompts: words\nmetrics: [context_recall]")
    logs = write_jsonl(tmp_path / "a.jsonl", make_rows(2, language="de-AT"))
    ended = run("score", logs, "--settings", tmp_path / "ragmetrics.yaml", *judge)
    assert ended.code == 0
    system = judge_server.stats()["last_chat"]["messages"][0]["content"]
    assert system.startswith(f"[German (de)] {first_words(SUPPORT)}")
