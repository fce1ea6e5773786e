"""Webhooks: where a key wants its events sent, and which URLs it may name."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.domain.fields import PRINTABLE, Id, Int64, Moment
from petstore.errors import ForbiddenAddress, InvalidWebhookUrl, UnknownEventType
from petstore.events.model import EVENT_TYPES, EventType, readable_types
from petstore.keys.model import Scope
from petstore.webhooks.addresses import check_target

Networks: TypeAlias = Sequence[IPv4Network | IPv6Network]
"""The networks to which the operator allows deliveries, whatever their addresses and ports are."""

DeliveryState: TypeAlias = Literal["pending", "succeeded", "failed"]

MAX_WEBHOOKS = 16
"""The webhooks of one key."""

_MAX_URL = 2048

LONGEST_GRACE = 7 * 24 * 3600
"""The maximum life of an old secret, in seconds."""

_EXAMPLE = "an address such as https://shop.example/hooks"
_HOST = "a host name, or an address such as 192.0.2.7 or [2001:db8::7]"
_ASK = "the operator can allow more with --webhook-network"
_HTTPS = 443
_MAX_PORT = 65535
_MAX_NAMED = 3
_MAX_TEXT = 64
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
Types = Annotated[
    frozenset[Annotated[str, Meta(extra_json_schema={"enum": [*EVENT_TYPES]})]],
    Meta(
        description="The types of events that it wants; none is all that its key may read.",
        extra={"expected": "a list of types of events, such as ['order.placed']"},
    ),
]
Description = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        pattern=PRINTABLE,
        description="What it is for. 1 to 255 printable characters, not only white space.",
        extra={"expected": "1 to 255 printable characters, not only white space"},
    ),
]
_Flag = Annotated[
    bool, Meta(description="Whether the webhook is enabled.", extra={"expected": "true or false"})
]
_Time = Annotated[datetime, Meta(tz=True)]
_Milliseconds = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


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
    enabled: _Flag | UnsetType = UNSET


class WebhookOwner(Struct, frozen=True):
    """The key or the person that a webhook belongs to."""

    type: Annotated[Literal["key", "person"], Meta(description="`key` or `person`.")]
    id: Annotated[Int64, Meta(description="The id of the key or person.")]


class Webhook(Struct, frozen=True, rename="camel"):
    """A webhook, without its secret. ``description`` and times may be null."""

    id: Id
    url: Annotated[str, Meta(description="Where its events are sent.")]
    types: Annotated[
        list[str],
        Meta(description="The types of events that it wants; none is all that its key may read."),
    ]
    description: Annotated[str, Meta(description="A description of the webhook.")] | None
    enabled: Annotated[bool, Meta(description="Whether the webhook is enabled.")]
    disabled_reason: (
        Annotated[
            str, Meta(description=("Why the service disabled the webhook; null if it did not."))
        ]
        | None
    )
    created_at: Annotated[_Time, Meta(description="When it was created.")]
    last_success_at: (
        Annotated[datetime, Meta(tz=True, description=("When the URL last accepted an event."))]
        | None
    )
    failing_since: (
        Annotated[
            datetime,
            Meta(
                tz=True,
                description=(
                    "When its deliveries began to fail; null if one of the last three attempts"
                    " succeeded."
                ),
            ),
        ]
        | None
    )
    owner: Annotated[WebhookOwner, Meta(description="The key or the person that it belongs to.")]


class SecretRotation(Struct, frozen=True, rename="camel"):
    """How to rotate the secret of a webhook."""

    grace_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=LONGEST_GRACE,
            description="How long the old secret signs deliveries too",
            extra={"expected": f"an integer from 0 to {LONGEST_GRACE}"},
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
    created_at: Annotated[_Milliseconds, Meta(description="When it was created.")]
    last_attempt_at: (
        Annotated[_Milliseconds, Meta(description="When it was last attempted; null if never.")]
        | None
    )
    next_attempt_at: (
        Annotated[
            str,
            Meta(
                description="The earliest time of the next attempt; null unless pending.",
                extra_json_schema={"format": "date-time"},
            ),
        ]
        | None
    )
    response_status: (
        Annotated[int, Meta(description="The HTTP status of the last response.")] | None
    )
    response_body: (
        Annotated[
            str, Meta(description=("The beginning of the body of the last response, up to 1 KiB."))
        ]
        | None
    )
    error: Annotated[str, Meta(description="Why the last attempt failed.")] | None


def check_url(url: str, networks: Networks) -> None:
    """Refuse a URL to which nothing can be delivered, as far as can be told without its addresses.

    The addresses of a name change, so they are checked at every attempt.
    """
    _require(url.isascii(), "only ASCII: the host as xn--…, the rest percent-encoded")
    _require("#" not in url, "no fragment")
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0]
    _require("@" not in authority, "no user name and no password")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise _refused(_EXAMPLE)
    address, port = _address(parts["host"]), int(parts["port"] or _HTTPS)
    _require(1 <= port <= _MAX_PORT, f"a port from 1 to {_MAX_PORT}")
    scheme = parts["scheme"].lower()
    if address is not None:
        try:
            check_target(scheme, port, [address], networks)
        except ForbiddenAddress as error:
            msg = f"url: {error.message}"
            raise InvalidWebhookUrl(msg) from None
    elif not networks:  # else the name may have an address in one of them
        _require((scheme, port) == ("https", _HTTPS), f"https and port 443; {_ASK}")


def known_types(types: Collection[str]) -> list[EventType]:
    """Return ``types`` in the order of ``EVENT_TYPES``, each once."""
    unknown = sorted(set(types) - set(EVENT_TYPES))
    if unknown:
        named = ", ".join(repr(name[:_MAX_TEXT]) for name in unknown[:_MAX_NAMED])
        msg = f"types: there is no {named}; expected any of {', '.join(EVENT_TYPES)}"
        raise UnknownEventType(msg)
    return [kind for kind in EVENT_TYPES if kind in types]


def wanted_types(types: Collection[str], scopes: frozenset[Scope]) -> frozenset[str]:
    """Return the types that a webhook with these ``types`` gets if its key has these ``scopes``.

    A ``webhook.test`` goes to the webhook that it tests, whatever its types.
    """
    readable = readable_types(scopes) - {"webhook.test"}
    return readable.intersection(types) if types else readable


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        if host.startswith("["):
            return IPv6Address(host[1:-1])
        if _NUMERIC.fullmatch(host):
            return IPv4Address(host)
    except ValueError:
        raise _refused(_HOST) from None
    _require(_NAME.fullmatch(host), _HOST)
    return None


def _require(condition: object, expected: str) -> None:
    if not condition:
        raise _refused(expected)


def _refused(expected: str) -> InvalidWebhookUrl:
    return InvalidWebhookUrl(f"url: expected {expected}")
