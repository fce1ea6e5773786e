"""Passwords: what is one, how it is hashed, and whose turn it is."""

import asyncio
import os
import threading
import unicodedata
from collections.abc import Awaitable
from typing import Literal

import argon2
import pytest
from argon2 import PasswordHasher

from petstore.errors import InvalidBody, Overloaded
from petstore.people import passwords as module
from petstore.people.passwords import AT_ONCE, MAX_WAITING, Asker, Passwords, Rank, has_length
from support.passwords import CHEAP, PASSWORD
from support.waiting import eventually

pytestmark = pytest.mark.anyio

SOMEBODY = Asker("192.0.2.1")


class Gate:
    """Lets ``hash`` of a ``Passwords`` go on only when it is opened, and notes who was served."""

    def __init__(self, passwords: Passwords) -> None:
        self.passwords = passwords
        self.served: list[str] = []
        self._opened = threading.Event()
        self._blocking: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        """Take all turns."""
        for _ in range(AT_ONCE):
            task = self.passwords._run(self._opened.wait, Asker("blocking"))  # noqa: SLF001
            self._blocking.append(asyncio.ensure_future(task))  # type: ignore[arg-type]
        await asyncio.sleep(0)

    async def wait(self, name: str, asker: Asker) -> None:
        """Wait for a turn, and note it."""
        await self.passwords._run(lambda: self.served.append(name), asker)  # noqa: SLF001

    def line_up(self, *names: str, rank: Rank = Rank.USUAL) -> list[asyncio.Task[None]]:
        """Let many wait: the network is the first letter of a name."""
        return [asyncio.create_task(self.wait(name, Asker(name[0], rank))) for name in names]

    def open(self) -> None:
        """Give all turns back."""
        self._opened.set()


@pytest.fixture
def passwords() -> Passwords:
    return Passwords(CHEAP)


@pytest.fixture
async def gate(passwords: Passwords, monkeypatch: pytest.MonkeyPatch) -> Gate:
    monkeypatch.setattr(module, "LONGEST_WAIT", 30)  # on a busy machine
    gate = Gate(passwords)
    await gate.close()
    return gate


async def outcomes(waiting: list[Awaitable[None]]) -> list[str]:
    """Return ``served`` or the name of an error for each."""
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    return ["served" if each is None else type(each).__name__ for each in ended]


# What is a password


@pytest.mark.parametrize("password", ["", "x" * 9, "x" * 201, "a\N{COMBINING ACUTE ACCENT}" * 9])
async def test_too_short_or_too_long_a_password_is_refused(
    passwords: Passwords, password: str
) -> None:
    with pytest.raises(InvalidBody, match=r"^password: expected 10 to 200 characters$"):
        await passwords.hash(password, SOMEBODY)
    known = await passwords.hash(PASSWORD, SOMEBODY)
    assert not await passwords.verify(password, known, SOMEBODY)


@pytest.mark.parametrize(
    "password", ["x" * 10, "x" * 200, " " * 10, "\0" * 10, "\N{DOG FACE}" * 200, "  Käthe\tist da "]
)
async def test_any_characters_can_be_a_password(passwords: Passwords, password: str) -> None:
    known = await passwords.hash(password, SOMEBODY)
    assert await passwords.verify(password, known, SOMEBODY)
    for wrong in (password[:-1] + "y", password.swapcase() + "y"):
        assert not await passwords.verify(wrong, known, SOMEBODY)


async def test_accents_may_be_composed_or_not(passwords: Passwords) -> None:
    composed, apart = (unicodedata.normalize(form, "Käthe Käthe") for form in ("NFC", "NFD"))
    assert composed != apart
    for typed_first, typed_then in ((composed, apart), (apart, composed)):
        known = await passwords.hash(typed_first, SOMEBODY)
        assert await passwords.verify(typed_then, known, SOMEBODY)


# How it is hashed


async def test_a_hash_is_argon2id_with_the_defaults_of_the_library() -> None:
    known = await Passwords().hash(PASSWORD, SOMEBODY)
    parameters = argon2.extract_parameters(known)
    assert parameters == argon2.profiles.RFC_9106_LOW_MEMORY
    assert parameters.type is argon2.Type.ID
    assert known != await Passwords().hash(PASSWORD, SOMEBODY)


async def test_a_hash_with_other_parameters_is_outdated(passwords: Passwords) -> None:
    known = await passwords.hash(PASSWORD, SOMEBODY)
    assert not passwords.is_outdated(known)
    newer = Passwords(PasswordHasher(time_cost=2, memory_cost=8, parallelism=1))
    assert newer.is_outdated(known)
    assert await newer.verify(PASSWORD, known, SOMEBODY)


async def test_no_password_is_right_without_a_hash(passwords: Passwords) -> None:
    assert not await passwords.verify(PASSWORD, None, SOMEBODY)


