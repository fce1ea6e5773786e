"""Deliveries to a webhook: verify them, or sign your own (Standard Webhooks 1.0.0)."""

import binascii
import hmac
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Protocol

import msgspec

from petstore_client._by_hand import typed
from petstore_client._calls import UNDECODABLE
from petstore_client.errors import PetstoreError
from petstore_client.models import Event

_FIELDS = ("webhook-id", "webhook-timestamp", "webhook-signature")
_decoder = msgspec.json.Decoder(Event)


class Headers(Protocol):
    """The headers of a request, as any framework has them."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Return names and values."""
        ...


class InvalidDelivery(PetstoreError):
    """A delivery does not come from the service, or is too old: respond with 401."""


def verify(
    body: bytes | str,
    headers: Headers,
    secrets: str | Sequence[str],
    tolerance: float = 300,
    *,
    clock: Callable[[], float] = time.time,
) -> Event:
    """Return the event of a delivery, if it was signed with one of ``secrets`` a moment ago.

    Args:
        body: The body as it arrived, before any decoding of its JSON.
        headers: The headers of the request; the case of their names does not matter.
        secrets: The secret of the webhook, ``whsec_…``; two of them while you rotate it.
        tolerance: How many seconds the clocks may differ, and a delivery may be old.
        clock: Returns the time in seconds since 1970.

    Raises:
        InvalidDelivery: it was not, or it is not an event.
        ValueError: there is no secret, or one is not valid.
        TypeError: the body is decoded JSON.
    """
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        msg = "secrets: expected at least one"
        raise ValueError(msg)
    content = _content(body)
    fields = {name.lower(): value for name, value in headers.items()}
    for name in _FIELDS:
        if name not in fields:
            msg = f"{name}: expected this header, which every delivery has"
            raise InvalidDelivery(msg)
    delivery_id, timestamp, signatures = (fields[name] for name in _FIELDS)
    if not (timestamp.isascii() and timestamp.isdigit()):
        msg = "webhook-timestamp: expected seconds since 1970"
        raise InvalidDelivery(msg)
    if abs(clock() - int(timestamp[:15])) > tolerance:
        msg = f"webhook-timestamp: expected a moment of the last {tolerance:g} seconds"
        raise InvalidDelivery(msg)
    signed = _signed(delivery_id, timestamp, content)
    expected = [hmac.digest(key, signed, sha256) for key in keys]
    given = [_signature(text) for text in signatures.split()]
    # Each with each, so that the time says nothing about which one is right.
    matches = [hmac.compare_digest(ours, theirs) for ours in expected for theirs in given]
    if not any(matches):
        msg = "webhook-signature: expected a signature of this body with one of the secrets"
        raise InvalidDelivery(msg)
    try:
        return typed(_decoder.decode(content))
    except UNDECODABLE as error:
        msg = f"the body is not an event: {error}"
        raise InvalidDelivery(msg) from error


def sign(
    body: bytes | str,
    secret: str,
    *,
    id: str = "evt_test",  # noqa: A002 - its name in the event
    at: float | None = None,
) -> dict[str, str]:
    """Return the headers of a delivery, as the service would send it: to test your receiver.

    Args:
        body: The body of the delivery.
        secret: The secret of the webhook, ``whsec_…``.
        id: The ``id`` of the event.
        at: When it is sent, in seconds since 1970. By default now.

    Raises:
        ValueError: the secret is not valid.
        TypeError: the body is no bytes and no text.
    """
    timestamp = str(int(time.time() if at is None else at))
    signature = hmac.digest(_key(secret), _signed(id, timestamp, _content(body)), sha256)
    return dict(zip(_FIELDS, (id, timestamp, f"v1,{b64encode(signature).decode()}"), strict=True))


def _content(body: object) -> bytes:
    if isinstance(body, str):
        return _encoded(body)
    if isinstance(body, (bytes, bytearray)):
        return bytes(body)
    what = type(body).__name__
    msg = f"body: expected the bytes as they arrived, before their JSON is decoded, not {what}"
    raise TypeError(msg)


def _signed(delivery_id: str, timestamp: str, content: bytes) -> bytes:
    return _encoded(f"{delivery_id}.{timestamp}.") + content


def _key(secret: str) -> bytes:
    """Return the bytes of a secret.

    Raises:
        ValueError: it is none. The message does not show it.
    """
    try:
        key = b64decode(secret.strip().removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        msg = "secrets: expected whsec_ and base64, as the service returned it"
        raise ValueError(msg)
    return key


def _encoded(text: str) -> bytes:
    """Return the bytes of a text, whatever a framework has decoded to it."""
    return text.encode("utf-8", "surrogatepass")


def _signature(text: str) -> bytes:
    version, _, encoded = text.partition(",")
    try:
        return b64decode(encoded, validate=True) if version == "v1" else b""
    except (binascii.Error, ValueError):
        return b""
