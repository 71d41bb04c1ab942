#!/usr/bin/env bash
# Installs vibecheck in an environment of its own, which the tests of the `command` verifier run for real.
# Usage: scripts/setup_vibecheck.sh [PYTHON]   (once made, it does nothing)
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-vibecheck
if [ -x "$venv/bin/vibecheck" ] && "$venv/bin/vibecheck" --version >/dev/null 2>&1; then
  exit 0
fi
"${1:-python3}" -m venv "$venv"
# The pin keeps pip from fetching the GPU packages.
"$venv/bin/python" -m pip --disable-pip-version-check install --quiet -c constraints.txt torch==2.13.0 vibecheck-nn
"$venv/bin/vibecheck" --version
