"""The feed of events, followed for ever: one policy, for threads and for tasks."""

from collections import deque
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from time import monotonic
from typing import Generic, overload

from petstore_client._calls import Call, Listing, Page, Reply, Response, parameters, unexpected
from petstore_client._drivers import AsyncDriver, SyncDriver
from petstore_client._errors import NoResponse, PetstoreError, RateLimited, UnexpectedResponse
from petstore_client._faces import D, Resource, listing, operation
from petstore_client._feed import Feed
from petstore_client._retries import FAILED, Outcome, Sleep, Step, logger
from petstore_client.models import Event

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 8.0
_EARLY_SECONDS = 1.0
_LONG_POLL_SECONDS = 25


class _Stream(Generic[D]):
    """Where a feed is read. Its steps are I/O that its driver does.

    The first page comes at once. After it, calls wait for events, and failures that pass are waited
    out, however long that takes.
    """

    def __init__(self, driver: D, first: Feed, rest: Feed) -> None:
        self._driver: D = driver
        self._call = first.first
        self._rest = rest
        self._events: deque[Event] = deque()
        self._cursor = self._next_cursor = dict(first.query).get("cursor")
        self._pause = 0.0  # before the next call
        self._backoff = _FIRST_PAUSE
        self._has_begun = self._is_closed = False

    def close(self) -> None:
        """End the stream; one that waits for events in another thread or task ends after that."""
        self._is_closed = True

    @property
    def cursor(self) -> str | None:
        """Where to go on; ``None`` before the first page of a feed that is read from its start."""
        return self._cursor

    def _next_event(self) -> Generator[Step, Outcome, Event | None]:
        """Return the next event, ``None`` if the stream is closed."""
        while not self._is_closed:
            if self._events:
                event = self._events.popleft()
                if not self._events:
                    self._cursor = self._next_cursor
                return event
            yield from self._next_page()
        return None

    def _next_page(self) -> Generator[Step, Outcome, Page[Event] | None]:
        """Return the next page, ``None`` if the stream is closed."""
        while not self._is_closed:
            if self._pause:
                yield Sleep(self._pause, is_silent=True)
            began = monotonic()
            try:
                response = yield from self._driver.steps(self._call)
            except PetstoreError as error:
                yield self._wait(error)
            else:
                return self._go_on(response, is_early=monotonic() - began < _EARLY_SECONDS)
        return None

    def _go_on(self, response: Response[list[Event]], *, is_early: bool) -> Page[Event]:
        """Take the events of a page, go on behind them and return it.

        Raises:
            UnexpectedResponse: the response does not say where that is, or leads back to itself, so
                its events would come again and again.
        """
        page = self._rest.page(response)
        if page.cursor is None or (page.items and page.cursor == self._next_cursor):
            msg = "the page of events has no link to what follows, as a Petstore service gives it"
            raise UnexpectedResponse(msg, **response.details)
        # A service that stops ends every wait at once.
        self._pause = _FIRST_PAUSE if self._has_begun and is_early and not page.items else 0.0
        self._has_begun, self._backoff = True, _FIRST_PAUSE
        self._events.extend(page.items)
        self._next_cursor = page.cursor
        if not page.items:
            self._cursor = page.cursor
        self._call = self._rest.at(page.cursor)
        return page

    def _skip(self) -> None:
        """Go on behind the events at hand."""
        self._events.clear()
        self._cursor = self._next_cursor

    def _wait(self, error: PetstoreError) -> Sleep:
        """Return how long to wait before the next call, if ``error`` may pass.

        Raises:
            PetstoreError: it may not, or the service never responded.
        """
        may_pass = isinstance(error, (NoResponse, RateLimited)) or error.status in FAILED
        if not (may_pass and self._has_begun):
            raise error
        seconds = max(self._backoff, error.retry_after or 0)
        self._pause, self._backoff = 0.0, min(2 * self._backoff, _LONGEST_PAUSE)
        logger.info("follows the events again in %.1f s: %s", seconds, error)
        return Sleep(seconds, error)


