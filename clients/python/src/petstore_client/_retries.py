"""A call from its first request to its outcome, without any I/O.

``Session.exchange`` is a generator. It yields what to do next, a request or a ``Sleep``, and
receives what came of it. A driver does it, with threads or with tasks.
"""

import logging
import sys
import warnings
from collections.abc import Generator
from copy import copy
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from random import random
from time import monotonic
from typing import Any, NoReturn, TypeAlias, TypeGuard, cast

from httpx2 import Headers, Request

from petstore_client._calls import Call, Reply
from petstore_client._errors import (
    ClientClosed,
    ErrorResponse,
    IdempotencyKeyInUse,
    NoResponse,
    OutcomeUnknown,
    PetstoreError,
    RateLimited,
)
from petstore_client._rate_limits import RateLimits
from petstore_client._replies import error_in

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
_PACKAGE = str(Path(__file__).parent)


@dataclass(frozen=True)
class Sleep:
    """Do nothing for so many seconds: because of ``error`` or, without one, of the limits.

    The user of the client need not know of a silent one.
    """

    seconds: float
    error: PetstoreError | None = field(default=None, compare=False)
    is_silent: bool = False


@dataclass(frozen=True)
class Failure:
    """There was no whole response. If it ``was_sent``, the service may have got the request."""

    error: NoResponse | ClientClosed
    was_sent: bool


Step: TypeAlias = Request | Sleep
Outcome: TypeAlias = Reply | Failure | None


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
        if self.max_retries < 0:
            msg = f"max_retries: expected 0 or more, not {self.max_retries}"
            raise ValueError(msg)
        if self.max_wait < 0:
            msg = f"max_wait: expected 0 seconds or more, not {self.max_wait}"
            raise ValueError(msg)
        if self.timeout <= 0:
            msg = f"timeout: expected more than 0 seconds, not {self.timeout}"
            raise ValueError(msg)


class Session:
    """What all calls of a client share: its policy, its limits and the warnings it has given."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._limits = RateLimits(policy.max_wait)
        # Calls that cost nothing have a limit of their own.
        self._limits_of_free_calls = RateLimits(policy.max_wait)
        self._warned: dict[str, object] = {}

    def with_policy(self, policy: Policy) -> "Session":
        """Return a session with another policy, which shares the limits and the warnings."""
        other = copy(self)
        other.policy = policy
        return other

    def exchange(self, call: Call[Any], request: Request) -> Generator[Step, Outcome, Reply]:
        """Send the request of ``call`` until there is an outcome; return the successful reply.

        Raises:
            PetstoreError: there is none.
        """
        attempts = _Attempts(call, request, self.policy)
        limits = self._limits if call.charged else self._limits_of_free_calls
        while True:
            yield from self._turn(limits, attempts)
            try:
                outcome = cast("Reply | Failure", (yield attempts.request))
                refusal = None if isinstance(outcome, Failure) else error_in(outcome)
            except BaseException:  # interrupted
                limits.abandon()
                raise
            if isinstance(outcome, Failure):
                limits.abandon()
                error: PetstoreError = outcome.error
            else:
                self._learn(limits, call, outcome, refusal)
                self._warn_if_deprecated(call, outcome)
                if refusal is None:
                    return outcome
                error = refusal
            seconds = attempts.seconds_to_retry(outcome, error)
            if seconds > 0:
                logger.info("tries again in %.1f s: %s", seconds, error)
                yield from self._sleep(Sleep(seconds, error), attempts)

    def _turn(self, limits: RateLimits, attempts: "_Attempts") -> Generator[Step, Outcome, None]:
        """Wait until the limits admit one more request."""
        while wait := limits.enter(monotonic(), attempts.wait_left):
            if wait.is_for_window:
                attempts.wait_out(wait.seconds, wait.error)
            yield from self._sleep(Sleep(wait.seconds, wait.error), attempts)

    def _sleep(self, sleep: Sleep, attempts: "_Attempts") -> Generator[Step, Outcome, None]:
        """Sleep, and give up if the client has been closed."""
        closed = yield sleep
        if isinstance(closed, Failure):
            attempts.fail(closed.error)

    def _learn(
        self, limits: RateLimits, call: Call[Any], reply: Reply, error: PetstoreError | None
    ) -> None:
        now = monotonic()
        if _holds_up_every_call(error):
            limits.refuse(now, error)
        else:
            # A free call tells of the limits of the others, too.
            limits.leave(now, reply.headers if call.charged else Headers())

    def _warn_if_deprecated(self, call: Call[Any], reply: Reply) -> None:
        ours = object()  # of threads that come at the same time, the first one warns
        if (
            "Deprecation" not in reply.headers
            or self._warned.setdefault(call.operation, ours) != ours
        ):
            return
        sunset = reply.headers.get("Sunset")
        end = f" and ends on {sunset}" if sunset else ""
        msg = f"{call.operation} is deprecated{end}; update petstore-client"
        warnings.warn(msg, DeprecationWarning, stacklevel=_levels_to_caller())


class _Attempts:
    """The attempts of one call: what may still be tried, and whether one may have succeeded."""

    def __init__(self, call: Call[Any], request: Request, policy: Policy) -> None:
        self.request = request
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
                self.fail(_still(error, seconds))
            logger.info("waits %.1f s: %s", seconds, error)
        self.wait_left -= seconds

    def seconds_to_retry(self, outcome: Reply | Failure, error: PetstoreError) -> float:
        """Return how many seconds to wait before the next attempt.

        Raises:
            PetstoreError: there is none.
        """
        if _holds_up_every_call(error):
            return 0  # the limits know it, and make the next attempt wait
        is_failure = isinstance(outcome, Failure) or error.status in FAILED
        was_sent = outcome.was_sent if isinstance(outcome, Failure) else is_failure
        self._may_be_done |= was_sent and self.request.method != "GET"
        may_pass = not isinstance(error, ClientClosed) and (
            is_failure
            or error.status == HTTPStatus.REQUEST_TIMEOUT
            or isinstance(error, IdempotencyKeyInUse)
        )
        is_repeatable = self.request.method in _REPEATABLE or not was_sent
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
        key = self.request.headers.get("Idempotency-Key")
        error.idempotency_key = key
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


def _holds_up_every_call(error: PetstoreError | None) -> TypeGuard[RateLimited]:
    return isinstance(error, RateLimited) and error.code not in _OF_ONE_OPERATION


def _still(error: PetstoreError, seconds: float) -> PetstoreError:
    """Return ``error`` as it is now, when so many seconds are left."""
    other = copy(error)
    other.retry_after = seconds
    return other


def _levels_to_caller() -> int:
    """Return the ``stacklevel`` of a warning of our caller that blames the first foreign frame."""
    # What the module warnings does itself.
    level, frame = 0, sys._getframe(1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level + 1
