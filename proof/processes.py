"""The processes of a run: programs that are killed and go on, and none that outlives the run."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
_STOPPED = 128 + signal.SIGINT


class Program:
    """A program of Python in ``folder``, which can be killed, and goes on where it was.

    Its output is added to the file ``log``. ``arguments`` are those of its next start.
    """

    def __init__(
        self,
        folder: Path,
        log: Path,
        environment: Mapping[str, str],
        arguments: Callable[[], tuple[str, ...]],
    ) -> None:
        self._folder = folder
        self._log = log
        self._environment = environment
        self._arguments = arguments

    def start(self) -> None:
        """Begin, or go on."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._arguments()],
                cwd=self._folder,
                env=self._environment,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """Kill it, in the middle of whatever it does."""
        self._process.kill()
        self._process.wait()

    def stop_and_start(self) -> None:
        """Kill it, and let it go on."""
        self.stop()
        self.start()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended by itself."""
        return self._process.poll() is None

    def is_done(self) -> bool:
        """Return whether it has ended well."""
        return self._process.poll() == 0


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
