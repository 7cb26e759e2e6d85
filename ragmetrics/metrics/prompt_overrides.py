"""Prompt overrides by the user: a folder of YAML files, one per prompt and language.

    grade.yaml       replaces the prompt `grade` for all rows,
    grade.de.yaml    for rows whose language is de, or de-AT if no file is more specific

Only the texts change: verdict, check and baseline are those of the built-in prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, ValidationError

from ragmetrics.errors import SettingsError, UnreadableReply
from ragmetrics.records import Data, Prompt, dump_json, explain_validation_error
from ragmetrics.text import load_yaml

Prompts = Mapping[str, Prompt[Any]]
"""Prompts by name."""

_TAG = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8})*")
_UNSAFE_IN_BLOCKS = frozenset("\r\x85\u2028\u2029\ufeff")  # YAML would read a different line break

Code = Annotated[str, BeforeValidator(lambda value: "no" if value is False else value)]
"""A language; YAML reads Norwegian's bare `no` as false."""


class _Example(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)  # JSON has no NaN

    input: dict[str, JsonValue]
    output: dict[str, JsonValue]


class _Content(BaseModel):
    """Content of a file."""

    model_config = ConfigDict(extra="forbid")

    name: str
    language: Code | None = None
    based_on: int | None = None
    instruction: str
    examples: list[_Example]


@dataclass(frozen=True, slots=True)
class PromptFile:
    """One file of the folder: its prompt, or what is wrong with it."""

    file: Path
    name: str
    language: str | None
    prompt: Prompt[Any] | None = None
    based_on: int | None = None
    problem: str = ""

    @property
    def outdated(self) -> str:
        """Note for a file that is based on another version of the built-in prompt; else empty."""
        if self.prompt is None or self.based_on in (None, self.prompt.version):
            return ""
        return f"based on version {self.based_on}; the built-in is version {self.prompt.version}"


class PromptOverrides:
    """A loaded folder: the prompts to send, by name and language."""

    def __init__(self, files: Sequence[PromptFile]) -> None:
        self._prompts = {(file.name, file.language): file.prompt for file in files if file.prompt}

    @classmethod
    def load(cls, folder: str | Path, prompts: Prompts) -> PromptOverrides:
        """Read a folder. Raises SettingsError with the file and key of the first mistake."""
        files = read_folder(folder, prompts)
        for file in files:
            if file.problem:
                raise SettingsError(f"{file.file}: {file.problem}")
        return cls(files)

    def of(self, prompt: Prompt[Any], language: str | None) -> Prompt[Any]:
        """The prompt for a language; the same object if there is no override."""
        for tag in _ranges(language):
            override = self._prompts.get((prompt.name, tag))
            if override is not None:
                return override
        return prompt

    def digest(self, prompts: Sequence[Prompt[Any]]) -> list[Any]:
        """Digest that changes with any text that may be sent; without overrides the prompts' own.

        For a prompt with files for languages it has the digests of all of them.
        """
        digests: list[Any] = []
        for prompt in prompts:
            default = self.of(prompt, None).digest
            tagged = {tag: self._prompts[prompt.name, tag].digest for tag in self.tags(prompt.name)}
            digests.append([default, tagged] if tagged else default)
        return digests

    def tags(self, name: str) -> list[str]:
        """The languages that a prompt has files for, in alphabetical order."""
        return sorted(tag for one, tag in self._prompts if one == name and tag)


@lru_cache(maxsize=1_000)
def _ranges(language: str | None) -> tuple[str | None, ...]:
    """Tags to look up, most specific first, as in RFC 4647: de-AT, de, and None for all."""
    parts = _normal(language).split("-") if language else []
    return (*("-".join(parts[:length]) for length in range(len(parts), 0, -1)), None)


def _normal(language: str) -> str:
    return language.strip().replace("_", "-").lower()


def is_tag(language: str) -> bool:
    """Whether a text has the form of a BCP 47 language tag."""
    return bool(_TAG.fullmatch(_normal(language)))


def read_folder(folder: str | Path, prompts: Prompts) -> list[PromptFile]:
    """All YAML files of a folder by name, each with its mistake if it has one.

    Raises SettingsError if the folder is missing or has no such file.
    """
    try:
        there = sorted(Path(folder).iterdir())
        files = [one for one in there if one.suffix in (".yaml", ".yml") and one.is_file()]
    except OSError as error:
        raise SettingsError(f"prompts: {folder}: {error.strerror}") from error
    if not files:
        raise SettingsError(f"prompts: {folder}: holds no .yaml file")
    first: dict[tuple[str, str | None], Path] = {}
    prompt_files = []
    for file in files:
        entry = _read(file, prompts)
        earlier = first.setdefault((entry.name, entry.language), file)
        if earlier != file:
            entry = replace(entry, prompt=None, problem=f"is for the same rows as {earlier.name}")
        prompt_files.append(entry)
    return prompt_files


