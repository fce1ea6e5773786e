"""Paths and methods, and the table of operations behind them."""

from types import NoneType
from typing import TypeVar, get_args, get_type_hints

import pytest

from petstore.interface.operation import Operation
from petstore.interface.operations import OPERATIONS
from support.cases import case
from support.error_body import assert_error
from support.service import Service


@pytest.mark.anyio
async def test_an_unknown_path_is_not_found(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"keys:admin", "webhooks:write"}))
    for path in (
        *("", "/", "//pets", "%2Fpets", "%2fpets", "/pets/", "/pets//1", "/pets/1/"),
        *("/pets/1/photos", "/pets%2F1", "/%70ets", "/Pets", "/pets;a=1", "/pet", "/petsx"),
        *("/usage/", "/usage/1", "/v1/pets", "/store", "/store/", "/store/orders/1/approve"),
        *("/keys/1/", "/keys//rotate", "/keys/1//rotate", "/keys/1/rotate/", "/keys/1/Rotate"),
        *("/webhooks/1/deliveries/1", "/webhooks/1/deliveries//retry", "/webhooks/1/1/1/1"),
        *("/webhooks//deliveries/1/retry", "/webhooks/1/deliveries/1/retry/"),
        *("/webhooks/1/deliveries/1/retry/1", "/%2e%2e/healthz", "/rotate", "//rotate"),
        *("/keys/1/rotate/now", "/keys/1/2/rotate", "/pets/1/rotate", "/keys/current"),
    ):
        with case(path):
            response = await service.request("GET", f"/v1{path}", key.token)
            assert_error(response, 404, "not_found")
            assert len(response.headers.get_list("X-RateLimit-Limit")) == 1
    long = await service.request("GET", f"/v1/{'x' * 5000}", key.token)
    assert len(assert_error(long, 404, "not_found")) < 300
    for key_id in (
        *("x", "1.0", "+1", "9223372036854775808", "%31", "1%2f", "history", "Current"),
        "%63urrent",
    ):
        with case(key_id):
            response = await service.request("POST", f"/v1/keys/{key_id}/rotate", key.token)
            assert_error(response, 404, "not_found")


@pytest.mark.anyio
async def test_a_405_lists_the_allowed_methods(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"keys:admin"}))
    for method, path, allow in [
        ("PUT", "/v1/pets", "GET, HEAD, POST"),
        ("DELETE", "/v1/pets", "GET, HEAD, POST"),
        ("OPTIONS", "/v1/pets", "GET, HEAD, POST"),
        ("get", "/v1/pets", "GET, HEAD, POST"),
        ("POST", "/v1/pets/1", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/v1/keys/1/rotate", "POST"),
        ("GET", "/v1/keys/current/rotate", "POST"),
        ("DELETE", "/v1/keys/x/rotate", "POST"),
        ("POST", "/v1/keys/1/usage", "GET, HEAD"),
        # A segment after a parameter is matched literally.
        ("POST", "/v1/keys/rotate", "DELETE, GET, HEAD, PATCH"),
        ("POST", "/v1/keys/1%2Frotate", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/v1/webhooks/x/deliveries/1/retry", "POST"),
        ("POST", "/v1/usage", "GET, HEAD"),
        ("X" * 1000, "/v1/usage", "GET, HEAD"),
    ]:
        with case(method, path):
            request = service.client.build_request("GET", path)
            request.headers["Authorization"] = f"Bearer {key.token}"
            request.method = method  # as it is: a client may not write it in capitals
            response = await service.client.send(request)
            message = assert_error(response, 405, "method_not_allowed")
            assert response.headers.get_list("Allow") == [allow]
            assert len(message) < 100


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_a_handler_has_the_types_of_its_operation(operation: Operation) -> None:
    _, call, result = get_type_hints(operation.handler).values()
    body, query = get_args(call)
    if isinstance(body, TypeVar) or isinstance(get_args(result)[0], TypeVar):
        return  # a row that every resource has: mypy holds its handler to it
    if operation.is_batch:
        assert body == operation.body
    else:  # a patch that follows has no name in types
        assert issubclass(operation.body or NoneType, body)
    assert query is (operation.query or NoneType)
    if operation.success.content is not None:
        assert get_args(result) == (operation.success.content,)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_scope_caching_and_lapses_follow_from_the_resource(operation: Operation) -> None:
    right = "read" if operation.method == "GET" else "write"
    scopes = {
        **dict.fromkeys(("pets", "categories"), f"pets:{right}"),
        **dict.fromkeys(("keys", "people", "deprecations"), "keys:admin"),
        **dict.fromkeys(("events", "usage"), None),
        "store": f"orders:{right}",
        "webhooks": "webhooks:write",
        "imports": "pets:write",
        "current": None,  # the own key
    }
    _, resource, *rest = operation.path.split("/")
    assert operation.scope == scopes["current" if "current" in rest else resource]
    about_keys = ("deprecations", "events", "keys", "people", "usage", "webhooks")
    assert operation.no_store == (resource in about_keys)
    # A reservation that lapses is no sale.
    assert operation.shows_orders == (resource in ("pets", "store") and operation.id != "getSales")
