"""Passwords: hashed and verified in threads, a few at a time, in turns of the networks that ask."""

import asyncio
import os
import secrets
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from enum import IntEnum
from functools import cached_property, partial
from threading import get_native_id
from typing import NamedTuple, TypeAlias, TypeVar
from unicodedata import normalize

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from petstore.errors import InvalidBody, Overloaded

MIN_LENGTH, MAX_LENGTH = 10, 200

AT_ONCE = 2
"""How many passwords a process hashes at once; each takes 64 MiB meanwhile."""

MAX_WAITING = 400
"""How many requests wait for their turn. What is beyond that is refused at once."""

LONGEST_WAIT = 30.0
"""How many seconds a request waits for its turn."""

_NICE = 19

T = TypeVar("T")
_Turn: TypeAlias = "asyncio.Future[bool]"
_Line: TypeAlias = deque[_Turn]


class Rank(IntEnum):
    """Who comes first: who has signed in there before, anybody, an address beyond its limit."""

    KNOWN = 0
    USUAL = 1
    BEYOND = 2


class Asker(NamedTuple):
    """Who wants a password hashed or verified: networks of a rank take turns."""

    network: str
    rank: Rank = Rank.USUAL


def check_password(password: str) -> None:
    """Refuse what cannot be a password. Any characters can.

    Raises:
        InvalidBody: it is too short or too long.
    """
    if not has_length(password):
        msg = f"password: expected {MIN_LENGTH} to {MAX_LENGTH} characters"
        raise InvalidBody(msg)


class Passwords:
    """Hashes passwords with Argon2id, off the event loop and after everything else.

    Memory and processors are bounded: ``AT_ONCE`` are hashed at a time, and ``MAX_WAITING`` wait.
    Networks take turns, so a thousand guesses from one address delay nobody else.
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._unknown = _hash_of_nothing(self._hasher)
        self._turns = _Turns()

    async def hash(self, password: str, asker: Asker) -> str:
        """Return the hash of a new password.

        Raises:
            InvalidBody: it is too short or too long.
            Overloaded: too many wait, or this one has waited too long.
        """
        check_password(password)
        return await self._run(partial(self._hasher.hash, _normalized(password)), asker)

    async def verify(self, password: str, known: str | None, asker: Asker) -> bool:
        """Return whether a password has the ``known`` hash.

        Without one, for a login that has none, it takes as long and is wrong.

        Raises:
            Overloaded: too many wait, or this one has waited too long.
        """
        if not has_length(password):  # this depends on no login
            return False
        verify = partial(_is_right, self._hasher, known or self._unknown, _normalized(password))
        return await self._run(verify, asker) and known is not None

    def is_outdated(self, known: str) -> bool:
        """Return whether a hash was made with other parameters than new ones are."""
        return self._hasher.check_needs_rehash(known)

    async def _run(self, work: Callable[[], T], asker: Asker) -> T:
        async with self._turns.turn(asker):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(AT_ONCE, "passwords", _yield_to_others)


class _Turns:
    """Who is next of those that wait: the first rank first, and in it one network after another."""

    def __init__(self) -> None:
        self._free = AT_ONCE
        self._lines: tuple[dict[str, _Line], ...] = tuple({} for _ in Rank)
        self._waiting = 0

    @asynccontextmanager
    async def turn(self, asker: Asker) -> AsyncIterator[None]:
        """Wait for a turn, which ends with the block.

        Raises:
            Overloaded: too many wait, or this one has waited too long.
        """
        if self._free:
            self._free -= 1
        elif not await self._wait(asker):
            detail = "too many passwords wait to be checked"
            raise Overloaded(detail)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, asker: Asker) -> bool:
        """Wait in the line of a network, and return whether the turn came."""
        if not self._make_room(asker):
            return False
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._lines[asker.rank].setdefault(asker.network, deque()).append(turn)
        self._waiting += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT):
                try:
                    return await turn
                except asyncio.CancelledError:
                    if not turn.cancelled() and turn.result():  # it came just then
                        self._pass_on()
                    raise
        return False

    def _pass_on(self) -> None:
        for lines in self._lines:
            while lines:
                network = next(iter(lines))
                line = lines.pop(network)
                turn = line.popleft()
                self._waiting -= 1
                if line:
                    lines[network] = line  # behind the others
                if not turn.done():  # else it waits no longer
                    turn.set_result(True)
                    return
        self._free += 1

    def _make_room(self, asker: Asker) -> bool:
        """Return whether there is room for the asker, perhaps that of the longest line's newest."""
        if self._waiting < MAX_WAITING:
            return True
        rank = max(rank for rank in Rank if self._lines[rank])
        lines = self._lines[rank]
        network = max(lines, key=lambda each: len(lines[each]))
        own = len(self._lines[asker.rank].get(asker.network, ()))
        if (asker.rank, own + 1) >= (rank, len(lines[network])):
            return False
        turn = lines[network].pop()
        self._waiting -= 1
        if not lines[network]:
            del lines[network]
        if not turn.done():
            turn.set_result(False)
        return True


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


def _hash_of_nothing(hasher: PasswordHasher) -> str:
    """Return a hash that no password has, and that takes as long to compare as any other."""
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    salt, digest = (
        b64encode(secrets.token_bytes(length)).decode("ascii").rstrip("=")
        for length in (hasher.salt_len, hasher.hash_len)
    )
    return f"$argon2id$v=19${costs}${salt}${digest}"


def _yield_to_others() -> None:
    """Let this thread, and those that it starts, run after all others of the machine.

    Only on Linux threads have a priority of their own; elsewhere this changes nothing.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICE)
