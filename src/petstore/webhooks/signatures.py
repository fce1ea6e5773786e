"""Secrets, and the headers that prove where a delivery comes from (Standard Webhooks 1.0.0)."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha256

_PREFIX = "whsec_"
_MIN_BYTES, _MAX_BYTES = 24, 64


def signed_headers(
    event_id: str, timestamp: int, body: bytes, secrets: Sequence[bytes]
) -> dict[str, str]:
    """Return the headers of an attempt, with a signature by each of ``secrets``.

    ``timestamp`` is when the attempt is made, in seconds since 1970.
    """
    content = f"{event_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(secret, content) for secret in secrets),
    }


def encoded_secret(secret: bytes) -> str:
    """Return a secret as its holder gets it."""
    return _PREFIX + b64encode(secret).decode("ascii")


def decoded_secret(text: str) -> bytes:
    """Return the secret in a text.

    Raises:
        ValueError: it is not ``whsec_`` and 24 to 64 bytes in base64.
    """
    try:
        secret = b64decode(text.removeprefix(_PREFIX), validate=True)
    except ValueError:
        secret = b""
    if not (text.startswith(_PREFIX) and _MIN_BYTES <= len(secret) <= _MAX_BYTES):
        msg = f"expected {_PREFIX} and the base64 of {_MIN_BYTES} to {_MAX_BYTES} bytes"
        raise ValueError(msg)
    return secret


def _signature(secret: bytes, content: bytes) -> str:
    return f"v1,{b64encode(hmac.digest(secret, content, sha256)).decode('ascii')}"
