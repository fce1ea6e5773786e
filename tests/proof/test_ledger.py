"""The model of the store notices every difference between the database and the responses."""

import pytest

from proof.ledger import (
    REFUSED,
    KnownOrder,
    KnownPet,
    Ledger,
    Rows,
    StoredOrder,
    StoredPet,
)

REX = StoredPet(1, "rex", 7, "pending")
LOST = StoredPet(3, "lost", 9, "available")
ORDER = StoredOrder(5, "order", 1, "placed")


def ledger() -> Ledger:
    """Return the recorded responses: an animal, an order for it, and unknown outcomes."""
    return Ledger(
        pet_tags={"rex": 1, "refused": REFUSED, "lost": None},
        order_tags={"order": 5, "refused": REFUSED, "lost": None},
        pets={1: KnownPet("rex", {7, 8})},
        orders={5: KnownOrder("order", 1, {"placed", "approved"})},
    )


def contradictions(pets: list[StoredPet], orders: list[StoredOrder]) -> str:
    return "; ".join(ledger().contradictions(Rows(pets, orders, [])))


@pytest.mark.parametrize(
    ("pets", "orders"),
    [
        ([REX], [ORDER]),
        ([REX._replace(category_id=8)], [ORDER._replace(status="approved")]),
        ([REX, LOST], [ORDER]),
        ([REX, LOST._replace(status="sold")], [ORDER, StoredOrder(6, "lost", 3, "delivered")]),
        ([REX], [ORDER, StoredOrder(6, "lost", 1, "cancelled")]),
    ],
    ids=["as told", "a change of unknown outcome", "an unknown animal", "sold to it", "cancelled"],
)
def test_a_store_that_matches_the_responses_has_no_contradiction(
    pets: list[StoredPet], orders: list[StoredOrder]
) -> None:
    assert contradictions(pets, orders) == ""


@pytest.mark.parametrize(
    ("pets", "orders", "said"),
    [
        ([], [ORDER], "animal 1 is gone"),
        ([REX._replace(category_id=9)], [ORDER], "animal 1 has category 9, expected one of [7, 8]"),
        ([REX, LOST._replace(tag="refused")], [ORDER], "(refused) is there though nobody was told"),
        ([REX, LOST._replace(tag="stray")], [ORDER], "(stray) is there though nobody was told"),
        ([REX, LOST, LOST._replace(id=4)], [ORDER], "animal lost is there 2 times"),
        ([REX, LOST._replace(tag="rex")], [ORDER], "animal rex was acknowledged as 1, and is 3"),
        ([REX._replace(status="available")], [], "order 5 is gone"),
        ([REX, LOST], [ORDER._replace(pet_id=3)], "order 5 is for animal 3, not 1"),
        ([REX], [ORDER._replace(status="cancelled")], "order 5 is cancelled, expected one of"),
        ([REX], [ORDER, ORDER._replace(id=6, tag="lost")], "animal 1 was sold 2 times"),
        ([REX._replace(status="available")], [ORDER], "animal 1 is available, and its orders are"),
        (
            [REX],
            [ORDER, StoredOrder(6, "lost", 9, "placed")],
            "animal 9 was deleted while an",
        ),
    ],
)
def test_a_store_that_differs_from_the_responses_is_a_contradiction(
    pets: list[StoredPet], orders: list[StoredOrder], said: str
) -> None:
    assert said in contradictions(pets, orders)


def test_an_animal_that_was_deleted_must_be_gone() -> None:
    known = ledger()
    known.pets[1].may_exist = {False}
    (said,) = known.contradictions(Rows([REX], [ORDER], []))
    assert said == "animal 1 is there after its deletion"
