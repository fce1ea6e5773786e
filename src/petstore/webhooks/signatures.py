"""The headers that prove where a delivery comes from (Standard Webhooks 1.0.0)."""

import hmac
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256


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


def _signature(secret: bytes, content: bytes) -> str:
    return f"v1,{b64encode(hmac.digest(secret, content, sha256)).decode('ascii')}"
