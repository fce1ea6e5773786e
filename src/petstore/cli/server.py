"""The HTTP server: Granian, within this process, at a socket that is open already."""

import resource
import socket
import sys
from contextlib import suppress
from typing import Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from petstore.api.application import Servable
from petstore.clock import SECOND
from petstore.settings import Settings

_LARGEST_HEAD = 64 * 1024
_OTHER_FILES = 100
_BACKLOG = 1024


class HttpServer(Server):
    """Has ``app`` answer the callers of ``listener``, from ``serve`` to ``stop``.

    Granian would open a socket of its own. At one that all processes of the service have, whoever
    waits while a process is replaced is served by another.
    """

    def __init__(self, app: Servable, listener: socket.socket, settings: Settings) -> None:
        super().__init__(
            app,
            # The lifespan of the application is not the server's business.
            interface=Interfaces.ASGINL,
            # HTTP/2 belongs to TLS; on plain text its mode leaves a silent connection open.
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(
                header_read_timeout=int(settings.head_seconds * SECOND),
                max_buffer_size=_LARGEST_HEAD,
            ),
            websockets=False,
            backlog=_BACKLOG,
            backpressure=room_for(settings.connections),
            # It logs only what goes wrong, through the log of the service.
            log_level=LogLevels.error,
            log_dictconfig={"handlers": {}, "loggers": {"_granian": {"propagate": True}}},
        )
        self._listener = listener
        self._shd: Any = None
        self._accept_only_with_request(within=0)

    def _init_shared_socket(self) -> None:
        # It has a number, is not of a file system, and on Linux so many may wait at it.
        backlog = (_BACKLOG,) if sys.platform == "linux" else ()
        arguments = (self._listener.dup().detach(), False, *backlog)
        self._shd = SocketHolder(*arguments)

    def retire(self) -> None:
        """Leave to others who have connected and not sent anything: ``stop`` hangs up on them."""
        self._accept_only_with_request(within=1)

    def stop(self) -> None:
        """Accept nobody any more, and finish what is under way."""
        self._listener.close()
        super().stop()  # type: ignore[no-untyped-call]

    def _accept_only_with_request(self, *, within: int) -> None:
        """Give nobody before the first bytes come, or so many seconds are over; 0 for at once."""
        with suppress(AttributeError):  # only Linux can
            self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, within)


def room_for(connections: int) -> int:
    """Raise the limit of open files to what ``connections`` need; return how many it has room for.

    At the limit new callers wait; so a few that never read their answers could keep all out.
    """
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(connections, soft - _OTHER_FILES)
