"""People who have a password, and browsers that sign in with it."""

from functools import partial
from typing import Any

import httpx
from argon2 import PasswordHasher

from petstore.people.passwords import Passwords
from support.people import add, set_some_password
from support.service import Service
from support.visitor import Visitor, newcomer

PASSWORD = "correct horse"
OTHER_PASSWORD = "battery staple"
WRONG_PASSWORD = "wrong password"
LOGIN = "grace@shop.example"

CHEAPLY = partial(PasswordHasher, time_cost=1, memory_cost=8, parallelism=1)
CHEAP = CHEAPLY()
"""Hashes in a fraction of a millisecond, for tests of everything but the hash itself."""


async def add_with_password(service: Service, password: str = PASSWORD, **wanted: Any) -> int:
    fields = {"name": "Grace", "login": LOGIN, "role": "clerk"} | wanted
    person = (await add(service.store, service.clock, **fields)).person
    hashed = await Passwords(CHEAP).hash(password)
    await set_some_password(service.store, person.id, hashed)
    return person.id


async def sign_in(
    visitor: Visitor, login: str = LOGIN, password: str = PASSWORD, **others: str
) -> httpx.Response:
    return await visitor.post("/sign-in", login=login, password=password, **others)


async def is_signed_in(visitor: Visitor) -> bool:
    return (await visitor.get("/account")).status_code == 200


async def person_at(service: Service, *, stays: bool = False, **wanted: Any) -> Visitor:
    """Return somebody who has just signed in with a password: Grace, unless others are wanted."""
    person_id = await add_with_password(service, **wanted)
    visitor = newcomer(service, key_id=person_id)
    others = {"stays": "true"} if stays else {}
    response = await sign_in(visitor, wanted.get("login", LOGIN), **others)
    assert response.status_code == 303, response.text
    return visitor
