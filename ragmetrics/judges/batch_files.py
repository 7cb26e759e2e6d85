"""Files of a batch: writes input within the API's limits, and reads output and error lines.

Input lines are ASCII, so that no character of a text can end a line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

from ragmetrics.http import Redactor
from ragmetrics.judges.base import Reply
from ragmetrics.judges.endpoint import json_body
from ragmetrics.judges.live import PATH, read_reply
from ragmetrics.judges.request_parameters import PARAMETERS, refused_parameter
from ragmetrics.judges.responses import UNREADABLE, is_filter, mapping
from ragmetrics.text import shorten

ENDPOINT = f"/v1{PATH}"
# Error codes about the account, the key or the model: they hit every request.
_OF_MODEL = (
    "model_not_found",
    "invalid_model",
    "mismatched_model",
    "unsupported_model",
    "model_not_supported",
)
_REFUSING = (
    *_OF_MODEL,
    "insufficient_quota",
    "billing",
    "invalid_api_key",
    "invalid_endpoint",
    "unsupported_endpoint",
    "mismatched_endpoint",
)


class FaultAction(Enum):
    """What to do after a fault."""

    ASK_AGAIN = "ask again"
    ASK_OTHERWISE = "ask in another form"
    GIVE_UP = "give up"
    DECLINED = "give up: the judge declined"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Fault:
    """Reason why a request of a batch has no reply."""

    kind: str
    message: str
    then: FaultAction
    of_model: bool = False
    """Whether the model is unavailable."""
    parameter: str = ""
    """The parameter that the endpoint refuses by name."""


@dataclass(frozen=True)
class InputFile:
    """Input file of one batch, and the ids of its requests."""

    path: Path
    ids: list[str]


def write_inputs(
    bodies: Iterable[tuple[str, Callable[[], Mapping[str, Any]]]],
    folder: Path,
    *,
    most_requests: int,
    most_bytes: int,
) -> tuple[list[InputFile], list[str]]:
    """Write input files within the limits; return them and the ids of requests that are too long.

    Bodies are made one at a time, so that memory does not grow with their number.
    """
    files: list[InputFile] = []
    too_long: list[str] = []
    ids: list[str] = []
    size, out = 0, None
    try:
        for name, body in bodies:
            line = input_line(name, body())
            if len(line) > most_bytes:
                too_long.append(name)
                continue
            if out is None or len(ids) >= most_requests or size + len(line) > most_bytes:
                if out:
                    out.close()
                ids, size = [], 0
                files.append(InputFile(folder / f"input-{len(files):04d}.jsonl", ids))
                out = files[-1].path.open("wb")
            out.write(line)
            ids.append(name)
            size += len(line)
    finally:
        if out:
            out.close()
    return files, too_long


def input_line(name: str, body: Mapping[str, Any]) -> bytes:
    """One request as a line."""
    line = {"custom_id": name, "method": "POST", "url": ENDPOINT, "body": body}
    return json_body(line) + b"\n"


def read_outputs(
    path: Path, most_bytes: int = 10_000_000, secrets: Iterable[str] = ()
) -> dict[str, Reply | Fault]:
    """Outcomes in an output or error file, by request id, without secrets that a line repeats.

    A line that cannot be read, or that is longer than a reply may be, is skipped: its request
    counts as missing.
    """
    outcomes: dict[str, Reply | Fault] = {}
    redactor = Redactor(secrets)
    with path.open("rb") as file:
        for line in _lines(file, most_bytes):
            if not line.strip():
                continue
            try:
                name, outcome = _outcome(json.loads(redactor.body(line)))
            except UNREADABLE:
                continue
            add_outcome(outcomes, name, outcome)
    return outcomes


def _lines(file: BinaryIO, most_bytes: int) -> Iterator[bytes]:
    """The lines of a file. A line that is too long is skipped and never held in memory whole."""
    too_long = False
    while piece := file.readline(most_bytes):
        ended = piece.endswith(b"\n") or len(piece) < most_bytes
        if ended and not too_long:
            yield piece
        too_long = not ended


def add_outcome(outcomes: dict[str, Reply | Fault], name: str, outcome: Reply | Fault) -> None:
    """Record the outcome of a request; an error does not replace a reply."""
    if isinstance(outcome, Reply) or not isinstance(outcomes.get(name), Reply):
        outcomes[name] = outcome


def _outcome(line: Mapping[str, Any]) -> tuple[str, Reply | Fault]:
    name = str(line["custom_id"])
    response, error = line.get("response"), mapping(line.get("error"))
    if not response:
        return name, fault(0, error)
    status, body = int(response["status_code"]), mapping(response.get("body"))
    if status != 200:
        return name, fault(status, mapping(body.get("error")) or error)
    return name, read_reply(dict(body))


def fault(status: int, error: Mapping[str, Any]) -> Fault:
    """The fault for an error of a line; status 0: the request was never sent."""
    code = str(error.get("code") or error.get("type") or "")
    message = shorten(f"{error.get('message') or code or 'no reason given'}")
    text = f"the judge answered {status}: {message}" if status else f"batch: {message}"
    if is_filter(error):
        return Fault("refusal", text, FaultAction.DECLINED)
    if code == "batch_expired":
        return Fault("expired", text, FaultAction.ASK_AGAIN)
    if code == "batch_cancelled":
        return Fault("cancelled", text, FaultAction.ASK_AGAIN)
    if status in (401, 403, 404) or is_refusing(code):
        return Fault("refused", text, FaultAction.REFUSE, code.startswith(_OF_MODEL))
    if status == 429:
        return Fault("rate_limited", text, FaultAction.ASK_AGAIN)
    if status in (0, 408, 409) or status >= 500:
        kind = "timeout" if status == 408 or code == "request_timeout" else "server_error"
        return Fault(kind, text, FaultAction.ASK_AGAIN)
    return _rejected(text, [error])


def _rejected(message: str, errors: Iterable[Mapping[str, Any]]) -> Fault:
    """The fault of a rejected request: it may be sent in another form, or by other parameters."""
    parameter = next(filter(None, map(refused_parameter, errors)), "")
    otherwise = parameter in PARAMETERS or "response_format" in message
    then = FaultAction.ASK_OTHERWISE if otherwise else FaultAction.GIVE_UP
    return Fault("refused", message, then, parameter=parameter)


def failed(errors: Iterable[tuple[str | None, str | None]]) -> Fault:
    """The fault for a batch that failed validation with these codes and messages."""
    pairs = [(code or "", message or "") for code, message in errors]
    reasons = shorten("; ".join(message or code for code, message in pairs) or "no reason given")
    text = f"the batch failed: {reasons}"
    if any(code == "token_limit_exceeded" for code, _ in pairs):
        return Fault("rate_limited", text, FaultAction.ASK_AGAIN)
    if any(is_refusing(code) for code, _ in pairs):
        of_model = any(code.startswith(_OF_MODEL) for code, _ in pairs)
        return Fault("refused", text, FaultAction.REFUSE, of_model)
    return _rejected(text, [{"code": code, "message": message} for code, message in pairs])


def is_refusing(code: str) -> bool:
    """Whether an error of this code hits every request of this key and model."""
    return code.startswith(_REFUSING)