async def test_an_unknown_login_costs_what_a_known_one_costs() -> None:
    """So nobody learns from the time of a response which logins there are."""
    verified: list[str | bytes] = []

    class Hasher(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002
            verified.append(hash)
            return super().verify(hash, password)

    passwords = Passwords(Hasher())
    known = await passwords.hash(PASSWORD, SOMEBODY)
    for of in (known, None):
        assert not await passwords.verify("wrong password", of, SOMEBODY)
    assert verified[0] == known
    costs = [argon2.extract_parameters(str(each)) for each in verified]
    assert costs == [argon2.extract_parameters(known)] * 2


async def test_hashes_run_after_everything_else_of_the_machine(passwords: Passwords) -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    of_the_loop = priority()
    assert await passwords._run(priority, SOMEBODY) == 19  # noqa: SLF001
    assert priority() == of_the_loop


# Whose turn it is


async def test_networks_take_turns(gate: Gate) -> None:
    waiting = gate.line_up("a1", "a2", "a3", "a4", "b1", "c1", "c2")
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(*waiting)
    # Two are served at once, so neighbours may change places.
    assert {*gate.served[:3]} <= {"a1", "b1", "c1", "a2"}
    assert gate.served.index("b1") < gate.served.index("a3")
    assert gate.served.index("c2") < gate.served.index("a4")


async def test_a_browser_that_knows_the_password_goes_first(gate: Gate) -> None:
    late = gate.line_up(*(f"{n:x}x" for n in range(16)), rank=Rank.BEYOND)
    usual = gate.line_up(*"klmnop")
    known = gate.line_up("z")
    waiting = late + usual + gate.line_up("Z", rank=Rank.KNOWN) + known
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(*waiting)
    assert gate.served.index("Z") < 2
    assert max(gate.served.index(name) for name in "klmnop") < 9


async def test_a_flood_from_one_network_makes_room_for_another(gate: Gate) -> None:
    flood = gate.line_up(*["a"] * MAX_WAITING)
    await asyncio.sleep(0)
    other = gate.line_up("b")
    await eventually(lambda: any(each.done() for each in flood))
    assert [each.done() for each in flood] == [False] * (MAX_WAITING - 1) + [True]
    gate.open()
    assert await outcomes([*flood, *other]) == ["served"] * (MAX_WAITING - 1) + [
        "Overloaded",
        "served",
    ]
    assert gate.served.index("b") < 4


async def test_beyond_its_room_the_longest_line_is_refused(gate: Gate) -> None:
    flood = gate.line_up(*["a"] * MAX_WAITING)
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await gate.wait("a", Asker("a"))
    gate.open()
    assert await outcomes([*flood]) == ["served"] * MAX_WAITING


async def test_a_crowd_of_networks_makes_room_only_for_those_who_go_before_it(gate: Gate) -> None:
    crowd = [
        asyncio.create_task(gate.wait(f"{n}", Asker(f"{n}", Rank.USUAL)))
        for n in range(MAX_WAITING)
    ]
    await asyncio.sleep(0)
    for rank in (Rank.USUAL, Rank.BEYOND):
        with pytest.raises(Overloaded):
            await gate.wait("late", Asker("late", rank))
    first = gate.line_up("Z", rank=Rank.KNOWN)
    await asyncio.sleep(0)
    gate.open()
    served = await outcomes([*first, *crowd])
    assert served.count("Overloaded") == 1
    assert served[0] == "served"
    # Now there is room again.
    assert await gate.passwords.verify(PASSWORD, None, SOMEBODY) is False


async def test_who_has_waited_too_long_is_refused(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST_WAIT", 0)
    refused = gate.line_up("a", "b")
    assert await outcomes([*refused]) == ["Overloaded", "Overloaded"]
    monkeypatch.setattr(module, "LONGEST_WAIT", 30)
    waiting = gate.line_up("a", "c")
    await asyncio.sleep(0)
    gate.open()
    assert await outcomes([*waiting]) == ["served", "served"]
    assert sorted(gate.served) == ["a", "c"]


async def test_who_no_longer_waits_is_left_out_and_makes_room(gate: Gate) -> None:
    gone = gate.line_up(*["a"] * MAX_WAITING)
    await asyncio.sleep(0)
    for each in gone:
        each.cancel()
    other = gate.line_up("b")
    assert await outcomes([*gone]) == ["CancelledError"] * MAX_WAITING
    await asyncio.sleep(0)
    gate.open()
    assert await outcomes([*other]) == ["served"]


async def test_a_turn_that_comes_too_late_is_passed_on(gate: Gate) -> None:
    turns = gate.passwords._turns  # noqa: SLF001
    gone, next_one = gate.line_up("a", "b")
    await asyncio.sleep(0)
    turns._pass_on()  # noqa: SLF001 - the turn comes, and the request ends before it goes on
    gone.cancel()
    assert await outcomes([gone]) == ["CancelledError"]
    gate.open()
    assert await outcomes([next_one]) == ["served"]


async def test_a_refused_request_that_ends_has_no_turn_to_pass_on(gate: Gate) -> None:
    flood = gate.line_up(*["a"] * MAX_WAITING)
    await asyncio.sleep(0)
    first = asyncio.create_task(gate.wait("Z", Asker("Z", Rank.KNOWN)))
    first.add_done_callback(lambda _: None)
    asyncio.get_running_loop().call_soon(flood[-1].cancel)
    await asyncio.sleep(0)
    gate.open()
    served = await outcomes([first, *flood])
    assert served.count("served") == MAX_WAITING
    assert gate.passwords._turns._free <= AT_ONCE  # noqa: SLF001


@pytest.mark.timeout(30)
def test_no_text_takes_its_time_to_be_refused() -> None:
    """Else this would take an hour: marks on one letter are sorted by insertion."""
    assert not has_length("a" + 200_000 * "\u0300" + 200_000 * "\u0316")
