"""The code host that runs a check: GitHub Actions or GitLab CI, as its environment says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ragmetrics.errors import InputError
from ragmetrics.pull_request.api import HostApi, HostError
from ragmetrics.pull_request.check_result import CheckResult

_CONCLUSIONS = {"passed": "success", "failed": "failure", "inconclusive": "neutral"}
_STATES = {"passed": "success", "failed": "failed", "inconclusive": "success"}
_PAGE = 100
_MOST_PAGES = 100
_TITLE = 250


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
    """None: the event has no pull request, and there is no comment."""
    commit: str

    def comment(self, result: CheckResult, name: str) -> None:
        """Write the one comment of this name."""
        if self.number is None:
            return
        me = self._me()
        path = f"/repos/{self.repository}/issues"
        body = {"body": f"{_marker(name)}\n{result.markdown}"}
        for page in range(1, _MOST_PAGES + 1):
            found = self.api.request(
                "GET", f"{path}/{self.number}/comments", per_page=_PAGE, page=page
            )
            for one in found:
                if _has_marker(one, name) and self._wrote(one.get("user") or {}, me):
                    self.api.request("PATCH", f"{path}/comments/{one['id']}", body)
                    return
            if len(found) < _PAGE:
                break
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
            return int(self.api.request("GET", "/user")["id"])
        except HostError as error:
            if error.status != 403:  # "Resource not accessible by integration"
                raise
            return None

    @staticmethod
    def _wrote(author: Mapping[str, Any], me: int | None) -> bool:
        """Whether a comment is ours. A person may have copied the marker with a quotation."""
        return author.get("type") == "Bot" if me is None else author.get("id") == me


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
        me = self.api.request("GET", "/user")["id"]
        path = f"/projects/{self.project}/merge_requests/{self.number}/notes"
        body = {"body": f"{_marker(name)}\n{result.markdown}"}
        for page in range(1, _MOST_PAGES + 1):
            found = self.api.request("GET", path, per_page=_PAGE, page=page)
            for one in found:
                if _has_marker(one, name) and (one.get("author") or {}).get("id") == me:
                    self.api.request("PUT", f"{path}/{one['id']}", body)
                    return
            if len(found) < _PAGE:
                break
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
    event = _event(environment.get("GITHUB_EVENT_PATH"))
    request = event.get("pull_request") or {}
    headers = {
        "Authorization": f"Bearer {_token(environment, 'GITHUB_TOKEN')}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return GitHub(
        HostApi(environment.get("GITHUB_API_URL") or "https://api.github.com", headers),
        environment.get("GITHUB_REPOSITORY", ""),
        request.get("number"),
        # The commit of the branch: GITHUB_SHA is the merge with the base, which nobody looks at.
        (request.get("head") or {}).get("sha") or environment.get("GITHUB_SHA", ""),
    )


def _gitlab(environment: Mapping[str, str]) -> GitLab:
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    return GitLab(
        HostApi(
            environment.get("CI_API_V4_URL") or "https://gitlab.com/api/v4",
            {"PRIVATE-TOKEN": _token(environment, "GITLAB_TOKEN")},
        ),
        environment.get("CI_PROJECT_ID", ""),
        int(number) if number.isdecimal() else None,
        environment.get("CI_COMMIT_SHA", ""),
        environment.get("CI_PIPELINE_ID", ""),
    )


def _token(environment: Mapping[str, str], name: str) -> str:
    if token := environment.get(name):
        return token
    raise InputError(f"the environment variable {name} is not set: no comment can be written")


def _event(path: str | None) -> dict[str, Any]:
    """The event that started the job; empty where it cannot be read."""
    try:
        found = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _marker(name: str) -> str:
    """The first line of the comment, which no reader sees."""
    plain = "".join(one if one.isalnum() else "-" for one in name)
    return f"<!-- ragmetrics:{plain} -->"


def _has_marker(comment: Mapping[str, Any], name: str) -> bool:
    return str(comment.get("body") or "").startswith(_marker(name))
