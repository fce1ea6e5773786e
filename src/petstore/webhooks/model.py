"""Webhooks: the URLs to which the events of a key are sent, and which URLs are allowed."""

import re
from collections.abc import Collection, Sequence
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Annotated, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.clock import DAY, HOUR, MINUTE, SECOND, Milliseconds, milliseconds
from petstore.domain.fields import Id, Int64, Moment, Time, TimeText, printable_text
from petstore.domain.networks import Network
from petstore.errors import ForbiddenAddress, InvalidWebhookUrl
from petstore.events.model import EVENT_TYPES, EventType, readable_types
from petstore.keys.model import Scope

Address: TypeAlias = IPv4Address | IPv6Address
Networks: TypeAlias = Sequence[Network]
"""The networks to which the operator allows deliveries, whatever their addresses and ports are."""

DeliveryState: TypeAlias = Literal["pending", "succeeded", "failed"]

MAX_WEBHOOKS = 16  # the webhooks of one key
_MAX_URL = 2048

LONGEST_GRACE = 7 * 24 * 3600  # the maximum life of an old secret, in seconds
_EXAMPLE = "an address such as https://shop.example/hooks"
_HOST = "a host name, or an address such as 192.0.2.7 or [2001:db8::7]"
_ASK = "the operator can allow more with --webhook-network"
_MAX_PORT = 65535
# The characters of RFC 3986. A name is one of RFC 1123, perhaps with underscores, as DNS has them.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?:[/?](?:[a-z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?",
    re.IGNORECASE | re.ASCII,
)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\.?", re.IGNORECASE | re.ASCII)
# What resolvers take for an IPv4 address in one of its odd forms, such as 127.1 and 0x7f000001.
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?", re.IGNORECASE | re.ASCII)

_OPEN = ("https", 443)
# These embed an IPv4 address that packets end up at: IPv4-mapped (RFC 4291), NAT64 (RFC 6052).
_EMBEDDING = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
# Of IPv6, only this is global unicast (RFC 4291): not ::/96, 64:ff9b:1::/48, fc00::/7, fe80::/10,
# fec0::/10 and multicast.
_GLOBAL_IPV6 = IPv6Network("2000::/3")
# Not for the public either, by the special-purpose address registries of IANA, but global to some
# versions of Python: protocol assignments, relays of 6to4, 6to4 and Teredo (they embed IPv4), and
# documentation.
_SPECIAL: list[Network] = [
    *map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")),
    *map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")),
]

DisabledReason: TypeAlias = Literal["gone", "failing"]

HOLD: Milliseconds = 5 * MINUTE
"""How long a delivery that fails holds back the next one of its resource."""

NOTICED_FAILURES = 3  # after this many failures in a row, the log says that a webhook is failing
_WAITS: tuple[Milliseconds, ...] = (
    5 * SECOND,
    5 * MINUTE,
    30 * MINUTE,
    *(hours * HOUR for hours in (2, 5, 10, 14, 20, 24)),
)
_MAX_ATTEMPTS = len(_WAITS) + 1
_MAX_RETRY_AFTER = DAY
_JITTER = 0.2
_STATUSES = {*HTTPStatus}
_ASKS_TO_WAIT = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_MIN_FAILURES = 10
_MAX_FAILING = 5 * DAY

Url = Annotated[
    str,
    Meta(
        max_length=_MAX_URL,
        description=(
            "Where its events are sent: `https` on port 443, unless the operator allows more."
        ),
        extra={"expected": f"{_EXAMPLE}, of up to {_MAX_URL} characters"},
        extra_json_schema={"format": "uri", "pattern": "^https?://"},
    ),
]
_ABOUT_TYPES = "The types of events to send; empty means all that its key can read."
Types = Annotated[
    frozenset[EventType],
    Meta(
        description=_ABOUT_TYPES,
        extra={"expected": f"a list of any of {', '.join(map(repr, EVENT_TYPES))}"},
    ),
]
_ABOUT = "What it is for. 1 to 255 printable characters, not only white space."
Description = Annotated[str, printable_text(255, _ABOUT)]
_Enabled = Annotated[bool, Meta(description="Whether the webhook is enabled.")]


