"""The sockets that the service listens on, and the HTTP server of one of them."""

import os
import socket

from petstore.domain.networks import contain, network_of
from petstore.http.messages import Respond
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.settings import Settings

_BACKLOG = 4096  # the system may allow fewer
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_INHERITED = 3  # SD_LISTEN_FDS_START


def listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        takes_both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(
            address, family=family, backlog=_BACKLOG, dualstack_ipv6=takes_both
        )
    except OSError as error:
        is_of_name = isinstance(error, socket.gaierror)
        reason = error.strerror if is_of_name else os.strerror(error.errno or 0)
        raise OSError(f"cannot listen on {host} port {port}: {reason}") from None


def inherited_listener() -> socket.socket | None:
    """Take systemd's socket (sd_listen_fds(3)). No child sees the variables that announce it."""
    names = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
    pid, count, _ = (os.environ.pop(name, "") for name in names)
    if not count or pid != str(os.getpid()):
        return None
    if count != "1":
        raise OSError(f"LISTEN_FDS: expected 1 socket, not {count}")
    try:
        listener = socket.socket(fileno=_INHERITED)
    except OSError as error:
        raise _not_listening() from error
    is_tcp = listener.family in _INTERNET and listener.type == socket.SOCK_STREAM
    if not is_tcp or listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 1:
        listener.close()
        raise _not_listening()
    listener.set_inheritable(False)
    return listener


def _not_listening() -> OSError:
    return OSError("LISTEN_FDS: expected a listening TCP socket as file descriptor 3")


def http_server(settings: Settings, listener: socket.socket, respond: Respond) -> HttpServer:
    limits = ConnectionLimits(
        settings.max_connections,
        settings.connections_per_address,
        settings.buffer_bytes,
        settings.header_timeout,
    )
    proxies = settings.trusted_networks

    def count_for(address: str) -> str | None:
        return None if contain(proxies, address) else network_of(address)

    return HttpServer(respond, listener, limits, count_for)