class EventStream(_Stream[SyncDriver], Iterator[Event]):
    """Events as they happen, for ever. ``cursor`` is where to go on.

    Save it after you have handled an event, and give it to ``follow`` when your program starts
    again: no event is missed. Events come in pages, and a cursor is the end of a page, so those of
    an unfinished page come again.
    """

    def __next__(self) -> Event:
        """Wait for the next event and return it."""
        event = self._driver.do(self._next_event())
        if event is None:
            raise StopIteration
        return event

    def pages(self) -> Iterator[Page[Event]]:
        """Iterate over pages instead: one for each response, so some are empty."""
        while (page := self._driver.do(self._next_page())) is not None:
            yield page
            self._skip()


class AsyncEventStream(_Stream[AsyncDriver], AsyncIterator[Event]):
    """Events as they happen, for ever, for tasks; see ``EventStream``."""

    async def __anext__(self) -> Event:
        """Wait for the next event and return it."""
        event = await self._driver.do(self._next_event())
        if event is None:
            raise StopAsyncIteration
        return event

    async def pages(self) -> AsyncIterator[Page[Event]]:
        """Iterate over pages instead: one for each response, so some are empty."""
        while (page := await self._driver.do(self._next_page())) is not None:
            yield page
            self._skip()


class EventFeed(Resource[D]):
    """The feed of events, which can be listed until now, and followed for ever."""

    @listing
    def list(
        self,
        *,
        types: Iterable[str] | None = None,
        resource: str | None = None,
        actor: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait: int | None = None,
    ) -> Listing[Event]:
        """Iterate over the events until now, oldest first, each as the class of its type.

        With a ``resource``, such as ``pet/17``, these are the events of that resource, and with an
        ``actor``, such as ``key/3``, what that did. ``sort="-sequence"`` is newest first. It begins
        with the oldest event that is kept, or at a ``cursor``: that of an earlier page, or
        ``latest``, which is behind the newest event. The ``cursor`` of the last page is where to go
        on later. ``wait`` is how many seconds to wait for an event if there is none, up to 25.
        """
        return _listing(types, resource, limit, cursor, wait, actor=actor, sort=sort)

    @operation
    def latest(self) -> Call[str]:
        """Return the cursor behind the newest event.

        Get it before you read the lists of the store. Then ``follow`` from it, and you have all
        that happens after.
        """
        query = parameters(cursor="latest", limit=1)
        return Call("listEvents", "GET", "/events", _cursor, query)

    @overload
    def follow(
        self: "EventFeed[SyncDriver]",
        *,
        cursor: str | None = None,
        types: Iterable[str] | None = None,
        resource: str | None = None,
        limit: int | None = None,
    ) -> EventStream: ...
    @overload
    def follow(
        self: "EventFeed[AsyncDriver]",
        *,
        cursor: str | None = None,
        types: Iterable[str] | None = None,
        resource: str | None = None,
        limit: int | None = None,
    ) -> AsyncEventStream: ...
    def follow(
        self,
        *,
        cursor: str | None = None,
        types: Iterable[str] | None = None,
        resource: str | None = None,
        limit: int | None = None,
    ) -> EventStream | AsyncEventStream:
        """Iterate over events as they happen, for ever, each as the class of its type.

        It begins with the oldest event that is kept, or at a ``cursor``: that of an earlier stream,
        or ``latest``. With a ``resource``, such as ``pet/17``, it has the events of that one. Once
        the service has responded, it waits for it whenever it is away, however long that takes, and
        misses and repeats nothing.

        Raises:
            CursorExpired: the events behind the cursor are not kept any more.
        """
        first = _listing(types, resource, limit, cursor)
        rest = _listing(types, resource, limit, None, _LONG_POLL_SECONDS)
        driver: SyncDriver | AsyncDriver = self._driver
        if isinstance(driver, SyncDriver):
            return EventStream(driver, first, rest)
        return AsyncEventStream(driver, first, rest)


def _listing(
    types: Iterable[str] | None,
    resource: str | None,
    limit: int | None,
    cursor: str | None,
    wait: int | None = None,
    **others: str | None,
) -> Feed:
    query = parameters(
        type=types, resource=resource, limit=limit, cursor=cursor, wait=wait, **others
    )
    return Feed("listEvents", "/events", Event, query, wait=wait or 0)


def _cursor(reply: Reply) -> str:
    """Return the cursor behind a page."""
    cursor = _listing(None, None, None, None).page(Response(**vars(reply), value=[])).cursor
    if cursor is None:
        raise unexpected(reply, "its page of events has no link to what follows")
    return cursor
