"""A client of a running service: JSON over HTTP, with retries where waiting helps."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qs, urlencode
from uuid import uuid4

import click

from petstore import __version__
from petstore.cli.client_failures import (
    ExitStatus,
    PassingFailure,
    ServiceResponse,
    decoded,
    insecure,
    lost,
    refusal,
    strange,
    unreachable,
)
from petstore.clock import Clock, system_clock

T = TypeVar("T")
Sleep: TypeAlias = Callable[[float], object]

MAX_PAGE = 100
_CONNECT_SECONDS = 5
_MAX_WAIT_SECONDS = 600
# Before each further try.
_PAUSES = (1, 2, 4)
# A POST carries an Idempotency-Key: sent twice it acts once. A PATCH might meet its own result.
_REPEATABLE = {"GET", "POST"}
# It doubles from 1 second to this, while a feed waits for the service.
_MAX_PAUSE = 8
_LONG_POLL_SECONDS = 25
INTERRUPTED = 130
_NEXT = re.compile(r'<([^<>]*)>\s*;\s*rel="next"')
_MAX_BODY = 16 * 1024 * 1024
_CHUNK = 64 * 1024
_CLEAR_LINE = "\r\x1b[K"


class Client:
    """Sends requests with an API key to the service at ``url``, which ends in ``/v1``.

    Every method raises ``Failure`` if the service refuses the request or does not respond.
    """

    def __init__(
        self,
        url: str,
        key: str,
        sleep: Sleep = time.sleep,
        clock: Clock = system_clock,
        read_seconds: float = 30,
    ) -> None:
        from urllib3 import PoolManager, Timeout

        self._url = url
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "User-Agent": f"petstore/{__version__}",
        }
        self._sleep = sleep
        self._clock = clock
        self._seconds_left = _MAX_WAIT_SECONDS
        self._was_reached = False
        timeout = Timeout(connect=_CONNECT_SECONDS, read=read_seconds)
        self._pool = PoolManager(timeout=timeout, retries=False)

    def get(self, path: str, kind: type[T]) -> T:
        """Return the resource at ``path``."""
        return decoded(self._send("GET", path), kind)

    def find(
        self, path: str, kind: type[T], query: Iterable[tuple[str, object]], limit: int | None
    ) -> tuple[list[T], bool]:
        """Return the first ``limit`` resources that ``query`` finds, or all of them without one.

        Also return whether there are more. A page may be short, even empty, and not the last.
        """
        found: list[T] = []
        target = f"{path}?{urlencode([*query, ('limit', limit or MAX_PAGE)])}"
        while True:
            response = self._send("GET", target)
            found += decoded(response, list[kind])  # type: ignore[valid-type]
            following = _NEXT.search(response.headers.get("Link", ""))
            if following is None or (limit is not None and len(found) >= limit):
                is_more = following is not None or len(found) > len(found[:limit])
                return found[:limit], is_more
            # Only its query: the key must not follow a link to another host.
            previous, target = target, f"{path}?{following[1].partition('?')[2]}"
            if target == previous:
                raise strange(response)

    def follow(
        self, path: str, kind: type[T], query: Iterable[tuple[str, object]], cursor: str | None
    ) -> Iterator[list[T]]:
        """Yield the pages of a feed for ever, from ``cursor`` on, else from its beginning.

        The first page comes at once and may be empty. From then on the service is waited for
        whenever it is away, however long that takes.
        """
        query = [*query, ("limit", MAX_PAGE)]
        start = [] if cursor is None else [("cursor", cursor)]
        response = self._send("GET", f"{path}?{urlencode([*query, *start])}")
        query.append(("wait", _LONG_POLL_SECONDS))
        is_early = False
        while True:
            page = decoded(response, list[kind])  # type: ignore[valid-type]
            yield page
            previous, cursor = cursor, _next_cursor(response)
            # A service that stops ends every wait at once.
            if is_early and cursor == previous:
                self._sleep(1)
            asked_at = time.monotonic()
            response = self._send_until_answered(
                f"{path}?{urlencode([*query, ('cursor', cursor)])}"
            )
            is_early = time.monotonic() - asked_at < 1

    def post(self, path: str, body: Mapping[str, object], kind: type[T]) -> T:
        """Create a resource, only once even if the request is sent again, and return it."""
        return decoded(self._send("POST", path, body), kind)

    def patch(self, path: str, body: Mapping[str, object], kind: type[T]) -> T:
        """Change the members in ``body`` of the resource at ``path``, and return it."""
        return decoded(self._send("PATCH", path, body), kind)

    def delete(self, path: str) -> None:
        """Delete the resource at ``path``."""
        response = self._send("DELETE", path)
        if response.status != HTTPStatus.NO_CONTENT:
            raise strange(response)

    def _send(
        self, method: str, target: str, body: Mapping[str, object] | None = None
    ) -> ServiceResponse:
        headers = dict(self._headers)
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid4())
        content = None if body is None else json.dumps(body).encode()
        try:
            return self._send_with_retries(method, target, headers, content)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None

    def _send_with_retries(
        self, method: str, target: str, headers: dict[str, str], content: bytes | None
    ) -> ServiceResponse:
        """Send a request again while its failure may pass."""
        pauses = iter(_PAUSES if method in _REPEATABLE else ())
        while True:
            try:
                return self._try(method, target, headers, content)
            except PassingFailure as failure:
                is_limit = failure.exit_code == ExitStatus.LIMIT
                pause = 0 if is_limit else next(pauses, None)
                # An address that never responded is more likely mistyped than just restarting.
                if pause is None or not self._was_reached:
                    raise
                self._wait_out(failure, pause)

    def _send_until_answered(self, target: str) -> ServiceResponse:
        """Send a GET until its failure has passed, and say once what it waits for."""
        pause, is_away = 1, False
        while True:
            try:
                response = self._try("GET", target, self._headers, None)
                break
            except PassingFailure as failure:
                if not is_away:
                    until = f"{failure.seconds} s" if failure.seconds else "for the service"
                    click.echo(f"{failure.notice} Waiting {until}.", err=True)
                is_away = True
                self._sleep(max(pause, failure.seconds))
                pause = min(2 * pause, _MAX_PAUSE)
        if is_away:
            click.echo("Going on.", err=True)
        return response

    def _wait_out(self, failure: PassingFailure, pause: int) -> None:
        """Wait ``pause`` seconds, or as long as the service asks for, unless that is too long."""
        seconds = max(pause, failure.seconds)
        if seconds > self._seconds_left:
            raise failure
        self._seconds_left -= seconds
        _count_down(seconds, failure.notice, self._sleep)

    def _try(
        self, method: str, target: str, headers: dict[str, str], content: bytes | None
    ) -> ServiceResponse:
        from urllib3 import exceptions

        try:
            received = self._pool.request(
                method,
                self._url + target,
                body=content,
                headers=headers,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            received_body = _read(received)
        except exceptions.SSLError as error:
            raise insecure(self._url, error) from error
        except (exceptions.ConnectTimeoutError, exceptions.LocationValueError) as error:
            raise unreachable(self._url, error) from error
        except exceptions.HTTPError as error:
            self._was_reached = True
            raise lost(self._url, method, error) from error
        self._was_reached = True
        response = ServiceResponse(self._url, received.status, received.headers, received_body)
        if len(received_body) > _MAX_BODY:
            raise strange(response)
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise refusal(response, self._clock())
        return response


def _next_cursor(response: ServiceResponse) -> str:
    """Return where a feed goes on.

    Raises:
        Failure: the response does not say.
    """
    link = _NEXT.search(response.headers.get("Link", ""))
    query = "" if link is None else str(link[1]).partition("?")[2]
    cursors = parse_qs(query).get("cursor")
    if cursors is None:
        raise strange(response)
    return cursors[0]


def _read(received: Any) -> bytes:
    """Return a body. If it is larger than any of the service's, return only its beginning."""
    body = bytearray()
    while len(body) <= _MAX_BODY and (chunk := received.read(_CHUNK)):
        body += chunk
    received.close()
    return bytes(body)


def _count_down(seconds: int, reason: str, sleep: Sleep) -> None:
    """Sleep. A terminal shows a countdown in one line; elsewhere ``reason`` is printed once."""
    if not sys.stderr.isatty():
        click.echo(f"{reason} Trying again in {seconds} s.", err=True)
        sleep(seconds)
        return
    try:
        for left in range(seconds, 0, -1):
            text = f"{_CLEAR_LINE}{reason} Trying again in {left} s"
            click.echo(text, nl=False, err=True)
            sleep(1)
    finally:
        click.echo(_CLEAR_LINE, nl=False, err=True)
