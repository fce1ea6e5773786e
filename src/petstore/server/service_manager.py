"""Tells systemd, or whatever started the service, what becomes of it (``sd_notify(3)``)."""

import os
import socket
from contextlib import suppress


class ServiceManager:
    """The receiver at ``address``, a path or ``@`` and an abstract name; empty if there is none."""

    def __init__(self, address: str) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    def notify(self, *assignments: str) -> None:
        """Send assignments such as ``READY=1``. Nobody waits for the receiver, or needs it."""
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender, suppress(OSError):
            sender.settimeout(0)
            sender.sendto("\n".join(assignments).encode(), self._address)


def service_manager() -> ServiceManager:
    """Return the one that started this process, if it wants to be told."""
    return ServiceManager(os.environ.get("NOTIFY_SOCKET", ""))
