"""The REST APIs of GitHub and GitLab to test against: comments, checks, and how they refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.http_server import Handler, serving


class CodeHost:
    """One pull request, number 7 of acme/search, and merge request 7 of project 42."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.failures: list[tuple[int, dict[str, str]]] = []
        """Status and headers of the next answers."""
        self.answers: tuple[int, dict[str, str], bytes] | None = None
        """Status, headers and body of every answer, in place of what GitHub or GitLab say."""
        self.forbidden = False
        """True for the token of a fork: it may read, and write nothing."""
        self.me: int | None = None
        """The user of the token; None: GitHub's token of a job, which is nobody's."""
        self.url = ""

    def comment_of(self, body: str, *, kind: str = "User", by: int = 500) -> None:
        """A comment that somebody wrote before; GitHub calls them the user, GitLab the author."""
        writer = {"type": kind, "id": by}
        number = len(self.comments) + 1
        self.comments.append({"id": number, "body": body, "user": writer, "author": writer})

    @contextmanager
    def running(self) -> Iterator[CodeHost]:
        """Serve until the end of the block."""
        with serving(_Handler, host=self) as url:
            self.url = url
            yield self

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """The answer to a request."""
        split = urlsplit(path)
        query = {name: int(found[0]) for name, found in parse_qs(split.query).items()}
        if split.path == "/user" and self.me is not None:
            return 200, {"id": self.me, "login": "ragmetrics"}
        if split.path == "/user" or (method != "GET" and self.forbidden):
            return 403, {"message": "Resource not accessible by integration"}
        if re.fullmatch(
            r"/repos/acme/search/issues/7/comments|/projects/42/merge_requests/7/notes", split.path
        ):
            if method == "POST":
                kind, by = ("Bot", 1) if self.me is None else ("User", self.me)
                self.comment_of(body["body"], kind=kind, by=by)
                return 201, self.comments[-1]
            first = (query["page"] - 1) * query["per_page"]
            return 200, self.comments[first : first + query["per_page"]]
        if found := re.fullmatch(
            r"/repos/acme/search/issues/comments/(\d+)|/projects/42/merge_requests/7/notes/(\d+)",
            split.path,
        ):
            one = self.comments[int(found[1] or found[2]) - 1]
            one["body"] = body["body"]
            return 200, one
        if split.path in ("/repos/acme/search/check-runs", f"/projects/42/statuses/{COMMIT}"):
            self.checks.append(body)
            return 201, body
        return 404, {"message": "Not Found"}


COMMIT = "c0ffee" * 6 + "c0de"


class _Handler(Handler):
    host: CodeHost

    def take(self) -> None:
        """Answer, or fail as told to."""
        data = self.body()
        self.host.requests.append((self.command, self.path))
        if self.host.answers:
            status, headers, answer = self.host.answers
            with suppress(ConnectionError):  # the client may not want all of it
                self.answer(status, answer, headers)
            return
        authorised = "authorization" in self.headers or "private-token" in self.headers
        if self.host.failures:
            status, headers = self.host.failures.pop(0)
            self.answer(status, b'{"message": "secondary rate limit or worse"}', headers)
            return
        if not authorised:
            self.answer(401, b'{"message": "Bad credentials"}')
            return
        status, found = self.host.answer(self.command, self.path, json.loads(data or b"null"))
        self.answer(status, json.dumps(found).encode(), {"Content-Type": "application/json"})

    do_PATCH = Handler.do_POST  # noqa: N815
