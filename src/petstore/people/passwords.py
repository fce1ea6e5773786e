"""Passwords: what can be one, and how they are hashed and verified, in threads."""

import asyncio
import os
import secrets
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
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
_COMMON = frozenset(
    """
    1234567890 0123456789 0987654321 9876543210 12345678910 123456789a 123456789q 1234567891
    123456789abc 12345678901 1111111111 0000000000 1122334455 1231231231 123123123123 1212121212
    1234512345 123456123456 12345qwert 1234567qwerty 1q2w3e4r5t 1q2w3e4r5t6y 1qaz2wsx3edc
    1qaz2wsx3e q1w2e3r4t5 q1w2e3r4t5y6 qwertyuiop qwertyuiop123 qwertyuiop[] qwerty12345
    qwerty123456 qwerty1234 qwertyqwerty qwert12345 qwertz12345 qwertzuiop azertyuiop asdfghjkl1
    asdfghjkl; asdfasdfasdf asdfghjkl123 zxcvbnm123 zaq12wsxcde zaq1zaq1zaq1 1234qwerasdf
    qazwsxedcrfv qweasdzxc123 qweasdzxcv abcdefghij abcdefghijk abcd123456 abc1234567 abc123abc123
    abcdef1234 a123456789 a1234567890 aa12345678 aaaaaaaaaa xxxxxxxxxx password12 password123
    password1234 password12345 password123! password1! password10 password11 password01 password99
    password2025 password2026 passwordpassword p@ssw0rd123 p@ssword123 p@ssw0rd1234 passw0rd123
    pa55word123 mypassword mypassword1 newpassword newpassword1 thepassword yourpassword
    changeme123 changeme1234 changemenow letmein123 letmein1234 letmeinnow welcome123 welcome1234
    welcome12345 iloveyou123 iloveyou12 iloveyou1234 iloveyouforever administrator admin12345
    admin123456 administrator1 adminadmin adminadmin1 rootroot123 master12345 superman123
    batman12345 football123 baseball123 basketball basketball1 baseball12 liverpool1 liverpool123
    chelsea123 manchester arsenal123 michael123 jennifer123 charlie123 princess123 princess12
    sunshine123 sunshine12 monkey12345 dragon12345 starwars123 pokemon123 computer123 internet123
    secret12345 trustno1trustno1 correcthorsebatterystaple test123456 testtest123 test1234567
    testpassword testtesttest temp123456 default123 guest12345 petstore123 petstore1234 hello12345
    hellohello
    """.split()  # noqa: SIM905 - many words
)

T = TypeVar("T")


def check_password(password: str, login: str) -> None:
    """Refuse what cannot be the password of a login, or is the first that somebody would guess."""
    if not has_length(password):
        msg = f"password: expected {MIN_LENGTH} to {MAX_LENGTH} characters"
        raise InvalidBody(msg)
    text, own = name_key(password), name_key(login)
    if text in _COMMON:
        msg = "password: this is one of the most common passwords; choose another one"
        raise InvalidBody(msg)
    for name in (own, own.partition("@")[0]):
        if name and name in text and not any(map(str.isalnum, text.replace(name, ""))):
            msg = "password: expected something other than the login"
            raise InvalidBody(msg)


class Passwords:
    """Hashes passwords with Argon2id, off the event loop and with a lower priority.

    Take a turn first (``Admission.passwords``).
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._unknown = unknown_hash(self._hasher)
        self._threads = ThreadPoolExecutor(_THREADS, "passwords", _yield_to_others)

    async def hash(self, password: str) -> str:
        """Return the hash of a new password, which was checked."""
        return await self._run(partial(self._hasher.hash, _normalized(password)))

    async def verify(self, password: str, known: str | None) -> bool:
        """Return whether a password has the ``known`` hash.

        Without one, for a login that has none, it takes as long and is wrong.
        """
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
    """Let others of the machine go before this thread, and those that it starts.

    Only on Linux threads have a priority of their own; elsewhere this changes nothing.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICE)
