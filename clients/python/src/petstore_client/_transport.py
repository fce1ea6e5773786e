"""The network of a client: connections, the proxy, and what certificates are checked with."""

import os
import ssl
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import httpx2

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=5)

_renewables: WeakSet[Any] = WeakSet()


def renew_after_fork(renewable: Any) -> None:
    """Call ``renew`` of something in each process that is forked while it exists.

    It must not share connections, locks and requests under way.
    """
    _renewables.add(renewable)


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no fork
    os.register_at_fork(after_in_child=lambda: [each.renew() for each in _renewables])


def proxy_for(url: str) -> httpx2.Proxy | None:
    """Return the proxy that the environment names for a URL (``HTTPS_PROXY``, ``NO_PROXY``).

    Raises:
        ValueError: it is not an HTTP proxy. The message does not show it.
    """
    parts, proxies = urlsplit(url), getproxies()
    scheme = parts.scheme if parts.scheme in proxies else "all"
    address = proxies.get(scheme)
    if not address or _is_direct(parts, proxies.get("no", "")):
        return None
    try:
        proxy = httpx2.Proxy(address if "://" in address else f"http://{address}")
    except (httpx2.InvalidURL, ValueError):
        proxy = None
    if proxy is None or proxy.url.scheme not in {"http", "https"}:
        msg = f"{scheme}_proxy: expected an HTTP proxy, such as http://proxy.example:3128"
        raise ValueError(msg)
    return proxy


def _is_direct(url: SplitResult, exceptions: str) -> bool:
    """Return whether a URL needs no proxy: by its name, or by a network such as 10.0.0.0/8."""
    if proxy_bypass(url.netloc):
        return True
    for each in exceptions.split(","):
        try:
            if ip_address(url.hostname or "") in ip_network(each.strip(" []"), strict=False):
                return True
        except ValueError:  # one of them is a name
            continue
    return False


def route_to(url: str, context: ssl.SSLContext | None) -> dict[str, Any]:
    """Return what a transport of ``httpx2`` takes: the proxy if any, and what to trust.

    Raises:
        ValueError: the proxy or the certificates cannot be used.
    """
    through = proxy_for(url)
    to_proxy = through is not None and through.url.scheme == "https"
    is_secure = to_proxy or url.lower().startswith("https:")
    context = context or _tls_context(is_secure=is_secure)
    if through is not None and to_proxy:
        through.ssl_context = context
    return {"verify": context, "proxy": through, "limits": _LIMITS}


def _tls_context(*, is_secure: bool) -> ssl.SSLContext:
    """Return what certificates are checked with by default.

    The certificates of the system, or of ``SSL_CERT_FILE``, take long to read: only if needed.
    """
    if not is_secure:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it trusts nobody
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        name = next((x for x in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(x)), "")
        msg = f"{name or 'certificates'}: cannot be read: {error.strerror or error}"
        raise ValueError(msg) from error


class ThreadTransport(httpx2.BaseTransport):
    """The transport of threads: each process has connections of its own."""

    def __init__(self, route: dict[str, Any]) -> None:
        self._route = route
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Leave the connections to the process that has opened them: it gets their responses."""
        self._transport = httpx2.HTTPTransport(**self._route)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response."""
        return self._transport.handle_request(request)

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()


class LoopTransport(httpx2.AsyncBaseTransport):
    """The transport of tasks: each event loop has connections of its own.

    So a client outlives ``asyncio.run``. Connections of a loop that is closed cannot be closed.
    """

    def __init__(self, route: dict[str, Any]) -> None:
        self._route = route
        self._transports: dict[AbstractEventLoop, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response."""
        return await self._transport().handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections of this loop."""
        await self._transport().aclose()

    def _transport(self) -> httpx2.AsyncHTTPTransport:
        import asyncio

        loop = asyncio.get_running_loop()
        if loop not in self._transports:
            for closed in [each for each in self._transports if each.is_closed()]:
                del self._transports[closed]
            self._transports[loop] = httpx2.AsyncHTTPTransport(**self._route)
        return self._transports[loop]
