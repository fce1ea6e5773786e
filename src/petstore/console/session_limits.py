"""What bounds signing in, signing out and looking for sessions."""

import asyncio
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from typing import TypeAlias

from petstore.clock import SECOND, Milliseconds
from petstore.console.known_browsers import KnownBrowser
from petstore.domain.names import name_key
from petstore.errors import InvalidKey, PetstoreError, RateLimitExceeded, Unavailable
from petstore.generations import Generations
from petstore.interface.authentication import authenticate
from petstore.interface.operation import Services
from petstore.interface.rate_limit_headers import Holder, limit_reached
from petstore.keys.model import Caller
from petstore.limits.contract import NEVER
from petstore.limits.minutes import MinuteLimiter, network_of
from petstore.people.accounts import has_people
from petstore.people.passwords import Asker, Passwords, Rank
from petstore.sessions.secrets import is_sealed
from petstore.sessions.store import read_seal

PER_MINUTE = 60
"""Sign-ins of a key from an address, and visits there to the pages of its sessions, in a minute."""

WRONG_PASSWORDS = 10
"""Wrong passwords for a login from an address, or in a browser that knows it, in a minute."""

MAX_LATE_LOOK_UPS = 2
"""How many keys are looked up at once for addresses that are beyond their limit."""

LONGEST_WAIT = 1.0
"""How many seconds such a key waits for its turn, behind those that came before it."""

_MAX_HOLDERS = 10_000
_ADDRESS = Holder("lookup", "signing in from this address")
_SIGN_IN = Holder("sign_in", "signing in and out with this key from this address")
_PASSWORD = Holder("password", "wrong passwords for this login from here")
_LOOK_EVERY: Milliseconds = SECOND

_Holder: TypeAlias = tuple[Hashable, ...]


