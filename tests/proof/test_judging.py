"""The judge notices every difference between the store and what clients were told."""

import pytest

from proof.ledger import REFUSED, KnownOrder, KnownPet, Ledger, Rows, StoredOrder, StoredPet

REX = StoredPet(1, "rex", 7, "pending")
LOST = StoredPet(3, "lost", 9, "available")
ORDER = StoredOrder(5, "order", 1, "placed", 40)
BOUGHT = StoredOrder(6, "lost", 3, "delivered")


def contradictions(pets: list[StoredPet], orders: list[StoredOrder]) -> str:
    """Judge rows by these responses: a pet, an order for it, and unknown outcomes."""
    ledger = Ledger(
        pet_tags={"rex": 1, "refused": REFUSED, "lost": None, "also lost": None},
        order_tags={"order": 5, "refused": REFUSED, "lost": None},
        batches=[["lost", "also lost"]],
        pets={1: KnownPet("rex", {7, 8}, {True})},
        orders={5: KnownOrder("order", 1, {"placed", "approved"}, 40)},
    )
    return "; ".join(ledger.contradictions(Rows(pets, orders, [])))


BATCH = [LOST, LOST._replace(id=4, tag="also lost")]


@pytest.mark.parametrize(
    ("pets", "orders", "said"),
    [
        ([REX, LOST._replace(status="sold"), BATCH[1]], [ORDER, BOUGHT], ""),
        ([], [ORDER], "pet 1 is gone"),
        ([REX._replace(category_id=9)], [ORDER], "pet 1 has category 9, expected one of [7, 8]"),
        ([REX, LOST._replace(tag="refused")], [ORDER], "(refused) is there though nobody was told"),
        ([REX, LOST._replace(tag="stray")], [ORDER], "(stray) is there though nobody was told"),
        ([REX, LOST, LOST._replace(id=4)], [ORDER], "pet lost is there 2 times"),
        ([REX, LOST], [ORDER], "of the batch ['lost', 'also lost'] only ['lost'] are there"),
        ([REX, LOST._replace(tag="rex")], [ORDER], "pet rex was acknowledged as 1, and is 3"),
        ([REX._replace(status="available")], [], "order 5 is gone"),
        ([REX, *BATCH], [ORDER._replace(pet_id=3)], "order 5 is for pet 3, not 1"),
        ([REX], [ORDER._replace(status="cancelled")], "order 5 is cancelled, expected one of"),
        ([REX], [ORDER._replace(amount=4)], "order 5 is over 4, not 40"),
        ([REX], [ORDER, ORDER._replace(id=6, tag="lost")], "pet 1 was sold 2 times"),
        ([REX._replace(status="available")], [ORDER], "pet 1 is available, and its orders are"),
        ([REX], [ORDER, StoredOrder(6, "lost", 9, "placed")], "pet 9 was deleted while an"),
    ],
)
def test_a_store_that_differs_from_the_responses_is_a_contradiction(
    pets: list[StoredPet], orders: list[StoredOrder], said: str
) -> None:
    found = contradictions(pets, orders)
    assert said in found if said else not found
