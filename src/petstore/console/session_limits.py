"""What bounds signing in and signing out."""

import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import blake2b
from hmac import compare_digest
from typing import NamedTuple

from petstore.domain.names import name_key
from petstore.errors import InvalidKey, RateLimitExceeded, Unavailable
from petstore.interface.messages import limit_reached, require_admitted
from petstore.interface.operation import Services
from petstore.limits.admission import WRONG_PASSWORD, WRONG_PASSWORD_OF_NETWORK
from petstore.limits.contract import Budget
from petstore.limits.memory import network_of
from petstore.people.accounts import has_people
from petstore.people.passwords import Passwords
from petstore.sessions.store import seal

MAX_MARKS = 8
"""How many people a browser knows: on the computer of a shop they take turns."""

_ID_BYTES = 16
_MARK_BYTES = 12
_SEPARATOR = "."
_VALUE = re.compile(rf"[A-Za-z0-9_-]{{22}}(?:\.[0-9a-f]{{{2 * _MARK_BYTES}}}){{0,{MAX_MARKS}}}\Z")
_PURPOSE = b"known browser"


class KnownBrowser(NamedTuple):
    """What the cookie of a browser says; ``id`` is empty if there is none."""

    id: str = ""
    marks: tuple[str, ...] = ()

    @property
    def value(self) -> str:
        """The value of the cookie."""
        return _SEPARATOR.join((self.id, *self.marks))

    def knows(self, login: str, seal: bytes) -> bool:
        """Return whether somebody has signed in with a login here, to the store of the seal."""
        if not self.marks:
            return False
        mark = _mark_of(self.id, login, seal)
        return any(compare_digest(mark, known) for known in self.marks)

    def with_login(self, login: str, seal: bytes) -> "KnownBrowser":
        """Return it as it is once somebody has signed in: the last ones are remembered."""
        browser_id = self.id or secrets.token_urlsafe(_ID_BYTES)
        mark = _mark_of(browser_id, login, seal)
        others = tuple(known for known in self.marks if known != mark)
        return KnownBrowser(browser_id, (*others, mark)[-MAX_MARKS:])


def known_browser(cookie: str) -> KnownBrowser:
    """Return what the value of a cookie says."""
    if not _VALUE.match(cookie):
        return KnownBrowser()
    browser_id, *marks = cookie.split(_SEPARATOR)
    return KnownBrowser(browser_id, tuple(marks))


def _mark_of(browser_id: str, login: str, seal: bytes) -> str:
    text = f"{browser_id}{_SEPARATOR}{name_key(login)}".encode("utf-8", "replace")
    return blake2b(text, digest_size=_MARK_BYTES, key=seal, person=_PURPOSE).hexdigest()


_SUBSCRIBER = 48
"""The length of the prefix of an IPv6 network that a subscriber may have."""


class SessionLimits:
    """Charges whoever fails, so that nobody uses up what others need to sign in or out.

    Wrong passwords are counted by network, and by login and network together, in all processes.
    Beyond that no password from there is hashed. A browser that knows the login has a count of its
    own, and goes first: so nobody can use up what others may try. However many browsers know a
    login, one of them has a turn.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._seal = b""
        self._has_people = False
        self.passwords = Passwords()

    async def seal(self) -> bytes:
        """Return what marks the cookies of known browsers as issued by this store."""
        self._seal = self._seal or await self._services.store.write(seal())
        return self._seal

    async def has_people(self) -> bool:
        """Return whether anybody can sign in with a login; somebody may if there is no database."""
        services = self._services
        if not self._has_people:
            try:
                self._has_people = await has_people(services.store, services.keys.environment)
            except Unavailable:
                return True
        return self._has_people

    def charge_address(self, address: str) -> None:
        """Charge a form of somebody who is not signed in."""
        look_ups = self._services.admission.look_ups
        require_admitted(look_ups.take(network_of(address)), look_ups.budget)

    def charge_sign_in(self, key_id: int, address: str) -> None:
        """Charge a sign-in, or a visit to a page that ends sessions, to its key and address.

        A key alone would do for neither: a thief could use up what its owner needs.
        """
        sign_ins = self._services.admission.sign_ins
        decision = sign_ins.take((key_id, network_of(address, _SUBSCRIBER)))
        require_admitted(decision, sign_ins.budget)

    @asynccontextmanager
    async def password_attempt(
        self, login: str, address: str, browser: KnownBrowser
    ) -> AsyncIterator[None]:
        """Take a turn to check a password, and charge a wrong one (``InvalidKey`` in the block)."""
        name, line = login_digest(login, 16), network_of(address, _SUBSCRIBER)
        counts = {f"{name} {line}": WRONG_PASSWORD, line: WRONG_PASSWORD_OF_NETWORK}
        is_known = bool(browser.marks) and browser.knows(login, await self.seal())
        if is_known:
            line, counts = name, {f"{name} {browser.id}": WRONG_PASSWORD}
        async with self._attempt(line, counts, goes_first=is_known):
            yield

    @asynccontextmanager
    async def own_password_attempt(self, login: str, session: bytes) -> AsyncIterator[None]:
        """Charge a wrong password to the session that sent it; otherwise as above."""
        counts = {session.hex(): WRONG_PASSWORD}
        async with self._attempt(login_digest(login, 16), counts, goes_first=True):
            yield

    @asynccontextmanager
    async def _attempt(
        self, line: str, counts: Mapping[str, Budget], *, goes_first: bool
    ) -> AsyncIterator[None]:
        # Those of a line come one after another, so many at once are counted as well.
        limiter = self._services.limiter
        with await self._services.admission.passwords.take(line, goes_first=goes_first):
            for holder, budget in counts.items():
                decision = await limiter.look_at(budget, holder)
                if not decision.minute.remaining:
                    refusal = limit_reached(decision, budget)
                    msg = f"too many wrong passwords. Wait {refusal.headers['Retry-After']} seconds"
                    raise RateLimitExceeded(msg, refusal.headers, f"{budget.name}_minute")
            try:
                yield
            except InvalidKey:
                for holder, budget in counts.items():
                    await limiter.take_of(budget, holder)
                raise


def login_digest(login: str, size: int) -> str:
    """Return what stands for a login, however long it is, in the counts and in the log."""
    return blake2b(name_key(login).encode("utf-8", "replace"), digest_size=size).hexdigest()
