"""Operations as methods: described once, called by threads and by tasks.

A resource describes each operation by a function that returns a ``Call``. The decorators here make
it a method that carries the call out. Of the resource of a ``Client`` it returns the value, of that
of an ``AsyncClient`` an awaitable of it; both have the parameters of the function.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import partial, update_wrapper, wraps
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    overload,
)

from petstore_client._calls import Call, Listing, Page, Response
from petstore_client._drivers import AsyncDriver, SyncDriver

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C")
D = TypeVar("D", SyncDriver, AsyncDriver)


class Resource(Generic[D]):
    """The operations on one kind of resources."""

    def __init__(self, driver: D) -> None:
        self._driver: D = driver


class _Described(Generic[D, P, C]):
    """A method that looks like the function that describes its calls."""

    def __init__(self, driver: D, function: Callable[..., C], resource: Resource[Any]) -> None:
        self._driver: D = driver
        self._describe = cast("Callable[P, C]", partial(function, resource))
        update_wrapper(cast("Any", self), function)

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters and the result, for ``help``, ``inspect`` and Jupyter."""
        return self._signature(type(self).__call__)

    def __repr__(self) -> str:
        return f"<method {self.__name__}{self.__signature__}>"  # type: ignore[attr-defined] # the function's

    def _signature(self, called: Callable[..., Any]) -> inspect.Signature:
        """Return our parameters, and the result of ``called`` for what the calls return."""
        signature = inspect.signature(self._describe)
        (kind,) = get_args(signature.return_annotation)
        result = get_type_hints(called)["return"]
        if inspect.iscoroutinefunction(called):
            result = cast("Any", Awaitable)[result]
        return signature.replace(return_annotation=kind if result is T else result[kind])

    def _named(self, name: str, method: Callable[P, R]) -> Callable[P, R]:
        """Return another method of this one, which shows the same parameters."""

        @wraps(method)
        def named(*args: P.args, **kwargs: P.kwargs) -> R:
            return method(*args, **kwargs)

        named.__name__, named.__doc__ = name, self.__doc__
        named.__signature__ = self._signature(method)  # type: ignore[attr-defined] # for inspect
        return named


class Method(_Described[SyncDriver, P, Call[T]]):
    """A method of a ``Client``: it returns when the call is done."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the value."""
        return self._raw(*args, **kwargs).value

    @property
    def raw(self) -> Callable[P, Response[T]]:
        """The same method, which returns the response: status, headers and body."""
        return self._named("raw", self._raw)

    def _raw(self, *args: P.args, **kwargs: P.kwargs) -> Response[T]:
        """Return the response: status, headers and body beside the value."""
        return self._driver.run(self._describe(*args, **kwargs))


class AsyncMethod(_Described[AsyncDriver, P, Call[T]]):
    """A method of an ``AsyncClient``, to be awaited."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the value."""
        return (await self._raw(*args, **kwargs)).value

    @property
    def raw(self) -> Callable[P, Coroutine[Any, Any, Response[T]]]:
        """The same method, which returns the response: status, headers and body."""
        return self._named("raw", self._raw)

    async def _raw(self, *args: P.args, **kwargs: P.kwargs) -> Response[T]:
        """Return the response: status, headers and body beside the value."""
        return await self._driver.run(self._describe(*args, **kwargs))


class Listed(Iterator[T]):
    """The items of all pages of a list; ``pages()`` gives the pages instead."""

    def __init__(self, driver: SyncDriver, listing: Listing[T]) -> None:
        self._pages = self._follow(driver, listing)
        self._items = (item for page in self._pages for item in page.items)

    def __next__(self) -> T:
        """Return the next item."""
        return next(self._items)

    def pages(self) -> Iterator[Page[T]]:
        """Iterate over pages: this one and all that follow."""
        return self._pages

    @staticmethod
    def _follow(driver: SyncDriver, listing: Listing[T]) -> Iterator[Page[T]]:
        for part in listing.parts:
            call: Call[list[T]] | None = part.first
            while call is not None:
                page = part.page(driver.run(call))
                yield page
                call = part.after(call, page)


class AsyncListed(AsyncIterator[T]):
    """The items of all pages of a list, for tasks; ``pages()`` gives the pages instead."""

    def __init__(self, driver: AsyncDriver, listing: Listing[T]) -> None:
        self._pages = self._follow(driver, listing)
        self._items = (item async for page in self._pages for item in page.items)

    async def __anext__(self) -> T:
        """Return the next item."""
        return await anext(self._items)

    def pages(self) -> AsyncIterator[Page[T]]:
        """Iterate over pages: this one and all that follow."""
        return self._pages

    @staticmethod
    async def _follow(driver: AsyncDriver, listing: Listing[T]) -> AsyncIterator[Page[T]]:
        for part in listing.parts:
            call: Call[list[T]] | None = part.first
            while call is not None:
                page = part.page(await driver.run(call))
                yield page
                call = part.after(call, page)


class ListMethod(_Described[SyncDriver, P, Listing[T]]):
    """A method of a ``Client`` that lists."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Listed[T]:
        """Iterate over the items of this page and of all that follow."""
        return Listed(self._driver, self._describe(*args, **kwargs))


class AsyncListMethod(_Described[AsyncDriver, P, Listing[T]]):
    """A method of an ``AsyncClient`` that lists."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> AsyncListed[T]:
        """Iterate over the items of this page and of all that follow."""
        return AsyncListed(self._driver, self._describe(*args, **kwargs))


class operation(Generic[P, T]):  # noqa: N801 - it is a decorator
    """Make a method of a function that describes a call."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._describe = describe

    @overload
    def __get__(self, resource: Resource[SyncDriver], owner: type) -> Method[P, T]: ...
    @overload
    def __get__(self, resource: Resource[AsyncDriver], owner: type) -> AsyncMethod[P, T]: ...
    def __get__(
        self, resource: Resource[SyncDriver] | Resource[AsyncDriver], owner: type
    ) -> Method[P, T] | AsyncMethod[P, T]:
        """Return the method of a resource."""
        driver = resource._driver  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if isinstance(driver, SyncDriver):
            return Method(driver, self._describe, resource)
        return AsyncMethod(driver, self._describe, resource)


class listing(Generic[P, T]):  # noqa: N801 - it is a decorator
    """Make a method of a function that describes a list."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Listing[T]]) -> None:
        self._describe = describe

    @overload
    def __get__(self, resource: Resource[SyncDriver], owner: type) -> ListMethod[P, T]: ...
    @overload
    def __get__(self, resource: Resource[AsyncDriver], owner: type) -> AsyncListMethod[P, T]: ...
    def __get__(
        self, resource: Resource[SyncDriver] | Resource[AsyncDriver], owner: type
    ) -> ListMethod[P, T] | AsyncListMethod[P, T]:
        """Return the method of a resource."""
        driver = resource._driver  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if isinstance(driver, SyncDriver):
            return ListMethod(driver, self._describe, resource)
        return AsyncListMethod(driver, self._describe, resource)
