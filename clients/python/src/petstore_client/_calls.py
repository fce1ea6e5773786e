"""Calls of operations as plain values: what to send, and what to make of the response."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from http import HTTPStatus
from operator import index
from types import NoneType
from typing import Any, Generic, TypeAlias, TypeGuard, TypeVar, cast
from urllib.parse import parse_qs, urljoin

import msgspec
from httpx2 import Headers
from msgspec import UNSET

from petstore_client._errors import NotFound, UnexpectedResponse
from petstore_client._links import link_to
from petstore_client._model import Versioned

T = TypeVar("T")

Items: TypeAlias = list[T]
"""A list, for classes in which ``list`` is a method."""

MAX_PAGE = 100
"""The largest page that the service returns."""

_ID = re.compile(r"{(\w+)}")

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding JSON raises: it is malformed, of another type, or nested too deeply."""


@dataclass(frozen=True)
class Reply:
    """The whole response to a request."""

    url: str
    status: int
    headers: Headers = field(repr=False)
    content: bytes = field(repr=False)  # perhaps with a token

    @property
    def request_id(self) -> str | None:
        """The name of the request in the log of the service."""
        return self.headers.get("X-Request-Id")

    @property
    def details(self) -> dict[str, Any]:
        """What an error says of its response."""
        help_link = link_to("help", self.headers)
        return {
            "status": self.status,
            "request_id": self.request_id,
            "headers": self.headers,
            "body": self._body(),
            "documentation": None if help_link is None else urljoin(self.url, help_link),
        }

    def _body(self) -> Any:
        try:
            return msgspec.json.decode(self.content)
        except UNDECODABLE:
            return self.content.decode(errors="replace")


@dataclass(frozen=True)
class Response(Reply, Generic[T]):
    """A response with its ``value``: from ``.raw`` of a method, or the ``response`` of a page."""

    value: T

    def json(self) -> Any:
        """Return the body as it is, with the members that the value does not know."""
        return msgspec.json.decode(self.content) if self.content else None


