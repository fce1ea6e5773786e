"""The events of a service: logged, and sent to the service manager."""

import logging
import os
import socket
from contextlib import suppress

from petstore.logs import LogEvent

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
    """Reports the events of a service that has ``workers`` processes and listens at ``url``."""

    def __init__(self, workers: int, url: str) -> None:
        self._workers = workers
        self._url = url

    def started(self) -> None:
        event = LogEvent("started", "the service has started", workers=self._workers, url=self._url)
        _LOG.info(event)
        notify("READY=1", f"STATUS=Serving at {self._url}, processes: {self._workers}")

    def worker_ended(self, pid: int, outcome: str, *, serves: bool) -> None:
        """Report that a worker exited unexpectedly: one that ``serves``, or the deliverer."""
        role = "" if serves else ", which delivers to webhooks,"
        message = f"process {pid}{role} exited unexpectedly: {outcome}"
        _LOG.error(LogEvent("worker_ended", message, pid=pid))

    def stopping(self) -> None:
        _LOG.info(LogEvent("stop_started", "the service is stopping", workers=self._workers))
        notify("STOPPING=1", "STATUS=Stopping")

    def stopped(self, status: int) -> None:
        _LOG.info(LogEvent("stopped", "the service has stopped", status=status))
