"""The order of checks: each request breaks a rule, and all that are judged after it."""

from typing import NamedTuple

import pytest

from support.cases import case
from support.error_body import assert_error
from support.sending import JSON, STALE, TEXT, TOO_LARGE, Send, sender
from support.service import Service

pytestmark = pytest.mark.anyio


class Resource(NamedTuple):
    """A collection with something of id 1, the scope that changes it, and two bodies for a change.

    ``illegal`` is well-formed, and refused for what is in the store.
    """

    path: str
    scope: str
    invalid: bytes
    illegal: bytes


PETS = Resource("/pets", "pets", b'{"name":null}', b'{"status":"pending"}')
ORDERS = Resource("/store/orders", "orders", b'{"status":null}', b'{"status":"placed"}')
CATEGORIES = Resource("/categories", "pets", b'{"name":null}', b'{"name":"CATS"}')
RESOURCES = pytest.mark.parametrize(
    "resource", [PETS, ORDERS, CATEGORIES], ids=lambda resource: resource.path
)


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends with a key that may do everything, to a store with a sold and ordered pet."""
    send = await sender(service)
    for path, body in [
        ("/pets", {"name": "Bella", "categoryId": 1, "status": "available"}),
        ("/store/orders", {"petId": 1}),
        ("/categories", {"name": "Dogs"}),
        ("/categories", {"name": "Cats"}),
    ]:
        assert (await send("POST", path, json=body)).status_code == 201
    return send


CHANGES = (
    (None, "x", "of text", 401, "missing_api_key"),
    ("read", "x", "of text", 403, "missing_scope"),
    ("write", "x", "of text", 415, "unsupported_media_type"),
    ("write", "x", "too large", 413, "content_too_large"),
    ("write", "x", "invalid", 400, "invalid_body"),
    ("write", "x", "illegal", 404, "not_found"),
    ("write", "9", "illegal", 404, "not_found"),
    ("write", "1", "illegal", 412, "precondition_failed"),
)
DELETIONS = (
    (None, "x", 401, "missing_api_key"),
    ("read", "x", 403, "missing_scope"),
    ("write", "x", 404, "not_found"),
    ("write", "9", 404, "not_found"),
    ("write", "1", 412, "precondition_failed"),
)


async def token_with(service: Service, scope: str | None) -> str | None:
    return None if scope is None else (await service.issue(scopes=frozenset({scope}))).token


@RESOURCES
async def test_the_checks_of_a_change_run_in_order(
    service: Service, send: Send, resource: Resource
) -> None:
    before = (await send("GET", f"{resource.path}/1")).json()
    bodies = {"invalid": resource.invalid, "illegal": resource.illegal}
    for right, target, body, status, code in CHANGES:
        with case(right, target, body):
            token = await token_with(service, right and f"{resource.scope}:{right}")
            response = await service.request(
                *("PATCH", f"/v1{resource.path}/{target}", token),
                headers=STALE | (TEXT if body == "of text" else JSON),
                content=bodies.get(body, TOO_LARGE),
            )
            assert_error(response, status, code)
    assert (await send("GET", f"{resource.path}/1")).json() == before


@RESOURCES
async def test_the_checks_of_a_deletion_run_in_order(
    service: Service, send: Send, resource: Resource
) -> None:
    before = (await send("GET", f"{resource.path}/1")).json()
    for right, target, status, code in DELETIONS:
        with case(right, target):
            token = await token_with(service, right and f"{resource.scope}:{right}")
            path = f"/v1{resource.path}/{target}"
            response = await service.request("DELETE", path, token, headers=STALE)
            assert_error(response, status, code)
    assert (await send("GET", f"{resource.path}/1")).json() == before
