"""Settings for every test: one torch thread a worker, no display, no clock in hypothesis."""

from __future__ import annotations

import os
import signal

# Before torch is imported anywhere: workers of pytest-xdist would otherwise fight for the cores.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

# A shell starts background jobs with Ctrl-C ignored, and children inherit that; the tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from hypothesis import HealthCheck, settings  # noqa: E402

# In CI the same examples every time, so that a red run means a change; everywhere else hypothesis keeps looking.
settings.register_profile(
    "radii", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("radii")
