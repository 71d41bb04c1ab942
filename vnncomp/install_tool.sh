#!/usr/bin/env bash
# VNN-COMP: install_tool.sh v1
# Installs radii into a virtual environment beside this folder. PYTHON chooses the interpreter.
set -euo pipefail

if [[ "${1:-}" != "v1" ]]; then
    echo "install_tool.sh: expected version v1, got '${1:-}'" >&2
    exit 1
fi
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="${RADII_VENV:-$root/.venv}"
if [[ ! -x "$venv/bin/python" ]]; then
    "${PYTHON:-python3}" -m venv "$venv"
fi
# The constraints choose a CPU build of torch.
"$venv/bin/python" -m pip install -q -c "$root/constraints.txt" -e "$root"
"$venv/bin/radii" --version >&2
