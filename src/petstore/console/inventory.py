"""The page of the inventory: how many animals there are of each status."""

from typing import NamedTuple

from petstore.console.page import Page, Visit
from petstore.domain.pets import Inventory
from petstore.http.messages import Response


class Share(NamedTuple):
    """The animals of a status. Positions are percentages of the bar."""

    status: str
    tone: str
    animals: int
    x: float
    width: float


async def _inventory(visit: Visit) -> Response:
    counts: Inventory = (await visit.call("getInventory")).value
    return visit.page("inventory.html", shares=_shares(counts))


def _shares(counts: Inventory) -> list[Share]:
    total = counts.available + counts.pending + counts.sold
    shares, x = [], 0.0
    for status, tone, count in (
        ("available", "good", counts.available),
        ("pending", "wait", counts.pending),
        ("sold", "done", counts.sold),
    ):
        width = 100 * count / total if total else 0.0
        shares.append(Share(status, tone, count, round(x, 2), round(width, 2)))
        x += width
    return shares


PAGES = (Page("GET", "/inventory", _inventory, needs="getInventory"),)
