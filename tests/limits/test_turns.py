"""How many at once, in which order, and who has to wait for whom."""

import asyncio

import pytest

from petstore.errors import RateLimitExceeded
from petstore.limits.admission import Turns

pytestmark = pytest.mark.anyio


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
