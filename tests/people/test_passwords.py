"""Passwords: what is one, and how it is hashed."""

import os
import threading
import unicodedata
from typing import Literal

import argon2
import pytest
from argon2 import PasswordHasher

from petstore.errors import InvalidBody
from petstore.people.passwords import Passwords, check_password, has_length
from support.passwords import CHEAP, LOGIN, PASSWORD

pytestmark = pytest.mark.anyio


@pytest.fixture
def passwords() -> Passwords:
    return Passwords(CHEAP)


@pytest.mark.parametrize("password", ["", "x" * 9, "x" * 201, "a\N{COMBINING ACUTE ACCENT}" * 9])
async def test_a_password_of_wrong_length_is_refused(passwords: Passwords, password: str) -> None:
    with pytest.raises(InvalidBody, match=r"^password: expected 10 to 200 characters$"):
        check_password(password, LOGIN)
    assert not await passwords.verify(password, await passwords.hash(PASSWORD))


@pytest.mark.parametrize(
    ("password", "told"),
    [
        *((each, "one of the most common") for each in ("password123", "QwertyUIOP", "1234567890")),
        *((each, "other than the login") for each in (LOGIN, LOGIN.upper(), f" {LOGIN}!" * 2)),
        ("grace.hopper", "other than the login"),
    ],
)
def test_what_somebody_would_guess_first_is_refused(password: str, told: str) -> None:
    login = "Grace.Hopper@shop.example" if password == "grace.hopper" else LOGIN
    with pytest.raises(InvalidBody, match=f"^password: .*{told}"):
        check_password(password, login)
    check_password(f"{password} 7", "@ada")


async def test_any_characters_can_be_a_password_composed_or_not(passwords: Passwords) -> None:
    texts = ("yx" * 5, "x" * 200, " " * 10, "\0" * 10, "\N{DOG FACE}" * 200, "  Käthe\tist da ")
    for password in texts:
        check_password(password, LOGIN)
        known = await passwords.hash(password)
        assert await passwords.verify(password, known)
        for wrong in (password[:-1] + "y", password.swapcase() + "y"):
            assert not await passwords.verify(wrong, known)
    composed, apart = (unicodedata.normalize(form, "Käthe Käthe") for form in ("NFC", "NFD"))
    assert composed != apart
    for first, then in ((composed, apart), (apart, composed)):
        assert await passwords.verify(then, await passwords.hash(first))


async def test_a_hash_is_argon2id_with_the_defaults_of_the_library() -> None:
    known = await Passwords().hash(PASSWORD)
    parameters = argon2.extract_parameters(known)
    assert parameters == argon2.profiles.RFC_9106_LOW_MEMORY
    assert parameters.type is argon2.Type.ID
    assert known != await Passwords().hash(PASSWORD)


async def test_an_unknown_login_costs_what_a_known_one_costs() -> None:
    """So nobody learns from the time of a response which logins there are."""
    verified: list[str | bytes] = []

    class Hasher(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002
            verified.append(hash)
            return super().verify(hash, password)

    passwords = Passwords(Hasher())
    known = await passwords.hash(PASSWORD)
    for of in (known, None):
        assert not await passwords.verify("wrong password", of)
    assert verified[0] == known
    costs = [argon2.extract_parameters(str(each)) for each in verified]
    assert costs == [argon2.extract_parameters(known)] * 2


async def test_hashes_have_a_lower_priority_than_responses(passwords: Passwords) -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    of_the_loop = priority()
    assert await passwords._run(priority) == 5  # noqa: SLF001
    assert priority() == of_the_loop


@pytest.mark.timeout(30)
def test_no_text_takes_its_time_to_be_refused() -> None:
    """Else this would take an hour: marks on one letter are sorted by insertion."""
    assert not has_length("a" + 200_000 * "\u0300" + 200_000 * "\u0316")
