#!/bin/sh
# Resolve all dependencies afresh in a new environment and write them to constraints.txt.
# Usage: scripts/lock.sh PYTHON VENV      (see `make lock`)
set -eu

python=$1
venv=$2

"$python" -m venv --clear "$venv"
"$venv/bin/pip" install --upgrade pip
# In two steps: pip finds a boto3 that shares a botocore with aiobotocore once that is installed,
# and fails after minutes of search where it looks for both at once.
"$venv/bin/pip" install ".[flows]"
"$venv/bin/pip" install ".[flows,dev]"
{
    echo "# The environment that ragmetrics is tested with, for Python 3.11 to 3.13."
    echo "# Made by 'make lock' on the oldest Python: a fresh install of .[flows,dev], frozen."
    "$venv/bin/pip" freeze --exclude retrieval-nightly
} > constraints.txt
rm -rf "$venv"
