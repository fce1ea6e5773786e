"""People for tests: added as an operator does, and signed in."""

from typing import Any

from petstore.clock import Clock
from petstore.databases.contract import Store, read_unit
from petstore.events.store import Change
from petstore.keys.model import Caller, Environment
from petstore.people.model import Person, PersonCreate
from petstore.people.store import (
    Added,
    add_person,
    change_person,
    find_account,
    find_person,
    invite_person,
)
from support.keys import OPERATOR
from support.stores import do


async def add(
    store: Store,
    clock: Clock,
    *,
    by: Change = OPERATOR,
    environment: Environment = "production",
    **wanted: Any,
) -> Added:
    fields = {"name": "Grace", "login": "grace@shop.example", "role": "clerk"} | wanted
    return await store.write(add_person(PersonCreate(**fields), by.at(clock()), environment))


async def add_active(store: Store, clock: Clock, **wanted: Any) -> Person:
    """Add a person who has a password, which nobody knows."""
    person = (await add(store, clock, **wanted)).person
    await set_some_password(store, person.id)
    return await find_person(store, person.id, None)


async def set_some_password(store: Store, person_id: int, hashed: str = "no hash") -> None:
    """Give a person this hash, by default one that no password has, and end earlier links."""
    await store.write(do("UPDATE people SET password = ?1 WHERE id = ?2", hashed, person_id))
    await store.write(do("DELETE FROM invitations WHERE person_id = ?1", person_id))


async def alter(
    store: Store, clock: Clock, person_id: int, *, by: Change = OPERATOR, **changes: Any
) -> Person:
    return await store.write(change_person(person_id, changes, by.at(clock())))


async def invite(store: Store, clock: Clock, person_id: int, *, by: Change = OPERATOR) -> Added:
    return await store.write(invite_person(person_id, by.at(clock())))


async def caller(store: Store, person_id: int) -> Caller:
    account = await read_unit(store, find_account(person_id))
    assert account is not None
    return account.caller
