#!/bin/sh
# Runs once, as root in a chroot of the base image on the host's network: fills the package cache that a host of
# this fleet has from earlier work, and installs the old engine as somebody would by hand.
# /mnt holds uv, engine.txt (the engine's packages) and tools.txt (uv and hf), all pinned by digest.
set -eu
INDEX_URL=$1
GIT_URL=$2
export UV_CACHE_DIR=$3
export UV_LINK_MODE=symlink UV_NO_CONFIG=1 UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1 PYTHONDONTWRITEBYTECODE=1
uv() { /mnt/uv "$@"; }

mkdir -p "$UV_CACHE_DIR" /opt/kimi
git clone --quiet "$GIT_URL" /opt/kimi/sglang
rm -rf /opt/kimi/sglang/.git
uv venv --quiet --python /usr/bin/python3 /opt/kimi/venv
uv pip install --quiet --python /opt/kimi/venv --no-deps --require-hashes --index-url "$INDEX_URL" -r /mnt/engine.txt
uv pip install --quiet --python /opt/kimi/venv --no-deps --no-build-isolation --no-index \
    --editable /opt/kimi/sglang/python
uv venv --quiet --python /usr/bin/python3 /tmp/tools
uv pip install --quiet --python /tmp/tools --no-deps --require-hashes --index-url "$INDEX_URL" -r /mnt/tools.txt
unset PYTHONDONTWRITEBYTECODE
/opt/kimi/venv/bin/python -m compileall -q -j2 -x 'lib2to3|/test' \
    /opt/kimi/sglang/python/sglang /opt/kimi/venv/lib/python3.11/site-packages >/dev/null 2>&1 || true
rm -rf /root/.cache /root/.config
chown -R sglang-build:sglang-build "$UV_CACHE_DIR"
chmod 0755 "$(dirname "$UV_CACHE_DIR")" "$UV_CACHE_DIR"
