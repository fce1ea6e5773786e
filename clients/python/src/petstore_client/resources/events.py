"""The feed of events."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import overload

from petstore_client._calls import Listing, Page, parameters
from petstore_client._drivers import AsyncDriver, SyncDriver
from petstore_client._faces import D, Resource, listing, paging
from petstore_client._following import Following
from petstore_client.errors import PetstoreError
from petstore_client.models import Event

_LONG_POLL_SECONDS = 25


def _listing(
    types: Sequence[str] | None, limit: int | None, cursor: str | None, wait: int | None = None
) -> Listing[Event]:
    query = parameters(type=types, limit=limit, cursor=cursor, wait=wait)
    return Listing("listEvents", "/events", Event, query, wait=wait or 0, is_feed=True)


class EventStream(Iterator[Event]):
    """Events as they happen, for ever. ``cursor`` is where to go on.

    Save it after you have handled an event, and give it to ``follow`` when your program starts
    again: no event is missed. Events come in pages, and a cursor is the end of a page, so those of
    an unfinished page come again.
    """

    def __init__(self, driver: SyncDriver, following: Following) -> None:
        self._driver = driver
        self._following = following

    @property
    def cursor(self) -> str | None:
        """Where to go on; ``None`` before the first page of a feed that is read from its start."""
        return self._following.cursor

    def __next__(self) -> Event:
        """Wait for the next event and return it."""
        while (event := self._following.next_event()) is None:
            self._next_page()
        return event

    def pages(self) -> Iterator[Page[Event]]:
        """Iterate over pages instead: one for each response, so some are empty."""
        while True:
            yield self._next_page()
            self._following.skip()

    def _next_page(self) -> Page[Event]:
        while True:
            self._driver.sleep(self._following.pause)
            try:
                response = self._driver.run(self._following.next_call())
            except PetstoreError as error:
                self._driver.wait(self._following.fail(error))
            else:
                return self._following.go_on(response)


class AsyncEventStream(AsyncIterator[Event]):
    """Events as they happen, for ever, for tasks; see ``EventStream``."""

    def __init__(self, driver: AsyncDriver, following: Following) -> None:
        self._driver = driver
        self._following = following

    @property
    def cursor(self) -> str | None:
        """Where to go on; ``None`` before the first page of a feed that is read from its start."""
        return self._following.cursor

    async def __anext__(self) -> Event:
        """Wait for the next event and return it."""
        while (event := self._following.next_event()) is None:
            await self._next_page()
        return event

    async def pages(self) -> AsyncIterator[Page[Event]]:
        """Iterate over pages instead: one for each response, so some are empty."""
        while True:
            yield await self._next_page()
            self._following.skip()

    async def _next_page(self) -> Page[Event]:
        while True:
            await self._driver.sleep(self._following.pause)
            try:
                response = await self._driver.run(self._following.next_call())
            except PetstoreError as error:
                await self._driver.wait(self._following.fail(error))
            else:
                return self._following.go_on(response)


class Events(Resource[D]):
    """What happened in the store: ``client.events``."""

    @listing
    def list(
        self,
        *,
        types: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait: int | None = None,
    ) -> Listing[Event]:
        """Iterate over the events until now, oldest first.

        It begins with the oldest event that is kept, or at a ``cursor``: that of an earlier page,
        or ``latest``, which is behind the newest event. ``wait`` is how many seconds to wait for an
        event at the end, up to 25.
        """
        return _listing(types, limit, cursor, wait)

    pages = paging(list)  # noqa: A003 - the method above

    @overload
    def follow(
        self: "Events[SyncDriver]",
        *,
        cursor: str | None = None,
        types: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> EventStream: ...
    @overload
    def follow(
        self: "Events[AsyncDriver]",
        *,
        cursor: str | None = None,
        types: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncEventStream: ...
    def follow(
        self,
        *,
        cursor: str | None = None,
        types: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> EventStream | AsyncEventStream:
        """Iterate over events as they happen, for ever.

        It begins with the oldest event that is kept, or at a ``cursor``: that of an earlier stream,
        or ``latest``. Once the service has responded, it waits for it whenever it is away, however
        long that takes, and misses and repeats nothing.

        Raises:
            CursorExpired: the events behind the cursor are not kept any more.
        """
        first = _listing(types, limit, cursor)
        rest = _listing(types, limit, None, _LONG_POLL_SECONDS)
        driver: SyncDriver | AsyncDriver = self.driver
        following = Following(first, rest, driver.session.clock)
        if isinstance(driver, SyncDriver):
            return EventStream(driver, following)
        return AsyncEventStream(driver, following)
