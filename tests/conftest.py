"""Settings for every test: one torch thread a worker, no display, no clock in hypothesis."""

from __future__ import annotations

import os

# Before torch is imported anywhere: workers of pytest-xdist would otherwise fight for the cores.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import HealthCheck, settings  # noqa: E402

# In CI the same examples every time, so that a red run means a change; everywhere else hypothesis keeps looking.
settings.register_profile(
    "radii", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("radii")
