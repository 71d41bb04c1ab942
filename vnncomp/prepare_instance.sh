#!/usr/bin/env bash
# VNN-COMP: prepare_instance.sh v1 CATEGORY ONNX VNNLIB
# Reads both files once, which also warms the file cache. A non-zero exit skips the instance.
set -euo pipefail

if [[ "${1:-}" != "v1" || $# -lt 4 ]]; then
    echo "prepare_instance.sh: expected v1 CATEGORY ONNX VNNLIB, got '$*'" >&2
    exit 1
fi
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
exec "${RADII_VENV:-$root/.venv}/bin/python" - "$3" "$4" <<'PYTHON'
import sys

from radii import load_classifier
from radii.errors import RadiiError
from radii.formats import read_vnnlib

try:
    problem = read_vnnlib(sys.argv[2])
    network = load_classifier(sys.argv[1], domain=None)
    problem.check_network(network.input_shape, network.classes)
except RadiiError as error:
    print(f"prepare_instance.sh: {error}", file=sys.stderr)
    sys.exit(1)
PYTHON
