"""The feed of events, followed forever.

``Following`` has the policy and no I/O. The two streams, for threads and for tasks, carry it out.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Self, overload

from petstore_client._calls import Call, Listing, Page, Reply, Response, parameters, unexpected
from petstore_client._clock import Clock
from petstore_client._drivers import AsyncDriver, SyncDriver
from petstore_client._errors import NoResponse, PetstoreError, RateLimited, UnexpectedResponse
from petstore_client._faces import D, Resource, listing, operation, paging
from petstore_client._feed import Feed
from petstore_client._retries import FAILED, Sleep, logger
from petstore_client.models import Event

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 8.0
_EARLY_SECONDS = 1.0
_LONG_POLL_SECONDS = 25


class Following:
    """Where a feed is read: the events at hand, and the next call.

    ``pause`` is how many seconds to wait before that call. The first page comes at once. After it,
    calls wait for events, and failures that pass are waited out, however long that takes.
    """

    def __init__(self, first: Feed, rest: Feed, clock: Clock) -> None:
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
            msg = "the page of events has no link to what follows, as a Petstore service gives it"
            raise UnexpectedResponse(msg, **response.details)
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


class EventStream(Iterator[Event]):
    """Events as they happen, for ever. ``cursor`` is where to go on.

    Save it after you have handled an event, and give it to ``follow`` when your program starts
    again: no event is missed. Events come in pages, and a cursor is the end of a page, so those of
    an unfinished page come again.

    It ends when it is closed, also by another thread while it waits for events.
    """

    def __init__(self, driver: SyncDriver, following: Following) -> None:
        self._driver = driver.for_stream()
        self._following = following
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the stream, and what it waits for. The client stays open."""
        self._is_closed = True
        self._driver.lifetime.end()

    @property
    def cursor(self) -> str | None:
        """Where to go on; ``None`` before the first page of a feed that is read from its start."""
        return self._following.cursor

    def __next__(self) -> Event:
        """Wait for the next event and return it."""
        while not self._is_closed:
            event = self._following.next_event()
            if event is not None:
                return event
            self._next_page()
        raise StopIteration

    def pages(self) -> Iterator[Page[Event]]:
        """Iterate over pages instead: one for each response, so some are empty."""
        while (page := self._next_page()) is not None:
            yield page
            self._following.skip()

    def _next_page(self) -> Page[Event] | None:
        """Return the next page, ``None`` if the stream is closed."""
        while not self._is_closed:
            self._driver.sleep(self._following.pause)
            try:
                response = self._driver.run(self._following.next_call())
            except PetstoreError as error:
                if not self._is_closed:
                    self._driver.wait(self._following.fail(error))
            else:
                return self._following.go_on(response)
        return None


class AsyncEventStream(AsyncIterator[Event]):
    """Events as they happen, for ever, for tasks; see ``EventStream``."""

    def __init__(self, driver: AsyncDriver, following: Following) -> None:
        self._driver = driver.for_stream()
        self._following = following
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the stream, and what it waits for. The client stays open."""
        self._is_closed = True
        self._driver.lifetime.end()

    @property
    def cursor(self) -> str | None:
        """Where to go on; ``None`` before the first page of a feed that is read from its start."""
        return self._following.cursor

    async def __anext__(self) -> Event:
        """Wait for the next event and return it."""
        while not self._is_closed:
            event = self._following.next_event()
            if event is not None:
                return event
            await self._next_page()
        raise StopAsyncIteration

    async def pages(self) -> AsyncIterator[Page[Event]]:
        """Iterate over pages instead: one for each response, so some are empty."""
        while (page := await self._next_page()) is not None:
            yield page
            self._following.skip()

    async def _next_page(self) -> Page[Event] | None:
        """Return the next page, ``None`` if the stream is closed."""
        while not self._is_closed:
            await self._driver.sleep(self._following.pause)
            try:
                response = await self._driver.run(self._following.next_call())
            except PetstoreError as error:
                if not self._is_closed:
                    await self._driver.wait(self._following.fail(error))
            else:
                return self._following.go_on(response)
        return None


class EventFeed(Resource[D]):
    """The feed of events, which can be listed until now, and followed for ever."""

    @listing
    def list(
        self,
        *,
        types: Iterable[str] | None = None,
        resource: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait: int | None = None,
    ) -> Listing[Event]:
        """Iterate over the events until now, oldest first, each as the class of its type.

        With a ``resource``, such as ``pet/17``, these are the events of that resource. It begins
        with the oldest event that is kept, or at a ``cursor``: that of an earlier page, or
        ``latest``, which is behind the newest event. The ``cursor`` of the last page is where to go
        on later. ``wait`` is how many seconds to wait for an event if there is none, up to 25.
        """
        return _listing(types, resource, limit, cursor, wait)

    pages = paging(list)  # noqa: A003 - the method above

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
        driver: SyncDriver | AsyncDriver = self.driver
        following = Following(first, rest, driver.session.clock)
        if isinstance(driver, SyncDriver):
            return EventStream(driver, following)
        return AsyncEventStream(driver, following)


def _listing(
    types: Iterable[str] | None,
    resource: str | None,
    limit: int | None,
    cursor: str | None,
    wait: int | None = None,
) -> Feed:
    query = parameters(type=types, resource=resource, limit=limit, cursor=cursor, wait=wait)
    return Feed("listEvents", "/events", Event, query, wait=wait or 0)


def _cursor(reply: Reply) -> str:
    """Return the cursor behind a page."""
    cursor = _listing(None, None, None, None).page(Response(**vars(reply), value=[])).cursor
    if cursor is None:
        raise unexpected(reply, "its page of events has no link to what follows")
    return cursor
