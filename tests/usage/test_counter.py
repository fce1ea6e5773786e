"""Counts: in memory until they are saved, then in rows that all processes share and list."""

import asyncio
import json
from typing import Any, cast

import pytest

from petstore.clock import DAY, MINUTE, Milliseconds, rfc3339, system_clock
from petstore.databases.contract import Store, T, Unit
from petstore.errors import Unavailable
from petstore.interface.operations import OPERATIONS
from petstore.keys.model import SCOPES
from petstore.usage.counter import (
    Counter,
    first_hour,
    list_uses,
    select_counts,
    select_uses,
    text_of,
)
from petstore.usage.operations import deprecated_operations
from support.command import Command
from support.keys import issue
from support.manual_clock import ManualClock
from support.retention import prune_table
from support.service import Service, running_service
from support.stores import open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOON = 498_924  # an hour


def count(counter: Counter, *names: str, key_id: int = 1, hour: int = NOON) -> None:
    for name in names:
        counter.count("response", key_id, name, hour)


async def saved(store: Store, key_id: int = 1) -> dict[str, int]:
    rows = await store.read(select_counts("response", key_id, NOON))
    return {name: requests for name, _, requests in rows}


async def test_counts_are_added_up_by_kind_key_name_and_hour(store: Store) -> None:
    counter = Counter(store)
    count(counter, "200", "429", "200")
    count(counter, "404", key_id=2)
    count(counter, "200", hour=NOON - 1)
    counter.count("refused", 1, "listPets", NOON)
    for _ in range(2):
        await counter.save()
        assert await saved(store) == {"200": 2, "429": 1}
        assert await saved(store, 2) == {"404": 1}
    assert await store.read(select_counts("refused", 1, NOON)) == [("listPets", NOON, 1)]
    count(counter, "200")
    await counter.save()
    assert await saved(store) == {"200": 3, "429": 1}


async def test_processes_that_save_at_once_add_to_the_same_rows(store: Store) -> None:
    processes = [Counter(store) for _ in range(8)]
    for counter in processes:
        count(counter, *5 * ("404", "429", "200"))
    await asyncio.gather(*(counter.save() for counter in processes))
    assert await saved(store) == {"200": 40, "404": 40, "429": 40}


@pytest.mark.parametrize("spared", [0, 1])
async def test_a_failed_save_adds_each_count_once(store: Store, spared: int) -> None:
    names = [f"{number}" for number in range(600)]

    class Faulty:
        """Fails once some changes were spared."""

        read = store.read
        left = 0

        async def write(self, unit: Unit[T]) -> T:
            if self.left == 0:
                unit.close()
                raise Unavailable(str(unit))
            self.left -= 1
            return await store.write(unit)

    faulty = Faulty()
    counter = Counter(cast("Store", faulty))
    for _ in range(3):
        faulty.left = spared
        count(counter, *names)
        with pytest.raises(Unavailable):
            await counter.save()
    faulty.left = 99
    for _ in range(2):
        await counter.save()
    assert await saved(store) == dict.fromkeys(names, 3)


async def test_two_saves_at_once_add_a_count_once_and_one_during_them_later(store: Store) -> None:
    counter = Counter(store)
    count(counter, "200")
    await asyncio.gather(counter.save(), counter.save())
    assert await saved(store) == {"200": 1}
    saving = asyncio.create_task(counter.save())
    count(counter, "200")
    await asyncio.sleep(0)
    count(counter, "200")
    await saving
    await counter.save()
    assert await saved(store) == {"200": 3}


