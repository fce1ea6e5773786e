"""The feed of events, as a client reads it."""

import asyncio
from typing import Any

import httpx
import pytest

from petstore.events.model import IN_FEED, NewEvent
from petstore.events.store import record
from petstore.keys.model import SCOPES
from support.cases import case
from support.error_body import assert_error
from support.history import published
from support.service import SERVICE_URL, Service, running_service
from support.stores import do
from support.waiting import eventually

pytestmark = pytest.mark.anyio

EVENTS = "/v1/events"
BELLA = {"name": "Bella", "categoryId": 1, "status": "available"}
WAIT = 25
RESOURCE = "resource: expected pet, order, category, key, person or webhook, then a slash"
NO_RESOURCES = (
    *("", "pet", "pet/", "/17", "dog/17", "Pet/17", "pets/17", "pet/17/1", "pet 17", " pet/17"),
    *("pet/0", "pet/-1", "pet/+1", "pet/017", "pet/1.0", "pet/1_0", "pet/\uff11", "pet/17\n"),
    *("pet/9223372036854775808", "pet/" + "1" * 20, "pet/" + "1" * 4000, "pet/1\x00"),
)
ACTOR = "actor: expected key or person, then a slash and an id, such as person/2"
NO_ACTORS = ("grace", "person/0", "service/1", "key/9223372036854775808", "key/1\n")
NOT_BACKWARDS = "sort: expected no -sequence together with wait or cursor=latest"


async def add_pets(service: Service, token: str, count: int = 1) -> None:
    for number in range(count):
        pet = BELLA | {"name": f"Bella {number}"}
        assert (await service.request("POST", "/v1/pets", token, json=pet)).status_code == 201


async def follow(service: Service, token: str, target: str, count: int) -> tuple[list[Any], str]:
    events: list[Any] = []
    while len(events) < count:
        response = await service.request("GET", target, token)
        assert response.status_code == 200, response.text
        events += response.json()
        target = response.links["latest"]["url"]
    return events, target


async def listed(service: Service, token: str, query: str) -> list[Any]:
    events, target = [], f"{EVENTS}?{query}"
    while target:
        response = await service.request("GET", target, token)
        assert response.status_code == 200, response.text
        events += response.json()
        target = response.links.get("next", {}).get("url", "")
    return events


async def waiting(service: Service, token: str, **params: Any) -> asyncio.Task[httpx.Response]:
    wanted = {"cursor": "latest", "wait": WAIT, **params}
    feed = service.app.services.feed
    before = feed.waiting
    task = asyncio.create_task(service.request("GET", EVENTS, token, params=wanted))

    async def waits() -> bool:
        return feed.waiting > before or task.done()

    await eventually(waits)
    assert not task.done()
    return task


async def change_key(service: Service, change: str) -> None:
    await service.store.write(do(f"UPDATE api_keys SET {change}"))  # noqa: S608 - no input
    await service.store.write(do("UPDATE api_key_revision SET revision = revision + 1"))


async def test_an_invalid_parameter_is_refused(service: Service) -> None:
    key = await service.issue()
    cursor = "cursor: expected the cursor of a Link header, unchanged"
    wait = "wait: expected an integer from 0 to 25, in plain digits"
    newest = {"sort": "-sequence"}
    for params, expected in (
        ({"limit": "101"}, "limit: expected an integer from 1 to 100, in plain digits"),
        ({"type": "pet.sold"}, "type: expected one of 'pet.created', 'pet.updated', "),
        *(({"wait": text}, wait) for text in ("26", "-1", "1.5")),
        *(({"cursor": text}, cursor) for text in ("A" * 11, "_" * 16, "LATEST", "A" * 16 + ".")),
        *(({"resource": text}, RESOURCE) for text in NO_RESOURCES),
        *(({"actor": text}, ACTOR) for text in NO_ACTORS),
        *((each | newest, NOT_BACKWARDS) for each in ({"wait": "1"}, {"cursor": "latest"})),
        ({"sort": ""}, "sort: expected one of 'sequence', '-sequence'"),
    ):
        with case(params):
            response = await service.request("GET", EVENTS, key.token, params=params)
            assert assert_error(response, 400, "invalid_parameter").startswith(expected)