@dataclass(frozen=True)
class Call(Generic[T]):
    """A call of an operation. ``path`` is relative to the base URL; ``body`` becomes JSON.

    ``content`` is a file, of this ``media_type``, in the place of a ``body``.
    ``wait`` is how many seconds the service may hold the response back. ``charged`` tells whether
    the call counts against the limits of the key, ``is_batch`` whether the body is a list to slice.
    """

    operation: str
    method: str
    path: str
    decode: Callable[[Reply], T]
    query: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, object] | Sequence[object] | None = None
    content: bytes | None = field(default=None, repr=False)
    media_type: str = "application/json"
    if_match: str | None = None
    idempotency_key: str | None = None
    wait: float = 0
    charged: bool = True
    is_batch: bool = False

    def slices(self, key: str) -> list["Call[T]"]:
        """Return the calls of a batch, each with as many items as the service takes.

        Their idempotency keys follow from ``key``.
        """
        items = cast("list[object]", self.body)
        return [
            replace(self, body=items[start : start + MAX_PAGE], idempotency_key=f"{key}-{start}")
            for start in range(0, len(items), MAX_PAGE)
        ]

    def response(self, reply: Reply) -> Response[T]:
        """Decode a reply.

        Raises:
            PetstoreError: it is not what the operation returns.
        """
        return Response(**vars(reply), value=self.decode(reply))


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list: its ``items``, and the ``cursor`` of the next page if there is one."""

    items: list[T]
    cursor: str | None
    response: Response[list[T]] = field(repr=False)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True)
class Listing(Generic[T]):
    """A list of ``kind``, to be read page by page. Pages are as large as they can be by default."""

    operation: str
    path: str
    kind: type[T]
    query: tuple[tuple[str, str], ...] = ()
    wait: float = 0

    @property
    def parts(self) -> list["Listing[T]"]:
        """The lists that it is made of: each with as many ids as the service takes, in order."""
        ids = {int(value) for name, value in self.query if name == "id"}
        if len(ids) <= MAX_PAGE:
            return [self]
        others = tuple(pair for pair in self.query if pair[0] != "id")
        inorder = sorted(ids, reverse=("sort", "-id") in others)
        slices = (inorder[start : start + MAX_PAGE] for start in range(0, len(ids), MAX_PAGE))
        return [
            replace(self, query=(*others, *(("id", str(each)) for each in some))) for some in slices
        ]

    @property
    def first(self) -> Call[list[T]]:
        """The call of the first page."""
        has_limit = any(name == "limit" for name, _ in self.query)
        query = self.query if has_limit else (*self.query, ("limit", str(MAX_PAGE)))
        return Call(self.operation, "GET", self.path, self.decode, query, wait=self.wait)

    def decode(self, reply: Reply) -> list[T]:
        """Return the items of a page."""
        items: list[T] = into(list[self.kind])(reply)  # type: ignore[name-defined]
        return items

    def page(self, response: Response[list[T]]) -> Page[T]:
        """Return the page in a response. Of the link to the next one only the cursor counts.

        So the key never follows a link to another address, and links may be relative.

        Raises:
            UnexpectedResponse: the link has no cursor, so the rest of the list would be missing.
        """
        link = self.link(response)
        if link is None:
            return Page(response.value, None, response)
        query = link.partition("?")[2].partition("#")[0]
        cursor = parse_qs(query).get("cursor", [""])[0]
        if not cursor:
            msg = "the link to the next page has no cursor, not as a Petstore service does"
            raise UnexpectedResponse(msg, **response.details)
        return Page(response.value, cursor, response)

    def link(self, response: Response[list[T]]) -> str | None:
        """Return the link to where the list goes on, ``None`` after its last page."""
        return link_to("next", response.headers)

    def after(self, call: Call[list[T]], page: Page[T]) -> Call[list[T]] | None:
        """Return the call of the page after the one that ``call`` got, ``None`` after the last.

        Raises:
            UnexpectedResponse: it leads to itself, so the list would never end.
        """
        if page.cursor is None:
            return None
        if ("cursor", page.cursor) in call.query:
            msg = "the link to the next page leads to the same page, not as a Petstore service does"
            raise UnexpectedResponse(msg, **page.response.details)
        return self.at(page.cursor)

    def at(self, cursor: str) -> Call[list[T]]:
        """Return the call of the page at ``cursor``."""
        kept = tuple(pair for pair in self.first.query if pair[0] != "cursor")
        return replace(self.first, query=(*kept, ("cursor", cursor)))


def called(
    kind: type[T],
    operation: str,
    method: str,
    path: str,
    arguments: Mapping[str, Any],
    *,
    body: Sequence[object] | None = None,
    charged: bool = True,
) -> Call[T]:
    """Return the call of an operation, with all ``arguments`` of a method in their places.

    Raises:
        TypeError: an id is no number.
        ValueError: an argument cannot be sent.
    """
    path, sent = _placed(path, arguments)
    apart = ("if_match", "idempotency_key", "content", "media_type")
    named = {name: sent.pop(name) for name in apart if name in sent}
    query: tuple[tuple[str, str], ...] = ()
    members: Mapping[str, object] | Sequence[object] | None = body
    if method == "GET" or "content" in named:
        query = parameters(**sent)
    elif sent:
        members = _members(method, sent)
    decode: Callable[[Reply], Any] = _DECODERS.get(kind) or into(kind)  # type: ignore[arg-type] # types are hashable
    return Call(
        operation,
        method,
        path,
        decode,
        query,
        members,
        **named,
        charged=charged,
        is_batch=body is not None,
    )


def listed(kind: type[T], operation: str, path: str, arguments: Mapping[str, Any]) -> Listing[T]:
    """Return the list of an operation, with all ``arguments`` of a method in their places.

    Raises:
        TypeError: an id is no number.
        ValueError: an argument cannot be sent.
    """
    path, sent = _placed(path, arguments)
    return Listing(operation, path, kind, parameters(**sent))


def _placed(path: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a path with its ids, and the arguments that are not in it."""
    sent = {name: value for name, value in arguments.items() if name != "self"}
    ids = _ID.findall(path)
    return path.format(**{name: number(name, sent.pop(name)) for name in ids}), sent