def _read(file: Path, prompts: Prompts) -> PromptFile:
    name, _, tag = file.stem.partition(".")
    entry = PromptFile(file, name, _normal(tag) or None)
    try:
        content = _content(file)
        _agree(content, entry)
        if name not in prompts:
            raise SettingsError(f"name: no prompt {name!r}; there are: {', '.join(prompts)}")
        examples = [(example.input, example.output) for example in content.examples]
        prompt = reword(prompts[name], content.instruction, examples)
    except SettingsError as error:
        return replace(entry, problem=str(error))
    return replace(entry, prompt=prompt, based_on=content.based_on)


def _content(file: Path) -> _Content:
    if file.suffix != ".yaml":
        raise SettingsError("its name should end in .yaml")
    try:
        return _parsed(file.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise SettingsError(explain_validation_error(error)) from error
    except (OSError, ValueError, yaml.YAMLError) as error:  # ValueError: no UTF-8
        raise SettingsError(f"cannot be read: {' '.join(str(error).split())}") from error


@lru_cache(maxsize=1_000)
def _parsed(text: str) -> _Content:
    """The content of a file; cached, because every part of a night reads the folder."""
    return _Content.model_validate(load_yaml(text))


def _agree(content: _Content, entry: PromptFile) -> None:
    """Check that the keys agree with the file's name."""
    if content.name != entry.name:
        raise SettingsError(f"name: {content.name!r} in a file of this name")
    if entry.language and not is_tag(entry.language):
        raise SettingsError(
            f"language: {entry.language!r} in the file's name is not a language tag"
        )
    if content.language is not None and _normal(content.language) != entry.language:
        raise SettingsError(
            f"language: {content.language!r} in a file of this name; it should be named "
            f"{entry.name}.{content.language}.yaml"
        )


def reword(
    prompt: Prompt[Any], instruction: str, examples: Sequence[tuple[Data, Data]]
) -> Prompt[Any]:
    """The prompt with other texts. Raises SettingsError, by key, if they do not fit its verdict."""
    if prompt.verbatim:
        raise SettingsError(f"name: {prompt.name!r} is fixed wording and cannot be replaced")
    if not instruction.strip():
        raise SettingsError("instruction: is blank")
    for number, (data, verdict) in enumerate(examples):
        _check_example(prompt, f"examples.{number}", data, verdict)
    # A rubric says the same in short: a decision model gets the user's words in its place.
    return replace(prompt, instruction=instruction, examples=tuple(examples), rubric="")


def _check_example(prompt: Prompt[Any], place: str, data: Data, verdict: Data) -> None:
    if inputs := [set(known) for known, _ in prompt.examples]:
        _check_keys(f"{place}.input", set(data), set.intersection(*inputs), set.union(*inputs))
    outputs = set(prompt.schema["properties"])
    _check_keys(f"{place}.output", set(verdict), outputs, outputs)
    try:
        prompt.parse(dump_json(verdict), data)
    except UnreadableReply as error:
        if error.__cause__:  # the input does not have the shape that its metric sends
            message = f"not an input of {prompt.name}: {error.__cause__!r}"
            raise SettingsError(f"{place}.input: {message}") from error
        raise SettingsError(f"{place}.output: {error}") from error


def _check_keys(place: str, keys: set[str], needed: set[str], known: set[str]) -> None:
    if strange := keys - known:
        raise SettingsError(f"{place}.{min(strange)}: there is no such key")
    if missing := needed - keys:
        raise SettingsError(f"{place}.{min(missing)}: not there")


def as_yaml(prompt: Prompt[Any], language: str | None = None, based_on: int | None = None) -> str:
    """The text of a prompt's file; reading it gives the same prompt."""
    # Through JSON, so that tuples and numeric keys become what the judge gets.
    examples = json.loads(dump_json([{"input": i, "output": o} for i, o in prompt.examples]))
    content = {
        "name": prompt.name,
        **({"language": language} if language else {}),
        "based_on": based_on or prompt.version,
        "instruction": prompt.instruction.strip() + "\n",
        "examples": examples,
    }
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=96)


def file_name(name: str, language: str | None = None) -> str:
    """The name of a prompt's file."""
    return f"{name}.{language}.yaml" if language else f"{name}.yaml"


def find_file(folder: Path, name: str, language: str | None = None) -> Path:
    """Path of a prompt's file, existing or not; zh-Hans and zh_hans are the same language."""
    wanted = folder / file_name(name, language)
    there = sorted(folder.glob(f"{name}.*.yaml")) if language else []
    return next((one for one in there if _normal(one.name) == _normal(wanted.name)), wanted)


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated values in full."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    unsafe = not _UNSAFE_IN_BLOCKS.isdisjoint(text)
    style = '"' if unsafe else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
