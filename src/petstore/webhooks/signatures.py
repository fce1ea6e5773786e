"""The headers that prove where a delivery comes from (Standard Webhooks 1.0.0)."""

import hmac
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256

from petstore.clock import SECOND, Milliseconds


def signed_headers(
    event_id: str, at: Milliseconds, body: bytes, secrets: Iterable[bytes]
) -> dict[str, str]:
    """Return the headers of an attempt ``at`` a moment, with a signature by each of ``secrets``."""
    timestamp = str(at // SECOND)
    content = b".".join((event_id.encode(), timestamp.encode(), body))
    return {
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_signature(secret, content) for secret in secrets),
    }


def _signature(secret: bytes, content: bytes) -> str:
    return f"v1,{b64encode(hmac.digest(secret, content, sha256)).decode()}"
