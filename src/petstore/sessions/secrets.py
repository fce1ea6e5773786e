"""Secrets of sessions and links of the console, marked with a seal of the store."""

import re
import secrets
from functools import lru_cache
from hashlib import blake2b
from hmac import compare_digest

SEAL_LENGTH = 32
"""The bytes of a seal."""

_RANDOM_LENGTH = 43
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}[0-9a-f]{22}\Z")


def new_secret(seal: bytes) -> str:
    """Return a fresh secret: 32 random bytes in base64, and a code of 11 over them in base16."""
    text = secrets.token_urlsafe(32)
    return text + _code(text, seal)


def is_sealed(secret: str, seal: bytes) -> bool:
    """Return whether a secret was issued with this seal, so that it may be worth a look-up."""
    return _SECRET.match(secret) is not None and compare_digest(
        secret[_RANDOM_LENGTH:], _code(secret[:_RANDOM_LENGTH], seal)
    )


def device_id(digest: bytes) -> int:
    """Return a number that stands for the session with this digest: 53 bits of it."""
    return int.from_bytes(digest[:7]) >> 3


@lru_cache(maxsize=1024)
def _code(text: str, seal: bytes) -> str:
    return blake2b(text.encode("ascii"), digest_size=11, key=seal).hexdigest()
