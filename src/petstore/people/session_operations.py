"""Signing in, and what people do with their own sessions and accounts: all that pages may use."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from petstore.clock import MINUTE, Milliseconds
from petstore.databases.contract import Statement, Unit, read_unit
from petstore.domain.networks import network_of
from petstore.errors import InvalidBody, InvalidKey, MissingKey, NotFound
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.interface.authentication import look_up, require_network
from petstore.interface.messages import limit_reached, require_admitted
from petstore.interface.operation import Services
from petstore.keys.model import Caller, digest
from petstore.keys.store import count_up_revision
from petstore.limits.admission import PASSWORD, PASSWORD_OF_NETWORK
from petstore.people.model import (
    FRESH,
    Account,
    Browser,
    Device,
    DeviceCookie,
    Session,
    login_digest,
)
from petstore.people.passwords import Passwords, check_password, has_length
from petstore.people.store import (
    begin_session,
    delete_invitations,
    end_session,
    end_sessions,
    find_account_by_login,
    find_invited,
    find_session,
    find_session_in_unit,
    list_devices,
    read_person,
    record_person,
    take_invitation,
    touch_session,
)

_WRONG = "The login or the password is wrong. Check both. In the password, capital letters count."
_ENDED = "the invitation has ended"
_NETWORK = 48  # bits of IPv6 that one subscriber may have


class SignedIn(NamedTuple):
    caller: Caller
    secret: str
    credential: bytes
    stays: bool


class Sessions:
    """Finds the sessions of keys and people, begins and ends them, and limits both.

    Attempts with a password are counted by network, and by login and network together, in all
    processes. Beyond that no password from there is hashed. A browser that knows the person has a
    count of its own, and goes first: so it cannot use up the attempts of others.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._store, self._environment = services.store, services.keys.environment
        self._passwords = Passwords()

    async def find(self, secret: str) -> Session | None:
        if not secret:
            return None
        return await find_session(self._store, secret, self._environment, self._services.clock())

    async def touch(self, session: Session) -> bool:
        """Note the use of a session once a minute; return whether it did."""
        now = self._services.clock()
        if now - session.device.used_at < MINUTE:
            return False
        await self._store.write(touch_session(session, now))
        return True

    def charge(self, caller: Caller, address: str) -> None:
        """Charge a page to a caller. Others cannot use up what the caller has at this network."""
        pages = self._services.admission.pages
        require_admitted(pages.take((caller.id, network_of(address, _NETWORK))), pages.budget)

    def charge_stranger(self, address: str) -> None:
        look_ups = self._services.admission.look_ups
        require_admitted(look_ups.take(network_of(address)), look_ups.budget)

    async def sign_in_with_key(self, token: bytes, address: str, browser: Browser) -> SignedIn:
        services, credential = self._services, digest(token)
        key = await look_up(token, services.keys, services.admission.look_ups, address)
        require_network(key, address)
        self.charge(key, address)
        unit = begin_session(key, credential, services.clock(), browser)
        return SignedIn(key, await self._store.write(unit), credential, browser.stays)

    async def sign_in(
        self, login: str, password: str, address: str, browser: Browser, known: DeviceCookie
    ) -> SignedIn:
        """Begin a session with a password. Whatever is wrong, it costs as much."""
        if not has_length(password):  # no password is: it costs no hash, and counts for no login
            raise InvalidKey(_WRONG)
        found = find_account_by_login(login, self._environment)
        account = await read_unit(self._store, found)
        is_known = account is not None and known.knows(account.credential)
        async with self._attempt(login, address, known.id if is_known else ""):
            is_right = await self._passwords.verify(password, account and account.password)
            now = self._services.clock()
            if account is None or not is_right or account.caller.state(now) != "active":
                raise InvalidKey(_WRONG)
        self.charge(account.caller, address)
        unit = begin_session(account.caller, account.credential, now, browser)
        secret = await self._store.write(unit)
        return SignedIn(account.caller, secret, account.credential, browser.stays)

    @asynccontextmanager
    async def _attempt(self, login: str, address: str, known_by: str) -> AsyncIterator[None]:
        """An error in the block is a wrong password. One ``known_by`` a browser goes first."""
        limiter, turns = self._services.limiter, self._services.admission.passwords
        network, name = network_of(address, _NETWORK), login_digest(login)
        counts = {network: PASSWORD_OF_NETWORK, f"{name} {network}": PASSWORD}
        if known_by:
            counts = {f"{name} {known_by}": PASSWORD}
        # Attempts for a name come one after another, so many at once are counted as well.
        with await turns.take(name if known_by else network, goes_first=bool(known_by)):
            for subject, budget in counts.items():
                decision = await limiter.look_at(budget, subject)
                if not decision.minute.remaining:
                    raise limit_reached(decision, budget)
            try:
                yield
            except (InvalidKey, InvalidBody):
                for subject, budget in counts.items():
                    await limiter.take_of(budget, subject)
                raise

    async def find_invited(self, secret: str) -> Account | None:
        found = find_invited(secret, self._environment, self._services.clock())
        return await read_unit(self._store, found)

    async def accept(
        self, secret: str, password: str, browser: Browser, request_id: str
    ) -> SignedIn:
        invited = await self.find_invited(secret)
        if invited is None:
            raise NotFound(_ENDED)
        check_password(password, invited.login)
        hashed = await self._hash(password, goes_first=False)
        now, environment = self._services.clock(), self._environment

        def accepted() -> Unit[SignedIn]:
            yield count_up_revision()
            account = yield from find_invited(secret, environment, now)
            if account is None or not (yield from take_invitation(secret)):
                raise NotFound(_ENDED)
            return (yield from _set_password(account, hashed, now, browser, request_id))

        return await self._store.write(accepted())

    async def read_account(self, person_id: int) -> Account:
        return await read_unit(self._store, read_person(person_id, self._environment))

    async def change_password(
        self, session: Session, current: str, password: str, request_id: str
    ) -> SignedIn:
        """Give a person another password, and begin another session instead of all until now."""
        account = await self.read_account(session.caller.id)
        check_password(password, account.login)
        await self.confirm(session, current)
        hashed, now = await self._hash(password, goes_first=True), self._services.clock()
        device = session.device

        def changed() -> Unit[SignedIn]:
            yield count_up_revision()
            if not (yield from find_session_in_unit(device.digest, now)):
                raise MissingKey("the session has ended meanwhile")
            browser = Browser(device.device, device.stays)
            return (yield from _set_password(account, hashed, now, browser, request_id))

        return await self._store.write(changed())

    async def confirm(self, session: Session, password: str) -> None:
        account = await self.read_account(session.caller.id)
        async with self._attempt(account.login, "", session.device.digest.hex()):
            if not await self._passwords.verify(password, account.password):
                raise InvalidBody("current: this is not your password")

    def is_fresh(self, session: Session) -> bool:
        return self._services.clock() - session.device.created_at <= FRESH

    async def _hash(self, password: str, *, goes_first: bool) -> str:
        turns = self._services.admission.passwords
        with await turns.take(object(), goes_first=goes_first):
            return await self._passwords.hash(password)

    async def devices(self, caller_id: int) -> list[Device]:
        return await read_unit(self._store, list_devices(caller_id, self._services.clock()))

    async def end(self, secret: str) -> None:
        await self._store.write(end_session(secret))

    async def end_device(self, caller_id: int, digest: bytes) -> None:
        await self._store.write(end_sessions(caller_id, only=digest))

    async def end_others(self, session: Session) -> None:
        if len(await self.devices(session.caller.id)) > 1:  # else anyone could wake all long polls
            unit = end_sessions(session.caller.id, kept=session.device.digest)
            await self._store.write(unit)


def _set_password(
    account: Account, hashed: str, now: Milliseconds, browser: Browser, request_id: str
) -> Unit[SignedIn]:
    """The revision of the callers is locked, so no other unit does so meanwhile."""
    caller = account.caller
    before = yield from read_person(caller.id, caller.environment)
    after = before._replace(password=hashed)
    yield Statement(
        "UPDATE people SET password = ?1 WHERE id = ?2", (hashed, caller.id), name="update_password"
    )
    yield from end_sessions(caller.id)
    yield delete_invitations(caller.id)
    by = Change(now, Author(caller.actor, request_id))
    yield record_person("person.updated", after, before, by)
    secret = yield from begin_session(caller, after.credential, now, browser)
    return SignedIn(caller, secret, after.credential, browser.stays)
