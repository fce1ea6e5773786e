"""The table of operations: each row and its handler agree."""

from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

from petstore.api.operation import Operation
from petstore.api.operations import OPERATIONS


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_a_handler_takes_the_body_and_the_query_of_its_row(operation: Operation) -> None:
    call: Any = get_type_hints(operation.handler)["call"]
    body, query = get_args(call)
    assert body is (operation.body or NoneType)
    assert query is (operation.query or NoneType)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_a_lapse_shows_in_what_tells_of_animals_and_orders(operation: Operation) -> None:
    assert operation.shows_orders == (operation.path.split("/")[1] in ("pets", "store"))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_no_cache_may_keep_what_tells_of_keys(operation: Operation) -> None:
    resources = ("deprecations", "events", "keys", "usage", "webhooks")
    assert operation.no_store == (operation.path.split("/")[1] in resources)
