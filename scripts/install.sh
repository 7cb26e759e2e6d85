#!/bin/sh
# Install packages into an environment: by uv, which is several times as fast; by pip where there is
# no uv, or where it fails, as behind an index that only pip's settings name.
#
#     scripts/install.sh UV ENVIRONMENT ARGUMENTS-OF-PIP-INSTALL...
set -eu
uv=$1 environment=$2
shift 2
if [ -x "$uv" ] && "$uv" pip install -q --python "$environment/bin/python" "$@"; then
    exit
fi
exec "$environment/bin/pip" install -q "$@"
