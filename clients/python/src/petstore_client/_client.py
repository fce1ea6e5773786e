"""The clients of a service: ``Client`` for threads, ``AsyncClient`` for tasks."""

import os
import ssl
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Generic, Self

import httpx2

from petstore_client._calls import Call, anything, parameters
from petstore_client._connection import Connection
from petstore_client._driver import AsyncDriver, AsyncWait, SyncDriver, Transport, UserWait, Wait
from petstore_client._faces import D, operation
from petstore_client._retries import Policy
from petstore_client._transport import LoopTransport, ThreadTransport, route_to
from petstore_client.resources import Resources

_DEFAULT_URL = "http://127.0.0.1:8000/v1"


class _Client(Resources[D], Generic[D, Transport, UserWait]):
    _kinds: ClassVar[tuple[Any, Any]]

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        max_retries: int = 2,
        max_wait: float = 120,
        timeout: float = 30,
        wait: UserWait | None = None,
        ssl_context: ssl.SSLContext | None = None,
        transport: Transport | None = None,
    ) -> None:
        key = api_key or os.environ.get("PETSTORE_KEY")
        if not key:
            msg = "api_key: expected an API key, here or in the environment as PETSTORE_KEY"
            raise ValueError(msg)
        url = base_url or os.environ.get("PETSTORE_URL") or _DEFAULT_URL
        connection, policy = Connection(url, key), Policy(max_retries, max_wait, timeout)
        driver_of, network_of = self._kinds
        if transport is not None and ssl_context is not None:
            msg = "transport: expected no ssl_context beside it"
            raise ValueError(msg)
        network = transport or network_of(route_to(connection.url, ssl_context))
        super().__init__(driver_of(policy, connection, network, wait))

    @property
    def base_url(self) -> str:
        """The address of the service."""
        return self._driver.connection.url

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.base_url!r})"

    @operation
    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | Sequence[object] | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Any]:
        """Send a request that this client has no method for, and return the JSON of the response.

        It is retried like any other. ``request.raw`` returns the response with its headers.

        Args:
            method: ``GET``, say.
            path: What follows ``/v1`` in the address: ``/pets/7``, say.
            query: The parameters of the query. One with several values has a list of them.
            body: The body, as JSON has it.
            if_match: The ``etag`` of the version to change.
            idempotency_key: That of a POST.

        Raises:
            ValueError: the path does not begin with ``/``.
        """
        if not path.startswith("/"):
            msg = f"path: expected one that begins with /, such as /pets, not {path!r}"
            raise ValueError(msg)
        name, pairs = f"{method} {path}", parameters(**(query or {}))
        return Call(
            *(name, method, path, anything, pairs, body),
            if_match=if_match,
            idempotency_key=idempotency_key,
        )

    def with_options(
        self,
        *,
        timeout: float | None = None,
        max_retries: int | None = None,
        headers: Mapping[str, str] | None = None,
        api_key: str | None = None,
    ) -> Self:
        """Return a client with other settings, which shares everything else with this one.

        They share connections and, with the same key, limits, and are closed together.

        Args:
            timeout: How many seconds each read waits. By default as with this client.
            max_retries: How often a request is sent again. By default as with this client.
            headers: Sent with every request, besides those of this client: ``traceparent``, say.
            api_key: Another key. By default the key of this client.

        Raises:
            ValueError: one of them is invalid.
        """
        other = copy(self)
        driver: Any = self._driver.with_options(
            headers or {}, api_key, timeout=timeout, max_retries=max_retries
        )
        super(_Client, other).__init__(driver)
        return other


class Client(_Client[SyncDriver, httpx2.BaseTransport, Wait]):
    """A client of the service at ``base_url``, which ends in ``/v1``, with an ``api_key``.

    Without them it reads ``PETSTORE_KEY`` and ``PETSTORE_URL``. It can be shared by any number of
    threads, and should be: all of them then wait when a limit is reached.

    Args:
        api_key: Your key.
        base_url: The address of the service, with ``/v1``.
        max_retries: How often a request is sent again after a failure that may pass.
        max_wait: How many seconds a call waits at most because the service asks for it.
        timeout: How many seconds each read waits for the service; a connection waits 5 at most.
        wait: Called in place of ``time.sleep``, to tell somebody of a wait. It gets the seconds,
            and the error because of which the client waits; without one, a limit is reached.
        ssl_context: What certificates are checked with, in place of those of the system.
        transport: Another transport of ``httpx2``: with a proxy of your own, or for tests.

    Raises:
        ValueError: there is no key, or a setting is invalid.
    """

    _kinds = (SyncDriver, ThreadTransport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. From now on, every method raises ``ClientClosed``.

        Requests of other threads that are under way end as they would.
        """
        self._driver.close()


class AsyncClient(_Client[AsyncDriver, httpx2.AsyncBaseTransport, AsyncWait]):
    """The client for tasks of ``asyncio``; see ``Client``. Its methods are awaited."""

    _kinds = (AsyncDriver, LoopTransport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. From now on, every method raises ``ClientClosed``."""
        await self._driver.close()
