"""The table of operations: each row and its handler agree."""

from types import NoneType
from typing import TypeVar, get_args, get_type_hints

import pytest

from petstore.interface.operation import Operation
from petstore.interface.operations import OPERATIONS


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
def test_operations_on_pets_and_orders_show_lapsed_reservations(operation: Operation) -> None:
    shows_orders = operation.path.split("/")[1] in ("pets", "store")
    # A reservation that lapses is no sale.
    assert operation.shows_orders == (shows_orders and operation.id != "getSales")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_responses_about_keys_are_not_cached(operation: Operation) -> None:
    resources = ("deprecations", "events", "keys", "people", "usage", "webhooks")
    assert operation.no_store == (operation.path.split("/")[1] in resources)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_an_operation_needs_the_scope_of_its_resource(operation: Operation) -> None:
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
