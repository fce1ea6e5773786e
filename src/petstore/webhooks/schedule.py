"""Deliveries of events to webhooks: when each is attempted, and how a webhook fares."""

from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Literal, NamedTuple, TypeAlias

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds, milliseconds

DisabledReason: TypeAlias = Literal["gone", "failing"]

HOLD: Milliseconds = 5 * MINUTE
"""How long a delivery that fails holds back the next one of its resource."""

GONE = HTTPStatus.GONE
"""The status by which an endpoint says that it wants no more deliveries."""

NOTICED_FAILURES = 3
"""After this many failures in a row, the log says that a webhook is failing."""

_HOUR: Milliseconds = 60 * MINUTE
_WAITS: tuple[Milliseconds, ...] = (
    5 * SECOND,
    5 * MINUTE,
    30 * MINUTE,
    *(hours * _HOUR for hours in (2, 5, 10, 14, 20, 24)),
)
_MAX_ATTEMPTS = len(_WAITS) + 1
_MAX_RETRY_AFTER = DAY
_JITTER = 0.2
_STATUSES = {*HTTPStatus}
_ASKS_TO_WAIT = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_MIN_FAILURES = 10
_MAX_FAILING = 5 * DAY


def is_success(status: int) -> bool:
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def status_in_words(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}" if status in _STATUSES else str(status)


def next_attempt(attempts: int, now: Milliseconds, chance: float) -> Milliseconds | None:
    """Return when to try again after this number of failed ``attempts``; ``None`` for never.

    ``chance`` is from 0 to 1, and moves the time within ±20 %.
    """
    if attempts >= _MAX_ATTEMPTS:
        return None
    return now + round(_WAITS[attempts - 1] * (1 - _JITTER + 2 * _JITTER * chance))


def paused_until(status: int, retry_after: str | None, now: Milliseconds) -> Milliseconds | None:
    """Return until when an endpoint wants no request; ``None`` if it did not say so.

    ``Retry-After`` counts with a 429 or 503, as seconds or as a date, and for 24 hours at most
    (RFC 9110 section 10.2.3).
    """
    if status not in _ASKS_TO_WAIT or retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        wait = int(retry_after[:10]) * SECOND
    else:
        try:
            wait = milliseconds(parsedate_to_datetime(retry_after)) - now
        except (ValueError, TypeError, OverflowError):  # no date, or one without a time zone
            return None
    return now + min(wait, _MAX_RETRY_AFTER) if wait > 0 else None


class WebhookHealth(NamedTuple):
    """How a webhook fares: its failed attempts since the last success, and their first moment."""

    failures: int
    failing_since: Milliseconds | None
    last_success_at: Milliseconds | None

    def after(self, at: Milliseconds, *, succeeded: bool) -> "WebhookHealth":
        if succeeded:
            return WebhookHealth(0, None, at)
        return self._replace(
            failures=self.failures + 1,
            failing_since=at if self.failing_since is None else self.failing_since,
        )

    def is_failing_for_good(self, now: Milliseconds) -> bool:
        """Return whether the webhook is to be disabled: 5 days and 10 attempts, all failed."""
        return (
            self.failing_since is not None
            and self.failures >= _MIN_FAILURES
            and now - self.failing_since >= _MAX_FAILING
        )
