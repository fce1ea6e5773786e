"""Create, change, rotate, revoke and unban API keys, and find the key of a token."""

from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

from petstore.clock import Clock, Milliseconds
from petstore.domain.api_keys import ApiKey, Environment, Scope, digest, is_token, new_token
from petstore.domain.plans import PlanName
from petstore.errors import Conflict, InvalidBody, NotFound
from petstore.storage import api_keys
from petstore.storage.api_keys import NewApiKey
from petstore.storage.contract import Store


class IssuedKey(NamedTuple):
    """A key and its fresh token, which nobody can be shown again."""

    key: ApiKey
    token: str


class ApiKeyChanges(Struct, frozen=True):
    """What to change of a key; what is unset stays."""

    name: str | UnsetType = UNSET
    plan: PlanName | UnsetType = UNSET
    per_minute: int | UnsetType | None = UNSET
    per_day: int | UnsetType | None = UNSET
    scopes: frozenset[Scope] | UnsetType = UNSET
    expires_at: Milliseconds | UnsetType | None = UNSET


class KeyRing:
    """Finds the key of a token, from memory while no key has changed.

    ``refresh`` asks the database whether any has; called several times a second, it makes a
    revocation by another process take effect within one.
    """

    def __init__(self, store: Store, clock: Clock, environment: Environment) -> None:
        self._store = store
        self._clock = clock
        self._environment = environment
        self._known: dict[bytes, tuple[ApiKey, Milliseconds | None]] = {}
        self._revision = -1

    async def find(self, token: bytes) -> ApiKey | None:
        """Return the key of ``token`` if it can be used now.

        Raises:
            Unavailable: the database is out of reach and the key is not in memory.
        """
        fingerprint = digest(token)
        known = self._known.get(fingerprint)
        if known is None:
            known = await self._look_up(token, fingerprint)
            if known is None:
                return None
        key, token_expires_at = known
        now = self._clock()
        if token_expires_at is not None and now >= token_expires_at:
            return None
        return key if key.state(now) == "active" else None

    async def refresh(self) -> None:
        """Forget every key if any has changed since the last time.

        Raises:
            Unavailable: the database is out of reach; what is known stays in force.
        """
        ((revision,),) = await self._store.read(api_keys.SELECT_REVISION)
        if revision != self._revision:
            self._revision = revision
            self._known = {}

    async def _look_up(
        self, token: bytes, fingerprint: bytes
    ) -> tuple[ApiKey, Milliseconds | None] | None:
        if not is_token(token, self._environment):
            return None
        known = self._known
        rows = await self._store.read(api_keys.select_key_by_digest(fingerprint))
        if not rows or rows[0][6] != self._environment:
            return None
        # Into the dict of before the read: had a refresh come between, this row may be stale.
        known[fingerprint] = (api_keys.api_key_of(rows[0]), rows[0][-1])
        return known[fingerprint]


async def create_key(store: Store, new: NewApiKey, clock: Clock) -> IssuedKey:
    """Create a key and its first token.

    Raises:
        InvalidBody: limits of its own for a key that is not of the plan enterprise.
    """
    _check_own_limits(new.plan, new.per_minute, new.per_day)
    token = new_token(new.environment)
    key = await store.write(api_keys.add_key(new, digest(token.encode("ascii")), clock()))
    return IssuedKey(key, token)


async def get_key(store: Store, key_id: int) -> ApiKey:
    """Return one key.

    Raises:
        NotFound: there is none with this id.
    """
    rows = await store.read(api_keys.select_key(key_id))
    if not rows:
        msg = f"there is no key {key_id}"
        raise NotFound(msg)
    return api_keys.api_key_of(rows[0])


async def change_key(store: Store, key_id: int, changes: ApiKeyChanges) -> ApiKey:
    """Change a key; one that leaves the plan enterprise loses the limits of its own.

    Raises:
        NotFound: there is none with this id.
        InvalidBody: limits of its own for a key that is not of the plan enterprise.
    """

    def change(key: ApiKey) -> ApiKey:
        wanted = {name: value for name, value in asdict(changes).items() if value is not UNSET}
        if wanted.get("plan", key.plan) != "enterprise":
            wanted = {"per_minute": None, "per_day": None, **wanted}
        changed = replace(key, **wanted)
        _check_own_limits(changed.plan, changed.per_minute, changed.per_day)
        return changed

    return await store.write(api_keys.change_key(key_id, change))


async def rotate_key(store: Store, key_id: int, grace: Milliseconds, clock: Clock) -> IssuedKey:
    """Issue a new token for a key; its old one lives on for ``grace``.

    Raises:
        NotFound: there is none with this id.
        Conflict: the key is expired or revoked.
    """
    now = clock()
    environment = (await get_key(store, key_id)).environment
    token = new_token(environment)

    def check(key: ApiKey) -> None:
        state = key.state(now)
        if state != "active":
            msg = f"key {key.id} is {state}; only an active key can be rotated"
            raise Conflict(msg)

    fingerprint = digest(token.encode("ascii"))
    key = await store.write(api_keys.rotate_key(key_id, check, fingerprint, now + grace))
    return IssuedKey(key, token)


async def revoke_key(store: Store, key_id: int, clock: Clock) -> ApiKey:
    """End a key for good. Revoking it again changes nothing.

    Raises:
        NotFound: there is none with this id.
    """
    now = clock()

    def revoke(key: ApiKey) -> ApiKey:
        return key if key.revoked_at is not None else replace(key, revoked_at=now)

    return await store.write(api_keys.change_key(key_id, revoke))


async def unban_key(store: Store, key_id: int, clock: Clock) -> ApiKey:
    """Lift the ban of a key, and forget how often it was banned before.

    Raises:
        NotFound: there is none with this id.
    """
    now = clock()
    return await store.write(api_keys.change_key(key_id, lambda key: replace(key, pardoned_at=now)))


def _check_own_limits(plan: PlanName, per_minute: int | None, per_day: int | None) -> None:
    for name, value in (("per-minute", per_minute), ("per-day", per_day)):
        if value is not None and plan != "enterprise":
            msg = f"{name}: only a key of the plan enterprise has limits of its own, not {plan}"
            raise InvalidBody(msg)
