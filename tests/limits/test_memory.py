"""What the limiters of one process keep in memory and forget, and how requests take turns."""

import asyncio
from pathlib import Path

import pytest

from petstore.databases.sqlite import SqliteStore
from petstore.errors import RateLimitExceeded, Unavailable
from petstore.keys.model import Caller
from petstore.limits.admission import Turns
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import BanRules, Budget, LimitWindow
from petstore.limits.memory import MemoryLimiter, MinuteLimiter
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.stores import do, locked

pytestmark = pytest.mark.anyio

NOON = 20_788 * 86_400 + 43_200


@pytest.fixture
def limiter(states: StoredRateLimits, clock: ManualClock) -> MemoryLimiter:
    return MemoryLimiter(states, clock, BanRules())


async def used_today(limiter: MemoryLimiter, key: Caller) -> int:
    return (await limiter.look(key)).day_used


async def write_900(store: SqliteStore) -> None:
    """Let the database say that each key was used so often: more than any limiter has counted."""
    await store.write(do("UPDATE rate_limits SET day_used = 900"))


async def test_an_idle_key_is_evicted_while_others_are_active(
    limiter: MemoryLimiter, key: Caller, store: SqliteStore, clock: ManualClock
) -> None:
    busy = await issue_stored(store, clock)
    await limiter.take(key)
    for count in range(1, 6):
        await limiter.take(busy)
        # The second request comes while the save is under way.
        await asyncio.gather(limiter.save(), limiter.take(busy))
        await limiter.heartbeat()
        clock.advance(100)
        assert await used_today(limiter, busy) == 2 * count
        await write_900(store)
    assert await used_today(limiter, key) == 900
    await limiter.close()


async def test_an_idle_key_is_kept_in_memory_for_at_least_two_minutes(
    limiter: MemoryLimiter, key: Caller, store: SqliteStore, clock: ManualClock
) -> None:
    clock.advance(119)
    await limiter.take(key)
    await limiter.save()
    await write_900(store)
    clock.advance(119)
    await limiter.save()
    assert await used_today(limiter, key) == 1


async def test_keys_are_not_evicted_before_they_are_saved(
    limiter: MemoryLimiter, key: Caller, clock: ManualClock, store: SqliteStore, database: Path
) -> None:
    await limiter.take(key)
    with locked(database, store):
        for _ in range(3):
            clock.advance(600)
            with pytest.raises(Unavailable):
                await limiter.save()
    assert await used_today(limiter, key) == 1


def limiter_of(clock: ManualClock, per_minute: int, capacity: int = 10) -> MinuteLimiter[int]:
    return MinuteLimiter(clock, Budget("name", "words", per_minute, capacity))


def verdicts(limiter: MinuteLimiter[int], subject: int, times: int, **lower: int) -> list[bool]:
    return [limiter.take(subject, **lower).verdict == "admitted" for _ in range(times)]


