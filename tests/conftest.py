"""Settings for every test: one torch thread per worker, no display, no clock in hypothesis."""

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

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from tests.shared import DATA  # noqa: E402

# In CI the same examples every time, so that a red run means a change; everywhere else hypothesis keeps looking.
settings.register_profile(
    "radii", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("radii")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI, with the shared data there, a skipped test is a failed run: everything it needs is installed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI") or not DATA.is_dir():
        return
    skipped = reporter.stats.get("skipped", [])
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"{len(skipped)} skipped in CI: " + ", ".join(r.nodeid for r in skipped), red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
