"""The stock as pages show it: how many animals of each status there are, by category."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import UNSET

from petstore.console.charts import ChartPart, Stacked, stacked
from petstore.console.page import PageRequest
from petstore.pets.model import CategoryCounts, Inventory

_OTHERS = "all other categories"


class CategoryStock(NamedTuple):
    """The animals of a category. What all categories beyond the first ones share has no ``id``.

    In the ``chart``, the category with the most animals has the whole width.
    """

    id: int | None
    name: str
    counts: CategoryCounts
    chart: Stacked


class Stock(NamedTuple):
    """All animals with a status, and those of each category: the most to sell come first."""

    chart: Stacked
    categories: Sequence[CategoryStock]


async def stock_of(visit: PageRequest, named: int | None = None) -> Stock:
    """Return the stock as it is now; the first categories have their names, all by default."""
    found: Inventory = (await visit.execute("getInventory", query={"by": "category"})).value
    counts = [] if found.categories is UNSET else sorted(found.categories, key=_to_sell_first)
    ids = [each.category_id for each in counts[:named] if each.category_id is not UNSET]
    names = await visit.category_names(ids)
    scale = max((_total(each) for each in counts), default=0)
    return Stock(
        stacked("by-status", "Animals by status", "animals", "Status", _parts(found)),
        [_category_stock(each, names, scale) for each in counts],
    )


def _category_stock(counts: CategoryCounts, names: dict[int, str], scale: int) -> CategoryStock:
    if counts.category_id is UNSET:
        category_id, name = None, _OTHERS
    else:
        category_id = counts.category_id
        name = names.get(category_id, f"category {category_id}")
    chart = stacked("by-category", name, "animals", "Status", _parts(counts), scale)
    return CategoryStock(category_id, name, counts, chart)


def _parts(counts: Inventory | CategoryCounts) -> list[ChartPart]:
    return [
        ChartPart("available", counts.available, "good"),
        ChartPart("pending", counts.pending, "wait"),
        ChartPart("sold", counts.sold, "done"),
    ]


def _to_sell_first(counts: CategoryCounts) -> tuple[bool, int, int]:
    """Return by what categories are sorted: what all the others share comes last."""
    return counts.category_id is UNSET, -counts.available - counts.pending, -counts.sold


def _total(counts: CategoryCounts) -> int:
    return counts.available + counts.pending + counts.sold
