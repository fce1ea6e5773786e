"""Encryption of texts that only the token, or the session, that they belong to can open."""

import secrets
from hmac import digest

_NONCE_LENGTH = 12
_RECORD = b"petstore idempotency record"


def seal(text: bytes, secret: bytes, purpose: bytes = _RECORD) -> bytes:
    """Return ``text`` encrypted and authenticated: a nonce, then AES-256-GCM with its 16-byte tag.

    ``secret`` is not stretched, so it must have at least 128 bits of randomness, as a token does.
    What is sealed for one ``purpose`` does not open for another.
    """
    # Imported on first use: few responses need it.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_LENGTH)
    return nonce + AESGCM(_key(secret, purpose)).encrypt(nonce, text, None)


def unseal(sealed: bytes, secret: bytes, purpose: bytes = _RECORD) -> bytes | None:
    """Return the text that was sealed, or ``None`` if ``secret`` does not open it."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce, encrypted = sealed[:_NONCE_LENGTH], sealed[_NONCE_LENGTH:]
    if len(nonce) < _NONCE_LENGTH:
        return None
    try:
        return AESGCM(_key(secret, purpose)).decrypt(nonce, encrypted, None)
    except InvalidTag:
        return None


def _key(secret: bytes, purpose: bytes) -> bytes:
    # Not the plain SHA-256 of the token: the database stores that one.
    return digest(secret, purpose, "sha256")
