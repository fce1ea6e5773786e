"""The feed of events, as a client reads it."""

import asyncio
from typing import Any

import httpx
import pytest

from petstore.events.model import IN_FEED, NewEvent, Position
from petstore.events.store import record
from support.cases import case
from support.error_body import assert_error
from support.service import SERVICE_URL, Service
from support.stores import do
from support.waiting import eventually

pytestmark = pytest.mark.anyio

EVENTS = "/v1/events"
BELLA = {"name": "Bella", "categoryId": 1, "status": "available"}
WAIT = 25
RESOURCE = "resource: expected pet, order, category, key or webhook, then a slash"
NO_RESOURCES = (
    *("", "pet", "pet/", "/17", "dog/17", "Pet/17", "pets/17", "pet/17/1", "pet 17", " pet/17"),
    *("pet/0", "pet/-1", "pet/+1", "pet/017", "pet/1.0", "pet/1_0", "pet/\uff11", "pet/17\n"),
    *("pet/9223372036854775808", "pet/" + "1" * 20, "pet/" + "1" * 4000, "pet/1\x00"),
)


async def add_pets(service: Service, token: str, count: int = 1) -> None:
    for number in range(count):
        pet = BELLA | {"name": f"Bella {number}"}
        assert (await service.request("POST", "/v1/pets", token, json=pet)).status_code == 201


async def follow(service: Service, token: str, target: str, count: int) -> tuple[list[Any], str]:
    """Follow the feed from ``target`` to ``count`` events; return them and where it goes on."""
    events: list[Any] = []
    while len(events) < count:
        response = await service.request("GET", target, token)
        assert response.status_code == 200, response.text
        events += response.json()
        target = response.links["latest"]["url"]
    return events, target


async def waiting(service: Service, token: str, **params: Any) -> asyncio.Task[httpx.Response]:
    """Begin to wait for an event, and return once the service waits."""
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
    """Change a key as another process does."""
    await service.store.write(do(f"UPDATE api_keys SET {change}"))  # noqa: S608 - no input
    await service.store.write(do("UPDATE api_key_revision SET revision = revision + 1"))


async def test_an_invalid_parameter_is_refused(service: Service) -> None:
    key = await service.issue()
    cursor = "cursor: expected the cursor of a Link header, unchanged"
    for params, expected in (
        ({"limit": "101"}, "limit: expected an integer from 1 to 100, in plain digits"),
        ({"wait": "26"}, "wait: expected an integer from 0 to 25, in plain digits"),
        ({"wait": "-1"}, "wait: expected an integer from 0 to 25, in plain digits"),
        ({"wait": "1.5"}, "wait: expected an integer from 0 to 25, in plain digits"),
        ({"type": "pet.sold"}, "type: expected one of 'pet.created', 'pet.updated', "),
        ({"cursor": "AAAAAAAAABQ"}, cursor),
        ({"cursor": "_" * 16}, cursor),
        ({"cursor": "LATEST"}, cursor),
        ({"cursor": "A" * 16 + "."}, cursor),
        *(({"resource": text}, RESOURCE) for text in NO_RESOURCES),
    ):
        with case(params):
            response = await service.request("GET", EVENTS, key.token, params=params)
            assert assert_error(response, 400, "invalid_parameter").startswith(expected)


async def test_a_type_beyond_the_scopes_of_the_key_is_refused(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"pets:read"}))
    params = {"type": "order.placed"}
    response = await service.request("GET", EVENTS, key.token, params=params)
    assert_error(response, 403, "missing_scope")
    assert 'scope="orders:read"' in response.headers["WWW-Authenticate"]


@pytest.mark.each_database
@pytest.mark.parametrize("position", [Position(1, b"mark"), Position(99, b"mark")])
async def test_a_cursor_without_an_event_in_the_store_is_refused(
    service: Service, position: Position
) -> None:
    key = await service.issue()
    await add_pets(service, key.token)
    await follow(service, key.token, f"{EVENTS}?wait={WAIT}", 1)
    params = {"cursor": IN_FEED.encode(position)}
    response = await service.request("GET", EVENTS, key.token, params=params)
    assert_error(response, 410, "cursor_expired")
    assert response.json()["message"].startswith("cursor: ")


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
        {"type": "pet.created", **common, "sequence": 1, "data": pet},
        {
            "type": "pet.updated",
            **common,
            "sequence": 2,
            "data": pet | changes,
            "previous": {"name": "Bella 0", "status": "available"},
        },
        {"type": "pet.deleted", **common, "sequence": 3, "data": pet | changes},
    ]