class SessionLimits:
    """Charges whoever fails, so that nobody uses up what others need to sign in or out.

    An attempt to sign in is charged to its address, and given back if it succeeds. Beyond the limit
    of the address, the right key still signs in. A secret that this service did not issue is never
    looked up; one whose session has ended is, a few times a minute. While the store has issued no
    secret, an address has it looked for a few times a minute.

    Wrong passwords are counted by login and network together: nobody can use up what others may
    try. A browser that knows the login has a count of its own. It goes first, and so does anybody
    at a network from which the login has signed in lately.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._windows: MinuteLimiter[_Holder] = MinuteLimiter(
            services.clock, PER_MINUTE, _MAX_HOLDERS
        )
        self._wrong: MinuteLimiter[_Holder] = MinuteLimiter(
            services.clock, WRONG_PASSWORDS, _MAX_HOLDERS
        )
        # Where a login has signed in from, as far as this process remembers.
        self._familiar: Generations[_Holder, bool] = Generations(_MAX_HOLDERS, lambda *_: 1)
        self._late = asyncio.Semaphore(MAX_LATE_LOOK_UPS)
        self._seal: bytes | None = None
        self._has_people = False
        self._looked_at: Milliseconds = NEVER
        self.passwords = Passwords()

    async def is_worth_a_look_up(self, secret: str, address: str) -> bool:
        """Return whether this service issued the secret, and has not just found that it ended.

        Raises:
            Unavailable: the database is unreachable.
        """
        seal = await self.find_seal(address)
        is_issued = seal is not None and is_sealed(secret, seal)
        return is_issued and self._may_try(_ended(secret))

    async def find_seal(self, address: str) -> bytes | None:
        """Return what marks secrets as issued by this service, if it has issued any.

        Raises:
            Unavailable: the database is unreachable.
        """
        if self._seal is None and self._may_try(_unsealed(address)):
            self._seal = await read_seal(self._services.store)
            if self._seal is None:
                self._windows.take(_unsealed(address))
        return self._seal

    async def issued_seal(self) -> bytes:
        """Return what marks secrets as issued by this service, which has issued one.

        Raises:
            Unavailable: the database is unreachable.
        """
        self._seal = self._seal or await read_seal(self._services.store)
        assert self._seal is not None  # noqa: S101 - or it would have issued none
        return self._seal

    async def has_people(self) -> bool:
        """Return whether anybody can sign in with a login; while nobody can, it looks now and then.

        If the database is unreachable, somebody may.
        """
        now, services = self._services.clock(), self._services
        if self._has_people:
            return True
        if 0 <= now - self._looked_at < _LOOK_EVERY:
            return False
        try:
            self._has_people = await has_people(services.store, services.keys.environment)
        except Unavailable:
            return True
        self._looked_at = now
        return self._has_people

    def note_end(self, secret: str) -> None:
        """Charge a look-up of a secret to the secret itself: its session or link has ended."""
        self._windows.take(_ended(secret))

    def charge_address(self, address: str) -> Callable[[], PetstoreError] | None:
        """Charge an attempt to an address; return what makes the 429 if it is beyond its limit."""
        decision = self._services.look_ups.take(address)
        is_admitted = decision.verdict == "admitted"
        return None if is_admitted else partial(limit_reached, decision, _ADDRESS)

    def give_back(self, address: str, beyond: object) -> None:
        """Give the charge of an attempt back to its address, if it was not ``beyond`` its limit.

        The attempt may have made the seal, so that is worth a look, too.
        """
        self._windows.give_back(_unsealed(address))
        if beyond is None:
            self._services.look_ups.give_back(address)

    def charge_sign_in(self, key_id: int, address: str) -> None:
        """Charge a sign-in, or a visit to a page that ends sessions, to its key and address.

        A key alone would do for neither: a thief could use up what its owner needs.

        Raises:
            RateLimitExceeded: there were too many.
        """
        decision = self._windows.take((key_id, network_of(address)))
        if decision.verdict != "admitted":
            raise limit_reached(decision, _SIGN_IN)

    @contextmanager
    def password_attempt(
        self, login: str, address: str, browser: KnownBrowser, *, is_beyond: bool
    ) -> Iterator[Asker]:
        """Charge a wrong password for a login: one for which the block raises ``InvalidKey``.

        If the address ``is_beyond`` its limit, others go first.

        Raises:
            RateLimitExceeded: there were too many.
        """
        network, rank = network_of(address), Rank.BEYOND if is_beyond else Rank.USUAL
        place: _Holder = (_digest_of(login), network)
        is_known = browser.knows(login, self._seal)
        if is_known or self._familiar.get(place):
            rank = Rank.KNOWN
        holder = (_digest_of(login), "browser", browser.id) if is_known else place
        with self._charged_if_wrong(holder):
            yield Asker(network, rank)
        self._familiar.put(place, True)  # noqa: FBT003 - a value of a cache

    @contextmanager
    def own_password_attempt(self, session: bytes, address: str) -> Iterator[Asker]:
        """Charge a wrong password to the session that sent it; otherwise as above.

        Raises:
            RateLimitExceeded: there were too many.
        """
        with self._charged_if_wrong(("session", session)):
            yield Asker(network_of(address), Rank.KNOWN)

    @contextmanager
    def _charged_if_wrong(self, holder: _Holder) -> Iterator[None]:
        # Charged first: so many at once are no more than one after another.
        decision = self._wrong.take(holder)
        if decision.verdict != "admitted":
            seconds = limit_reached(decision, _PASSWORD).headers["Retry-After"]
            msg = f"too many wrong passwords for this login. Wait {seconds} seconds"
            raise RateLimitExceeded(msg, {"Retry-After": seconds}, f"{_PASSWORD.name}_minute")
        is_wrong = False
        try:
            yield
        except InvalidKey:
            is_wrong = True
            raise
        finally:
            if not is_wrong:
                self._wrong.give_back(holder)

    async def find_key(self, token: bytes, beyond: Callable[[], PetstoreError] | None) -> Caller:
        """Return the key of a token, also from an address that is ``beyond`` its limit.

        Raises:
            InvalidKey: it belongs to no key that is valid here and now.
            PetstoreError: of ``beyond``, if that is so or it has waited too long for its turn.
            Unavailable: the database is unreachable and the key is not in memory.
        """
        keys = self._services.keys
        if beyond is None:
            return await authenticate(token, keys)
        try:
            if keys.is_new(token):
                return await self._find_in_turn(token)
            return await authenticate(token, keys)
        except (InvalidKey, TimeoutError):
            raise beyond() from None

    def _may_try(self, holder: _Holder) -> bool:
        return self._windows.look(holder).minute.remaining > 0

    async def _find_in_turn(self, token: bytes) -> Caller:
        async with asyncio.timeout(LONGEST_WAIT) as waiting, self._late:
            waiting.reschedule(None)
            return await authenticate(token, self._services.keys)


def _digest_of(login: str) -> bytes:
    """Return what stands for a login in memory, however long it is."""
    return blake2b(name_key(login).encode("utf-8", "replace"), digest_size=16).digest()


def _ended(secret: str) -> _Holder:
    return ("ended", secret)


def _unsealed(address: str) -> _Holder:
    return ("unsealed", network_of(address))
