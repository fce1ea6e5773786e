"""What becomes of a service, told to its log, to the service manager and in its pid file."""

import logging
import os
import time

from petstore.logs import Event
from petstore.server.pid_file import PidFile, ReloadState
from petstore.server.service_manager import ServiceManager

_LONGEST_FAILURE = 1000
_LOG = logging.getLogger(__name__)


class Lifecycle:
    """Tells of a service with so many ``workers``."""

    def __init__(self, workers: int, manager: ServiceManager, pid_file: PidFile | None) -> None:
        self._workers = workers
        self._manager = manager
        self._pid_file = pid_file
        self._state = ReloadState(os.getpid())
        self._replaced = 0

    def starting(self) -> None:
        """Tell that signals are heeded from now on."""
        self._write()

    def started(self) -> None:
        """Tell that all processes serve."""
        _LOG.info(Event("started", "the service has started", workers=self._workers))
        self._manager.notify("READY=1", self._serving())

    def worker_ended(self, pid: int, outcome: str) -> None:
        """Tell that a process ended unasked."""
        message = f"process {pid} ended unasked: {outcome}"
        _LOG.error(Event("worker_ended", message, pid=pid))

    def reload_requested(self) -> None:
        """Tell that all processes are to be replaced."""
        is_first = self._state.requested == self._state.ended
        self._state = self._state._replace(requested=self._state.requested + 1)
        self._write()
        if is_first:
            self._replaced = 0
            _LOG.info(Event("reload_started", "a reload has begun", workers=self._workers))
        now = time.monotonic_ns() // 1000
        self._manager.notify("RELOADING=1", f"MONOTONIC_USEC={now}", "STATUS=Reloading")

    def worker_replaced(self, pid: int) -> None:
        """Tell that a process has ended and another takes its place."""
        self._replaced += 1
        _LOG.info(Event("worker_replaced", f"process {pid} was replaced", pid=pid))
        self._manager.notify(f"STATUS=Reloading, processes replaced: {self._replaced}")

    def reload_ended(self) -> None:
        """Tell that all processes were replaced."""
        _LOG.info(Event("reload_ended", "the reload has ended", replaced=self._replaced))
        self._end_reload("", self._serving())

    def reload_failed(self, reason: str) -> None:
        """Tell that a process could not be replaced, and goes on."""
        message = f"the reload failed, and the processes that serve go on: {reason}"
        _LOG.error(Event("reload_failed", message, replaced=self._replaced))
        self._end_reload(reason, f"STATUS=Reload failed: {reason}")

    def stopping(self) -> None:
        """Tell that the service is to end."""
        _LOG.info(Event("stop_started", "the service stops", workers=self._workers))
        self._manager.notify("STOPPING=1", "STATUS=Stopping")

    def stopped(self, status: int) -> None:
        """Tell that all processes have ended."""
        _LOG.info(Event("stopped", "the service has stopped", status=status))

    def _end_reload(self, failure: str, status: str) -> None:
        # One line of the file, and of moderate length.
        failure = " ".join(failure.split())[:_LONGEST_FAILURE]
        self._state = self._state._replace(ended=self._state.requested, failure=failure)
        self._write()
        self._manager.notify("READY=1", status)

    def _serving(self) -> str:
        return f"STATUS=Serving, processes: {self._workers}"

    def _write(self) -> None:
        if self._pid_file is None:
            return
        try:
            self._pid_file.write(self._state)
        except OSError as error:  # a full disk, say, is no reason to end
            _LOG.warning("the pid file cannot be written: %s", error)
