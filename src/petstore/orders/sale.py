"""The sale of an animal, as the page of the animal tells it."""

from collections.abc import Sequence
from typing import NamedTuple

from petstore.clock import Milliseconds, milliseconds, utc
from petstore.console.history import History
from petstore.console.page import PageRequest
from petstore.orders.model import Order, can_be_undone
from petstore.pets.model import Pet


class Sale(NamedTuple):
    """What is known of a sale: perhaps its ``order``, and who sold the animal.

    ``who`` is empty if that is no longer kept. ``can_be_undone`` is whether the order can still be
    cancelled.
    """

    order: Order | None
    who: str
    at: Milliseconds
    can_be_undone: bool


async def latest_order(visit: PageRequest, pet: Pet) -> Order | None:
    """Return the newest order of an animal, if the person may see it. No other one can be open."""
    if not visit.may("listOrders"):
        return None
    latest = {"petId": pet.id, "sort": "-id", "limit": 1}
    orders: Sequence[Order] = (await visit.execute("listOrders", query=latest)).value
    return orders[0] if orders else None


async def sale_of(visit: PageRequest, pet: Pet, history: History) -> Sale | None:
    """Return how a sold animal was sold, ``None`` if it is not sold or nothing is known."""
    if pet.status != "sold":
        return None
    line, order = history.change_of("status"), await latest_order(visit, pet)
    # Somebody may have taken the animal back since, and marked it as sold.
    if (
        order is None
        or not order.delivered_at
        or (line is not None and line.at > milliseconds(order.delivered_at))
    ):
        return None if line is None else Sale(None, line.who, line.at, can_be_undone=False)
    at = milliseconds(order.delivered_at)
    who = "" if line is None else line.who
    return Sale(order, who, at, can_be_undone(order, utc(visit.services.clock())))