@pytest.mark.parametrize(
    ("query", "scope"),
    [
        ("type=order.placed", "orders:read"),
        ("resource=order/1", "orders:read"),
        ("resource=pet/1", "pets:read"),
        ("resource=category/1", "pets:read"),
        ("type=key.created", "keys:admin"),
        ("type=person.updated&type=webhook.test", "keys:admin"),
        ("resource=person/2", "keys:admin"),
    ],
)
async def test_what_is_beyond_the_scopes_of_the_key_is_refused(
    service: Service, query: str, scope: str
) -> None:
    key = await service.issue(scopes=frozenset({"webhooks:write"}))
    response = await service.request("GET", f"{EVENTS}?{query}", key.token)
    assert_error(response, 403, "missing_scope")
    assert f'scope="{scope}"' in response.headers["WWW-Authenticate"]


@pytest.mark.each_database
async def test_an_update_event_has_the_old_and_the_new_values(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token)
    changes = {"status": "sold", "name": "Rex"}
    await service.request("PATCH", "/v1/pets/1", key.token, json=changes)
    await service.request("DELETE", "/v1/pets/1", key.token)
    events, _ = await follow(service, key.token, f"{EVENTS}?wait={WAIT}", 3)
    ids = [event.pop("id") for event in events]
    requests = {event.pop("requestId") for event in events}
    assert len(set(ids)) == len(requests) == 3
    assert all(event_id.startswith("evt_") and "." not in event_id for event_id in ids)
    pet = {"id": 1, "name": "Bella 0", "categoryId": 1, "status": "available"}
    common = {
        "timestamp": "2026-12-01T12:00:00.000Z",
        "resource": "pet/1",
        "actor": {"type": "key", "id": key.id},
    }
    assert events == [
        {"type": "pet.created", **common, "sequence": 2, "data": pet},
        {
            "type": "pet.updated",
            **common,
            "sequence": 3,
            "data": pet | changes,
            "previous": {"name": "Bella 0", "status": "available"},
        },
        {"type": "pet.deleted", **common, "sequence": 4, "data": pet | changes},
    ]


@pytest.mark.each_database
async def test_the_list_ends_at_the_newest_event_and_resumes_there(service: Service) -> None:
    key = await service.issue()
    response = await service.request("GET", f"{EVENTS}?limit=2&type=pet.created", key.token)
    assert (response.status_code, response.json(), set(response.links)) == (200, [], {"latest"})
    target, pages = response.links["latest"]["url"], []
    await add_pets(service, key.token, 5)
    newest = f"{EVENTS}?sort=-sequence&limit=2"  # begins with what was just committed
    for first in (5, 3):
        response = await service.request("GET", newest, key.token)
        assert [event["resource"] for event in response.json()] == [
            f"pet/{first}",
            f"pet/{first - 1}",
        ]
        assert set(response.links) == {"next"}
        newest = response.links["next"]["url"]
    await published(service.store)
    while target:
        response = await service.request("GET", target, key.token)
        pages.append([event["sequence"] for event in response.json()])
        latest = response.links["latest"]
        assert response.links.get("next", latest)["url"] == latest["url"]
        target = response.links.get("next", {}).get("url", "")
    assert pages == [[2, 3], [4, 5], [6]]
    await add_pets(service, key.token)
    await published(service.store)
    events, target = await follow(service, key.token, latest["url"], 1)
    assert [event["sequence"] for event in events] == [7]
    response = await service.request("GET", f"{target}&wait=1", key.token)
    assert (response.status_code, response.json()) == (200, [])
    assert response.links["latest"]["url"].endswith(target.partition("cursor=")[2])


