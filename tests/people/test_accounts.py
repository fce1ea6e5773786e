"""The accounts of people, by their logins."""

import pytest

from petstore.databases.contract import Store, read_unit
from petstore.keys.model import Environment
from petstore.people.store import find_account_by_login
from support.manual_clock import ManualClock
from support.people import add

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

LOGIN = "Käthe@shop.example"


async def found(store: Store, login: str, environment: Environment = "production") -> int | None:
    account = await read_unit(store, find_account_by_login(login, environment))
    return None if account is None else account.caller.id


async def test_a_login_is_found_in_any_case_and_in_its_environment(
    store: Store, clock: ManualClock
) -> None:
    person_id = (await add(store, clock, login=LOGIN)).person.id
    for login in (LOGIN, "käthe@SHOP.example", "KA\N{COMBINING DIAERESIS}THE@shop.example"):
        assert await found(store, login) == person_id
        assert await found(store, login, "staging") is None
    for other in ("", "käthe", f"{LOGIN} ", f"{LOGIN}\0", "x" * 100, LOGIN * 9):
        assert await found(store, other) is None
