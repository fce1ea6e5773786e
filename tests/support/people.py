"""People for tests: added as an operator does, and signed in."""

from typing import Any

from petstore.clock import Clock
from petstore.databases.contract import Store
from petstore.keys.model import Caller, Environment
from petstore.keys.store import Principal
from petstore.people.accounts import read_account
from petstore.people.model import Person, PersonCreate
from petstore.people.store import Added, add_person, change_person, find_person, invite_person
from petstore.sessions.store import create_link
from support.keys import OPERATOR
from support.service import Service
from support.stores import do
from support.visitor import Visitor, newcomer


async def add(
    store: Store,
    clock: Clock,
    *,
    by: Principal = OPERATOR,
    environment: Environment = "production",
    **wanted: Any,
) -> Added:
    """Add a person who is invited: Grace, a clerk, but for what is ``wanted``."""
    fields = {"name": "Grace", "login": "grace@shop.example", "role": "clerk"} | wanted
    return await store.write(add_person(PersonCreate(**fields), by, environment, clock()))


async def add_active(store: Store, clock: Clock, **wanted: Any) -> Person:
    """Add a person who has a password, which nobody knows."""
    person = (await add(store, clock, **wanted)).person
    await set_some_password(store, person.id)
    return await find_person(store, person.id, None)


async def set_some_password(store: Store, person_id: int) -> None:
    """Give a person a password that nobody knows."""
    await store.write(do("UPDATE people SET password = 'no hash' WHERE id = ?1", person_id))


async def alter(
    store: Store, clock: Clock, person_id: int, *, by: Principal = OPERATOR, **changes: Any
) -> Person:
    """Change what is named of a person."""
    return await store.write(change_person(person_id, changes, by, clock()))


async def invite(store: Store, clock: Clock, person_id: int, *, by: Principal = OPERATOR) -> Added:
    """Make an invitation for a person."""
    return await store.write(invite_person(person_id, by, clock()))


async def caller(store: Store, person_id: int) -> Caller:
    """Return a person as the service itself sees one who calls."""
    return (await read_account(store, person_id)).caller


async def signed_in_person(service: Service, **wanted: Any) -> Visitor:
    """Return an active person at the console: an administrator, unless another role is wanted."""
    fields = {"name": "Ada", "login": "ada@shop.example", "role": "administrator"} | wanted
    person = await add_active(service.store, service.clock, **fields)
    return await signed_in_again(service, person.id)


async def signed_in_again(service: Service, person_id: int) -> Visitor:
    """Return an active person at the console, with a browser of their own."""
    link = await service.store.write(create_link(person_id, service.clock()))
    visitor = newcomer(service, key_id=person_id)
    await visitor.submit(f"/link/{link}")
    return visitor