class WebhookCreate(Struct, frozen=True):
    """A webhook to create."""

    url: Url
    types: Types = frozenset()
    description: Description | None = None


class WebhookPatch(Struct, frozen=True):
    """Changes to a webhook (RFC 7396); a ``description`` of null removes it."""

    url: Url | UnsetType = UNSET
    types: Types | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    enabled: _Enabled | UnsetType = UNSET


class WebhookOwner(Struct, frozen=True):
    """The key or the person that a webhook belongs to."""

    type: Annotated[Literal["key", "person"], Meta(description="`key` or `person`.")]
    id: Annotated[Int64, Meta(description="The id of the key or person.")]


class Webhook(Struct, frozen=True, rename="camel"):
    """A webhook, without its secret. ``description`` and times may be null."""

    id: Id
    url: Annotated[str, Meta(description="Where its events are sent.")]
    types: Annotated[list[str], Meta(description=_ABOUT_TYPES)]
    description: Annotated[str, Meta(description="A description of the webhook.")] | None
    enabled: _Enabled
    disabled_reason: Annotated[
        str | None, Meta(description="Why the service disabled the webhook; null if it did not.")
    ]
    created_at: Annotated[Time, Meta(description="When it was created.")]
    last_success_at: Annotated[
        Time | None, Meta(description="When the URL last accepted an event.")
    ]
    failing_since: Annotated[
        Time | None,
        Meta(
            description=(
                "When its deliveries began to fail; null if one of the last three attempts"
                " succeeded."
            )
        ),
    ]
    owner: Annotated[WebhookOwner, Meta(description="The key or the person that it belongs to.")]


class SecretRotation(Struct, frozen=True, rename="camel"):
    """How to rotate the secret of a webhook."""

    grace_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=LONGEST_GRACE,
            description="How long the old secret signs deliveries too",
            extra_json_schema={"format": "int64"},
        ),
    ] = 24 * 3600


class Recovery(Struct, frozen=True):
    """Which events to send again."""

    since: Annotated[Moment, Meta(description="The events from this moment on (RFC 3339).")]


class WebhookTest(Struct, frozen=True, rename="camel"):
    """The event that tests a webhook."""

    event_id: Annotated[str, Meta(description="The `id` of the event.")]


class Delivery(Struct, frozen=True, rename="camel"):
    """An event on its way to a webhook, with the outcome of the last attempt."""

    id: Id
    event_id: Annotated[str, Meta(description="The `id` of the event.")]
    type: Annotated[str, Meta(description="The type of the event.")]
    resource: Annotated[str, Meta(description="The resource of the event, such as `pet/7`.")]
    state: Annotated[
        DeliveryState,
        Meta(description="`pending` until the event is accepted or no attempt will follow."),
    ]
    attempts: Annotated[int, Meta(ge=0, description="The number of attempts.")]
    created_at: Annotated[TimeText, Meta(description="When it was created.")]
    last_attempt_at: Annotated[
        TimeText | None, Meta(description="When it was last attempted; null if never.")
    ]
    next_attempt_at: Annotated[
        TimeText | None,
        Meta(description="The earliest time of the next attempt; null unless pending."),
    ]
    response_status: Annotated[
        int | None, Meta(description="The HTTP status of the last response.")
    ]
    response_body: Annotated[
        str | None, Meta(description="The beginning of the body of the last response, up to 1 KiB.")
    ]
    error: Annotated[str, Meta(description="Why the last attempt failed.")] | None


def check_url(url: str, networks: Networks) -> None:
    """The addresses of a name change, so they are checked at every attempt."""
    _require(url.isascii(), "only ASCII: the host as xn--…, the rest percent-encoded")
    _require("#" not in url, "no fragment")
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0]
    _require("@" not in authority, "no user name and no password")
    parts = _URL.fullmatch(url)
    _require(parts, _EXAMPLE)
    assert parts is not None  # noqa: S101 - or it was rejected
    address, port = _address(parts["host"]), int(parts["port"] or _OPEN[1])
    _require(1 <= port <= _MAX_PORT, f"a port from 1 to {_MAX_PORT}")
    scheme = parts["scheme"].lower()
    if address is not None:
        try:
            check_target(scheme, port, [address], networks)
        except ForbiddenAddress as error:
            raise InvalidWebhookUrl(f"url: {error.message}") from None
    elif not networks:  # else the name may have an address in one of them
        _require((scheme, port) == _OPEN, f"https and port 443; {_ASK}")


