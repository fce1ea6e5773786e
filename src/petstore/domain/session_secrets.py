"""Secrets of sessions and links of the console, marked with a seal of the store."""

import re
import secrets
from base64 import urlsafe_b64encode
from hashlib import blake2b
from hmac import compare_digest

SEAL_LENGTH = 32
"""The bytes of a seal."""

_RANDOM_LENGTH = 43
_SECRET = re.compile(r"[A-Za-z0-9_-]{65}\Z")


def new_secret(seal: bytes) -> str:
    """Return a fresh secret: 32 random bytes and a code of 16 over them, both in base64."""
    text = secrets.token_urlsafe(32)
    return text + _code(text, seal)


def is_sealed(secret: str, seal: bytes) -> bool:
    """Return whether a secret was issued with this seal, so that it may be worth a look-up."""
    if _SECRET.match(secret) is None:
        return False
    return compare_digest(secret[_RANDOM_LENGTH:], _code(secret[:_RANDOM_LENGTH], seal))


def _code(text: str, seal: bytes) -> str:
    digest = blake2b(text.encode("ascii"), digest_size=16, key=seal).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
