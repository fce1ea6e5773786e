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
from petstore_client._model import Versioned

T = TypeVar("T")

Items: TypeAlias = list[T]
"""A list, for classes in which ``list`` is a method."""

MAX_PAGE = 100
"""The largest page that the service returns, and the largest batch that it takes."""

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding JSON raises: it is malformed, of another type, or nested too deeply."""

_ID = re.compile(r"{(\w+)}")
# RFC 8288
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w*-]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]*))?)*)')
_RELATIONS = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)


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
        try:
            body = msgspec.json.decode(self.content)
        except UNDECODABLE:
            body = self.content.decode(errors="replace")
        help_link = self.link_to("help")
        return {
            "status": self.status,
            "request_id": self.request_id,
            "headers": self.headers,
            "body": body,
            "documentation": None if help_link is None else urljoin(self.url, help_link),
        }

    def link_to(self, relation: str) -> str | None:
        """Return the target of the ``Link`` with a relation, ``None`` without one."""
        for target, attributes in _LINK.findall(self.headers.get("Link", "")):
            relations = " ".join("".join(each) for each in _RELATIONS.findall(attributes))
            if relation in relations.lower().split():
                return str(target)
        return None

    def unexpected(self, why: str) -> UnexpectedResponse:
        """Return the error for a reply that no Petstore service gives."""
        msg = f"{self.url} responds with {self.status}, not as a Petstore service does: {why}"
        return UnexpectedResponse(msg, **self.details)


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


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list: its ``items``, and the ``cursor`` of the next page if there is one."""

    items: list[T]
    cursor: str | None
    response: Response[list[T]] = field(repr=False)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)


@dataclass(frozen=True)
class Listing(Generic[T]):
    """A list, to be read page by page. Pages are as large as they can be by default.

    With a ``wait``, it is followed for ever: once it has begun, its calls wait so many seconds for
    more.
    """

    path: str
    decode: Callable[[Reply], list[T]]
    query: tuple[tuple[str, str], ...] = ()
    wait: int = 0

    def calls(self) -> list[Call[list[T]]]:
        """Return the calls that begin the list: each with as many ids as the service takes."""
        ids = {int(value) for name, value in self.query if name == "id"}
        others = tuple(pair for pair in self.query if pair[0] != "id")
        inorder = sorted(ids, reverse=("sort", "-id") in others)
        wait = float(dict(self.query).get("wait", 0))
        size = () if any(name == "limit" for name, _ in others) else (("limit", str(MAX_PAGE)),)
        return [
            Call(
                *(f"GET {self.path}", "GET", self.path, self.decode),
                (*others, *(("id", str(each)) for each in inorder[start:][:MAX_PAGE]), *size),
                wait=wait,
            )
            for start in range(0, len(ids) or 1, MAX_PAGE)
        ]

    def page(self, response: Response[list[T]]) -> Page[T]:
        """Return the page in a response. Of the link to what follows only the cursor counts.

        So the key never follows a link to another address, and links may be relative.

        Raises:
            UnexpectedResponse: the link has no cursor, so the rest of the list would be missing.
        """
        link = response.link_to("next") or response.link_to("latest")
        if link is None:
            return Page(response.value, None, response)
        query = link.partition("?")[2].partition("#")[0]
        cursor = parse_qs(query).get("cursor", [""])[0]
        if not cursor:
            msg = "the link to the next page has no cursor"
            raise response.unexpected(msg)
        return Page(response.value, cursor, response)


def called(
    kind: type[T],
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
    name, (path, sent) = f"{method} {path}", _placed(path, arguments)
    apart = ("if_match", "idempotency_key", "content", "media_type")
    named = {each: sent.pop(each) for each in apart if each in sent}
    query: tuple[tuple[str, str], ...] = ()
    members: Mapping[str, object] | Sequence[object] | None = body
    if method == "GET" or "content" in named:
        query = parameters(**sent)
    elif sent:
        members = _members(method, sent)
    decode: Callable[[Reply], Any] = _DECODERS.get(kind) or into(kind)  # type: ignore[arg-type] # types are hashable
    options: dict[str, Any] = {**named, "charged": charged, "is_batch": body is not None}
    return Call(name, method, path, decode, query, members, **options)


def listed(kind: type[T], path: str, arguments: Mapping[str, Any]) -> Listing[T]:
    """Return the list of an operation, with all ``arguments`` of a method in their places."""
    path, sent = _placed(path, arguments)
    return Listing(path, into(list[kind]), parameters(**sent))  # type: ignore[valid-type]


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
    """Return the members of a body, in camel case and without those that are not given."""
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
            raise reply.unexpected(str(error)) from error
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
        msg = "it should have no content"
        raise reply.unexpected(msg)


def text(reply: Reply) -> str:
    """Return the text of a reply that is a file."""
    return reply.content.decode("utf-8-sig", "replace")


def anything(reply: Reply) -> Any:
    """Return what a reply has, as it is."""
    decode: Callable[[Reply], Any] = into(object)
    return decode(reply) if reply.content else None


_DECODERS: dict[object, Callable[[Reply], Any]] = {NoneType: nothing, str: text}


def _tagged(value: T, reply: Reply) -> T:
    if "ETag" in reply.headers and isinstance(value, Versioned):
        vars(value)["etag"] = reply.headers["ETag"]
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
