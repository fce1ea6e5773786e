"""The limiter of many processes: limits in Redis, and in memory while Redis is unavailable."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder
from msgspec.structs import asdict, replace

from petstore.clock import DAY, MINUTE, SECOND, Clock, Milliseconds
from petstore.domain.plans import UNLIMITED, Limits
from petstore.keys.model import Caller
from petstore.limits.decide import (
    NEVER,
    NO_BANS,
    BanRules,
    Budget,
    Decision,
    RateLimitStore,
    State,
    decision,
    describe,
)
from petstore.limits.memory import MemoryLimiter, UnsavedStates
from petstore.redis_client import (
    BatchedScript,
    Command,
    CredentialsRefused,
    RedisClient,
    RedisUnavailable,
)

Mode: TypeAlias = Literal["take", "charge", "look"]

# What is idle expires; the store has a copy of the state of a key.
_KEY_LIFETIME = DAY
_MINUTE_LIFETIME = 2 * MINUTE
_FRESH = State()
_FOLDER = Path(__file__).parent
_DEFAULTS = ", ".join(f"{name} = {default}" for name, default in asdict(_FRESH).items())
_JUDGE = f"local DEFAULTS = {{ {_DEFAULTS} }}\n{(_FOLDER / 'judge.lua').read_text('utf-8')}"
_HEARTBEAT = (_FOLDER / "heartbeat.lua").read_text("utf-8")
_PROCESSES = "petstore:processes"
_SILENT_SECONDS = 5
_TIMEOUT = 0.14
_CHECK, _CHECKED_KEY, _CHECK_TIMEOUT = "petstore:check", "petstore:key:{check}", 0.3
_NEEDED = "TIME, EVAL, EVALSHA, GET, SET, EXPIRE, DEL, ZADD, ZREMRANGEBYSCORE, ZCARD, ZREM"

_LOG = logging.getLogger(__name__)


class JudgeCall(Struct, omit_defaults=True):
    """The argument of ``judge.lua``, with the state to begin with if Redis has none.

    ``requests`` is how many to charge to the day; ``day`` is the day of a request to give back.
    """

    mode: Mode
    per_minute: int
    per_day: int
    unbanned_at: Milliseconds
    rules: BanRules
    threshold: int
    last_level: int
    expires_after: Milliseconds
    state: State | None = None
    requests: int = 0
    day: int | None = None


_CHECK_CALL = JudgeCall("take", 1, 1, NEVER, NO_BANS, UNLIMITED, 0, SECOND, _FRESH)

_encode = Encoder().encode
_decode = Decoder(State).decode


class RedisLimiter:
    """Limits in Redis, and this process's share of them while Redis is unavailable.

    The time is the Redis server's. The store has a copy of the states of keys: if Redis does not
    know a key, because it is new or Redis has lost its memory, it is recalled from there.

    Without Redis the time is ``clock``, corrected by what the last heartbeat said about the
    server's clock, so clients that waited for ``Retry-After`` have waited long enough. There are at
    least ``min_processes``, even if fewer have announced themselves.
    """

    def __init__(
        self,
        client: RedisClient,
        store: RateLimitStore,
        clock: Clock,
        rules: BanRules,
        min_processes: int = 1,
        timeout: float = _TIMEOUT,
    ) -> None:
        self._client = client
        self._clock = clock
        self._rules = rules
        self._min_processes = self._processes = min_processes
        self._timeout = timeout
        self._script = BatchedScript(client, _JUDGE.encode(), timeout)
        self._unsaved = UnsavedStates(store)
        self.load, self.save = self._unsaved.load, self._unsaved.save
        self._process = uuid4().hex
        self._local: MemoryLimiter | None = None
        self._server_ahead: Milliseconds = 0
        self.bans = 0
        self.fallbacks = 0

    @property
    def has_fallen_back(self) -> bool:
        return self._local is not None

    async def take(self, key: Caller) -> Decision:
        return await self._judge("take", key)

    async def look(self, key: Caller) -> Decision:
        return await self._judge("look", key)

    async def charge(self, key: Caller, requests: int, taken: Decision | None = None) -> Decision:
        return await self._judge("charge", key, requests, taken)

    async def take_of(self, budget: Budget, subject: str) -> Decision:
        return await self._judge_minute("take", budget, subject)

    async def look_at(self, budget: Budget, subject: str) -> Decision:
        return await self._judge_minute("look", budget, subject)

    async def heartbeat(self) -> None:
        command: Command = ("EVAL", _HEARTBEAT, 1, _PROCESSES, self._process, _SILENT_SECONDS)
        try:
            ((processes, now),) = await self._client.execute([command], 3 * self._timeout)
            if self._local is not None:
                await self._script.run(_CHECKED_KEY, _encode(_CHECK_CALL))
        except RedisUnavailable as error:
            # Another server may have the address by now, and this one refuse changes.
            await self._client.close()
            self._fall_back(error)
            return
        self._server_ahead = now - self._clock()
        if self._local is None:
            self._processes = max(self._min_processes, processes)
        else:
            # The others may not have announced themselves yet to a server that was restarted.
            self._processes = max(self._processes, processes)
            self._local = None
            _LOG.warning("Redis is back; processes share limits again")

    async def close(self) -> None:
        with suppress(RedisUnavailable):
            await self._client.execute([("ZREM", _PROCESSES, self._process)], self._timeout)
        await self._client.close()

    async def _judge(
        self, mode: Mode, key: Caller, requests: int = 0, taken: Decision | None = None
    ) -> Decision:
        local = self._local
        if local is None:
            try:
                return await self._judge_in_redis(mode, key, requests, taken)
            except RedisUnavailable as error:
                local = self._fall_back(error)
        per_minute, per_day = key.limits.share(self._processes)
        key = replace(key, per_minute=per_minute, per_day=per_day)
        if mode == "charge":
            return await local.charge(key, requests, taken)
        return await (local.take(key) if mode == "take" else local.look(key))

    async def _judge_in_redis(
        self, mode: Mode, key: Caller, requests: int, taken: Decision | None
    ) -> Decision:
        name, limits, rules = f"petstore:key:{{{key.id}}}", key.limits, self._rules
        unbanned_at, threshold = key.unbanned_at or NEVER, rules.threshold(limits.per_minute)
        call = JudgeCall(
            mode, *limits, unbanned_at, rules, threshold, rules.last_level, _KEY_LIFETIME
        )
        call.requests = requests
        if taken is not None:
            call.day = taken.day_number
        reply = await self._script.run(name, _encode(call))
        if reply is None:
            call.state = await self.load(key.id) or _FRESH
            reply = await self._script.run(name, _encode(call))
        decided, state, begins_ban = _decided(call, limits, reply)
        self.bans += begins_ban
        self._unsaved.put(key.id, state)
        return decided

    async def _judge_minute(self, mode: Mode, budget: Budget, subject: str) -> Decision:
        local = self._local
        if local is None:
            limits = Limits(budget.per_minute, UNLIMITED)
            call = JudgeCall(mode, *limits, NEVER, NO_BANS, UNLIMITED, 0, _MINUTE_LIFETIME, _FRESH)
            name = f"petstore:{budget.name}:{{{subject}}}"
            try:
                reply = await self._script.run(name, _encode(call))
                return _decided(call, limits, reply)[0]
            except RedisUnavailable as error:
                local = self._fall_back(error)
        per_minute, _ = Limits(budget.per_minute, UNLIMITED).share(self._processes)
        judge = local.take_of if mode == "take" else local.look_at
        return await judge(budget._replace(per_minute=per_minute), subject)

    def _fall_back(self, error: RedisUnavailable) -> MemoryLimiter:
        if self._local is None:
            _LOG.warning(
                "Redis is unavailable; each of %d processes enforces its share of the limits: %s",
                self._processes,
                error,
            )
            self.fallbacks += 1
            self._local = MemoryLimiter(
                _Shares(self.load, self._processes),
                lambda: self._clock() + self._server_ahead,
                self._rules,
            )
        return self._local


class _Shares:
    """The states of keys, with the usage divided by ``processes``."""

    def __init__(self, load: Callable[[int], Awaitable[State | None]], processes: int) -> None:
        self._load = load
        self._processes = processes

    async def load(self, key_id: int) -> State | None:
        state = await self._load(key_id)
        if state is None:
            return None
        # Rounded up: together the processes count no less than was used.
        return replace(
            state,
            minute_used=-(-state.minute_used // self._processes),
            day_used=-(-state.day_used // self._processes),
        )

    async def save(self, states: Iterable[tuple[int, State]]) -> None:
        """Save nothing: the count of one process alone is not the state of a key."""


async def check_redis(url: str) -> None:
    """Run each command of the limiter, on keys that expire within a second."""
    client = RedisClient(url)
    heartbeat: Command = ("EVAL", _HEARTBEAT, 1, _CHECK, "", 1)
    try:
        script = BatchedScript(client, _JUDGE.encode(), _CHECK_TIMEOUT)
        await script.run(_CHECKED_KEY, _encode(_CHECK_CALL))
        cleanup: list[Command] = [("ZREM", _CHECK, ""), ("DEL", _CHECKED_KEY)]
        await client.execute([heartbeat, *cleanup], _CHECK_TIMEOUT)
    except CredentialsRefused as error:
        msg = f"redis: {error}; expected a user who can run {_NEEDED} on petstore:*"
        raise PermissionError(msg) from error
    except RedisUnavailable as error:
        raise ConnectionError(f"redis: {error}") from error
    finally:
        await client.close()


def _decided(call: JudgeCall, limits: Limits, reply: Sequence[Any]) -> tuple[Decision, State, int]:
    """Return the decision, the state after it, and 1 if it begins a ban."""
    verdict, now, begins_ban, packed = reply
    state = _decode(packed)
    if call.mode == "look":
        return describe(state, limits, now, call.unbanned_at), state, begins_ban
    of_day = call.mode == "charge" and verdict == b"limited"
    decided = decision(state, limits, now, verdict.decode(), of_day=of_day)
    return decided, state, begins_ban
