"""The attempts of one call, without any I/O: what may still be tried, and what has come of it."""

import logging
from copy import copy
from dataclasses import dataclass
from http import HTTPStatus
from random import random
from typing import Any, NoReturn, TypeGuard

from httpx2 import Request

from petstore_client._calls import Call
from petstore_client._errors import (
    ErrorResponse,
    IdempotencyKeyInUse,
    NoResponse,
    OutcomeUnknown,
    PetstoreError,
    RateLimited,
)

logger = logging.getLogger("petstore_client")

FAILED = {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
"""The service, or a proxy before it, is away: perhaps after it had carried out the request."""

_FIRST_BACKOFF = 0.5
_LONGEST_BACKOFF = 8.0
# They say nothing about an earlier attempt.
_SILENT = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
}
# A limit of one operation, by the code of its 429: other calls need not wait, and it ends too late.
_OF_ONE_OPERATION = {"too_many_rotations"}
_REPEATABLE = {"GET", "POST"}


@dataclass(frozen=True)
class Policy:
    """How a client retries. Times are in seconds.

    Raises:
        ValueError: a setting is invalid.
    """

    max_retries: int
    max_wait: float
    timeout: float

    def __post_init__(self) -> None:
        for name in ("max_retries", "max_wait"):
            if getattr(self, name) < 0:
                msg = f"{name}: expected 0 or more, not {getattr(self, name)}"
                raise ValueError(msg)
        if self.timeout <= 0:
            msg = f"timeout: expected more than 0 seconds, not {self.timeout}"
            raise ValueError(msg)


class Attempts:
    """The attempts of one call: what may still be tried, and whether one may have succeeded."""

    def __init__(self, call: Call[Any], request: Request, policy: Policy) -> None:
        self._request = request
        self._name = f"{call.method} {call.path}"
        self.wait_left = policy.max_wait
        self._retries_left = policy.max_retries
        self._backoff = _FIRST_BACKOFF
        self._may_be_done = False

    def wait_out(self, seconds: float, error: PetstoreError | None) -> None:
        """Take a wait that the service asks for from what the caller is ready to wait.

        Raises:
            PetstoreError: it is too long, so ``error`` stays.
        """
        if error is not None:
            if seconds > self.wait_left:
                still = copy(error)
                still.retry_after = seconds
                self.fail(still)
            logger.info("waits %.1f s: %s", seconds, error)
        self.wait_left -= seconds

    def seconds_to_retry(self, error: PetstoreError, *, was_sent: bool) -> float:
        """Return how many seconds to wait before the next attempt.

        Raises:
            PetstoreError: there is none.
        """
        if holds_up_every_call(error):
            return 0  # the limits know it, and make the next attempt wait
        self._may_be_done |= was_sent and self._request.method != "GET"
        may_pass = (
            isinstance(error, (NoResponse, IdempotencyKeyInUse))
            or error.status in FAILED
            or error.status == HTTPStatus.REQUEST_TIMEOUT
        )
        is_repeatable = self._request.method in _REPEATABLE or not was_sent
        if not (may_pass and is_repeatable and self._retries_left):
            self.fail(error)
        self._retries_left -= 1
        seconds = random() * self._backoff  # noqa: S311 - spreads retries, hides nothing
        self._backoff = min(2 * self._backoff, _LONGEST_BACKOFF)
        if error.retry_after is not None:
            seconds = max(seconds, error.retry_after)
            self.wait_out(seconds, error)
        return seconds

    def fail(self, error: PetstoreError) -> NoReturn:
        """Raise ``error``, or that the outcome is unknown if it does not say.

        Raises:
            PetstoreError: always.
        """
        error.idempotency_key = self._request.headers.get("Idempotency-Key")
        says_outcome = (
            isinstance(error, ErrorResponse)
            and error.status not in FAILED | _SILENT
            and not isinstance(error, IdempotencyKeyInUse)
        )
        if not self._may_be_done or says_outcome:
            raise error
        msg = f"the outcome of {self._name} is unknown: {error.message}"
        unknown = OutcomeUnknown(msg)
        vars(unknown).update(vars(error) | {"message": msg})
        raise unknown from error


def holds_up_every_call(error: PetstoreError | None) -> TypeGuard[RateLimited]:
    """Return whether no call of the client may be sent for a while."""
    return isinstance(error, RateLimited) and error.code not in _OF_ONE_OPERATION
