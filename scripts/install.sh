#!/bin/sh
# Install packages into an environment: by uv, which is several times as fast; by pip where there is
# no uv, where it fails, or where pip's settings replace the index, as uv does not read them.
#
#     scripts/install.sh UV ENVIRONMENT ARGUMENTS-OF-PIP-INSTALL...
set -eu
uv=$1 environment=$2
shift 2
pip=$environment/bin/pip
if [ -x "$uv" ] && ! "$pip" config list | grep -qE "[.](index-url|no-index)=" &&
    "$uv" pip install -q --python "$environment/bin/python" "$@"; then
    exit
fi
exec "$pip" install -q "$@"
