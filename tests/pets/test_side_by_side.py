"""Units of work by hand: what others do in the moment between two statements."""

import pytest

from petstore.categories.model import CategoryPatch
from petstore.databases.contract import Duplicate
from petstore.errors import CategoryNameTaken
from petstore.events.store import Change
from petstore.orders.model import OrderCreate
from petstore.orders.store import place_order
from support.changes import update_category


def test_an_animal_that_becomes_available_during_the_order_can_be_ordered() -> None:
    unit = place_order(Change(0), OrderCreate(1))
    tried = next(unit)
    unit.send([])  # it is not
    unit.send([])  # nor has an order for it lapsed
    assert unit.send([("available",)]) == tried
    unit.send([(1, "Bella", 7, "pending")])
    unit.send([(5,)])
    with pytest.raises(StopIteration) as placed:
        unit.send([])
    assert placed.value.value.id == 5


def test_a_name_that_is_taken_during_the_change_is_refused() -> None:
    unit = update_category(1, CategoryPatch("Cats"))
    next(unit)
    unit.send([(1, "Dogs", None)])
    unit.send([])
    with pytest.raises(CategoryNameTaken, match=r"^name: another category has just got the name"):
        unit.throw(Duplicate())