def in_order(types: Collection[str]) -> list[EventType]:
    return [kind for kind in EVENT_TYPES if kind in types]


def wanted_types(types: Collection[str], scopes: frozenset[Scope]) -> frozenset[str]:
    """A ``webhook.test`` goes to the webhook that it tests, whatever its types."""
    readable = readable_types(scopes) - {"webhook.test"}
    return readable.intersection(types) if types else readable


def _address(host: str) -> Address | None:
    if not host.startswith("[") and not _NUMERIC.fullmatch(host):
        _require(_NAME.fullmatch(host), _HOST)
        return None
    try:
        return IPv6Address(host[1:-1]) if host.startswith("[") else IPv4Address(host)
    except ValueError:
        raise InvalidWebhookUrl(f"url: expected {_HOST}") from None


def _require(condition: object, expected: str) -> None:
    if not condition:
        raise InvalidWebhookUrl(f"url: expected {expected}")


def check_address(address: Address, networks: Collection[Network]) -> None:
    address = _unwrapped(address)
    if _is_in(address, networks):
        return
    is_unicast = not address.is_multicast and (address.version == 4 or address in _GLOBAL_IPV6)  # noqa: PLR2004
    if not (address.is_global and is_unicast) or _is_in(address, _SPECIAL):
        raise ForbiddenAddress(f"expected a public address; {_ASK}")


def check_target(
    scheme: str, port: int, addresses: Collection[Address], networks: Collection[Network]
) -> None:
    """Reject a URL that resolves to ``addresses``, of which a delivery may use any."""
    for address in addresses:
        check_address(address, networks)
    is_own = all(_is_in(_unwrapped(address), networks) for address in addresses)
    if (scheme, port) != _OPEN and not is_own:
        raise ForbiddenAddress(f"expected https and port 443; {_ASK}")


def _unwrapped(address: Address) -> Address:
    if _is_in(address, _EMBEDDING):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _is_in(address: Address, networks: Collection[Network]) -> bool:
    return any(address in network for network in networks)


def is_success(status: int) -> bool:
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def status_in_words(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}" if status in _STATUSES else str(status)


def next_attempt(attempts: int, now: Milliseconds, chance: float) -> Milliseconds | None:
    """``chance`` is from 0 to 1, and moves the time within ±20 %. ``None`` is never."""
    if attempts >= _MAX_ATTEMPTS:
        return None
    return now + round(_WAITS[attempts - 1] * (1 - _JITTER + 2 * _JITTER * chance))


def paused_until(status: int, retry_after: str | None, now: Milliseconds) -> Milliseconds | None:
    """``Retry-After`` counts with a 429 or 503, for 24 hours at most (RFC 9110 section 10.2.3)."""
    if status not in _ASKS_TO_WAIT or retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        wait = int(retry_after[:10]) * SECOND
    else:
        try:
            wait = milliseconds(parsedate_to_datetime(retry_after)) - now
        except (ValueError, TypeError, OverflowError):  # no date, or one without a time zone
            return None
    return now + min(wait, _MAX_RETRY_AFTER) if wait > 0 else None


class WebhookHealth(NamedTuple):
    failures: int
    failing_since: Milliseconds | None
    last_success_at: Milliseconds | None

    def after(self, at: Milliseconds, *, succeeded: bool) -> "WebhookHealth":
        if succeeded:
            return WebhookHealth(0, None, at)
        return self._replace(
            failures=self.failures + 1,
            failing_since=at if self.failing_since is None else self.failing_since,
        )

    def is_failing_for_good(self, now: Milliseconds) -> bool:
        return (
            self.failing_since is not None
            and self.failures >= _MIN_FAILURES
            and now - self.failing_since >= _MAX_FAILING
        )
