"""The feed of events, as a client reads it."""

import asyncio
from typing import Any

import httpx
import pytest

from petstore.domain.events import NewEvent, Position
from petstore.store.events import record
from support.error_body import assert_error
from support.service import SERVICE_URL, Service
from support.stores import do
from support.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

EVENTS = "/v1/events"
BELLA = {"name": "Bella", "categoryId": 1, "status": "available"}
WAIT = 25


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
        target = response.links["next"]["url"]
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


async def test_the_feed_needs_a_key(service: Service) -> None:
    assert_error(await service.request("GET", EVENTS), 401, "missing_api_key")


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"limit": "0"}, "limit: expected an integer from 1 to 100, in plain digits"),
        ({"limit": "101"}, "limit: expected an integer from 1 to 100, in plain digits"),
        ({"wait": "26"}, "wait: expected an integer from 0 to 25, in plain digits"),
        ({"wait": "-1"}, "wait: expected an integer from 0 to 25, in plain digits"),
        ({"wait": "1.5"}, "wait: expected an integer from 0 to 25, in plain digits"),
        ({"type": "pet.sold"}, "type: expected one of 'pet.created', 'pet.updated', "),
        ({"cursor": "AAAAAAAAABQ"}, "cursor: expected the cursor of a Link header, unchanged"),
        ({"cursor": "_" * 16}, "cursor: expected the cursor of a Link header, unchanged"),
        ({"cursor": "LATEST"}, "cursor: expected the cursor of a Link header, unchanged"),
    ],
)
async def test_an_invalid_parameter_is_refused(
    service: Service, params: dict[str, str], expected: str
) -> None:
    key = await service.issue()
    response = await service.request("GET", EVENTS, key.token, params=params)
    assert_error(response, 400, "invalid_parameter")
    assert response.json()["message"].startswith(expected)


async def test_a_type_beyond_the_scopes_of_the_key_is_refused(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"pets:read"}))
    params = {"type": "order.placed"}
    response = await service.request("GET", EVENTS, key.token, params=params)
    assert_error(response, 403, "missing_scope")
    assert 'scope="orders:read"' in response.headers["WWW-Authenticate"]


@pytest.mark.parametrize("position", [Position(1, b"mark"), Position(99, b"mark")])
async def test_a_cursor_of_which_the_store_has_no_event_is_refused(
    service: Service, position: Position
) -> None:
    key = await service.issue()
    await add_pets(service, key.token)
    await follow(service, key.token, f"{EVENTS}?wait={WAIT}", 1)
    params = {"cursor": position.cursor}
    response = await service.request("GET", EVENTS, key.token, params=params)
    assert_error(response, 410, "cursor_expired")
    assert response.json()["message"].startswith("cursor: ")


async def test_a_change_is_told_with_what_was_and_what_is(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token)
    changes = {"status": "sold", "name": "Rex"}
    await service.request("PATCH", "/v1/pets/1", key.token, json=changes)
    await service.request("DELETE", "/v1/pets/1", key.token)
    events, _ = await follow(service, key.token, f"{EVENTS}?wait={WAIT}", 3)
    ids = [event.pop("id") for event in events]
    assert len(set(ids)) == 3
    assert all(event_id.startswith("evt_") and "." not in event_id for event_id in ids)
    pet = {"id": 1, "name": "Bella 0", "categoryId": 1, "status": "available"}
    common = {"timestamp": "2026-12-01T12:00:00.000Z", "resource": "pet/1"}
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


async def test_a_client_that_follows_the_links_sees_each_event_once(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token, 7)
    events, target = await follow(service, key.token, f"{EVENTS}?limit=3&wait={WAIT}", 7)
    assert [event["sequence"] for event in events] == [1, 2, 3, 4, 5, 6, 7]
    await add_pets(service, key.token, 2)
    events, _ = await follow(service, key.token, target, 2)
    assert [event["sequence"] for event in events] == [8, 9]


