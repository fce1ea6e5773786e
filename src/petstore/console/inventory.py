"""The page of the inventory: how many animals there are of each status."""

from petstore.console.charts import Part, stacked
from petstore.console.page import Page, Visit
from petstore.domain.pets import Inventory
from petstore.http.messages import Response


async def _inventory(visit: Visit) -> Response:
    counts: Inventory = (await visit.call("getInventory")).value
    parts = (
        Part("available", counts.available, "good"),
        Part("pending", counts.pending, "wait"),
        Part("sold", counts.sold, "done"),
    )
    chart = stacked("by-status", "Animals by status", "animals", "Status", parts)
    return visit.page("inventory.html", chart=chart)


PAGES = (Page("GET", "/inventory", _inventory, needs="getInventory"),)
