"""No process of a run outlives it, whatever happens."""

import ctypes
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
_STOPPED = 128 + signal.SIGINT


def guarded(run: Callable[[], int]) -> int:
    """Run something in a process of its own, and kill whatever it leaves behind.

    Processes whose parents are gone become children of this one, so none is missed. A stop signal
    ends the run as Ctrl-C does. Returns the exit status of the run.
    """
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    runner = os.fork()
    if not runner:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        try:
            return run()
        except KeyboardInterrupt:
            print("stopped")
            return _STOPPED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both
    signal.signal(signal.SIGTERM, lambda *_: os.kill(runner, signal.SIGINT))
    while True:
        ended, status = os.wait()
        if ended == runner:
            break
    while children := descendants(os.getpid()):
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.wait()
    return os.waitstatus_to_exitcode(status)


def descendants(pid: int) -> list[int]:
    """Return the processes below one, from the nearest to the farthest of each."""
    with suppress(FileNotFoundError, ProcessLookupError):
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [
            int(child) for thread in threads for child in (thread / "children").read_text().split()
        ]
        return [*children, *(one for child in children for one in descendants(child))]
    return []
