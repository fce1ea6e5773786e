"""Lists as iterators: of their items, or of their pages. Some are followed for ever."""

from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from time import monotonic
from typing import Any, Generic, TypeVar

from petstore_client._calls import Call, Listing, Page, Response
from petstore_client._driver import Driver, done
from petstore_client._errors import NoResponse, PetstoreError, RateLimited
from petstore_client._retries import FAILED, logger

T = TypeVar("T")

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 8.0
_EARLY_SECONDS = 1.0


class Reading(Generic[T]):
    """Where a list is read.

    One that is followed begins at once. After that, calls wait for more, and failures that pass are
    waited out, however long that takes.
    """

    def __init__(self, driver: Driver[Any, Any], listing: Listing[T]) -> None:
        self._driver = driver
        self._listing = listing
        self._calls = deque(listing.calls())
        self._items: deque[T] = deque()
        self._cursor = self._next_cursor = dict(listing.query).get("cursor")
        self._pause = 0.0  # before the next call
        self._backoff = _FIRST_PAUSE
        self._has_begun = False

    @property
    def cursor(self) -> str | None:
        """The end of the last page whose items are all handled: where to go on."""
        return self._cursor

    async def _next_item(self) -> T | None:
        """Return the next item, ``None`` at the end."""
        while not self._items:
            if await self._next_page() is None:
                return None
        item = self._items.popleft()
        if not self._items:
            self._cursor = self._next_cursor
        return item

    async def _next_page(self) -> Page[T] | None:
        """Return the next page, ``None`` at the end."""
        while self._calls:
            if self._pause:
                await self._driver.sleep(self._pause)
            began = monotonic()
            try:
                response = await self._driver.response(self._calls[0])
            except PetstoreError as error:
                await self._wait(error)
            else:
                return self._go_on(response, is_early=monotonic() - began < _EARLY_SECONDS)
        return None

    def _go_on(self, response: Response[list[T]], *, is_early: bool) -> Page[T]:
        """Take the items of a page, go on behind them and return it.

        Raises:
            UnexpectedResponse: the response does not say where that is, or leads back to itself, so
                its items would come again and again.
        """
        page, call = self._listing.page(response), self._calls[0]
        follows = bool(self._listing.wait)
        if not follows and response.link_to("next") is None:
            self._calls.popleft()
        elif page.cursor is None or (
            ("cursor", page.cursor) in call.query and (page.items or not follows)
        ):
            msg = "the link to the next page is missing, or leads to the same page"
            raise response.unexpected(msg)
        else:
            self._calls[0] = self._call_at(page.cursor, call)
        # A service that stops ends every wait at once.
        self._pause = _FIRST_PAUSE if self._has_begun and is_early and not page.items else 0.0
        self._has_begun, self._backoff = follows, _FIRST_PAUSE
        self._items.extend(page.items)
        self._next_cursor = page.cursor
        if not page.items:
            self._cursor = page.cursor
        return page

    def _call_at(self, cursor: str, call: Call[list[T]]) -> Call[list[T]]:
        kept = tuple(pair for pair in call.query if pair[0] not in ("cursor", "wait"))
        wait = self._listing.wait or call.wait
        waits = (("wait", f"{wait:g}"),) if wait else ()
        return replace(call, query=(*kept, *waits, ("cursor", cursor)), wait=wait)

    def _skip(self) -> None:
        """Go on behind the items at hand."""
        self._items.clear()
        self._cursor = self._next_cursor

    async def _wait(self, error: PetstoreError) -> None:
        """Wait before the next call, if ``error`` may pass.

        Raises:
            PetstoreError: it may not, or the service never responded.
        """
        may_pass = isinstance(error, (NoResponse, RateLimited)) or error.status in FAILED
        if not (may_pass and self._has_begun):
            raise error
        seconds = max(self._backoff, error.retry_after or 0)
        self._pause, self._backoff = 0.0, min(2 * self._backoff, _LONGEST_PAUSE)
        logger.info("goes on reading in %.1f s: %s", seconds, error)
        await self._driver.sleep(seconds, error)


class Listed(Reading[T], Iterator[T]):
    """The items of all pages of a list; ``pages()`` gives the pages instead.

    ``cursor`` is where to go on: save it after you have handled an item, and give it to the method
    when your program starts again, and nothing is missed. Items come in pages, and a cursor is the
    end of a page, so those of an unfinished page come again.
    """

    def __next__(self) -> T:
        """Return the next item, and wait for it if the list is followed."""
        item = done(self._next_item())
        if item is None:
            raise StopIteration
        return item

    def pages(self) -> Iterator[Page[T]]:
        """Iterate over pages instead: one for each response, so some of events are empty."""
        while (page := done(self._next_page())) is not None:
            yield page
            self._skip()


class AsyncListed(Reading[T], AsyncIterator[T]):
    """The items of all pages of a list, for tasks; see ``Listed``."""

    async def __anext__(self) -> T:
        """Return the next item, and wait for it if the list is followed."""
        item = await self._next_item()
        if item is None:
            raise StopAsyncIteration
        return item

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Iterate over pages instead: one for each response, so some of events are empty."""
        while (page := await self._next_page()) is not None:
            yield page
            self._skip()