async def test_an_empty_page_links_to_what_follows(service: Service) -> None:
    key = await service.issue()
    response = await service.request("GET", EVENTS, key.token)
    assert (response.status_code, response.json()) == (200, [])
    await add_pets(service, key.token)
    events, target = await follow(service, key.token, response.links["next"]["url"], 1)
    assert events[0]["resource"] == "pet/1"
    response = await service.request("GET", target, key.token)
    assert (response.json(), response.links["next"]["url"]) == ([], target)


async def test_latest_starts_behind_the_newest_event(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token)
    await follow(service, key.token, f"{EVENTS}?wait={WAIT}", 1)
    response = await service.request("GET", f"{EVENTS}?cursor=latest", key.token)
    assert response.json() == []
    await add_pets(service, key.token)
    events, _ = await follow(service, key.token, response.links["next"]["url"], 1)
    assert events[0]["resource"] == "pet/2"


async def test_types_filter_and_stay_in_the_link(service: Service) -> None:
    key = await service.issue()
    await add_pets(service, key.token)
    await service.request("POST", "/v1/categories", key.token, json={"name": "Dogs"})
    await service.request("POST", "/v1/store/orders", key.token, json={"petId": 1})
    types = "type=category.created&type=order.placed"
    events, target = await follow(service, key.token, f"{EVENTS}?{types}&wait={WAIT}", 2)
    assert [event["type"] for event in events] == ["category.created", "order.placed"]
    assert target.startswith(f"{SERVICE_URL}{EVENTS}?{types}&wait={WAIT}&cursor=")


async def test_a_key_sees_what_its_scopes_may_read(service: Service) -> None:
    shop = await service.issue()
    reader = await service.issue(scopes=frozenset({"orders:read"}))
    await add_pets(service, shop.token)
    await service.request("POST", "/v1/store/orders", shop.token, json={"petId": 1})
    events, _ = await follow(service, reader.token, f"{EVENTS}?wait={WAIT}", 1)
    assert [event["type"] for event in events] == ["order.placed"]


async def test_what_concerns_a_key_is_seen_by_its_holder_alone(service: Service) -> None:
    mine, other = await service.issue(), await service.issue()

    def warn() -> Any:
        yield record(0, NewEvent("key.banned", f"key/{mine.key.id}", {}, key_id=mine.key.id))

    await service.store.write(warn())
    events, _ = await follow(service, mine.token, f"{EVENTS}?wait={WAIT}", 1)
    assert [event["type"] for event in events] == ["key.banned"]
    response = await service.request("GET", EVENTS, other.token)
    assert response.json() == []


async def test_a_waiting_request_ends_with_the_event(service: Service) -> None:
    key = await service.issue(per_minute=10)
    task = await waiting(service, key.token)
    await add_pets(service, key.token)
    response = await task
    assert [event["type"] for event in response.json()] == ["pet.created"]
    assert response.headers["X-RateLimit-Remaining"] == "8"


async def test_a_wait_without_an_event_ends_with_an_empty_page(service: Service) -> None:
    key = await service.issue()
    params = {"cursor": "latest", "wait": 1}
    response = await service.request("GET", EVENTS, key.token, params=params)
    assert (response.status_code, response.json()) == (200, [])
    assert "cursor=" in response.links["next"]["url"]


async def test_a_process_that_stops_ends_all_waits(service: Service) -> None:
    key = await service.issue()
    task = await waiting(service, key.token)
    service.app.retire()
    response = await task
    assert (response.status_code, response.json()) == (200, [])
    response = await service.request("GET", f"{EVENTS}?wait={WAIT}", key.token)
    assert (response.status_code, response.json()) == (200, [])


