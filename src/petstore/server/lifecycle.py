"""The events of a service: logged, sent to the service manager and written to the pid file."""

import logging
import os
import socket
import time
from contextlib import suppress

from petstore.logs import Event
from petstore.server.pid_file import PidFile, ReloadState

_MAX_REASON = 1000
_LOG = logging.getLogger(__name__)


def notify(*assignments: str) -> None:
    """Send assignments such as ``READY=1`` to the service manager, if there is one (sd_notify(3)).

    This never waits, and a failure to send is ignored.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # an abstract name
        address = f"\0{address[1:]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender, suppress(OSError):
        sender.settimeout(0)
        sender.sendto("\n".join(assignments).encode(), address)


class Lifecycle:
    """Reports the events of a service that has ``workers`` processes."""

    def __init__(self, workers: int, pid_file: PidFile | None) -> None:
        self._workers = workers
        self._serving = f"STATUS=Serving, processes: {workers}"
        self._pid_file = pid_file
        self._state = ReloadState(os.getpid())
        self._replaced = 0

    def starting(self) -> None:
        """Report that the supervisor handles signals from now on."""
        self._write()

    def started(self) -> None:
        """Report that all workers serve."""
        _LOG.info(Event("started", "the service has started", workers=self._workers))
        notify("READY=1", self._serving)

    def worker_ended(self, pid: int, outcome: str, *, serves: bool) -> None:
        """Report that a worker exited unexpectedly: one that ``serves``, or the deliverer."""
        role = "" if serves else ", which delivers to webhooks,"
        message = f"process {pid}{role} exited unexpectedly: {outcome}"
        _LOG.error(Event("worker_ended", message, pid=pid))

    def reload_requested(self) -> None:
        """Report that all workers are about to be replaced."""
        is_first = self._state.requested == self._state.ended
        self._state = self._state._replace(requested=self._state.requested + 1)
        self._write()
        if is_first:
            self._replaced = 0
            _LOG.info(Event("reload_started", "a reload has started", workers=self._workers))
        now = time.monotonic_ns() // 1000
        notify("RELOADING=1", f"MONOTONIC_USEC={now}", "STATUS=Reloading")

    def worker_replaced(self, pid: int) -> None:
        """Report that a worker has exited and another takes its place."""
        self._replaced += 1
        _LOG.info(Event("worker_replaced", f"process {pid} was replaced", pid=pid))
        notify(f"STATUS=Reloading, processes replaced: {self._replaced}")

    def reload_ended(self) -> None:
        """Report that all workers were replaced."""
        _LOG.info(Event("reload_ended", "the reload has ended", replaced=self._replaced))
        self._end_reload("", self._serving)

    def reload_failed(self, reason: str) -> None:
        """Report that a new worker did not start, and the old ones continue."""
        message = f"the reload failed; the remaining old processes continue to serve: {reason}"
        _LOG.error(Event("reload_failed", message, replaced=self._replaced))
        self._end_reload(reason, f"STATUS=Reload failed: {reason}")

    def stopping(self) -> None:
        """Report that the service stops."""
        _LOG.info(Event("stop_started", "the service is stopping", workers=self._workers))
        notify("STOPPING=1", "STATUS=Stopping")

    def stopped(self, status: int) -> None:
        """Report that all workers have exited."""
        _LOG.info(Event("stopped", "the service has stopped", status=status))

    def _end_reload(self, failure: str, status: str) -> None:
        failure = " ".join(failure.split())[:_MAX_REASON]  # one line of the pid file
        self._state = self._state._replace(ended=self._state.requested, failure=failure)
        self._write()
        notify("READY=1", status)

    def _write(self) -> None:
        if self._pid_file is None:
            return
        try:
            self._pid_file.write(self._state)
        except OSError as error:  # such as a full disk; the service continues
            _LOG.warning("the pid file cannot be written: %s", error)
