"""Errors of requests in memory: freed with the response, with the body and all that they hold."""

import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from petstore.errors import PetstoreError
from petstore.keys.model import new_token
from support.service import Service
from support.visitor import Visitor, newcomer

pytestmark = pytest.mark.anyio

REFUSED: list[tuple[str, str, Any]] = [
    ("POST", "/v1/pets", {}),
    ("POST", "/v1/pets/batch", [{}]),
    ("GET", "/v1/pets?cursor=x", None),
    ("PATCH", "/v1/pets/99", {}),
    ("DELETE", "/v1/pets/99", None),
    ("POST", "/v1/categories", {"name": "Dogs"}),
    ("POST", "/v1/store/orders", {"petId": 99}),
]


async def errors_left(act: Callable[[], Awaitable[object]]) -> list[str]:
    """Return the errors that only the garbage collector frees after ``act``."""
    await act()  # what is made once
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await act()
        gc.collect()
        return [repr(one) for one in gc.garbage if isinstance(one, PetstoreError)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.each_database
@pytest.mark.usefixtures("dogs")
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "a"}])
async def test_no_error_of_the_interface_is_left_to_the_garbage_collector(
    service: Service, headers: dict[str, str]
) -> None:
    token = (await service.issue()).token

    async def act() -> None:
        for method, path, body in REFUSED:
            sent = headers if method == "POST" else {}
            response = await service.request(method, path, token, json=body, headers=sent)
            assert response.status_code >= 400

    assert await errors_left(act) == []


@pytest.mark.each_database
async def test_no_error_of_the_console_or_beyond_the_limit_of_an_address_is_left_either(
    service: Service, staff: Visitor
) -> None:
    stranger = newcomer(service)
    made_up = (new_token("production") for _ in range(1000))
    while (await stranger.post("/sign-in", key=next(made_up))).status_code != 429:
        pass

    async def act() -> None:
        await staff.get("/pets/99")
        for path in ("/pets", "/pets/99", "/categories/99"):
            await staff.post(path, name="")
        await stranger.post("/sign-in", key=next(made_up))
        await stranger.post("/sign-in", key="x" * 200_000)
        for path in ("/sign-in", "/link/x", "/invitation/x", "/pets"):
            await stranger.post(path, login="x", password="short")  # noqa: S106

    assert await errors_left(act) == []