@pytest.mark.each_database
async def test_events_are_filtered_by_type_resource_and_scope_and_the_link_keeps_the_filter(
    service: Service,
) -> None:
    key = await service.issue()
    await add_pets(service, key.token, 3)
    for pet_id in (2, 3):
        await service.request("PATCH", f"/v1/pets/{pet_id}", key.token, json={"name": "Rex"})
    await service.request("POST", "/v1/categories", key.token, json={"name": "Dogs"})
    await service.request("POST", "/v1/store/orders", key.token, json={"petId": 2})
    await service.request("DELETE", "/v1/pets/3", key.token)
    for query, told in (
        ("type=category.created&type=order.placed", "category.created order.placed"),
        ("resource=pet%2F2&limit=2", "pet.created pet.updated pet.updated"),
        ("type=pet.deleted&resource=pet%2F3", "pet.deleted"),
        ("resource=order%2F1", "order.placed"),
    ):
        with case(query):
            kinds = told.split()
            target = f"{EVENTS}?{query}&wait={WAIT}"
            events, target = await follow(service, key.token, target, len(kinds))
            assert [event["type"] for event in events] == kinds
            assert target.startswith(f"{SERVICE_URL}{EVENTS}?{query}&wait={WAIT}&cursor=")
    response = await service.request("GET", f"{EVENTS}?resource=pet/4", key.token)
    assert (response.status_code, response.json()) == (200, [])
    assert set(response.links) == {"latest"}
    reader = await service.issue(scopes=frozenset({"orders:read"}))
    events, _ = await follow(service, reader.token, EVENTS, 1)
    assert [event["type"] for event in events] == ["order.placed"]


@pytest.mark.each_database
async def test_only_the_key_itself_sees_events_about_it_and_its_webhooks(service: Service) -> None:
    scopes = frozenset({"webhooks:write"})
    mine, other = await service.issue(scopes=scopes), await service.issue(scopes=scopes)

    def warn() -> Any:
        yield record(0, NewEvent("key.banned", f"key/{mine.id}", {}, key_id=mine.id))

    task = await waiting(service, mine.token)
    await service.store.write(warn())
    assert [event["type"] for event in (await task).json()] == ["key.banned"]
    webhook = {"url": "https://shop.example/hooks"}
    await service.request("POST", "/v1/webhooks", mine.token, json=webhook)
    await service.request("POST", "/v1/webhooks/1/test", mine.token)
    await published(service.store)
    for query, count in (("", 2), ("resource=webhook/1", 1), (f"resource=key/{mine.id}", 1)):
        assert len(await listed(service, mine.token, query)) == count
        assert await listed(service, other.token, query) == []


@pytest.mark.each_database
async def test_a_long_poll_ends_with_its_event_and_counts_once(service: Service) -> None:
    key = await service.issue(per_minute=10)
    await add_pets(service, key.token, 2)
    await published(service.store)
    polls = [await waiting(service, key.token, **each) for each in ({}, {"resource": "pet/2"})]
    for pet_id in (1, 2):
        await service.request("PATCH", f"/v1/pets/{pet_id}", key.token, json={"name": "Rex"})
    any_pet, of_one = await asyncio.gather(*polls)
    assert any_pet.json()[0]["resource"] == "pet/1"
    assert [event["resource"] for event in of_one.json()] == ["pet/2"]
    cursor = of_one.links["latest"]["url"].partition("cursor=")[2]
    assert IN_FEED.decode(cursor).sequence == 5
    assert of_one.headers["X-RateLimit-Remaining"] == "4"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ("revoked_at = 1", 401, "invalid_api_key"),
        ("allowed_networks = '203.0.113.0/24'", 403, "network_not_allowed"),
    ],
)
async def test_a_key_that_becomes_invalid_during_a_long_poll_gets_no_events(
    service: Service, change: str, status: int, code: str
) -> None:
    key, other = await service.issue(), await service.issue()
    task = await waiting(service, key.token)
    await change_key(service, f"{change} WHERE id = {key.id}")
    await service.status_becomes(key.token, status)
    await add_pets(service, other.token)
    assert_error(await task, status, code)


