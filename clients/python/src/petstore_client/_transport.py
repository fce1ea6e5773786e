"""The network of a client: connections, proxies, and a deadline that holds for a whole request.

``httpx2`` limits each read alone, so a service that sends a byte now and then could hold a request
for ever. A task is cancelled at its deadline. A thread cannot be: ``DeadlineTransport`` gives each
operation of a socket only what is left.
"""

import ssl
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from petstore_client._forks import renew_after_fork

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    import httpcore2

CONNECT_SECONDS = 5.0
_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=5)


def proxy_for(url: str) -> httpx2.Proxy | None:
    """Return the proxy that the environment names for a URL (``HTTPS_PROXY``, ``NO_PROXY``).

    Raises:
        ValueError: it is not an HTTP proxy. The message does not show it.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    if address is None or proxy_bypass(parts.hostname or ""):
        return None
    return _proxy_at(address if "://" in address else f"http://{address}", f"{parts.scheme}_proxy")


def _proxy_at(address: str, setting: str) -> httpx2.Proxy:
    try:
        proxy = httpx2.Proxy(address)
    except (httpx2.InvalidURL, ValueError):
        proxy = None
    if proxy is None or proxy.url.scheme not in {"http", "https"}:
        msg = f"{setting}: expected an HTTP proxy, such as http://proxy.example:3128"
        raise ValueError(msg)
    return proxy


class Route:
    """The way to a service: its proxy if it has one, and what certificates are checked with.

    Raises:
        ValueError: the proxy cannot be used.
    """

    def __init__(
        self, url: str, ssl_context: ssl.SSLContext | None = None, proxy: str | None = None
    ) -> None:
        self.proxy = proxy_for(url) if proxy is None else _proxy_at(proxy, "proxy")
        to_proxy = self.proxy is not None and self.proxy.url.scheme == "https"
        is_secure = to_proxy or url.lower().startswith("https:")
        self.ssl_context = ssl_context or _tls_context(is_secure=is_secure)
        if self.proxy is not None and to_proxy:
            self.proxy.ssl_context = self.ssl_context


def _tls_context(*, is_secure: bool) -> ssl.SSLContext:
    """Return what certificates are checked with by default.

    The certificates of the system, or of ``SSL_CERT_FILE``, take long to read: only if needed.
    """
    if is_secure:
        return httpx2.create_ssl_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it trusts nobody


class LoopTransport(httpx2.AsyncBaseTransport):
    """The transport of tasks: each event loop has connections of its own.

    So a client outlives ``asyncio.run``. Connections of a loop that is closed cannot be closed.
    """

    def __init__(self, route: Route) -> None:
        self._open = partial(
            httpx2.AsyncHTTPTransport, route.ssl_context, limits=_LIMITS, proxy=route.proxy
        )
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
            self._transports[loop] = self._open()
        return self._transports[loop]


class DeadlineTransport(httpx2.BaseTransport):
    """The transport of threads: the ``read`` timeout of a request is for all of it."""

    def __init__(self, route: Route) -> None:
        import httpcore2

        from petstore_client._deadlines import DeadlineBackend

        self._open = partial(
            httpcore2.ConnectionPool,
            ssl_context=route.ssl_context,
            proxy=None if route.proxy is None else _core_proxy(route.proxy),
            max_connections=_LIMITS.max_connections,
            max_keepalive_connections=_LIMITS.max_keepalive_connections,
            keepalive_expiry=_LIMITS.keepalive_expiry,
            network_backend=DeadlineBackend(),
        )
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Leave the connections to the process that has opened them: it gets their responses."""
        self._pool = self._open()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response, whose stream has the same deadline."""
        import httpcore2

        from petstore_client._deadlines import Deadline

        timeout, lifetime = request.extensions["timeout"], request.extensions["lifetime"]
        now = time.monotonic()
        of_connection, of_all = (
            Deadline(now + timeout[name], lifetime) for name in ("connect", "read")
        )
        deadlines = {"connect": of_connection, "read": of_all, "write": of_all}
        url = request.url
        with _mapped_errors():
            response = self._pool.handle_request(
                httpcore2.Request(
                    request.method,
                    httpcore2.URL(
                        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                    ),
                    headers=request.headers.raw,
                    content=request.content,
                    extensions={"timeout": {**deadlines, "pool": timeout["pool"]}},
                )
            )
        stream = _Stream(cast("Iterable[bytes]", response.stream))
        return httpx2.Response(response.status, headers=response.headers, stream=stream)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Stream(httpx2.SyncByteStream):
    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _mapped_errors():
            yield from self._stream

    def close(self) -> None:
        self._stream.close()  # type: ignore[attr-defined] # which Iterable does not tell


@contextmanager
def _mapped_errors() -> Generator[None, None, None]:
    """Raise errors of ``httpcore2`` as those of ``httpx2``, which have the same names."""
    import httpcore2

    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx2, type(error).__name__)(str(error)) from error


def _core_proxy(proxy: httpx2.Proxy) -> "httpcore2.Proxy":
    import httpcore2

    return httpcore2.Proxy(str(proxy.url), auth=proxy.raw_auth, ssl_context=proxy.ssl_context)
