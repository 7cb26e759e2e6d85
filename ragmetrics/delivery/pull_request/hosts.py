"""The code host that runs a check: GitHub Actions or GitLab CI, as its environment says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from ragmetrics.delivery.pull_request.api import HostApi, HostError
from ragmetrics.delivery.pull_request.markdown import CheckResult
from ragmetrics.errors import InputError

_CONCLUSIONS = {"passed": "success", "failed": "failure", "inconclusive": "neutral"}
_STATES = {"passed": "success", "failed": "failed", "inconclusive": "success"}
_PAGE = 100
_MOST_PAGES = 100
_TITLE = 250


class _Writer(BaseModel):
    """Who wrote a comment. GitHub names the type."""

    id: int | None = None
    type: str | None = None


class _User(BaseModel):
    """Whose token it is."""

    id: int


class _Comment(BaseModel):
    """A comment of GitHub, whose writer is its user, or a note of GitLab, with an author."""

    id: int
    body: str | None = None
    user: _Writer | None = None
    author: _Writer | None = None


_COMMENTS, _USER = TypeAdapter(list[_Comment]), TypeAdapter(_User)
T = TypeVar("T")


class Host(Protocol):
    """Where a result is shown."""

    def comment(self, result: CheckResult, name: str) -> None:
        """Write the one comment of this name: change it where it exists. Raises HostError."""

    def check(self, result: CheckResult, name: str) -> None:
        """Set the check of this name on the commit. Raises HostError."""


@dataclass(frozen=True)
class GitHub:
    """A pull request of GitHub."""

    api: HostApi
    repository: str
    number: int | None
    """None if the event has no pull request; there is then no comment."""
    commit: str

    def comment(self, result: CheckResult, name: str) -> None:
        """Write the one comment of this name."""
        if self.number is None:
            return
        me = self._me()
        path = f"/repos/{self.repository}/issues"
        body = {"body": f"{_marker(name)}\n{result.markdown}"}
        for comment in _comments(self.api, f"{path}/{self.number}/comments"):
            writer = comment.user or _Writer()
            # A person may have copied the marker with a quotation.
            is_ours = writer.type == "Bot" if me is None else writer.id == me
            if is_ours and _has_marker(comment, name):
                self.api.request("PATCH", f"{path}/comments/{comment.id}", body)
                return
        self.api.request("POST", f"{path}/{self.number}/comments", body)

    def check(self, result: CheckResult, name: str) -> None:
        """Set a check run; an inconclusive one is neutral."""
        page = {"details_url": result.link} if result.link else {}
        self.api.request(
            "POST",
            f"/repos/{self.repository}/check-runs",
            {
                "name": name,
                "head_sha": self.commit,
                "status": "completed",
                "conclusion": _CONCLUSIONS[result.conclusion],
                "output": {"title": result.title[:_TITLE], "summary": result.markdown},
                **page,
            },
        )

    def _me(self) -> int | None:
        """The id of the token's user; None for the token of a job or of an app: both are bots."""
        try:
            return _parsed(_USER, self.api.request("GET", "/user"), "/user").id
        except HostError as error:
            if error.status != 403:  # "Resource not accessible by integration"
                raise
            return None


@dataclass(frozen=True)
class GitLab:
    """A merge request of GitLab."""

    api: HostApi
    project: str
    number: int | None
    commit: str
    pipeline: str = ""

    def comment(self, result: CheckResult, name: str) -> None:
        """Write the one note of this name."""
        if self.number is None:
            return
        me = _parsed(_USER, self.api.request("GET", "/user"), "/user").id
        path = f"/projects/{self.project}/merge_requests/{self.number}/notes"
        body = {"body": f"{_marker(name)}\n{result.markdown}"}
        for note in _comments(self.api, path):
            if _has_marker(note, name) and note.author and note.author.id == me:
                self.api.request("PUT", f"{path}/{note.id}", body)
                return
        self.api.request("POST", path, body)

    def check(self, result: CheckResult, name: str) -> None:
        """Set a commit status. GitLab has no neutral one: an inconclusive result succeeds."""
        path = f"/projects/{self.project}/statuses/{self.commit}"
        state = _STATES[result.conclusion]
        body = {"state": state, "name": name, "description": result.title[:_TITLE]}
        if self.pipeline:  # without it, GitLab may show the status in another pipeline
            body["pipeline_id"] = self.pipeline
        if result.link:
            body["target_url"] = result.link
        self.api.request("POST", path, body)


def find_host(environment: Mapping[str, str]) -> Host | None:
    """The host of this job; None outside of both. Raises InputError where the token is missing."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return _github(environment)
    if environment.get("GITLAB_CI") == "true":
        return _gitlab(environment)
    return None


def _github(environment: Mapping[str, str]) -> GitHub:
    request = _object(_event(environment.get("GITHUB_EVENT_PATH")).get("pull_request"))
    number, commit = request.get("number"), _object(request.get("head")).get("sha")
    token = _token(environment, "GITHUB_TOKEN")
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return GitHub(
        HostApi(environment.get("GITHUB_API_URL") or "https://api.github.com", headers, [token]),
        environment.get("GITHUB_REPOSITORY", ""),
        number if isinstance(number, int) else None,
        # The commit of the branch: GITHUB_SHA is the merge with the base, which nobody looks at.
        commit if isinstance(commit, str) and commit else environment.get("GITHUB_SHA", ""),
    )


def _gitlab(environment: Mapping[str, str]) -> GitLab:
    number, token = environment.get("CI_MERGE_REQUEST_IID", ""), _token(environment, "GITLAB_TOKEN")
    return GitLab(
        HostApi(
            environment.get("CI_API_V4_URL") or "https://gitlab.com/api/v4",
            {"PRIVATE-TOKEN": token},
            [token],
        ),
        environment.get("CI_PROJECT_ID", ""),
        int(number) if number.isdecimal() else None,
        environment.get("CI_COMMIT_SHA", ""),
        environment.get("CI_PIPELINE_ID", ""),
    )


def _token(environment: Mapping[str, str], name: str) -> str:
    token = environment.get(name, "").strip()
    if not token:
        raise InputError(f"the environment variable {name} is not set: no comment can be written")
    if not (token.isascii() and token.isprintable()):
        raise InputError(f"the environment variable {name} holds characters that no token has")
    return token


def _event(path: str | None) -> dict[str, Any]:
    """The event that started the job; empty where it cannot be read."""
    try:
        event = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return _object(event)


def _object(value: Any) -> dict[str, Any]:
    """A JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def _comments(api: HostApi, path: str) -> Iterator[_Comment]:
    """The comments of a pull request, page by page. Raises HostError."""
    for page in range(1, _MOST_PAGES + 1):
        comments = _parsed(_COMMENTS, api.request("GET", path, per_page=_PAGE, page=page), path)
        yield from comments
        if len(comments) < _PAGE:
            return


def _parsed(kind: TypeAdapter[T], answer: Any, path: str) -> T:
    """An answer in the form that the API documents. Raises HostError that says where it differs."""
    try:
        return kind.validate_python(answer)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the answer"
        raise HostError(
            f"{path}: the answer is not that of this API: {where}: {first['msg']}"
        ) from None


def _marker(name: str) -> str:
    """The first line of the comment, which no reader sees."""
    plain = "".join(one if one.isalnum() else "-" for one in name)
    return f"<!-- ragmetrics:{plain} -->"


def _has_marker(comment: _Comment, name: str) -> bool:
    return (comment.body or "").startswith(_marker(name))