async def test_the_latest_request_is_kept(store: Store, clock: ManualClock) -> None:
    old, new = Counter(store), Counter(store)
    old.count("deprecated", 1, "getPet", NOON, (clock(), b"old/1", "r1"))
    new.count("deprecated", 1, "getPet", NOON, (clock() + 1, b"new/1", "r2"))
    new.count("deprecated", 1, "getPet", NOON, (clock() + 2, b"new/2", "r3"))
    for counter in (new, old):
        await counter.save()
    ((_, _, _, *found),) = await store.read(select_uses(clock(), 1))
    assert found == [3, f'[{clock() + 2},"new/2","r3"]']


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (None, ""),
        (b"", ""),
        (b"shop/1.4 (Linux)", "shop/1.4 (Linux)"),
        (b"x" * 5_000, "x" * 100),
        ("\N{DOG FACE}".encode() * 101, "\N{DOG FACE}" * 100),
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}"),
        ("a\x1b[31m\n\u202eevil\x00".encode(), "a?[31m??evil?"),
    ],
)
def test_a_user_agent_is_kept_as_up_to_100_printable_characters(
    sent: bytes | None, kept: str
) -> None:
    assert text_of((1, sent, "r1")) == f'[1,"{kept}","r1"]'


async def test_the_newest_thousand_counts_are_read(store: Store) -> None:
    counter = Counter(store)
    count(counter, *(f"operation{number:04}" for number in range(1001)))
    count(counter, "getPet", hour=NOON + 1)
    await counter.save()
    found = [name for name, *_ in await store.read(select_counts("response", 1, NOON))]
    assert (len(found), found[:2]) == (1000, ["getPet", "operation0000"])


async def test_counts_are_deleted_after_31_days(store: Store, clock: ManualClock) -> None:
    today, counter = clock() // DAY, Counter(store)
    for day in range(today - 600, today + 1):
        counter.count("response", 1, "200", first_hour(day))
    await counter.save()
    deleted = [await store.write(prune_table("counts", clock() - 31 * DAY)) for _ in range(3)]
    assert deleted == [500, 70, 0]
    hours = [hour for _, hour, _ in await store.read(select_counts("response", 1, 0))]
    assert hours == [first_hour(today - back) for back in range(31)]


# Calls of deprecated operations, as their key and as administrators of keys see them


ALL = frozenset(SCOPES)
SUNSET = 1_922_659_200_000  # 2030-12-05T00:00:00Z
GET_PET = {
    "operation": "getPet",
    "method": "GET",
    "path": "/v1/pets/{petId}",
    "since": "2026-11-21T00:00:00Z",
    "sunset": "2030-12-05T00:00:00Z",
    "use": "GET /v1/pets, with id for one pet or with status",
    "documentation": "/docs/operations/getPet",
}


async def get_pet(
    service: Service, token: str, request_id: str = "r1", method: str = "GET", pet: object = 7
) -> int:
    headers = {"User-Agent": "shop/1.4", "X-Request-Id": request_id}
    response = await service.request(method, f"/v1/pets/{pet}", token, headers=headers)
    return response.status_code


async def deprecated(service: Service, token: str) -> list[dict[str, Any]]:
    await service.app.services.counter.save()
    usage: dict[str, Any] = (await service.request("GET", "/v1/usage", token)).json()
    found: list[dict[str, Any]] = usage["deprecated"]
    return found


async def listed(service: Service, token: str) -> list[dict[str, Any]]:
    response = await service.request("GET", "/v1/deprecations", token)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()
    return found


async def test_every_call_with_a_valid_key_counts_whatever_its_outcome(service: Service) -> None:
    key = await service.issue()
    await service.request("POST", "/v1/pets", key.token, json={"name": "Bella", "categoryId": 1})
    calls = [("GET", 1), ("GET", 7), ("GET", "x"), ("HEAD", 7)]
    outcomes = [await get_pet(service, key.token, method=method, pet=pet) for method, pet in calls]
    assert outcomes == [200, 404, 404, 404]
    assert [use["calls"] for use in await deprecated(service, key.token)] == [4]
    unscoped = await service.issue(scopes=frozenset())
    assert await get_pet(service, unscoped.token) == 403
    assert [use["calls"] for use in await deprecated(service, unscoped.token)] == [1]
    service.clock.now = SUNSET
    assert await get_pet(service, key.token) == 410
    assert [use["calls"] for use in await deprecated(service, key.token)] == [1]


