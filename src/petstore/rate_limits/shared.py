"""The limiter of many processes: states in Redis or Valkey, one atomic script and one trip."""

from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import astuple

from petstore.clock import DAY, MINUTE, Milliseconds
from petstore.domain.api_keys import ApiKey
from petstore.domain.plans import UNLIMITED, Limits
from petstore.rate_limits.addresses import network_of
from petstore.rate_limits.contract import NEVER, BanRules, Decision, RateLimitStore, State, Verdict
from petstore.rate_limits.decide import decision, describe
from petstore.rate_limits.trips import Check, Reply, Trips
from petstore.rate_limits.unsaved import UnsavedStates

Mode: TypeAlias = Literal["take", "look"]

# An idle hash is forgotten; the store has a copy of what it says of a key.
_LIFE_OF_A_KEY = DAY
_LIFE_OF_AN_ADDRESS = 2 * MINUTE
_NO_BANS = BanRules(least_strikes=UNLIMITED)
_FRESH = State()
_UNKNOWN = [b"unknown"]


class _Judged(NamedTuple):
    verdict: Verdict
    now: Milliseconds
    state: State


class SharedLimiter:
    """Keeps the states of keys and addresses in Redis, and a copy of those of keys in the store.

    The time is that of the Redis server. A key it does not know, because the key is new or Redis
    has lost its memory, is recalled from the store. Every method that asks Redis raises
    ``OutOfReach`` if that is out of reach or failing.
    """

    def __init__(
        self, trips: Trips, store: RateLimitStore, rules: BanRules, address_limits: Limits
    ) -> None:
        self._trips = trips
        self._store = store
        self._rules = rules
        self._address_limits = address_limits
        self._unsaved = UnsavedStates(store)

    async def take(self, key: ApiKey) -> Decision:
        """Judge a request with ``key`` and charge it if it is admitted."""
        verdict, now, state = await self._judge("take", key)
        return decision(state, key.limits, now, verdict)

    async def look(self, key: ApiKey) -> Decision:
        """Describe the windows of ``key`` as they stand, charging nothing."""
        _, now, state = await self._judge("look", key)
        return describe(state, key.limits, now, _unban_time(key))

    async def take_address(self, address: str) -> Decision:
        """Judge a request without a valid key from ``address``, and charge it if admitted."""
        verdict, now, state = await self._judge_address("take", address)
        return decision(state, self._address_limits, now, verdict)

    async def look_address(self, address: str) -> Decision:
        """Describe the window of ``address``, charging nothing."""
        _, now, state = await self._judge_address("look", address)
        return describe(state, self._address_limits, now, NEVER)

    async def recall(self, key_id: int) -> State | None:
        """Return the copy of the state of a key.

        Raises:
            Unavailable: the database is out of reach.
        """
        return self._unsaved.get(key_id) or await self._store.load(key_id)

    async def save(self) -> None:
        """Copy every state that changed since the last time into the store.

        Raises:
            Unavailable: the counts could not be saved; they stay to be saved later.
        """
        await self._unsaved.save()

    async def _judge(self, mode: Mode, key: ApiKey) -> _Judged:
        name = f"petstore:key:{{{key.id}}}"
        check = _check(mode, name, key.limits, self._rules, _unban_time(key), _LIFE_OF_A_KEY)
        reply = await self._trips.run(check)
        if reply == _UNKNOWN:
            state = await self.recall(key.id) or _FRESH
            reply = await self._trips.run(_beginning(check, state))
        judged = _judged(reply)
        self._unsaved.put(key.id, judged.state)
        return judged

    async def _judge_address(self, mode: Mode, address: str) -> _Judged:
        name = f"petstore:address:{{{network_of(address)}}}"
        check = _check(mode, name, self._address_limits, _NO_BANS, NEVER, _LIFE_OF_AN_ADDRESS)
        return _judged(await self._trips.run(_beginning(check, _FRESH)))


def _unban_time(key: ApiKey) -> Milliseconds:
    return key.unbanned_at or NEVER


def _check(
    mode: Mode,
    name: str,
    limits: Limits,
    rules: BanRules,
    unbanned_at: Milliseconds,
    life: Milliseconds,
) -> Check:
    return Check(
        name,
        (
            mode,
            "",
            limits.per_minute,
            limits.per_day,
            unbanned_at,
            rules.threshold(limits.per_minute),
            rules.innocence,
            rules.window,
            rules.first,
            rules.longest,
            rules.forgiven_after,
            rules.last_level,
            life,
        ),
    )


def _beginning(check: Check, state: State) -> Check:
    """Return ``check``, with the state to begin with where there is no hash."""
    return check._replace(arguments=(*check.arguments, *astuple(state)))


def _judged(reply: Reply) -> _Judged:
    verdict, now, *fields = reply
    return _Judged(verdict.decode("ascii"), now, State(*fields))
