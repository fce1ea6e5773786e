"""Passwords: what can be one, and how they are hashed and verified, in threads."""

import asyncio
import os
import secrets
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import get_native_id
from typing import TypeVar
from unicodedata import normalize

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from petstore.domain.names import name_key
from petstore.errors import InvalidBody

MIN_LENGTH, MAX_LENGTH = 10, 200

_THREADS = 2  # as many as have a turn
_NICE = 5
_COMMON = frozenset(Path(__file__).with_name("common_passwords.txt").read_text().split())

T = TypeVar("T")


def check_password(password: str, login: str) -> None:
    if not has_length(password):
        raise InvalidBody(f"password: expected {MIN_LENGTH} to {MAX_LENGTH} characters")
    text, own = name_key(password), name_key(login)
    if text in _COMMON:
        raise InvalidBody("password: this is one of the most common passwords; choose another one")
    for name in (own, own.partition("@")[0]):
        if name and name in text and not any(map(str.isalnum, text.replace(name, ""))):
            raise InvalidBody("password: expected something other than the login")


class Passwords:
    """It works off the event loop. Take a turn first (``Admission.passwords``)."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._unknown = unknown_hash(self._hasher)
        self._threads = ThreadPoolExecutor(_THREADS, "passwords", _yield_to_others)

    async def hash(self, password: str) -> str:
        return await self._run(partial(self._hasher.hash, _normalized(password)))

    async def verify(self, password: str, known: str | None) -> bool:
        """Without a ``known`` hash, for a login that has none, it takes as long and is wrong."""
        if not has_length(password):  # this depends on no login
            return False
        verify = partial(_is_right, self._hasher, known or self._unknown, _normalized(password))
        return await self._run(verify) and known is not None

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def has_length(password: str) -> bool:
    """Return whether a text is as long as a password may be, in characters of NFC."""
    # To normalize a text takes time in proportion to the square of the marks on one letter. NFC
    # makes it a quarter as long at most.
    if len(password) > 4 * MAX_LENGTH:
        return False
    return MIN_LENGTH <= len(normalize("NFC", password)) <= MAX_LENGTH


def _normalized(password: str) -> bytes:
    """Return a password as it is hashed: keyboards compose accents differently (RFC 8265)."""
    return normalize("NFC", password).encode("utf-8")


def _is_right(hasher: PasswordHasher, known: str, password: bytes) -> bool:
    try:
        return hasher.verify(known, password)
    except VerificationError:
        return False


def unknown_hash(hasher: PasswordHasher = PasswordHasher()) -> str:  # noqa: B008 - immutable
    """Return a hash that no password has, and that takes as long to compare as any other."""
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    salt, digest = (
        b64encode(secrets.token_bytes(length)).decode("ascii").rstrip("=")
        for length in (hasher.salt_len, hasher.hash_len)
    )
    return f"$argon2id$v=19${costs}${salt}${digest}"


def _yield_to_others() -> None:
    """Only on Linux threads have a priority of their own; elsewhere this changes nothing."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICE)
