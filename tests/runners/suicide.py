"""A module that ends the process which imports it, as a system short of memory does."""

import os
import signal

os.kill(os.getpid(), signal.SIGKILL)