def number(name: str, value: object) -> int:
    """Return the number of an id.

    Raises:
        TypeError: it is none.
    """
    try:
        return index(value)  # type: ignore[arg-type] # else it raises
    except TypeError:
        msg = f"{name}: expected a whole number such as 7, not {value!r}"
        raise TypeError(msg) from None


def parameters(**values: object) -> tuple[tuple[str, str], ...]:
    """Return query parameters, in camel case and without those that are ``None``.

    Raises:
        ValueError: an iterable is empty or has a ``None``: without the parameter, everything would
            be found. Or a date and time has no time zone.
    """
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        items = list(value) if _is_several(value) else [value]
        if value is not None and (not items or None in items):
            msg = f"{name}: expected at least one, and no None"
            raise ValueError(msg)
        pairs += [(_camel(name), _text(name, item)) for item in items if item is not None]
    return tuple(pairs)


def _is_several(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))


def _text(name: str, value: object) -> str:
    _require_zone(name, value)
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _require_zone(name: str, value: object) -> None:
    if isinstance(value, datetime) and value.tzinfo is None:
        msg = f"{name}: expected a date and time with a time zone"
        raise ValueError(msg)


def _members(method: str, values: Mapping[str, object]) -> dict[str, object]:
    """Return the members of a body, in camel case and without those that are not given.

    Raises:
        ValueError: a date and time has no time zone.
    """
    absent = UNSET if method == "PATCH" else None
    for name, value in values.items():
        _require_zone(name, value)
    return {
        _camel(name): list(value) if _is_several(value) else value
        for name, value in values.items()
        if value is not absent
    }


@cache
def into(kind: type[T]) -> Callable[[Reply], T]:
    """Return a function that decodes a reply to ``kind``, with its ``etag`` if it has one."""
    decoder = msgspec.json.Decoder(kind)

    def decode(reply: Reply) -> T:
        try:
            value: T = decoder.decode(reply.content)
        except UNDECODABLE as error:
            raise unexpected(reply, str(error)) from error
        return _tagged(value, reply)

    return decode


def only(kind: type[T], noun: str) -> Callable[[Reply], T]:
    """Return a function that decodes a list of one to its item.

    It raises ``NotFound`` if the list is empty.
    """
    decode_list: Callable[[Reply], list[T]] = into(list[kind])  # type: ignore[valid-type]

    def decode(reply: Reply) -> T:
        items = decode_list(reply)
        if not items:
            msg = f"there is no {noun}"
            details: dict[str, Any] = {**reply.details, "status": 404, "code": "not_found"}
            raise NotFound(msg, **details)
        # A list of one has the tag of its item.
        return _tagged(items[0], reply)

    return decode


def nothing(reply: Reply) -> None:
    """Make nothing of a reply without content.

    Raises:
        UnexpectedResponse: it has some: a login page, say, which has deleted nothing.
    """
    if reply.status != HTTPStatus.NO_CONTENT:
        raise unexpected(reply, "it should have no content")


def text(reply: Reply) -> str:
    """Return the text of a reply that is a file."""
    return reply.content.decode("utf-8-sig", "replace")


def anything(reply: Reply) -> Any:
    """Return what a reply has, as it is.

    Raises:
        UnexpectedResponse: it is no JSON.
    """
    try:
        return msgspec.json.decode(reply.content) if reply.content else None
    except UNDECODABLE as error:
        raise unexpected(reply, str(error)) from error


_DECODERS: dict[object, Callable[[Reply], Any]] = {NoneType: nothing, str: text}


def unexpected(reply: Reply, why: str) -> UnexpectedResponse:
    """Return the error for a reply that no Petstore service gives."""
    msg = f"{reply.url} responds with {reply.status}, not as a Petstore service does: {why}"
    return UnexpectedResponse(msg, **reply.details)


def _tagged(value: T, reply: Reply) -> T:
    if "ETag" in reply.headers and isinstance(value, Versioned):
        vars(value)["etag"] = reply.headers["ETag"]
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