@pytest.mark.each_database
async def test_a_client_that_follows_the_links_sees_each_event_once(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token, 7)
    events, target = await follow(service, key.token, f"{EVENTS}?limit=3&wait={WAIT}", 7)
    assert [event["sequence"] for event in events] == [1, 2, 3, 4, 5, 6, 7]
    await add_pets(service, key.token, 2)
    events, _ = await follow(service, key.token, target, 2)
    assert [event["sequence"] for event in events] == [8, 9]


async def test_an_empty_page_has_a_link_to_what_comes_later(service: Service) -> None:
    key = await service.issue()
    response = await service.request("GET", EVENTS, key.token)
    assert (response.status_code, response.json()) == (200, [])
    await add_pets(service, key.token)
    events, target = await follow(service, key.token, response.links["latest"]["url"], 1)
    assert events[0]["resource"] == "pet/1"
    response = await service.request("GET", target, key.token)
    assert (response.json(), response.links["latest"]["url"]) == ([], target)


@pytest.mark.each_database
async def test_latest_starts_after_the_newest_event(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token)
    await follow(service, key.token, f"{EVENTS}?wait={WAIT}", 1)
    response = await service.request("GET", f"{EVENTS}?cursor=latest", key.token)
    assert response.json() == []
    await add_pets(service, key.token)
    events, _ = await follow(service, key.token, response.links["latest"]["url"], 1)
    assert events[0]["resource"] == "pet/2"


@pytest.mark.each_database
async def test_the_list_ends_at_the_newest_event_and_goes_on_later_behind_it(
    service: Service,
) -> None:
    key = await service.issue()
    await add_pets(service, key.token, 5)
    await published(service, key.token, 5)
    target, pages = f"{EVENTS}?limit=2&type=pet.created", []
    while target:
        response = await service.request("GET", target, key.token)
        pages.append([event["sequence"] for event in response.json()])
        assert (
            response.links["latest"]["url"]
            == response.links.get("next", response.links["latest"])["url"]
        )
        target = response.links.get("next", {}).get("url", "")
    assert pages == [[1, 2], [3, 4], [5]]
    await add_pets(service, key.token)
    events, _ = await follow(
        service, key.token, f"{response.links['latest']['url']}&wait={WAIT}", 1
    )
    assert [event["sequence"] for event in events] == [6]


@pytest.mark.parametrize("query", ["limit=2", "limit=2&cursor=latest"])
async def test_a_page_behind_which_nothing_is_left_has_no_next_link(
    service: Service, query: str
) -> None:
    key = await service.issue()
    await add_pets(service, key.token, 2)
    response = await service.request("GET", f"{EVENTS}?{query}", key.token)
    assert set(response.links) == {"latest"}


async def test_events_are_filtered_by_type_and_the_link_keeps_the_filter(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token)
    await service.request("POST", "/v1/categories", key.token, json={"name": "Dogs"})
    await service.request("POST", "/v1/store/orders", key.token, json={"petId": 1})
    types = "type=category.created&type=order.placed"
    events, target = await follow(service, key.token, f"{EVENTS}?{types}&wait={WAIT}", 2)
    assert [event["type"] for event in events] == ["category.created", "order.placed"]
    assert target.startswith(f"{SERVICE_URL}{EVENTS}?{types}&wait={WAIT}&cursor=")


@pytest.mark.each_database
async def test_a_key_sees_the_events_that_its_scopes_allow(service: Service) -> None:
    shop = await service.issue()
    reader = await service.issue(scopes=frozenset({"orders:read"}))
    await add_pets(service, shop.token)
    await service.request("POST", "/v1/store/orders", shop.token, json={"petId": 1})
    events, _ = await follow(service, reader.token, f"{EVENTS}?wait={WAIT}", 1)
    assert [event["type"] for event in events] == ["order.placed"]


@pytest.mark.each_database
async def test_only_the_key_itself_sees_events_about_it(service: Service) -> None:
    mine, other = await service.issue(), await service.issue()

    def warn() -> Any:
        yield record(0, NewEvent("key.banned", f"key/{mine.id}", {}, key_id=mine.id))

    task = await waiting(service, mine.token)
    await service.store.write(warn())
    assert [event["type"] for event in (await task).json()] == ["key.banned"]
    response = await service.request("GET", EVENTS, other.token)
    assert response.json() == []


