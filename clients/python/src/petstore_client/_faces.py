"""Operations as methods: described once, called by threads and by tasks.

A resource describes each operation by a function that returns a ``Call``. The decorators here make
it a method that carries the call out. Of the resource of a ``Client`` it returns the value, of that
of an ``AsyncClient`` an awaitable of it; both have the parameters of the function.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from petstore_client._calls import Call, Listing, Page, Response
from petstore_client._drivers import AsyncDriver, SyncDriver

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", SyncDriver, AsyncDriver)


class Resource(Generic[D]):
    """The operations on one kind of resources."""

    def __init__(self, driver: D) -> None:
        self.driver: D = driver


class Method(Generic[P, T]):
    """A method of a ``Client``: it returns when the call is done."""

    def __init__(self, driver: SyncDriver, describe: Callable[P, Call[T]]) -> None:
        self._driver = driver
        self._describe = describe

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the value."""
        return self.raw(*args, **kwargs).value

    def raw(self, *args: P.args, **kwargs: P.kwargs) -> Response[T]:
        """Return the response: status, headers and body beside the value."""
        return self._driver.run(self._describe(*args, **kwargs))


class AsyncMethod(Generic[P, T]):
    """A method of an ``AsyncClient``, to be awaited."""

    def __init__(self, driver: AsyncDriver, describe: Callable[P, Call[T]]) -> None:
        self._driver = driver
        self._describe = describe

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the value."""
        return (await self.raw(*args, **kwargs)).value

    async def raw(self, *args: P.args, **kwargs: P.kwargs) -> Response[T]:
        """Return the response: status, headers and body beside the value."""
        return await self._driver.run(self._describe(*args, **kwargs))


class ListMethod(Generic[P, T]):
    """A method of a ``Client`` that lists: it iterates over the items of all pages."""

    def __init__(self, driver: SyncDriver, describe: Callable[P, Listing[T]]) -> None:
        self._driver = driver
        self._describe = describe

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Iterate over the items of this page and of all that follow."""
        for page in self.pages(*args, **kwargs):
            yield from page.items

    def pages(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[Page[T]]:
        """Iterate over this page and all that follow."""
        listing = self._describe(*args, **kwargs)
        call: Call[list[T]] | None = listing.first
        while call is not None:
            page = listing.page(self._driver.run(call))
            yield page
            call = listing.after(call, page)


class AsyncListMethod(Generic[P, T]):
    """A method of an ``AsyncClient`` that lists: it iterates over the items of all pages."""

    def __init__(self, driver: AsyncDriver, describe: Callable[P, Listing[T]]) -> None:
        self._driver = driver
        self._describe = describe

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        """Iterate over the items of this page and of all that follow."""
        async for page in self.pages(*args, **kwargs):
            for item in page.items:
                yield item

    async def pages(self, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Page[T]]:
        """Iterate over this page and all that follow."""
        listing = self._describe(*args, **kwargs)
        call: Call[list[T]] | None = listing.first
        while call is not None:
            page = listing.page(await self._driver.run(call))
            yield page
            call = listing.after(call, page)


class operation(Generic[P, T]):  # noqa: N801 - it is a decorator
    """Make a method of a function that describes a call."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.describe = describe

    @overload
    def __get__(self, resource: Resource[SyncDriver], owner: type) -> Method[P, T]: ...
    @overload
    def __get__(self, resource: Resource[AsyncDriver], owner: type) -> AsyncMethod[P, T]: ...
    def __get__(
        self, resource: Resource[SyncDriver] | Resource[AsyncDriver], owner: type
    ) -> Method[P, T] | AsyncMethod[P, T]:
        """Return the method of a resource."""
        describe = cast("Callable[P, Call[T]]", partial(self.describe, resource))
        driver = resource.driver
        method: Method[P, T] | AsyncMethod[P, T]
        if isinstance(driver, SyncDriver):
            method = Method(driver, describe)
        else:
            method = AsyncMethod(driver, describe)
        update_wrapper(method, self.describe)
        return method


class listing(Generic[P, T]):  # noqa: N801 - it is a decorator
    """Make a method of a function that describes a list."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Listing[T]]) -> None:
        self.describe = describe

    @overload
    def __get__(self, resource: Resource[SyncDriver], owner: type) -> ListMethod[P, T]: ...
    @overload
    def __get__(self, resource: Resource[AsyncDriver], owner: type) -> AsyncListMethod[P, T]: ...
    def __get__(
        self, resource: Resource[SyncDriver] | Resource[AsyncDriver], owner: type
    ) -> ListMethod[P, T] | AsyncListMethod[P, T]:
        """Return the method of a resource."""
        describe = cast("Callable[P, Listing[T]]", partial(self.describe, resource))
        driver = resource.driver
        method: ListMethod[P, T] | AsyncListMethod[P, T]
        if isinstance(driver, SyncDriver):
            method = ListMethod(driver, describe)
        else:
            method = AsyncListMethod(driver, describe)
        update_wrapper(method, self.describe)
        return method


class paging(Generic[P, T]):  # noqa: N801 - it reads as a decorator
    """Make a method that returns the pages of a list."""

    def __init__(self, listed: listing[P, T]) -> None:
        self.listed = listed

    @overload
    def __get__(
        self, resource: Resource[SyncDriver], owner: type
    ) -> Callable[P, Iterator[Page[T]]]: ...
    @overload
    def __get__(
        self, resource: Resource[AsyncDriver], owner: type
    ) -> Callable[P, AsyncIterator[Page[T]]]: ...
    def __get__(
        self, resource: Resource[SyncDriver] | Resource[AsyncDriver], owner: type
    ) -> Callable[P, Iterator[Page[T]]] | Callable[P, AsyncIterator[Page[T]]]:
        """Return the method of a resource."""
        method: ListMethod[P, T] | AsyncListMethod[P, T] = self.listed.__get__(
            cast("Any", resource), owner
        )
        return method.pages
