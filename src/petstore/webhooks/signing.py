"""The secrets of webhooks, all from one master secret, and the headers of Standard Webhooks."""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from hmac import digest

from petstore.clock import Milliseconds

LENGTH = 32  # the bytes of every secret, and of the master secret
_PREFIX = "whsec_"
_MIN_BYTES, _MAX_BYTES = 24, 64


def webhook_secrets(
    master: bytes,
    webhook_id: int,
    secret_version: int,
    previous_ends_at: Milliseconds | None,
    now: Milliseconds,
) -> list[bytes]:
    """Return the secrets that sign a delivery at ``now``, the newest first."""
    has_grace = previous_ends_at is not None and now < previous_ends_at
    versions = (secret_version, secret_version - 1) if has_grace else (secret_version,)
    return [_derived(master, webhook_id, version) for version in versions]


def signed_headers(
    event_id: str, timestamp: int, body: bytes, secrets: Sequence[bytes]
) -> dict[str, str]:
    content = f"{event_id}.{timestamp}.".encode() + body
    signed = (b64encode(digest(secret, content, "sha256")).decode("ascii") for secret in secrets)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signed),
    }


def secret_text(secret: bytes) -> str:
    return _PREFIX + b64encode(secret).decode("ascii")


def secret_of_text(text: str) -> bytes:
    secret = _decoded(text.removeprefix(_PREFIX))
    if not (text.startswith(_PREFIX) and _MIN_BYTES <= len(secret) <= _MAX_BYTES):
        raise ValueError(f"expected {_PREFIX} and the base64 of {_MIN_BYTES} to {_MAX_BYTES} bytes")
    return secret


def text_of_master(master: bytes) -> bytes:
    return b64encode(master) + b"\n"


def master_of_text(text: bytes) -> bytes:
    master = _decoded(text.removesuffix(b"\n").removesuffix(b"\r"))
    if len(master) != LENGTH:
        raise ValueError(f"expected one line, {LENGTH} random bytes in base64")
    return master


def _decoded(text: str | bytes) -> bytes:
    """Return what base64 stands for, and nothing for what is no base64."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""


def _derived(master: bytes, webhook_id: int, version: int) -> bytes:
    """Return a secret: HKDF with SHA-256 (RFC 5869), without a salt and of one block."""
    purpose = f"petstore webhook {webhook_id} secret {version}".encode("ascii")
    pseudorandom_key = digest(bytes(LENGTH), master, "sha256")
    return digest(pseudorandom_key, purpose + b"\x01", "sha256")