@pytest.mark.each_database
async def test_a_long_poll_ends_with_the_event(service: Service) -> None:
    key = await service.issue(per_minute=10)
    task = await waiting(service, key.token)
    await add_pets(service, key.token)
    response = await task
    assert [event["type"] for event in response.json()] == ["pet.created"]
    assert response.headers["X-RateLimit-Remaining"] == "8"


async def test_a_long_poll_without_an_event_ends_with_an_empty_page(service: Service) -> None:
    key = await service.issue()
    params = {"cursor": "latest", "wait": 1}
    response = await service.request("GET", EVENTS, key.token, params=params)
    assert (response.status_code, response.json()) == (200, [])
    assert "cursor=" in response.links["latest"]["url"]


async def test_a_stopping_process_ends_all_long_polls(service: Service) -> None:
    key = await service.issue()
    task = await waiting(service, key.token)
    service.app.shut_down()
    response = await task
    assert (response.status_code, response.json()) == (200, [])
    response = await service.request("GET", f"{EVENTS}?wait={WAIT}", key.token)
    assert (response.status_code, response.json()) == (200, [])


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


async def test_a_key_that_loses_a_scope_during_a_long_poll_gets_no_events_of_it(
    service: Service,
) -> None:
    key, other = await service.issue(), await service.issue()
    anything = await waiting(service, key.token)
    asked_for = await waiting(service, key.token, type="pet.created")
    await change_key(service, f"scopes = 'orders:read' WHERE id = {key.id}")
    await service.status_becomes(key.token, 403, "/v1/pets")
    await add_pets(service, other.token)
    assert_error(await asked_for, 403, "missing_scope")
    service.app.shut_down()
    response = await anything
    assert (response.status_code, response.json()) == (200, [])


async def test_the_limit_headers_are_those_at_the_end_of_a_long_poll(service: Service) -> None:
    key = await service.issue(per_minute=10)
    before = (await service.request("GET", EVENTS, key.token)).headers["X-RateLimit-Reset"]
    task = await waiting(service, key.token)
    service.clock.advance(61)
    service.app.shut_down()
    headers = (await task).headers
    assert headers["X-RateLimit-Remaining"] == "10"
    assert int(headers["X-RateLimit-Reset"]) > int(before)


async def test_head_has_the_headers_of_the_feed(service: Service) -> None:
    key = await service.issue()
    response = await service.request("HEAD", EVENTS, key.token)
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["Cache-Control"] == "no-store"
    assert "ETag" not in response.headers
    assert set(response.links) == {"latest"}


