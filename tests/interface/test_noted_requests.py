"""What is noted of a request: its line in the log, and the counts of its key."""

import json
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from petstore.clock import HOUR
from petstore.http.messages import Request, Response
from petstore.keys.model import new_token
from petstore.keys.store import MAX_OWN_ROTATIONS
from petstore.usage.operations import list_statuses
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.visitor import signed_in

pytestmark = pytest.mark.anyio

PROXY = {"X-Forwarded-For": "198.51.100.7"}


async def lines(
    database: Path, ask: Callable[[Service], Awaitable[object]], **settings: Any
) -> list[dict[str, Any]]:
    """Return the lines of the requests that ``ask`` makes of a service with these settings."""
    async with running_service(database, **settings) as service:
        await ask(service)
    return [json.loads(line) for line in service.log.getvalue().splitlines()]


async def test_the_logged_client_is_the_one_behind_trusted_proxies(database: Path) -> None:
    async def ask(service: Service) -> None:
        await service.request("GET", "/docs", headers=PROXY)

    (trusting,) = await lines(database, ask, trusted_proxy=("127.0.0.0/8",))
    (wary,) = await lines(database, ask)
    assert (trusting["client"], wary["client"]) == ("198.51.100.7", "127.0.0.1")


async def test_the_logged_route_is_a_template_and_never_the_requested_path(database: Path) -> None:
    paths = ["/v1/pets/7?limit=1", "/v1/store/orders/7", "/docs/", "/v1/keys/secret/none", "/a"]
    paths += [f"{path}?buyer=secret" for path in ("/v1/store/orders", "/console/orders")]

    async def ask(service: Service) -> None:
        key = await service.issue()
        for path in paths:
            await service.request("GET", path, key.token)

    logged = await lines(database, ask)
    assert "secret" not in str(logged)
    assert [line["route"] for line in logged] == [
        *("/v1/pets/{petId}", "/v1/store/orders/{orderId}", "/docs/", None, None),
        *("/v1/store/orders", "/console/orders"),
    ]


