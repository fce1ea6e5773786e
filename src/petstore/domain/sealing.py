"""Texts that only the holder of a secret can read again, kept where others may look."""

import secrets
from hashlib import sha256, shake_256
from hmac import compare_digest, digest

_NONCE_LENGTH = 16
_TAG_LENGTH = sha256().digest_size


def seal(text: bytes, secret: bytes) -> bytes:
    """Return ``text`` under a key stream that ``secret`` and a fresh nonce make, with its tag.

    The secret must be as hard to guess as a token is: it is not stretched.
    """
    nonce = secrets.token_bytes(_NONCE_LENGTH)
    hidden = _mixed(text, secret, nonce)
    return nonce + _tag(nonce + hidden, secret) + hidden


def unseal(sealed: bytes, secret: bytes) -> bytes | None:
    """Return the text of ``seal``, or ``None`` if it was sealed with another secret."""
    nonce, rest = sealed[:_NONCE_LENGTH], sealed[_NONCE_LENGTH:]
    tag, hidden = rest[:_TAG_LENGTH], rest[_TAG_LENGTH:]
    if not compare_digest(tag, _tag(nonce + hidden, secret)):
        return None
    return _mixed(hidden, secret, nonce)


def _mixed(text: bytes, secret: bytes, nonce: bytes) -> bytes:
    stream = shake_256(digest(secret, b"stream" + nonce, "sha256")).digest(len(text))
    return bytes(a ^ b for a, b in zip(text, stream, strict=True))


def _tag(text: bytes, secret: bytes) -> bytes:
    return digest(secret, b"tag" + text, "sha256")
