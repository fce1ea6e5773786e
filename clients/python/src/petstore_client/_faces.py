"""Operations as methods: described once, called by threads and by tasks.

A resource describes each operation by a function that returns a ``Call``, or a ``Listing``. The
decorators here make it a method that carries that out. Of the resource of a ``Client`` it returns
the value, of that of an ``AsyncClient`` a coroutine; both have the parameters of the function.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache, partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, get_args, overload

from petstore_client._calls import Call, Listing, Response
from petstore_client._driver import AsyncDriver, SyncDriver
from petstore_client._reading import AsyncListed, Listed

P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
W_co = TypeVar("W_co", covariant=True)
S = TypeVar("S")
A = TypeVar("A")
D = TypeVar("D", SyncDriver, AsyncDriver)


class Resource(Generic[D]):
    """The operations on one kind of resources."""

    def __init__(self, driver: D) -> None:
        self._driver: D = driver


class Method(Protocol[P, R_co, W_co]):
    """A method of a client. Its docstring is that of the function, so it has none itself."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @property
    def raw(self) -> Callable[P, W_co]:
        """The same method, which returns the response: status, headers and body."""
        ...


class _Described(Generic[S, A]):
    """What a function describes: ``S`` for a resource of threads, ``A`` for one of tasks."""

    def __init__(self, describe: Callable[..., Any], *, is_listing: bool = False) -> None:
        self._describe = describe
        self._is_listing = is_listing

    @overload
    def __get__(self, resource: Resource[SyncDriver], owner: type) -> S: ...
    @overload
    def __get__(self, resource: Resource[AsyncDriver], owner: type) -> A: ...
    def __get__(self, resource: Resource[Any], owner: type) -> Any:
        """Return the method of a resource."""
        driver: SyncDriver | AsyncDriver = resource._driver  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        is_async = isinstance(driver, AsyncDriver)
        describe = self._describe.__get__(resource)

        def made(carry_out: Callable[[Any], Any], kind: Any) -> Any:
            @wraps(self._describe)
            def method(*args: Any, **kwargs: Any) -> Any:
                return carry_out(describe(*args, **kwargs))

            method.__signature__ = _signature(self._describe, kind, is_async)  # type: ignore[attr-defined] # for inspect
            return method

        if self._is_listing:
            kind: Any = AsyncListed if is_async else Listed
            return made(partial(kind, driver), kind)
        method = made(driver.value, None)
        method.raw = made(driver.run, Response)
        return method


@cache
def _signature(describe: Callable[..., Any], kind: Any, is_async: bool) -> inspect.Signature:  # noqa: FBT001
    """Return the parameters of a method, and its result: of this kind, or the value itself."""
    signature = inspect.signature(describe)
    (returned,) = get_args(signature.return_annotation)
    returned = kind[returned] if kind else returned
    if is_async and kind is not AsyncListed:
        returned = Awaitable[returned]  # type: ignore[valid-type] # it is one
    _, *shown = signature.parameters.values()
    return signature.replace(parameters=shown, return_annotation=returned)


def operation(
    describe: Callable[Concatenate[Any, P], Call[T]],
) -> _Described[
    Method[P, T, Response[T]],
    Method[P, Coroutine[Any, Any, T], Coroutine[Any, Any, Response[T]]],
]:
    """Make a method of a function that describes a call."""
    return _Described(describe)


def listing(
    describe: Callable[Concatenate[Any, P], Listing[T]],
) -> _Described[Callable[P, Listed[T]], Callable[P, AsyncListed[T]]]:
    """Make a method of a function that describes a list."""
    return _Described(describe, is_listing=True)