async def test_the_logged_bytes_are_the_size_of_the_body_sent_or_of_the_file_and_zero_for_head(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    sent = []

    async def page(_: Request) -> Response:
        files.append(BytesIO(b"12345"))
        return Response(200, b"", [], file=files[-1])

    async def ask(service: Service) -> None:
        monkeypatch.setitem(service.app._pages, "/file", page)  # noqa: SLF001
        for path, method in product(("/v1/openapi.json", "/file"), ("GET", "HEAD")):
            as_it_is = {"Accept-Encoding": "identity"}
            response = await service.request(method, path, headers=as_it_is)
            sent.append((len(response.content), response.headers.get("Content-Length")))

    counted = [line["bytes"] for line in await lines(database, ask)]
    assert counted == [size for size, _ in sent]
    assert counted[0] > counted[1] == 0
    assert sent[2:] == [(5, "5"), (0, None)]
    assert [file.closed for file in files] == [True, True]


async def test_the_log_says_which_limit_a_429_is_for(database: Path) -> None:
    async def ask(service: Service) -> None:
        minute = (await service.issue(per_minute=1, per_day=9)).token
        day = (await service.issue(per_minute=9, per_day=1)).token
        for token in (minute, minute, day, day, None, None):
            await service.request("GET", "/v1/pets", token)
        for _ in range(2):
            await service.request("GET", "/v1/usage", minute)
        for _ in range(2):
            await service.request("GET", "/v1/pets", new_token("production"))

    settings = {"anonymous_per_minute": 1, "usage_per_minute": 1}
    told = [
        (line["status"], line["code"], line["limit"])
        for line in await lines(database, ask, **settings)
    ]
    assert told == [
        (200, None, None),
        (429, "rate_limit_exceeded", "key_minute"),
        (200, None, None),
        (429, "rate_limit_exceeded", "key_day"),
        (401, "missing_api_key", None),
        (429, "rate_limit_exceeded", "address_minute"),
        (200, None, None),
        (429, "rate_limit_exceeded", "operation_minute"),
        (429, "rate_limit_exceeded", "address_minute"),
        (429, "rate_limit_exceeded", "lookup_minute"),
    ]


async def test_a_replayed_conflict_and_a_key_outside_its_networks_are_logged_with_their_codes(
    database: Path,
) -> None:
    async def ask(service: Service) -> None:
        key = (await service.issue(scopes=frozenset({"pets:read", "pets:write"}))).token
        elsewhere = await service.issue(allowed_networks=("192.0.2.0/24",))
        for once in ({}, {"Idempotency-Key": "one"}, {"Idempotency-Key": "one"}):
            sent = {"json": {"name": "Dogs"}, "headers": once}
            await service.request("POST", "/v1/categories", key, **sent)
        await service.request("GET", "/v1/pets", elsewhere.token)

    logged = [(line["status"], line["code"], line["key"]) for line in await lines(database, ask)]
    assert logged == [
        (201, None, 1),
        (409, "category_name_taken", 1),
        (409, "category_name_taken", 1),
        (403, "network_not_allowed", 2),
    ]


# The refusals and the responses of a key, counted as they are shown


NOON = "2026-12-01T12:00:00Z"


async def refused(service: Service, token: str) -> list[Mapping[str, Any]]:
    await service.app.services.counter.save()
    usage = await service.request("GET", "/v1/usage", token)
    found: list[Mapping[str, Any]] = usage.json()["refused"]
    return found


async def test_refusals_are_shown_by_hour_and_operation(service: Service) -> None:
    key = await service.issue(per_minute=1)
    await service.request("GET", "/v1/pets", key.token)
    for method, path in (("GET", "/v1/pets"), ("HEAD", "/v1/pets"), ("PATCH", "/v1/pets/7")):
        await service.request(method, path, key.token)
    for path in ("/v1/nothing", "/v1/pets/1/2"):
        await service.request("GET", path, key.token)
    await service.request("PUT", "/v1/pets", key.token)
    expected = [
        {"hour": NOON, "operation": None, "requests": 3},
        {"hour": NOON, "operation": "listPets", "requests": 2},
        {"hour": NOON, "operation": "updatePet", "requests": 1},
    ]
    assert await refused(service, key.token) == expected
    service.clock.now += HOUR
    for _ in range(2):
        await service.request("GET", "/v1/pets", key.token)
    newest = {"hour": "2026-12-01T13:00:00Z", "operation": "listPets", "requests": 1}
    assert await refused(service, key.token) == [newest, *expected]
    service.clock.advance(2)
    for _ in range(service.settings.ban_strikes + 5):  # and of a ban
        await service.request("GET", "/v1/pets", key.token)
    newest["requests"] = service.settings.ban_strikes + 6
    assert await refused(service, key.token) == [newest, *expected]


async def test_refusals_of_usage_and_of_a_rotation_count(database: Path) -> None:
    async with running_service(database, usage_per_minute=1) as service:
        key = await service.issue()
        token = key.token
        for _ in range(MAX_OWN_ROTATIONS + 1):
            response = await service.request("POST", "/v1/keys/current/rotate", token)
            token = response.json().get("token", token)
        for _ in range(2):
            await service.request("GET", "/v1/usage", token)
        service.clock.advance(60)
        names = [row["operation"] for row in await refused(service, token)]
        assert names == ["getUsage", "rotateCurrentKey"]


async def counted(service: Service, key_id: int) -> dict[int, int]:
    await service.app.services.counter.save()
    found = await list_statuses(service.app.services, key_id)
    return {each.status: each.requests for each in found}


async def test_responses_to_a_key_are_counted_by_status(service: Service) -> None:
    key = await service.issue(plan="free", scopes=frozenset({"pets:read"}))
    for method, path in (
        ("GET", "/v1/pets"),
        ("GET", "/v1/pets"),
        ("GET", "/v1/nothing"),
        ("PUT", "/v1/pets"),
        ("POST", "/v1/pets"),
        ("GET", "/v1/usage"),
    ):
        await service.request(method, path, key.token)
    await service.request("GET", "/v1/pets", "not-a-key")
    assert await counted(service, key.id) == {200: 3, 403: 1, 404: 1, 405: 1}
    assert await refused(service, key.token) == []  # only those by a limit are shown
    for _ in range(60):
        await service.request("GET", "/v1/pets", key.token)
    assert (await counted(service, key.id))[429] == 5
    elsewhere = await service.issue(allowed_networks=("203.0.113.0/24",))
    await service.request("GET", "/v1/pets", elsewhere.token)
    assert await counted(service, elsewhere.id) == {403: 1}


async def test_the_console_and_requests_without_a_key_are_not_counted(service: Service) -> None:
    person = await signed_in(service, per_minute=1)
    for _ in range(10):
        await person.get("/pets")
    for _ in range(301):
        await service.request("GET", "/v1/pets")
        await service.request("GET", "/docs")
    assert await counted(service, person.key_id) == {}
    assert await refused(service, person.token) == []


async def test_the_counts_survive_a_restart(database: Path, clock: ManualClock) -> None:
    async with running_service(database, clock) as service:
        key = await service.issue(per_minute=1)
        for _ in range(3):
            await service.request("GET", "/v1/pets", key.token)
    async with running_service(database, clock) as service:
        (row,) = await refused(service, key.token)
        assert row["requests"] == 2
        assert await counted(service, key.id) == {200: 2, 429: 2}