async def test_a_call_that_is_not_admitted_does_not_count(service: Service) -> None:
    key = await service.issue(per_minute=1)
    away = await service.issue(allowed_networks=("192.0.2.0/24",))
    admin = await service.issue(scopes=ALL)
    outcomes = [await get_pet(service, token) for token in (key.token, key.token, away.token, "x")]
    assert outcomes == [404, 429, 403, 401]
    await service.request("GET", "/v1/pets?id=1", admin.token)
    await service.app.services.counter.save()
    assert [use["calls"] for use in await listed(service, admin.token)] == [1]


async def test_a_key_sees_the_number_and_the_time_of_its_calls(address: str) -> None:
    async with running_service(address, limits_save_seconds=60) as service:
        key, other = await service.issue("free"), await service.issue("free")
        await get_pet(service, key.token)
        service.clock.now += MINUTE
        await get_pet(service, key.token, "r2")
        last = {"lastCalledAt": "2026-12-01T12:01:00Z", "lastUserAgent": "shop/1.4"}
        used = GET_PET | last | {"calls": 2, "lastRequestId": "r2"}
        assert await deprecated(service, key.token) == [used]
        assert await deprecated(service, other.token) == []


async def test_administrators_list_the_keys_of_their_environment_in_pages(
    service: Service, address: str
) -> None:
    admin = await service.issue(scopes=ALL, name="admin")
    for number in range(3):
        await get_pet(service, (await service.issue(name=f"shop {number}")).token)
    await service.app.services.counter.save()
    found, path = [], "/v1/deprecations?limit=2"
    for count in (2, 1):
        response = await service.request("GET", path, admin.token)
        assert response.headers["Cache-Control"] == "no-store"
        assert len(response.json()) == count
        found += response.json()
        path = response.links.get("next", {}).get("url", "")
    assert path == ""
    keys = [(use["keyId"], use["keyName"]) for use in found]
    assert keys == [(2, "shop 0"), (3, "shop 1"), (4, "shop 2")]
    assert found[0].items() >= GET_PET.items()
    async with running_service(address, environment="staging") as staging:
        other = await staging.issue(scopes=ALL)
        assert await listed(staging, other.token) == []


async def test_the_days_add_up_to_the_last_call(store: Store, clock: ManualClock) -> None:
    key, counter = await issue(store, clock), Counter(store)

    async def use() -> list[tuple[int, str]]:
        operations = deprecated_operations(OPERATIONS)
        page = await list_uses(store, operations, None, None, 100, clock())
        return [(each.calls, each.last_user_agent) for each in page.items]

    for day in range(3):
        for _ in range(day + 1):
            latest = (clock(), b"shop/%d" % day, "r1")
            counter.count("deprecated", key.id, "getPet", first_hour(clock() // DAY), latest)
        await counter.save()
        clock.now += DAY
    assert await use() == [(6, "shop/2")]
    clock.now += 27 * DAY
    assert await use() == [(5, "shop/2")]
    clock.now += 2 * DAY
    assert await use() == []


def test_calls_are_listed_as_a_table_and_as_json(command: Command) -> None:
    for environment in ("production", "production", "staging"):
        command.create_key("--environment", environment)
    now = system_clock()

    async def call(at: Milliseconds, *user_agents: bytes) -> None:
        async with open_store(command.database) as store:
            counter, hour = Counter(store), first_hour(at // DAY)
            for key_id, user_agent in enumerate(user_agents, 1):
                counter.count("deprecated", key_id, "getPet", hour, (at, user_agent, "r"))
            await counter.save()

    asyncio.run(call(now - 31 * DAY, b"old"))
    asyncio.run(call(now, b"shop/1.4", b"till", b"test"))
    header, first, second = command.succeed("deprecations").splitlines()
    assert " ".join(header.split()) == "key key name operation calls last called sunset use"
    use = f"1 app getPet 1 {rfc3339(now)} 2030-12-05T00:00:00Z {GET_PET['use']}"
    assert " ".join(first.split()) == use
    assert second.split()[0] == "2"
    one, _ = json.loads(command.succeed("deprecations", "--json"))
    assert one == GET_PET | {
        "keyId": 1,
        "keyName": "app",
        "calls": 1,
        "lastCalledAt": rfc3339(now),
        "lastUserAgent": "shop/1.4",
        "lastRequestId": "r",
    }
