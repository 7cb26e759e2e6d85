"""`ragmetrics prompts`: write out, check and translate what judges are asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ragmetrics.cli.options import (
    BaseUrlFlag,
    JsonFlag,
    ModelFlag,
    SettingsFlag,
    group,
    out,
    print_json,
    settings_here,
)
from ragmetrics.config import with_overrides
from ragmetrics.errors import InputError, Unanswered
from ragmetrics.metrics import (
    PromptFile,
    as_yaml,
    file_name,
    find_file,
    is_tag,
    metrics as all_metrics,
    prompts_of,
    read_folder,
    select,
)
from ragmetrics.records import Prompt

app = group("Export, check and translate the prompts that judges get.")

DirFlag = Annotated[Path, typer.Option("--dir", help="The folder of YAML files.")]
FolderFlag = Annotated[
    Path | None,
    typer.Option(
        "--dir", help="The folder of YAML files; default: that of the settings, else `prompts`."
    ),
]
MetricsFlag = Annotated[
    str | None,
    typer.Option("--metrics", help="Only the prompts of these metrics, separated by commas."),
]
ForceFlag = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
_FOLDER = Path("prompts")


@app.command()
def export(
    directory: DirFlag = _FOLDER, metrics: MetricsFlag = None, force: ForceFlag = False
) -> None:
    """Write each built-in prompt to a YAML file, which you can edit."""
    chosen = select(metrics.split(",")) if metrics else all_metrics().values()
    for prompt in _replaceable(prompts_of(chosen)):
        file = directory / file_name(prompt.name)
        if force or not file.exists():
            _write(file, as_yaml(prompt))
        else:
            _say(f"left as it is: {file} (--force writes over it)")


@app.command()
def check(
    directory: FolderFlag = None, settings: SettingsFlag = None, as_json: JsonFlag = False
) -> None:
    """Check which prompt files can be used, and for which rows. Exit code 1 if one cannot."""
    folder = _folder(directory, settings)
    files = read_folder(folder, prompts_of(all_metrics().values()))
    records = [_record(file, files) for file in files]
    if as_json:
        print_json({"folder": str(folder), "files": records})
    else:
        for record in records:
            _print(record)
    if any(file.problem for file in files):
        raise typer.Exit(1)


@app.command()
def adapt(
    language: Annotated[str, typer.Option(help="The language, such as de or pt-BR.")],
    directory: FolderFlag = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            help="Translate the prompts of these metrics, separated by commas; default: "
            "those of the settings.",
        ),
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="The judge that translates: a language model.")
    ] = None,
    model: ModelFlag = None,
    base_url: BaseUrlFlag = None,
    settings: SettingsFlag = None,
    force: ForceFlag = False,
) -> None:
    """Ask the judge to translate the prompts of the settings' metrics.

    Each prompt is taken from the folder, or else as built in. --metrics names other metrics.
    """
    from ragmetrics.judges import translate

    if not is_tag(language):
        raise InputError(f"--language: {language!r} is no language tag, such as de or pt-BR")
    chosen = settings_here(settings)
    wanted = select(metrics.split(",") if metrics else chosen.metrics)
    folder = directory or Path(chosen.prompts or _FOLDER)
    todo = []
    for prompt, based_on in _sources(folder, _replaceable(prompts_of(wanted))):
        file = find_file(folder, prompt.name, language)
        if file.exists() and not force:
            _say(f"left as it is: {file} (--force translates it again)")
        else:
            todo.append((file, prompt, based_on))
    asked = with_overrides(chosen, judge, model, base_url)
    answers = translate(asked, [prompt for _, prompt, _ in todo], language) if todo else []
    for (file, _, based_on), answer in zip(todo, answers, strict=True):
        if isinstance(answer, Unanswered):
            _say(f"not written: {file}: {answer.reason}", style="red")
        else:
            _write(file, as_yaml(answer, language, based_on))
    if any(isinstance(answer, Unanswered) for answer in answers):
        raise typer.Exit(1)


def _folder(directory: Path | None, settings: Path | None) -> Path:
    if settings and directory:
        raise InputError("--dir and --settings: say one of them")
    folder = directory or settings_here(settings).prompts
    if settings and folder is None:
        raise InputError(f"{settings}: names no folder of prompts")
    return Path(folder or _FOLDER)


def _replaceable(prompts: dict[str, Prompt[Any]]) -> list[Prompt[Any]]:
    asking = [prompt for prompt in prompts.values() if not prompt.verbatim]
    if not asking:
        raise InputError("these metrics ask nothing that can be put in other words")
    return asking


def _sources(
    directory: Path, prompts: Sequence[Prompt[Any]]
) -> list[tuple[Prompt[Any], int | None]]:
    """The prompts as the folder has them for all rows, with the version they were made from."""
    replaced: dict[str, PromptFile] = {}
    if directory.exists() and any(directory.glob("*.yaml")):
        files = read_folder(directory, prompts_of(all_metrics().values()))
        replaced = {file.name: file for file in files if file.language is None}
    sources = []
    for prompt in prompts:
        file = replaced.get(prompt.name)
        if file and file.problem:
            raise InputError(f"{file.file}: {file.problem}")
        sources.append((file.prompt or prompt, file.based_on) if file else (prompt, None))
    return sources


def _record(prompt: PromptFile, files: Sequence[PromptFile]) -> dict[str, Any]:
    asking = [m.name for m in all_metrics().values() if prompt.name in {p.name for p in m.prompts}]
    return {
        "file": prompt.file.name,
        "prompt": prompt.name,
        "language": prompt.language,
        "rows": _rows(prompt, files),
        "metrics": asking,
        "problem": prompt.problem or None,
        "outdated": prompt.outdated or None,
    }


def _rows(prompt: PromptFile, files: Sequence[PromptFile]) -> str:
    """Which rows a file applies to: those of its language that no other file is nearer to."""
    prefix = f"{prompt.language}-" if prompt.language else ""
    nearer = [
        other.language
        for other in files
        if other.name == prompt.name and other.language and other.language != prompt.language
        if other.language.startswith(prefix)
    ]
    rows = f"rows in {prompt.language}" if prompt.language else "all rows"
    return f"{rows} but those in {', '.join(sorted(set(nearer)))}" if nearer else rows


def _print(record: dict[str, Any]) -> None:
    if record["problem"]:
        _say(f"{record['file']}: {record['problem']}", style="red")
        return
    _say(f"{record['file']}: ok, {record['rows']}, for {', '.join(record['metrics'])}")
    if record["outdated"]:
        _say(f"    {record['outdated']}: compare it with a new export", style="yellow")


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    _say(f"written: {file}")


def _say(text: str, style: str | None = None) -> None:
    out.print(text, style=style)