async def test_a_key_that_ends_meanwhile_gets_nothing(service: Service) -> None:
    key, other = await service.issue(), await service.issue()
    task = await waiting(service, key.token)
    revoke = do("UPDATE api_keys SET revoked_at = 1 WHERE id = ?1", key.key.id)
    await service.store.write(revoke)
    await service.store.write(do("UPDATE api_key_revision SET revision = revision + 1"))
    await service.status_becomes(key.token, 401)
    await add_pets(service, other.token)
    assert_error(await task, 401, "invalid_api_key")


async def test_a_key_that_loses_a_scope_meanwhile_gets_no_events_of_it(service: Service) -> None:
    key, other = await service.issue(), await service.issue()
    anything = await waiting(service, key.token)
    asked_for = await waiting(service, key.token, type="pet.created")
    narrow = do("UPDATE api_keys SET scopes = 'orders:read' WHERE id = ?1", key.key.id)
    await service.store.write(narrow)
    await service.store.write(do("UPDATE api_key_revision SET revision = revision + 1"))
    await service.status_becomes(key.token, 403, "/v1/pets")
    await add_pets(service, other.token)
    assert_error(await asked_for, 403, "missing_scope")
    service.app.retire()
    response = await anything
    assert (response.status_code, response.json()) == (200, [])


async def test_limits_are_those_at_the_end_of_a_wait(service: Service) -> None:
    key = await service.issue(per_minute=10)
    before = (await service.request("GET", EVENTS, key.token)).headers["X-RateLimit-Reset"]
    task = await waiting(service, key.token)
    service.clock.advance(61)
    service.app.retire()
    headers = (await task).headers
    assert headers["X-RateLimit-Remaining"] == "10"
    assert int(headers["X-RateLimit-Reset"]) > int(before)


async def test_head_has_the_headers_of_the_feed(service: Service) -> None:
    key = await service.issue()
    response = await service.request("HEAD", EVENTS, key.token)
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["Cache-Control"] == "no-store"
    assert "ETag" not in response.headers
    assert "next" in response.links


async def test_a_key_that_may_not_be_used_from_there_any_more_gets_nothing(
    service: Service,
) -> None:
    key, other = await service.issue(), await service.issue()
    task = await waiting(service, key.token)
    elsewhere = "UPDATE api_keys SET allowed_networks = '203.0.113.0/24' WHERE id = ?1"
    await service.store.write(do(elsewhere, key.key.id))
    await service.store.write(do("UPDATE api_key_revision SET revision = revision + 1"))
    await service.status_becomes(key.token, 403)
    await add_pets(service, other.token)
    assert_error(await task, 403, "network_not_allowed")


def many_events(count: int) -> Any:
    """Record events that no one asks for, and then one of another type."""
    for _ in range(count // 1000):
        yield record(0, *[NewEvent("pet.updated", "pet/1", {})] * 1000)
    yield record(0, NewEvent("pet.deleted", "pet/1", {}))


async def published(service: Service, token: str, count: int) -> None:
    async def is_last() -> bool:
        response = await service.request("GET", f"{EVENTS}?cursor=latest", token)
        cursor = response.links["next"]["url"].partition("cursor=")[2]
        return Position.of_cursor(cursor).sequence == count

    await eventually(is_last)


async def test_a_rare_event_is_found_behind_thousands_of_others(service: Service) -> None:
    key = await service.issue()
    await service.store.write(many_events(5_000))
    await published(service, key.token, 5_001)
    response = await service.request("GET", f"{EVENTS}?type=pet.deleted", key.token)
    assert [event["sequence"] for event in response.json()] == [5_001]


async def test_one_request_searches_a_bounded_part_of_the_feed(service: Service) -> None:
    key = await service.issue()
    await service.store.write(many_events(25_000))
    await published(service, key.token, 25_001)
    target = f"{EVENTS}?type=pet.deleted&wait={WAIT}"
    response = await service.request("GET", target, key.token)
    assert response.json() == []
    events, _ = await follow(service, key.token, response.links["next"]["url"], 1)
    assert [event["sequence"] for event in events] == [25_001]
