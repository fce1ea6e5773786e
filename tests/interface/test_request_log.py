"""The log line of a request: its client, its route, and why it was refused."""

import json
from collections.abc import Awaitable, Callable
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from petstore.http.messages import Request, Response
from petstore.keys.model import new_token
from support.service import Service, running_service

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