def many_events(count: int) -> Any:
    """Record events that no one asks for, and then one of another type."""
    for _ in range(count // 1000):
        yield record(0, *[NewEvent("pet.updated", "pet/1", {})] * 1000)
    yield record(0, NewEvent("pet.deleted", "pet/1", {}))


async def published(service: Service, token: str, count: int) -> None:
    async def is_last() -> bool:
        response = await service.request("GET", f"{EVENTS}?cursor=latest", token)
        cursor = response.links["latest"]["url"].partition("cursor=")[2]
        return IN_FEED.decode(cursor).sequence == count

    await eventually(is_last)


@pytest.mark.each_database
async def test_a_rare_event_is_found_after_thousands_of_others(service: Service) -> None:
    key = await service.issue()
    await service.store.write(many_events(5_000))
    await published(service, key.token, 5_001)
    response = await service.request("GET", f"{EVENTS}?type=pet.deleted", key.token)
    assert [event["sequence"] for event in response.json()] == [5_001]


@pytest.mark.each_database
async def test_one_request_searches_a_bounded_part_of_the_feed(service: Service) -> None:
    key = await service.issue()
    await service.store.write(many_events(25_000))
    await published(service, key.token, 25_001)
    target = f"{EVENTS}?type=pet.deleted&wait={WAIT}"
    response = await service.request("GET", target, key.token)
    assert response.json() == []
    events, _ = await follow(service, key.token, response.links["latest"]["url"], 1)
    assert [event["sequence"] for event in events] == [25_001]


# The history of one resource


@pytest.mark.each_database
async def test_the_history_of_a_resource_has_its_events_alone(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token, 3)
    for path, change in (("pets/2", {"name": "Rex"}), ("pets/3", {"name": "Max"})):
        await service.request("PATCH", f"/v1/{path}", key.token, json=change)
    await service.request("POST", "/v1/store/orders", key.token, json={"petId": 2})
    await service.request("DELETE", "/v1/pets/3", key.token)
    target = f"{EVENTS}?resource=pet%2F2&limit=2&wait={WAIT}"
    events, target = await follow(service, key.token, target, 3)
    assert [(event["type"], event["resource"]) for event in events] == [
        *(("pet.created", "pet/2"), ("pet.updated", "pet/2"), ("pet.updated", "pet/2")),
    ]
    assert target.startswith(f"{SERVICE_URL}{EVENTS}?resource=pet%2F2&limit=2&wait={WAIT}&cursor=")
    for wanted, count in (("type=pet.deleted&resource=pet/3", 1), ("resource=order/1", 1)):
        found, _ = await follow(service, key.token, f"{EVENTS}?{wanted}&wait={WAIT}", count)
        assert len(found) == count
    response = await service.request("GET", f"{EVENTS}?resource=pet/4", key.token)
    assert (response.status_code, response.json()) == (200, [])
    assert set(response.links) == {"latest"}


@pytest.mark.each_database
async def test_a_long_poll_of_a_resource_ends_with_an_event_of_it(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token, 2)
    await published(service, key.token, 2)
    task = await waiting(service, key.token, resource="pet/2")
    await service.request("PATCH", "/v1/pets/1", key.token, json={"name": "Rex"})
    await service.request("PATCH", "/v1/pets/2", key.token, json={"name": "Max"})
    response = await task
    assert [event["resource"] for event in response.json()] == ["pet/2"]
    cursor = response.links["latest"]["url"].partition("cursor=")[2]
    assert IN_FEED.decode(cursor).sequence == 4


@pytest.mark.each_database
@pytest.mark.parametrize("position", [Position(1, b"mark"), Position(99, b"mark")])
async def test_an_unknown_cursor_is_refused_for_a_resource_too(
    service: Service, position: Position
) -> None:
    key = await service.issue()
    await add_pets(service, key.token)
    await published(service, key.token, 1)
    params = {"cursor": IN_FEED.encode(position), "resource": "pet/1"}
    response = await service.request("GET", EVENTS, key.token, params=params)
    assert_error(response, 410, "cursor_expired")


@pytest.mark.parametrize(
    ("resource", "scope"),
    [("pet/1", "pets:read"), ("category/1", "pets:read"), ("order/1", "orders:read")],
)
async def test_a_resource_beyond_the_scopes_of_the_key_is_refused(
    service: Service, resource: str, scope: str
) -> None:
    key = await service.issue(scopes=frozenset({"webhooks:write"}))
    response = await service.request("GET", EVENTS, key.token, params={"resource": resource})
    assert_error(response, 403, "missing_scope")
    assert f'scope="{scope}"' in response.headers["WWW-Authenticate"]


async def test_a_resource_given_twice_is_refused(service: Service) -> None:
    key = await service.issue()
    response = await service.request("GET", f"{EVENTS}?resource=pet/1&resource=pet/2", key.token)
    message = assert_error(response, 400, "invalid_parameter")
    assert message == "resource: expected once, got it twice"


async def test_the_history_of_a_key_or_webhook_is_of_its_holder_alone(service: Service) -> None:
    scopes = frozenset({"webhooks:write"})
    mine, other = await service.issue(scopes=scopes), await service.issue(scopes=scopes)
    for key in (mine, other):
        webhook = {"url": "https://shop.example/hooks"}
        await service.request("POST", "/v1/webhooks", key.token, json=webhook)
    await service.request("POST", "/v1/webhooks/1/test", mine.token)
    for key, count in ((mine, 1), (other, 0)):
        response = await service.request("GET", f"{EVENTS}?resource=webhook/1", key.token)
        assert len(response.json()) == count
    response = await service.request("GET", f"{EVENTS}?resource=key/{mine.id}", other.token)
    assert response.json() == []


async def test_a_key_that_loses_a_scope_gets_no_more_of_the_history(service: Service) -> None:
    key, other = await service.issue(), await service.issue()
    task = await waiting(service, key.token, resource="pet/1")
    await change_key(service, f"scopes = 'orders:read' WHERE id = {key.id}")
    await service.status_becomes(key.token, 403, "/v1/pets")
    await add_pets(service, other.token)
    assert_error(await task, 403, "missing_scope")
