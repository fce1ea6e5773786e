"""What bounds signing in, signing out and looking for sessions."""

from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TypeAlias

from petstore.clock import SECOND, Milliseconds
from petstore.console.known_browsers import KnownBrowser
from petstore.domain.names import name_key
from petstore.errors import InvalidKey, RateLimitExceeded, Unavailable
from petstore.interface.authentication import authenticate, authenticate_new
from petstore.interface.operation import Services
from petstore.interface.rate_limit_headers import Holder, limit_reached, require_admitted
from petstore.keys.model import Caller
from petstore.limits.contract import NEVER
from petstore.limits.minutes import MinuteLimiter, network_of
from petstore.people.accounts import has_people
from petstore.people.passwords import Passwords
from petstore.sessions.secrets import is_sealed
from petstore.sessions.store import read_seal

PER_MINUTE = 60
"""Sign-ins of a key from a network, and visits there to the pages of its sessions, in a minute."""

WRONG_PASSWORDS = 10
"""Wrong passwords for a login from a network, or in a browser that knows it, in a minute."""

WRONG_OF_NETWORK = 60
"""Wrong passwords from a network, for all logins together, in a minute."""

_SUBSCRIBER = 48
"""The length of the prefix of an IPv6 network that a subscriber may have."""

_MAX_HOLDERS = 10_000
_ADDRESS = Holder("lookup", "signing in from this address")
_SIGN_IN = Holder("sign_in", "signing in and out with this key from this address")
_PASSWORD = Holder("password", "wrong passwords")
_LOOK_EVERY: Milliseconds = SECOND

_Holder: TypeAlias = tuple[Hashable, ...]


class SessionLimits:
    """Charges whoever fails, so that nobody uses up what others need to sign in or out.

    A new key is charged to its address, and that is given back if it is valid. A secret that this
    service did not issue is never looked up; one whose session has ended is, a few times a minute.
    While the store has issued no secret, an address has it looked for a few times a minute.

    Wrong passwords are counted by network, and by login and network together, in all processes.
    Beyond that no password from there is hashed. A browser that knows the login has a count of its
    own, and goes first: so nobody can use up what others may try. However many browsers know a
    login, one of them has a turn.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._windows: MinuteLimiter[_Holder] = MinuteLimiter(
            services.clock, PER_MINUTE, _MAX_HOLDERS
        )
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

    def charge_address(self, address: str) -> None:
        """Charge the look-up of a new key, or a form of somebody who is not signed in.

        Raises:
            RateLimitExceeded: there were too many.
        """
        decision = self._services.look_ups.take(address)
        require_admitted(decision, _ADDRESS)

    def charge_sign_in(self, key_id: int, address: str) -> None:
        """Charge a sign-in, or a visit to a page that ends sessions, to its key and address.

        A key alone would do for neither: a thief could use up what its owner needs.

        Raises:
            RateLimitExceeded: there were too many.
        """
        decision = self._windows.take((key_id, network_of(address, _SUBSCRIBER)))
        require_admitted(decision, _SIGN_IN)

    @asynccontextmanager
    async def password_attempt(
        self, login: str, address: str, browser: KnownBrowser
    ) -> AsyncIterator[None]:
        """Give a turn to check a password, and charge a wrong one: the block raises ``InvalidKey``.

        Raises:
            RateLimitExceeded: there were too many.
            Overloaded: it has waited too long.
        """
        name = login_digest(login, 16)
        is_known = browser.knows(login, self._seal)
        if is_known:
            line, counts = name, {f"{name} {browser.id}": WRONG_PASSWORDS}
        else:
            line = network_of(address, _SUBSCRIBER)
            counts = {f"{name} {line}": WRONG_PASSWORDS, line: WRONG_OF_NETWORK}
        async with self._attempt(line, counts, goes_first=is_known):
            yield

    @asynccontextmanager
    async def own_password_attempt(self, login: str, session: bytes) -> AsyncIterator[None]:
        """Charge a wrong password to the session that sent it; otherwise as above.

        Raises:
            RateLimitExceeded: there were too many.
            Overloaded: it has waited too long.
        """
        counts = {session.hex(): WRONG_PASSWORDS}
        async with self._attempt(login_digest(login, 16), counts, goes_first=True):
            yield

    @asynccontextmanager
    async def _attempt(
        self, line: str, counts: Mapping[str, int], *, goes_first: bool
    ) -> AsyncIterator[None]:
        # Those of a line come one after another, so many at once are counted as well.
        limiter = self._services.limiter
        async with self.passwords.turn(line, goes_first=goes_first):
            for holder, per_minute in counts.items():
                decision = await limiter.look_attempt(holder, per_minute)
                if not decision.minute.remaining:
                    headers = limit_reached(decision, _PASSWORD).headers
                    msg = f"too many wrong passwords. Wait {headers['Retry-After']} seconds"
                    raise RateLimitExceeded(msg, headers, f"{_PASSWORD.name}_minute")
            try:
                yield
            except InvalidKey:
                for holder, per_minute in counts.items():
                    await limiter.take_attempt(holder, per_minute)
                raise

    async def find_key(self, token: bytes, address: str) -> Caller:
        """Return the key of a token; beyond the limit of an address, only one that is known.

        Raises:
            InvalidKey: it belongs to no key that is valid here and now.
            RateLimitExceeded: it is new, and there were too many such.
            Unavailable: the database is unreachable and the key is not in memory.
        """
        keys, look_ups = self._services.keys, self._services.look_ups
        if not keys.is_new(token):
            return await authenticate(token, keys)
        self.charge_address(address)
        return await authenticate_new(token, keys, look_ups, address)

    def _may_try(self, holder: _Holder) -> bool:
        return self._windows.look(holder).minute.remaining > 0


def login_digest(login: str, size: int) -> str:
    """Return what stands for a login, however long it is, in the counts and in the log."""
    return blake2b(name_key(login).encode("utf-8", "replace"), digest_size=size).hexdigest()


def _ended(secret: str) -> _Holder:
    return ("ended", secret)


def _unsealed(address: str) -> _Holder:
    return ("unsealed", network_of(address))
