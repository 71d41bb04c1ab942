#!/usr/bin/env bash
# VNN-COMP: run_instance.sh v1 CATEGORY ONNX VNNLIB OUT TIMEOUT
# Writes sat (with the counterexample), unsat, unknown, timeout or error to OUT.
# RADII_VERIFIER chooses another verifier than native.
set -uo pipefail

if [[ "${1:-}" != "v1" || $# -lt 6 ]]; then
    echo "run_instance.sh: expected v1 CATEGORY ONNX VNNLIB OUT TIMEOUT, got '$*'" >&2
    exit 1
fi
onnx="$3" vnnlib="$4" out="$5" timeout="$6"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if "${RADII_VENV:-$root/.venv}/bin/radii" verify "$vnnlib" --network "$onnx" --timeout "$timeout" \
    --form vnncomp --verifier "${RADII_VERIFIER:-native}" > "$out"; then
    sed -i '1s/^timed-out$/timeout/' "$out"
else
    echo "error" > "$out"
fi
