"""A real llama.cpp server with a real small model, from its own environment: `make model`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from tests.fakes.offline import skip_or_fail
from tests.fakes.processes import ROOT

PYTHON = ROOT / ".venv-model" / "bin" / "python"
_BEGUN = re.compile(r"launch_slot_: .* processing task")


@dataclass(frozen=True)
class LlamaServer:
    """A running server, and what it says itself about what it was asked."""

    url: str
    log: Path

    @property
    def base_url(self) -> str:
        """Where its OpenAI-compatible API begins."""
        return f"{self.url}/v1"

    def requests(self) -> int:
        """Number of requests that got a slot, by its log, also of those that are too long."""
        return len(_BEGUN.findall(self.log.read_text()))

    def tokens(self) -> tuple[int, int]:
        """Tokens of all prompts, with those that it had in its cache, and those that it wrote."""
        counts = self._metrics()
        read = counts["prompt_tokens_total"] + counts["prompt_tokens_cached_total"]
        return read, counts["tokens_predicted_total"]

    def _metrics(self) -> dict[str, int]:
        with urlopen(f"{self.url}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.removeprefix("llamacpp:").split() for line in lines if line[:1] != "#")
        return {name: int(float(value)) for name, value in pairs}


@contextmanager
def llama_server(folder: Path, *, slots: int, caches: bool = True) -> Iterator[LlamaServer]:
    """Run a server of so many slots, each with 2,048 tokens of context; `caches`: it does not read
    the beginning of a prompt again.
    """
    if not PYTHON.exists():
        skip_or_fail("no llama.cpp server with a model: make model")
    log = folder / "llama.log"
    command = [PYTHON, ROOT / "tests/fakes/llama_server.py", "--slots", slots]
    if not caches:
        command.append("--no-cache")
    with (
        log.open("wb") as file,
        subprocess.Popen(
            [*map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        ) as process,  # at its end closes stdin, at which the server stops, and waits
    ):
        lines = iter(process.stdout or ())
        address = next((line for line in lines if line.startswith('{"url"')), None)
        if address is None:
            raise RuntimeError(f"llama.cpp did not start: {log.read_text()[-2000:]}")
        yield LlamaServer(json.loads(address)["url"], log)
