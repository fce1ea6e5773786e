"""A client of a running service: JSON over HTTP, patient where waiting helps."""

import json
import re
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode
from uuid import uuid4

import click

from petstore import __version__
from petstore.cli.client_failures import (
    ExitStatus,
    PassingFailure,
    Response,
    decoded,
    insecure,
    lost,
    refusal,
    strange,
    unreachable,
)
from petstore.cli.countdown import Sleep, wait
from petstore.clock import Clock, system_clock

T = TypeVar("T")

LARGEST_PAGE = 100
_CONNECT_SECONDS = 5
_PATIENCE_SECONDS = 600
# Before each further try.
_PAUSES = (1, 2, 4)
# A POST carries an Idempotency-Key: sent twice it acts once. A PATCH might meet its own result.
_REPEATABLE = {"GET", "POST"}
_INTERRUPTED = 130
_NEXT = re.compile(r'<([^<>]*)>\s*;\s*rel="next"')
_LARGEST_BODY = 16 * 1024 * 1024
_CHUNK = 64 * 1024


class Client:
    """Speaks to the service at ``url``, which ends in ``/v1``, for the holder of a key.

    Whatever the service refuses or does not answer is raised as ``Failure``.
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
        self._patience = _PATIENCE_SECONDS
        self._was_reached = False
        timeout = Timeout(connect=_CONNECT_SECONDS, read=read_seconds)
        self._pool = PoolManager(timeout=timeout, retries=False)

    def get(self, path: str, kind: type[T]) -> T:
        """Return the resource at ``path``."""
        return decoded(self._send("GET", path), kind)

    def find(
        self, path: str, kind: type[T], query: Iterable[tuple[str, object]], limit: int | None
    ) -> tuple[list[T], bool]:
        """Return the first page of what ``query`` finds, or all of it if there is no ``limit``.

        Also tell whether there is more.
        """
        found: list[T] = []
        target = f"{path}?{urlencode([*query, ('limit', limit or LARGEST_PAGE)])}"
        while True:
            answer = self._send("GET", target)
            found += decoded(answer, list[kind])  # type: ignore[valid-type]
            following = _NEXT.search(answer.headers.get("Link", ""))
            if following is None or limit is not None:
                return found, following is not None
            # Its query alone: the key must not follow a link to somebody else.
            previous, target = target, f"{path}?{following[1].partition('?')[2]}"
            if target == previous:
                raise strange(answer)

    def post(self, path: str, body: Mapping[str, object], kind: type[T]) -> T:
        """Add what ``body`` describes, once even if it has to be sent again; return it."""
        return decoded(self._send("POST", path, body), kind)

    def patch(self, path: str, body: Mapping[str, object], kind: type[T]) -> T:
        """Change what ``body`` names of the resource at ``path``; return it."""
        return decoded(self._send("PATCH", path, body), kind)

    def delete(self, path: str) -> None:
        """Delete the resource at ``path``."""
        answer = self._send("DELETE", path)
        if answer.status != HTTPStatus.NO_CONTENT:
            raise strange(answer)

    def _send(self, method: str, target: str, body: Mapping[str, object] | None = None) -> Response:
        headers = dict(self._headers)
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid4())
        content = None if body is None else json.dumps(body).encode()
        try:
            return self._insist(method, target, headers, content)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(_INTERRUPTED) from None

    def _insist(
        self, method: str, target: str, headers: dict[str, str], content: bytes | None
    ) -> Response:
        """Send a request again and again, while what keeps it from success may pass."""
        pauses = iter(_PAUSES if method in _REPEATABLE else ())
        while True:
            try:
                return self._try(method, target, headers, content)
            except PassingFailure as failure:
                is_limit = failure.exit_code == ExitStatus.LIMIT
                pause = 0 if is_limit else next(pauses, None)
                # Who was never reached is more likely mistyped than just starting again.
                if pause is None or not self._was_reached:
                    raise
                self._wait_out(failure, pause)

    def _wait_out(self, failure: PassingFailure, pause: int) -> None:
        """Wait for ``pause`` or what the service asks for, unless that takes too long."""
        seconds = max(pause, failure.seconds)
        if seconds > self._patience:
            raise failure
        self._patience -= seconds
        wait(seconds, failure.notice, self._sleep)

    def _try(
        self, method: str, target: str, headers: dict[str, str], content: bytes | None
    ) -> Response:
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
        answer = Response(self._url, received.status, received.headers, received_body)
        if len(received_body) > _LARGEST_BODY:
            raise strange(answer)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise refusal(answer, self._clock())
        return answer


def _read(received: Any) -> bytes:
    """Return a body, of one that is larger than any of the service's not all of it."""
    body = bytearray()
    while len(body) <= _LARGEST_BODY and (chunk := received.read(_CHUNK)):
        body += chunk
    received.close()
    return bytes(body)
