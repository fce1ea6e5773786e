"""The feed of events, followed for ever, without any I/O."""

from collections import deque

from petstore_client._calls import Call, Listing, Page, Response
from petstore_client._clock import Clock
from petstore_client._retries import FAILED, Sleep, logger
from petstore_client.errors import (
    NoResponse,
    PetstoreError,
    RateLimited,
    UnexpectedResponse,
)
from petstore_client.models import Event

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 8.0
_EARLY_SECONDS = 1.0


class Following:
    """Where a feed is read: the events at hand, and the next call.

    ``pause`` is how many seconds to wait before that call. The first page comes at once. After it,
    calls wait for events, and failures that pass are waited out, however long that takes.
    """

    def __init__(self, first: Listing[Event], rest: Listing[Event], clock: Clock) -> None:
        self.pause = 0.0
        self.cursor = dict(first.query).get("cursor")
        self._call = first.first
        self._rest = rest
        self._clock = clock
        self._called_at = clock.now()
        self._events: deque[Event] = deque()
        self._next_cursor = self.cursor
        self._has_begun = False
        self._backoff = _FIRST_PAUSE

    def next_event(self) -> Event | None:
        """Return the next event at hand, ``None`` if there is none."""
        if not self._events:
            return None
        event = self._events.popleft()
        if not self._events:
            self.cursor = self._next_cursor
        return event

    def skip(self) -> None:
        """Go on behind the events at hand."""
        self._events.clear()
        self.cursor = self._next_cursor

    def next_call(self) -> Call[list[Event]]:
        """Return the call to make now."""
        self._called_at = self._clock.now()
        return self._call

    def go_on(self, response: Response[list[Event]]) -> Page[Event]:
        """Take the events of a page, go on behind them and return it.

        Raises:
            UnexpectedResponse: the response does not say where that is, or leads back to itself, so
                its events would come again and again.
        """
        page = self._rest.page(response)
        if page.cursor is None or (page.items and page.cursor == self._next_cursor):
            msg = "the page of events has no link to the next one, as a Petstore service gives it"
            raise UnexpectedResponse(msg, status=response.status, request_id=response.request_id)
        # A service that stops ends every wait at once.
        is_early = self._clock.now() - self._called_at < _EARLY_SECONDS
        self.pause = _FIRST_PAUSE if self._has_begun and is_early and not page.items else 0.0
        self._has_begun, self._backoff = True, _FIRST_PAUSE
        self._events.extend(page.items)
        self._next_cursor = page.cursor
        if not page.items:
            self.cursor = page.cursor
        self._call = self._rest.at(page.cursor)
        return page

    def fail(self, error: PetstoreError) -> Sleep:
        """Return how long to wait before the next call, if ``error`` may pass.

        Raises:
            PetstoreError: it may not, or the service never responded.
        """
        may_pass = isinstance(error, (NoResponse, RateLimited)) or error.status in FAILED
        if not (may_pass and self._has_begun):
            raise error
        seconds = max(self._backoff, error.retry_after or 0)
        self.pause, self._backoff = 0.0, min(2 * self._backoff, _LONGEST_PAUSE)
        logger.info("follows the events again in %.1f s: %s", seconds, error)
        return Sleep(seconds, error)