def test_each_holder_has_so_many_requests_a_minute_and_is_never_banned(clock: ManualClock) -> None:
    limiter = limiter_of(clock, 2)
    for _ in range(100):  # a strike each time, of a key
        assert verdicts(limiter, 1, 30) == [True] * 2 + [False] * 28
        assert limiter.take(1).verdict == "limited"
        assert limiter.take(1).described == LimitWindow(2, 0, clock() // 1000 + 60)
        assert verdicts(limiter, 2, 1) == [True]
        clock.advance(59.999)
        assert verdicts(limiter, 1, 1) == [False]
        clock.advance(0.001)


def test_a_holder_can_have_a_lower_limit_but_not_a_higher_one(clock: ManualClock) -> None:
    limiter = limiter_of(clock, 2)
    assert verdicts(limiter, 1, 2, per_minute=1) == [True, False]
    assert verdicts(limiter, 2, 3, per_minute=9) == [True, True, False]


@pytest.mark.parametrize(
    ("taken", "remembered"),
    [
        ([(0, 1), (1, 2), (1, 3), (1, 1), (1, 4)], {2, 3, 4}),  # the oldest window goes
        ([(0, 1), (59, 2), (1, 1), (0, 3), (0, 4)], {1, 3, 4}),  # a new one is the newest
        ([(0, 1), (0, 2), (-3600, 1), (0, 3), (0, 4)], {1, 3, 4}),  # the clock was ahead
        ([(0, each) for each in range(1, 500)], {497, 498, 499}),
    ],
)
def test_a_full_table_forgets_the_oldest_window(
    clock: ManualClock, taken: list[tuple[float, int]], remembered: set[int]
) -> None:
    limiter = limiter_of(clock, 1, capacity=3)
    for seconds, subject in taken:
        clock.advance(seconds)
        limiter.take(subject)
    assert {each for each in range(1, 500) if not limiter.look(each).minute.remaining} == remembered


def test_a_request_that_is_given_back_may_be_used_again_and_takes_no_room(
    clock: ManualClock,
) -> None:
    limiter = limiter_of(clock, 2, capacity=2)
    limiter.give_back(1)
    assert verdicts(limiter, 1, 2) == [True, True]
    limiter.give_back(1)
    assert verdicts(limiter, 1, 2) == [True, False]
    for other in range(2, 10):
        limiter.take(other)
        limiter.give_back(other)
    assert verdicts(limiter, 1, 1) == [False]


# Turns: how many at once, in which order, and who has to wait for whom


class Gate:
    """Takes both turns until it is opened, and notes who had one then."""

    def __init__(self, seconds: float) -> None:
        self.turns = Turns("works", 2, seconds=seconds)
        self.served: list[str] = []
        self._opened = asyncio.Event()
        self._blocking = [asyncio.create_task(self._block(number)) for number in range(2)]

    def line_up(self, *names: str, goes_first: bool = True) -> list[asyncio.Task[None]]:
        """Let many wait: the first letter is the name that a turn is for."""
        return [asyncio.create_task(self._wait(name, goes_first)) for name in names]

    async def open(self) -> None:
        """Give all turns back, once everybody waits."""
        await asyncio.sleep(0)
        self._opened.set()

    async def _block(self, number: int) -> None:
        with await self.turns.take(number):
            await self._opened.wait()

    async def _wait(self, name: str, goes_first: bool) -> None:  # noqa: FBT001 - its only flag
        with await self.turns.take(name[0], goes_first=goes_first):
            self.served.append(name)
            await asyncio.sleep(0)


@pytest.fixture
async def gate() -> Gate:
    gate = Gate(seconds=30)
    await asyncio.sleep(0)
    return gate


async def outcomes(waiting: list[asyncio.Task[None]]) -> list[str]:
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    return ["served" if each is None else type(each).__name__ for each in ended]


async def test_those_of_a_name_come_in_order_and_delay_no_other_name(gate: Gate) -> None:
    crowd = [f"a{number}" for number in range(50)]
    waiting = gate.line_up(*crowd, "b", "c", goes_first=False)
    await gate.open()
    assert await outcomes(waiting) == ["served"] * 52
    assert {name[0] for name in gate.served[:4]} == {"a", "b", "c"}
    assert [name for name in gate.served if name[0] == "a"] == crowd


async def test_who_goes_first_waits_only_for_others_who_do(gate: Gate) -> None:
    waiting = gate.line_up(*"abcdefghijklmnop", goes_first=False) + gate.line_up("Z")
    await gate.open()
    await asyncio.gather(*waiting)
    assert gate.served.index("Z") <= 2


async def test_who_has_waited_too_long_is_refused() -> None:
    gate = Gate(seconds=0)
    await asyncio.sleep(0)
    refused = gate.line_up("a", "b", goes_first=False) + gate.line_up("Z")
    assert await outcomes(refused) == ["Overloaded"] * 3
    await gate.open()
    await asyncio.sleep(0)
    assert await outcomes(gate.line_up("a", "Z")) == ["served"] * 2


async def test_who_no_longer_waits_is_left_out(gate: Gate) -> None:
    gone = gate.line_up(*"aaabcd")
    await asyncio.sleep(0)
    for each in gone:
        each.cancel()
    others = gate.line_up(*"abe")
    assert await outcomes(gone) == ["CancelledError"] * 6
    await gate.open()
    assert await outcomes(others) == ["served"] * 3


async def test_beyond_its_turns_a_name_is_refused_until_one_ends() -> None:
    turns = Turns("works", each=2, refusal="two at once")
    first, second = [await turns.take("a") for _ in range(2)]
    with pytest.raises(RateLimitExceeded, match=r"^two at once$") as caught:
        await turns.take("a")
    assert (caught.value.limit, caught.value.headers) == ("works", {"Retry-After": "1"})
    (await turns.take("b")).close()
    first.close()
    with await turns.take("a"), second:
        pass