async def test_a_key_that_loses_scopes_during_a_long_poll_gets_no_events_of_them(
    service: Service,
) -> None:
    key, other = await service.issue(scopes=frozenset(SCOPES)), await service.issue()
    refused, empty = [
        [await waiting(service, key.token, **{name: value}) for name, value in wanted]
        for wanted in (
            (("type", "pet.created"), ("resource", "pet/1"), ("type", "key.created")),
            (("limit", "20"), ("resource", "key/3")),
        )
    ]
    await change_key(service, f"scopes = 'orders:read' WHERE id = {key.id}")
    await service.status_becomes(key.token, 403, "/v1/pets")
    await add_pets(service, other.token)
    await service.issue()
    for poll in refused:
        assert_error(await poll, 403, "missing_scope")
    service.app.shut_down()
    for poll in empty:
        assert ((await poll).status_code, (await poll).json()) == (200, [])


@pytest.mark.each_database
async def test_one_request_searches_a_bounded_part_of_the_feed(service: Service) -> None:
    key = await service.issue()

    def many() -> Any:
        for _ in range(25):
            yield record(0, *[NewEvent("pet.updated", "pet/1", {})] * 1000)
        yield record(0, NewEvent("pet.deleted", "pet/1", {}))

    await service.store.write(many())
    await published(service.store)
    target = f"{EVENTS}?type=pet.deleted&wait={WAIT}"
    response = await service.request("GET", target, key.token)
    assert response.json() == []
    events, _ = await follow(service, key.token, response.links["latest"]["url"], 1)
    assert [event["sequence"] for event in events] == [25_002]


@pytest.mark.each_database
async def test_only_administrators_see_what_happened_to_keys_and_people(
    service: Service, address: str
) -> None:
    admin = await service.issue(scopes=frozenset(SCOPES))
    person = {"name": "Grace", "login": "grace@shop.example", "role": "clerk"}
    await service.request("POST", "/v1/people", admin.token, json=person)
    thief = await service.issue(scopes=frozenset({"pets:read"}))
    await service.request("PATCH", "/v1/keys/3", admin.token, json={"plan": "pro"})
    await service.request("POST", "/v1/keys/3/rotate", admin.token, json={"graceSeconds": 3600})
    events = await listed(service, admin.token, "sort=-sequence&limit=2")
    operator, key = {"type": "operator"}, {"type": "key", "id": 1}
    assert [(event["type"], event["resource"], event["actor"]) for event in events] == [
        ("key.rotated", "key/3", key),
        ("key.updated", "key/3", key),
        ("key.created", "key/3", operator),
        ("person.invited", "person/2", key),
        ("person.created", "person/2", key),
        ("key.created", "key/1", operator),
    ]
    rotated, updated, *_ = events
    assert rotated["data"] == (await service.request("GET", "/v1/keys/3", admin.token)).json()
    assert rotated["previous"] == {"tokenEnds": updated["data"]["tokenEnds"]}
    assert updated["data"] == rotated["data"] | rotated["previous"]
    assert updated["previous"] == {"plan": "enterprise", "perMinute": None, "perDay": None}
    assert "ps_live" not in repr(events)
    for query, count in (
        *(("resource=key/3", 3), ("resource=person/2", 2), ("actor=operator", 2)),
        *(("actor=key/1&type=person.created", 1), ("type=key.rotated&resource=key/3", 1)),
    ):
        assert len(await listed(service, admin.token, query)) == count
    other = await service.issue(scopes=frozenset(SCOPES), environment="staging")
    await add_pets(service, admin.token)
    await published(service.store)
    cursors = []
    for sort in ("sequence", "-sequence"):
        query = f"{EVENTS}?sort={sort}&limit=1"
        cursors.append((await service.request("GET", query, admin.token)).links["next"]["url"])
    async with running_service(address, environment="staging") as staging:
        for place, token in ((service, thief.token), (staging, other.token)):
            for query in (
                *("", "sort=-sequence", "actor=operator", "actor=key/1&sort=-sequence"),
                *("resource=key/1", "resource=key/3&sort=-sequence", "cursor=latest"),
                *(cursor.partition("?")[2] for cursor in cursors),
            ):
                with case(query):
                    seen = {event["resource"] for event in await listed(place, token, query)}
                    assert seen <= {"pet/1", f"key/{other.id}"}
